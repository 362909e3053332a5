//! Tests with random values of random schemas, random bytes, and the seeds of the fuzz targets.

use codecs::thrift::{
    Framing, Header, Limits, Message, MessageKind, MessageReader, Progress, Protocol, compose_message,
};
use codecs::value::Value;
use proptest::prelude::*;

use crate::assertions;
use crate::idl::parse;

/// Choices drawn from bytes, or 0 when no bytes are left, so that fewer bytes make a smaller case.
struct Choices<'c>(&'c [u8]);

impl Choices<'_> {
    fn below(&mut self, count: u8) -> u8 {
        match self.0.split_first() {
            Some((first, rest)) => {
                self.0 = rest;
                first % count
            }
            None => 0,
        }
    }

    fn integer(&mut self, bits: u32) -> i64 {
        let used = self.below(9);
        let wide = (0..used).fold(0_i64, |sum, _| sum << 8 | i64::from(self.below(255)));
        let wide = if self.below(2) == 1 { !wide } else { wide };
        wide << (64 - bits) >> (64 - bits)
    }
}

enum Ty {
    Bool,
    Integer(&'static str, u32),
    Double,
    Text,
    Binary,
    Uuid,
    List(Box<Ty>),
    Set(Box<Ty>),
    Map(Box<Ty>, Box<Ty>),
    Struct(usize),
}

struct Field {
    id: i16,
    is_optional: bool,
    ty: Ty,
}

/// Structs in the order of their numbers. A struct contains only earlier ones.
#[derive(Default)]
struct Structs(Vec<Vec<Field>>);

impl Structs {
    fn ty(&mut self, choices: &mut Choices<'_>, depth: usize) -> Ty {
        let kinds = if depth > 3 { 9 } else { 13 };
        match choices.below(kinds) {
            0 => Ty::Bool,
            1 => Ty::Integer("i8", 8),
            2 => Ty::Integer("i16", 16),
            3 => Ty::Integer("i32", 32),
            4 => Ty::Integer("i64", 64),
            5 => Ty::Double,
            6 => Ty::Text,
            7 => Ty::Binary,
            8 => Ty::Uuid,
            9 => Ty::List(Box::new(self.ty(choices, depth + 1))),
            10 => Ty::Set(Box::new(self.ty(choices, depth + 1))),
            11 => {
                let key = self.ty(choices, depth + 1);
                Ty::Map(Box::new(key), Box::new(self.ty(choices, depth + 1)))
            }
            _ => {
                let fields = self.fields(choices, depth + 1);
                self.0.push(fields);
                Ty::Struct(self.0.len() - 1)
            }
        }
    }

    fn fields(&mut self, choices: &mut Choices<'_>, depth: usize) -> Vec<Field> {
        let mut id = 0;
        let mut fields = Vec::new();
        for _ in 0..choices.below(5) {
            // Some deltas exceed 15, the limit of the short form in the compact protocol.
            id += 1 + i16::from(choices.below(20)) + if choices.below(8) == 0 { 3000 } else { 0 };
            fields.push(Field { id, is_optional: choices.below(2) == 1, ty: self.ty(choices, depth) });
        }
        fields
    }

    fn name(&self, ty: &Ty) -> String {
        match ty {
            Ty::Bool => "bool".to_owned(),
            Ty::Integer(name, _) => (*name).to_owned(),
            Ty::Double => "double".to_owned(),
            Ty::Text => "string".to_owned(),
            Ty::Binary => "binary".to_owned(),
            Ty::Uuid => "uuid".to_owned(),
            Ty::List(element) => format!("list<{}>", self.name(element)),
            Ty::Set(element) => format!("set<{}>", self.name(element)),
            Ty::Map(key, value) => format!("map<{}, {}>", self.name(key), self.name(value)),
            Ty::Struct(number) => format!("S{number}"),
        }
    }

    fn declared(&self, fields: &[Field]) -> String {
        let declared = fields.iter().map(|field| {
            let optional = if field.is_optional { "optional " } else { "" };
            format!("{}: {optional}{} f{}; ", field.id, self.name(&field.ty), field.id)
        });
        declared.collect()
    }

    fn record(&self, fields: &[Field], choices: &mut Choices<'_>) -> Value {
        let there = fields.iter().filter_map(|field| {
            let is_absent = field.is_optional && choices.below(2) == 0;
            (!is_absent).then(|| (format!("f{}", field.id), self.value(&field.ty, choices)))
        });
        Value::Record(there.collect())
    }

    fn value(&self, ty: &Ty, choices: &mut Choices<'_>) -> Value {
        // Some counts are near 15, where the header of a compact list changes its form.
        let count =
            |choices: &mut Choices<'_>| if choices.below(10) == 9 { 13 + choices.below(5) } else { choices.below(4) };
        match ty {
            Ty::Bool => Value::Bool(choices.below(2) == 1),
            Ty::Integer(_, bits) => Value::Integer(choices.integer(*bits)),
            Ty::Double => Value::Double(choices.integer(64) as f64 / 8.0),
            Ty::Text => Value::Text(
                (0..choices.below(6)).map(|_| ['a', 'ł', '😀', '\0'][usize::from(choices.below(4))]).collect(),
            ),
            Ty::Binary => Value::Bytes((0..choices.below(6)).map(|_| choices.below(255)).collect()),
            Ty::Uuid => Value::Bytes((0..16).map(|_| choices.below(255)).collect()),
            Ty::List(element) | Ty::Set(element) => {
                Value::List((0..count(choices)).map(|_| self.value(element, choices)).collect())
            }
            Ty::Map(key, value) => Value::Map(
                (0..count(choices)).map(|_| (self.value(key, choices), self.value(value, choices))).collect(),
            ),
            Ty::Struct(number) => self.record(&self.0[*number], choices),
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(600))]

    /// Composed messages decode to the same value, however the bytes are split. Truncated messages fail.
    #[test]
    fn random_values_survive_a_round_trip(bytes in proptest::collection::vec(any::<u8>(), 0..300), sequence: i32, strict: bool) {
        let mut choices = Choices(&bytes);
        let mut structs = Structs::default();
        let arguments = structs.fields(&mut choices, 0);
        let declared = structs.0.iter().enumerate().map(|(number, fields)| format!("struct S{number} {{ {} }}\n", structs.declared(fields)));
        let text = format!("{}service T {{ void m({}) }}", declared.collect::<String>(), structs.declared(&arguments).replace("optional ", ""));
        let schema = parse("random.thrift", &text);
        let id = schema.service("T").unwrap().method("m").unwrap().arguments;
        let value = structs.record(&arguments, &mut choices);
        for protocol in [Protocol::Binary, Protocol::Compact] {
            for framing in [Framing::Framed, Framing::Unframed] {
                let is_strict = strict || protocol == Protocol::Compact;
                let header = Header { name: "m", kind: MessageKind::Call, sequence, is_strict };
                let out = compose_message(protocol, framing, &header, &schema, id, &value).unwrap();
                let mut reader = MessageReader::new(protocol, framing, Limits::DEFAULT);
                for end in 0..out.len() {
                    let need = reader.read(&out[..end]).unwrap();
                    prop_assert!(matches!(need, Progress::Need { more } if more > 0 && end + more <= out.len()), "{need:?}");
                }
                let Progress::Message { used, begin } = reader.read(&out).unwrap() else { panic!("it is whole") };
                prop_assert_eq!(used, out.len());
                let message = Message::decode(protocol, &out[begin..], &Limits::DEFAULT).unwrap();
                prop_assert_eq!(message.header, header);
                prop_assert_eq!(&message.as_struct(&schema, id).to_value(), &value);
                for end in begin..out.len() {
                    prop_assert!(Message::decode(protocol, &out[begin..end], &Limits::DEFAULT).is_err());
                }
            }
        }
    }

    #[test]
    fn random_bytes_never_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        for (_, body) in BODIES {
            body(&bytes);
        }
    }

    #[test]
    fn changed_seeds_never_panic(which: u8, changes in proptest::collection::vec((any::<u16>(), any::<u8>()), 1..4)) {
        let (name, body) = BODIES[usize::from(which) % BODIES.len()];
        for mut seed in seeds(name) {
            for (at, byte) in &changes {
                let at = usize::from(*at) % seed.len();
                seed[at] = *byte;
            }
            body(&seed);
        }
    }
}

type Body = fn(&[u8]);

const BODIES: [(&str, Body); 7] = [
    ("thrift_idl", assertions::thrift_idl),
    ("thrift_binary", assertions::thrift_binary),
    ("thrift_compact", assertions::thrift_compact),
    ("soap", assertions::soap),
    ("wsdl", assertions::wsdl),
    ("json", assertions::json),
    ("rest", assertions::rest),
];

fn seeds(name: &str) -> Vec<Vec<u8>> {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fuzz/seeds");
    let files =
        std::fs::read_dir(format!("{folder}/{name}")).unwrap_or_else(|error| panic!("{folder}/{name}: {error}"));
    files.map(|file| std::fs::read(file.unwrap().path()).unwrap()).collect()
}

#[test]
fn seeds_pass_all_fuzz_targets() {
    for (name, body) in BODIES {
        let seeds = seeds(name);
        assert!(!seeds.is_empty(), "{name} has seeds");
        seeds.iter().for_each(|seed| body(seed));
    }
}
