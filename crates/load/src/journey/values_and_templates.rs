//! The values of a running journey, and the strings and arguments built from them.

use std::borrow::Cow;
use std::fmt::Write;

use codecs::value::Value;
use stats::{Distribution, Rng};
use study::journey::Argument;
use study::journey::placeholders::{self, Field};
use study::template::Part;

use crate::template_escaping::{self, Escape, Syntax};

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Template(pub(crate) Vec<Piece>);

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Piece {
    Text(String),
    Slot(usize, Escape),
    Number(u64),
    Random(u32),
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Given {
    Fixed(Value),
    Text(Template),
    /// A template that consists of a single name, whose value keeps its type.
    Slot(usize),
    List(Vec<Given>),
    Record(Vec<(String, Given)>),
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Names(pub(crate) Vec<String>);

impl Names {
    pub(crate) fn add(&mut self, name: &str) -> usize {
        self.0.push(name.to_owned());
        self.0.len() - 1
    }

    /// Returns the slot of a name. Adds the name if it is new.
    pub(crate) fn slot(&mut self, name: &str) -> usize {
        self.0.iter().position(|known| known == name).unwrap_or_else(|| self.add(name))
    }

    /// Values for which [`Value::Unknown`] stands until a journey runs.
    pub(crate) fn unknown_values(&self) -> Values {
        let mut values = Values::new(self.0.len(), 0, 0);
        values.slots.fill(Value::Unknown);
        values
    }

    /// Compiles a template of this syntax, in which each value is escaped for its context.
    pub(crate) fn template(&self, text: &str, syntax: Syntax) -> Result<Template, String> {
        let mut before = String::new();
        let piece = |part| {
            Ok(match part {
                Part::Text(text) => {
                    before.push_str(text);
                    Piece::Text(text.to_owned())
                }
                Part::Field(_, Field::Number { times }) => Piece::Number(times),
                Part::Field(_, Field::Random { length }) => Piece::Random(length),
                Part::Field(name, Field::Name) => {
                    let slot = self.0.iter().position(|known| *known == name);
                    let escape = template_escaping::escape_after(syntax, &before);
                    Piece::Slot(slot.ok_or_else(|| format!("undefined name `{name}`"))?, escape)
                }
            })
        };
        let parts = placeholders::parts(text).map_err(|error| error.in_one_line())?;
        parts.into_iter().map(piece).collect::<Result<_, String>>().map(Template)
    }

    pub(crate) fn argument(&self, argument: &Argument) -> Result<Given, String> {
        Ok(match argument {
            Argument::Flag(flag) => Given::Fixed(Value::Bool(*flag)),
            Argument::Integer(integer) => Given::Fixed(Value::Integer(*integer)),
            Argument::Number(number) => Given::Fixed(Value::Double(*number)),
            Argument::Text(text) => match self.template(text, Syntax::Other)?.0.as_slice() {
                [Piece::Slot(slot, _)] => Given::Slot(*slot),
                [Piece::Text(text)] => Given::Fixed(Value::Text(text.clone())),
                pieces => Given::Text(Template(pieces.to_vec())),
            },
            Argument::List(items) => {
                Given::List(items.iter().map(|item| self.argument(item)).collect::<Result<_, _>>()?)
            }
            Argument::Record(fields) => {
                let field = |(name, value): &(String, Argument)| Ok((name.clone(), self.argument(value)?));
                Given::Record(fields.iter().map(field).collect::<Result<_, String>>()?)
            }
        })
    }
}

#[derive(Clone, Debug)]
pub(crate) struct Values {
    pub(crate) slots: Vec<Value>,
    number: u64,
    rng: Rng,
}

impl Values {
    /// Creates the values of a journey. Random values depend only on the seed and `number`.
    pub(crate) fn new(count: usize, seed: u64, number: u64) -> Values {
        Values { slots: vec![Value::Null; count], number, rng: Rng::stream(seed, number) }
    }

    pub(crate) fn pick(&mut self, count: u64) -> u64 {
        self.rng.below(count)
    }

    pub(crate) fn time_ns(&mut self, law: &Distribution) -> u64 {
        law.sample(&mut self.rng) as u64
    }

    pub(crate) fn text<'t>(&mut self, template: &'t Template) -> Cow<'t, str> {
        if let [Piece::Text(text)] = template.0.as_slice() {
            return Cow::Borrowed(text);
        }
        const LETTERS: &[u8; 36] = b"abcdefghijklmnopqrstuvwxyz0123456789";
        let mut text = String::with_capacity(64);
        for piece in &template.0 {
            match piece {
                Piece::Text(piece) => text.push_str(piece),
                Piece::Slot(slot, escape) => match (&self.slots[*slot], escape) {
                    (Value::Null, Escape::JsonValue) => text.push_str("null"),
                    (value, escape) => template_escaping::push(&mut text, &value_text(value), *escape),
                },
                Piece::Number(times) => {
                    let _ = write!(text, "{}", self.number.wrapping_mul(*times));
                }
                Piece::Random(length) => text
                    .extend((0..*length).map(|_| char::from(LETTERS[self.rng.below(LETTERS.len() as u64) as usize]))),
            }
        }
        Cow::Owned(text)
    }

    pub(crate) fn value(&mut self, given: &Given) -> Value {
        match given {
            Given::Fixed(value) => value.clone(),
            Given::Text(template) => Value::Text(self.text(template).into_owned()),
            Given::Slot(slot) => self.slots[*slot].clone(),
            Given::List(items) => Value::List(items.iter().map(|item| self.value(item)).collect()),
            Given::Record(fields) => {
                Value::Record(fields.iter().map(|(name, given)| (name.clone(), self.value(given))).collect())
            }
        }
    }
}

pub(crate) fn value_text(value: &Value) -> Cow<'_, str> {
    match value {
        Value::Text(text) => text.into(),
        Value::Integer(integer) => integer.to_string().into(),
        Value::Bool(flag) => flag.to_string().into(),
        Value::Double(double) => double.to_string().into(),
        Value::Bytes(bytes) => String::from_utf8_lossy(bytes),
        Value::Null | Value::Unknown | Value::List(_) | Value::Map(_) | Value::Record(_) => "".into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn journey_depends_only_on_seed_and_number() {
        let mut names = Names::default();
        names.add("a");
        let template = names.template("{a}-{number*3}-{random:8}", Syntax::Other).unwrap();
        let text = |seed, number| {
            let mut values = Values::new(1, seed, number);
            values.slots[0] = Value::Integer(7);
            values.text(&template)
        };
        assert_eq!(text(1, 4), text(1, 4));
        assert!(text(1, 4).starts_with("7-12-"));
        assert_ne!(text(1, 4)[5..], text(1, 5)[5..]);
        assert_ne!(text(1, 4)[5..], text(2, 4)[5..]);
        assert_eq!(text(1, 4).len(), 13);
    }

    #[test]
    fn single_name_keeps_its_type() {
        let mut names = Names::default();
        names.add("game");
        let given = |text: &str| names.argument(&Argument::Text(text.to_owned())).unwrap();
        let mut values = Values::new(1, 1, 0);
        values.slots[0] = Value::Integer(7);
        assert_eq!(values.value(&given("{game}")), Value::Integer(7));
        assert_eq!(values.value(&given("game {game}")), Value::from("game 7"));
        assert!(names.template("{other}", Syntax::Other).is_err());
    }

    fn written(template: &str, syntax: Syntax, value: impl Into<Value>) -> String {
        let mut names = Names::default();
        names.add("x");
        let template = names.template(template, syntax).unwrap();
        let mut values = Values::new(1, 1, 0);
        values.slots[0] = value.into();
        values.text(&template).into_owned()
    }

    #[test]
    fn escapes_values_in_json() {
        let hostile = "a\", \"admin\": true, \"b\": \"\\\n\u{1}ü";
        for template in ["{\"user\": \"{x}\"}", "{\"user\": {x}}", "{\"say \\\"\": [\"{x}\"]}"] {
            let body = written(template, Syntax::Json, hostile);
            let json = codecs::json::parse(body.as_bytes()).unwrap_or_else(|error| {
                panic!("{body}: {error:?}");
            });
            let text = format!("{json:?}");
            assert!(!text.contains("admin\","), "{text}");
        }
        assert_eq!(written("[\"{x}\"]", Syntax::Json, "a\"\\\n"), r#"["a\"\\\u000a"]"#);
        // A value outside quotes keeps its type.
        for (value, expected) in [("12", "[12]"), ("true", "[true]"), ("1, 2", "[\"1, 2\"]"), ("", "[\"\"]")] {
            assert_eq!(written("[{x}]", Syntax::Json, value), expected);
        }
        assert_eq!(written("[{x}]", Syntax::Json, Value::Integer(-7)), "[-7]");
        assert_eq!(written("[{x}]", Syntax::Json, Value::Null), "[null]");
    }

    #[test]
    fn escapes_values_in_urls() {
        let url = |template: &str, value: &str| written(template, Syntax::Url, value);
        assert_eq!(url("http://h:1/a/{x}/b", "../c?d=e&f #ü"), "http://h:1/a/..%2Fc%3Fd%3De%26f%20%23%C3%BC/b");
        assert_eq!(url("http://h:1?q={x}", "a b"), "http://h:1?q=a%20b");
        assert_eq!(url("http://h/?{x}=1", "a=b-._~"), "http://h/?a%3Db-._~=1");
        // A value at the start of a URL is inserted as is: it may be the address of a service or come from a reply.
        assert_eq!(url("{x}/notes", "https://h:9/store"), "https://h:9/store/notes");
        assert_eq!(url("{x}", "https://h:9/store?id=1"), "https://h:9/store?id=1");
        assert_eq!(url("http://{x}/notes", "[::1]:80"), "http://[::1]:80/notes");
        assert_eq!(url("{x}/{x}", "a:b"), "a:b/a%3Ab");
    }

    #[test]
    fn escapes_values_in_forms_xml_and_headers() {
        assert_eq!(written("a={x}&b=1", Syntax::Form, "1&c=2 +"), "a=1%26c%3D2%20%2B&b=1");
        assert_eq!(written("<a b='{x}'/>", Syntax::Xml, "'/><c>\"&"), "<a b='&apos;/&gt;&lt;c&gt;&quot;&amp;'/>");
        assert_eq!(written("t=\"{x}\", u={x}", Syntax::Header, "a\"\\"), "t=\"a\\\"\\\\\", u=a\"\\");
        assert_eq!(written("{x}", Syntax::Other, "a\"<&"), "a\"<&");
    }

    #[test]
    fn body_syntax_follows_media_type_or_first_bytes() {
        for (media_type, body, expected) in [
            (Some("application/json; charset=utf-8"), "x", Syntax::Json),
            (Some("application/problem+json"), "x", Syntax::Json),
            (Some("Application/X-WWW-Form-Urlencoded"), "{", Syntax::Form),
            (Some("application/soap+xml"), "", Syntax::Xml),
            (Some("text/plain"), "{}", Syntax::Other),
            (None, " {\"a\": 1}", Syntax::Json),
            (None, "<a/>", Syntax::Xml),
            (None, "a=1", Syntax::Other),
        ] {
            assert_eq!(Syntax::of_body(media_type, body), expected, "{media_type:?} {body}");
        }
    }
}
