//! Cases of `quintain verify`: what a server is sent, in which pieces, and what must come back, some of it computed of values that are drawn.
//!
//! [`keys::CASES`] has the keys of their file.

pub mod keys;
mod parse;
pub mod split;
pub mod template;

use regex::bytes::Regex;
use serde_json_path::JsonPath;
use stats::random::Rng as Numbers;

pub use parse::{TEXT_MAX_BYTES, parse};
pub use template::{Template, Value};

/// A case: requests on one connection.
#[derive(Clone, Debug)]
pub struct Case {
    /// Its name.
    pub name: String,
    /// What is promised, one line.
    pub promise: String,
    /// Values drawn for each repetition.
    pub random: Vec<(String, Draw)>,
    /// Repetitions, each on a connection of its own.
    pub repeat: u32,
    /// Where what is sent is cut.
    pub split: Split,
    /// Whether all is sent before any response is read.
    pub pipelined: bool,
    /// Whether the sending side is shut down behind the last request.
    pub half_close: bool,
    /// The case is skipped where the first response has this status.
    pub skip_status: Option<u16>,
    /// The requests, one at least.
    pub requests: Vec<Request>,
}

/// Values that one is drawn from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Draw {
    /// A whole number, between these, both included.
    Integer(i64, i64),
    /// So many letters and digits.
    Letters(u32),
    /// One of these.
    Choice(Vec<String>),
}

/// Where what is sent is cut.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Split {
    /// Nowhere.
    No,
    /// In two, at every position in turn; then byte by byte.
    All,
    /// Byte by byte.
    Bytes,
    /// Behind these numbers of bytes, ascending.
    At(Vec<u32>),
}

/// A request, or several alike.
#[derive(Clone, Debug)]
pub struct Request {
    /// What is sent.
    pub send: Send,
    /// How often.
    pub times: u32,
    /// What must come back.
    pub expect: Expect,
    /// What becomes of the connection then.
    pub connection: Connection,
}

/// What is sent.
#[derive(Clone, Debug)]
pub enum Send {
    /// An HTTP request.
    Http {
        /// Its method.
        method: String,
        /// Its target.
        path: Template,
        /// Whether it is of HTTP/1.0.
        is_old: bool,
        /// Its headers, beside `Host` and those of the body.
        headers: Vec<(String, Template)>,
        /// Its body.
        body: Option<Template>,
        /// Whether the body is a chunk.
        chunked: bool,
    },
    /// Bytes, as text.
    Text(Template),
    /// Bytes, as hexadecimal digits.
    Hex(Template),
}

/// What must come back.
#[derive(Clone, Debug)]
pub enum Expect {
    /// An HTTP response.
    Http(Box<ExpectHttp>),
    /// These bytes, as text.
    Text(Template),
    /// These bytes, as hexadecimal digits.
    Hex(Template),
    /// A line in which this is found.
    Line(Regex),
}

/// What an HTTP response must be.
#[derive(Clone, Debug, Default)]
pub struct ExpectHttp {
    /// Statuses allowed; empty: any.
    pub status: Vec<u16>,
    /// Headers with their values.
    pub headers: Vec<(String, Template)>,
    /// Headers with what is found in their values.
    pub header_matches: Vec<(String, Regex)>,
    /// Headers that are not there.
    pub absent: Vec<String>,
    /// The body.
    pub body: Option<Template>,
    /// Bytes of the body.
    pub length: Option<u64>,
    /// What is found in the body.
    pub matches: Option<Regex>,
    /// Paths into the body, each with the value there.
    pub json: Vec<(JsonPath, Json)>,
    /// The path whose response it is like.
    pub like: Option<Template>,
}

/// A JSON value some of whose texts are templates.
#[derive(Clone, Debug)]
pub enum Json {
    /// A value without any.
    Value(serde_json::Value),
    /// A text, or the value of the one expression that it is.
    Text(Template),
    /// A list.
    List(Vec<Json>),
    /// An object.
    Object(Vec<(String, Json)>),
}

/// What becomes of a connection behind a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Connection {
    /// It stays, and nothing more comes.
    Stays,
    /// The server closes it.
    Closes,
    /// The server may close it.
    MayClose,
    /// There may be only its end instead of a response; it is not used any more.
    Abandoned,
}

/// What the names of a case stand for in one repetition.
#[derive(Clone, Debug, Default)]
pub struct Values(Vec<(String, Value)>);

impl Case {
    /// Draws the values of a repetition. The same seed gives the same values.
    pub fn draw(&self, seed: u64, repetition: u32) -> Values {
        // Cases of one file draw apart.
        let name = self.name.bytes().fold(0u64, |sum, byte| stats::random::mix(sum ^ u64::from(byte)));
        let mut numbers = Numbers::stream(stats::random::mix(seed ^ name), u64::from(repetition));
        Values(self.random.iter().map(|(name, draw)| (name.clone(), draw.value(&mut numbers))).collect())
    }
}

impl Draw {
    fn value(&self, numbers: &mut Numbers) -> Value {
        match self {
            Draw::Integer(low, high) => {
                let span = high.abs_diff(*low);
                let above = if span == u64::MAX { numbers.next_u64() } else { numbers.below(span + 1) };
                Value::Integer(i128::from(*low) + i128::from(above))
            }
            Draw::Letters(count) => {
                const LETTERS: &[u8] = b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";
                let letter = |_| char::from(LETTERS[numbers.below(LETTERS.len() as u64) as usize]);
                Value::Text((0..*count).map(letter).collect())
            }
            Draw::Choice(texts) => Value::Text(texts[numbers.below(texts.len() as u64) as usize].clone()),
        }
    }
}

impl Values {
    /// The same, and this name besides.
    #[must_use]
    pub fn with(mut self, name: &str, value: Value) -> Values {
        self.0.push((name.to_owned(), value));
        self
    }

    /// What a name stands for.
    pub fn get(&self, name: &str) -> Value {
        let found = self.0.iter().rev().find(|(known, _)| known == name);
        found.map_or_else(|| Value::Text(String::new()), |(_, value)| value.clone())
    }

    /// A text, filled.
    pub fn fill(&self, template: &Template) -> String {
        template.fill(&|name| self.get(name))
    }

    /// A JSON value, filled.
    pub fn json(&self, json: &Json) -> serde_json::Value {
        match json {
            Json::Value(value) => value.clone(),
            Json::Text(template) => match template.alone(&|name| self.get(name)) {
                Some(Value::Integer(number)) => {
                    let number = i64::try_from(number).map(serde_json::Number::from).ok();
                    number.or_else(|| self.fill(template).parse().ok()).into()
                }
                _ => self.fill(template).into(),
            },
            Json::List(items) => items.iter().map(|item| self.json(item)).collect(),
            Json::Object(fields) => fields.iter().map(|(name, value)| (name.clone(), self.json(value))).collect(),
        }
    }
}

/// The bytes that hexadecimal digits are; `None`: they are none, or half a byte.
pub fn bytes_of_hex(text: &str) -> Option<Vec<u8>> {
    let digits = text.chars().filter(|next| !next.is_ascii_whitespace()).map(|next| next.to_digit(16));
    let digits = digits.collect::<Option<Vec<u32>>>()?;
    (digits.len() % 2 == 0).then(|| digits.chunks(2).map(|pair| (pair[0] * 16 + pair[1]) as u8).collect())
}

/// The words of [`Split`] and [`Connection`], for the declarations.
fn words_of_splits() -> Vec<&'static str> {
    config::keys::words(keys::SPLITS)
}

fn words_of_connections() -> Vec<&'static str> {
    config::keys::words(keys::CONNECTIONS)
}
