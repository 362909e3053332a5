//! Checks messages against the declared types of their operation.

use std::collections::HashMap;
use std::fmt;

use config::place::Lines;

use crate::clause::Clause;
use crate::finding::Span;
use crate::monitor::report::ReportVerdict;
use crate::syntax::{ClauseKind, Operation};
use crate::tape::{Shape as NodeShape, Value};
use crate::types::{Field, Schema, Signature, Type};

/// Maximum nesting of checked values. Codecs allow less.
const DEPTH_MAX: u16 = 256;

/// The declared types of an operation's messages.
#[derive(Clone, Debug, Default)]
pub(crate) struct Promise {
    pub(crate) request: Option<Typed>,
    pub(crate) reply: Option<Typed>,
}

#[derive(Clone, Debug)]
pub(crate) struct Typed {
    /// For reports; it has no expression.
    pub(crate) clause: Clause,
    of: PromisedPart,
    records: Vec<Record>,
}

/// The part of a message to check.
#[derive(Clone, Debug)]
enum PromisedPart {
    /// Arguments by position.
    Arguments(Vec<(usize, Slot)>),
    Result(Shape),
    /// Over HTTP: the body of a successful reply.
    Body(Shape),
}

/// A type prepared for checks.
#[derive(Clone, Debug, PartialEq)]
enum Shape {
    Any,
    Bool,
    Int,
    Float,
    Text,
    Bytes,
    Choice(Vec<String>),
    List(Box<Shape>),
    Map(Box<Shape>),
    Record(u32),
}

/// The fields of a record, sorted by name.
#[derive(Clone, Debug, Default)]
struct Record {
    fields: Vec<Slot>,
    /// Number of required fields.
    needed: usize,
}

#[derive(Clone, Debug)]
struct Slot {
    name: String,
    of: Shape,
    is_needed: bool,
}

impl Promise {
    /// `params` and `result`: the types that clauses see.
    pub(crate) fn from_operation(
        operation: &Operation,
        id: &str,
        (params, result): (&[(String, Type)], &Type),
        signature: Option<&Signature>,
        schema: &Schema,
        (text, lines): (&str, &Lines<'_>),
    ) -> Self {
        if operation.clauses.iter().any(|clause| matches!(clause.kind, ClauseKind::Untyped)) {
            return Self::default();
        }
        let typed = |end: &str, span: Span, shown: String, make: &dyn Fn(&mut Maker<'_>) -> Option<PromisedPart>| {
            let mut maker = Maker { schema, known: HashMap::new(), records: Vec::new() };
            let of = make(&mut maker)?;
            let (line, column) = lines.place_of(span.start as usize);
            let clause = Clause {
                id: format!("{id}.{end}"),
                number: 0,
                text: shown,
                line: line as u32,
                column: column as u32,
                start: span.start,
                code: Default::default(),
                root: 0,
                secret: false,
            };
            Some(Typed { clause, of, records: maker.records })
        };
        let is_http = operation.method.is_some();
        let arguments = |maker: &mut Maker<'_>| {
            let declared = params.iter().zip(&operation.params).enumerate();
            let slots = declared.filter_map(|(at, ((name, of), param))| {
                // Over HTTP everything except the body is text, whatever its declared type.
                let is_held = !is_http || (name == "body" && param.of.is_some());
                let theirs = signature.and_then(|signature| signature.params.get(at));
                let is_needed = is_http || theirs.is_some_and(|field| field.required);
                let of = maker.shape(of);
                let is_open = of == Shape::Any || is_http && of.is_whatever_comes();
                (is_held && !is_open).then(|| (at, Slot { name: name.clone(), of, is_needed }))
            });
            let slots = slots.collect::<Vec<_>>();
            (!slots.is_empty()).then_some(PromisedPart::Arguments(slots))
        };
        let shown = params.iter().map(|(name, of)| format!("{name}: {of}")).collect::<Vec<_>>().join(", ");
        let request = typed("type.request", operation.name.span, format!("({shown})"), &arguments);
        let is_body_less = operation.method.as_ref().is_some_and(|method| method.text == "HEAD");
        let answer = |maker: &mut Maker<'_>| match result {
            _ if is_body_less => None,
            Type::Record(fields) if is_http => {
                let body = maker.shape(&fields.iter().find(|field| field.name == "body")?.of);
                (body != Shape::Any && !body.is_whatever_comes()).then_some(PromisedPart::Body(body))
            }
            of => Some(maker.shape(of)).filter(|of| *of != Shape::Any).map(PromisedPart::Result),
        };
        let (span, shown) = match &operation.result {
            Some(of) => (of.span, text[of.span.range()].to_owned()),
            None => (operation.name.span, result.to_string()),
        };
        Self { request, reply: typed("type.reply", span, format!("-> {shown}"), &answer) }
    }
}

/// Prepares types, each record once.
struct Maker<'s> {
    schema: &'s Schema,
    known: HashMap<&'s str, u32>,
    records: Vec<Record>,
}

impl<'s> Maker<'s> {
    fn shape(&mut self, of: &Type) -> Shape {
        match of {
            Type::Any | Type::Tuple(_) => Shape::Any,
            Type::Bool => Shape::Bool,
            Type::Int => Shape::Int,
            Type::Float => Shape::Float,
            Type::Text => Shape::Text,
            Type::Bytes => Shape::Bytes,
            Type::Choice(texts) => Shape::Choice(texts.clone()),
            Type::List(of) => Shape::List(Box::new(self.shape(of))),
            Type::Map(_, of) => Shape::Map(Box::new(self.shape(of))),
            Type::Record(fields) => {
                let number = self.reserve();
                self.fill(number, fields)
            }
            Type::Named(name) => {
                let Some((name, fields)) = self.schema.types.get_key_value(name) else { return Shape::Any };
                if let Some(known) = self.known.get(name.as_str()) {
                    return Shape::Record(*known);
                }
                let number = self.reserve();
                // Registering the record first ends the recursion of a type that contains itself.
                self.known.insert(name, number);
                self.fill(number, fields)
            }
        }
    }

    fn reserve(&mut self) -> u32 {
        self.records.push(Record::default());
        self.records.len() as u32 - 1
    }

    fn fill(&mut self, number: u32, fields: &[Field]) -> Shape {
        let slot = |field: &Field| Slot {
            name: field.name.clone(),
            of: self.shape(&field.of),
            is_needed: field.required && !field.optional,
        };
        let mut fields = fields.iter().map(slot).collect::<Vec<_>>();
        fields.sort_by(|a, b| a.name.cmp(&b.name));
        let needed = fields.iter().filter(|slot| slot.is_needed).count();
        self.records[number as usize] = Record { fields, needed };
        Shape::Record(number)
    }
}

/// The part of a message with the wrong type, and the reason.
struct Misfit {
    path: String,
    why: String,
}

impl Misfit {
    fn new(why: impl Into<String>) -> Self {
        Self { path: String::new(), why: why.into() }
    }

    fn within(self, name: &dyn fmt::Display) -> Self {
        Self { path: format!("{name}{}", self.path), ..self }
    }
}

impl Shape {
    /// Whether every HTTP body has this type, JSON or not.
    fn is_whatever_comes(&self) -> bool {
        matches!(self, Self::Text | Self::Bytes)
    }
}

impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Any => "anything",
            Self::Bool => "a bool",
            Self::Int => "an int",
            Self::Float => "a float",
            Self::Text => "text",
            Self::Bytes => "bytes",
            Self::Choice(texts) => return write!(f, "one of {}", texts.join(", ")),
            Self::List(_) => "a list",
            Self::Map(_) => "a map",
            Self::Record(_) => "a record",
        })
    }
}

impl Typed {
    /// Checks a message. `None` if it has its declared types.
    pub(crate) fn judge(&self, args: &[Value<'_>], outcome: Value<'_>) -> Option<(ReportVerdict, String)> {
        let mut held = TypeChecker { records: &self.records, is_unknown: false };
        let judged = match &self.of {
            PromisedPart::Arguments(slots) => slots.iter().try_for_each(|(at, slot)| {
                match args.get(*at).copied().unwrap_or(Value::Missing) {
                    Value::Missing if slot.is_needed => Err(Misfit::new("missing")),
                    Value::Missing => Ok(()),
                    value => held.fits(&slot.of, value, 0),
                }
                .map_err(|misfit| misfit.within(&slot.name))
            }),
            PromisedPart::Result(of) => match outcome {
                Value::Missing => Ok(()),
                value => held.fits(of, value, 0).map_err(|misfit| misfit.within(&"result")),
            },
            PromisedPart::Body(of) => match outcome {
                Value::Node(result) => match (result.field("code"), result.field("body")) {
                    // Partial content cannot be checked, nor a reply without content. Source:
                    // RFC 9110, section 15.3.
                    (Value::Int(200..=203 | 207..=299), body) => match body {
                        Value::Missing => Err(Misfit::new(format!("missing, must be {of}"))),
                        value => held.fits(of, value, 0),
                    },
                    _ => Ok(()),
                },
                value => held.fits(of, value, 0),
            }
            .map_err(|misfit| misfit.within(&"result.body")),
        };
        match judged {
            Err(Misfit { path, why }) => Some((ReportVerdict::Fails, format!("`{path}` is {why}"))),
            Ok(()) if held.is_unknown => {
                Some((ReportVerdict::Unknown, "something in it could not be decoded".to_owned()))
            }
            Ok(()) => None,
        }
    }
}

struct TypeChecker<'t> {
    records: &'t [Record],
    is_unknown: bool,
}

impl TypeChecker<'_> {
    fn fits(&mut self, of: &Shape, value: Value<'_>, depth: u16) -> Result<(), Misfit> {
        match (of, value) {
            (Shape::Any, _) => Ok(()),
            (_, Value::Malformed(why)) => Err(Misfit::new(why)),
            (_, Value::Opaque) => {
                self.is_unknown = true;
                Ok(())
            }
            _ if depth > DEPTH_MAX => {
                self.is_unknown = true;
                Ok(())
            }
            (Shape::Bool, Value::Bool(_))
            | (Shape::Int, Value::Int(_))
            // JSON has only one kind of number.
            | (Shape::Float, Value::Float(_) | Value::Int(_))
            | (Shape::Text, Value::Text(_))
            // Formats without bytes encode them as text.
            | (Shape::Bytes, Value::Bytes(_) | Value::Text(_)) => Ok(()),
            (Shape::Int, Value::Float(number)) if number.fract() == 0.0 => Ok(()),
            (Shape::Choice(texts), Value::Text(text)) => match texts.iter().any(|known| known == text) {
                true => Ok(()),
                false => Err(Misfit::new(format!("text, must be {of}"))),
            },
            (Shape::List(of), Value::Node(list)) if list.shape() == NodeShape::List => {
                let count = if **of == Shape::Any { 0 } else { list.len() };
                (0..count).try_for_each(|at| {
                    let fits = self.fits(of, list.at(at), depth + 1);
                    fits.map_err(|misfit| misfit.within(&format_args!("[{at}]")))
                })
            }
            (Shape::Map(of), Value::Node(map)) if map.shape() == NodeShape::Map => {
                let count = if **of == Shape::Any { 0 } else { map.len() };
                (0..count).try_for_each(|at| {
                    self.fits(of, map.at(at), depth + 1).map_err(|misfit| misfit.within(&"[...]"))
                })
            }
            (Shape::Record(number), Value::Node(record)) if record.shape() == NodeShape::Map => {
                let Record { fields, needed } = &self.records[*number as usize];
                let mut there = 0;
                for at in 0..record.len() {
                    let Value::Text(name) = record.key(at) else { continue };
                    let Ok(slot) = fields.binary_search_by(|slot| slot.name.as_str().cmp(name)) else { continue };
                    let slot = &fields[slot];
                    // Null counts as missing.
                    let value = record.at(at);
                    if !matches!(value, Value::Missing) {
                        there += usize::from(slot.is_needed);
                        let fits = self.fits(&slot.of, value, depth + 1);
                        fits.map_err(|misfit| misfit.within(&format_args!(".{}", slot.name)))?;
                    }
                }
                let is_missing = |slot: &&Slot| slot.is_needed && matches!(record.field(&slot.name), Value::Missing);
                match fields.iter().filter(|_| there < *needed).find(is_missing) {
                    Some(slot) => {
                        let misfit = Misfit::new(format!("missing, must be {}", slot.of));
                        Err(misfit.within(&format_args!(".{}", slot.name)))
                    }
                    None => Ok(()),
                }
            }
            (of, other) => Err(Misfit::new(format!("{}, must be {of}", other.kind()))),
        }
    }
}
