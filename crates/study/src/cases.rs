//! Cases of `quintain verify` (keys: [`keys::CASES`]): requests, the ways to cut them, and expected responses.

pub mod keys;
mod parse;
pub mod template_expressions;

pub use parse::{TEXT_MAX_BYTES, parse};
use regex::bytes::Regex;
use serde_json_path::JsonPath;
use stats::random::Rng as Numbers;
pub use template_expressions::{Template, Value, Values};

/// A case: requests on one connection with their expected responses.
#[derive(Clone, Debug)]
pub struct Case {
    /// Name of the case, unique in its file.
    pub name: String,
    /// The promise that the case checks, in one line.
    pub promise: String,
    /// Random values by name, sampled anew for each repetition.
    pub random: Vec<(String, Draw)>,
    /// Number of repetitions, each on its own connection.
    pub repeat: u32,
    /// How requests are cut into pieces.
    pub split: Split,
    /// Whether all requests are sent before any response is read.
    pub pipelined: bool,
    /// Whether the sending side is shut down after the last request.
    pub half_close: bool,
    /// Status that skips the case if the first response has it; `None` if no status skips the case.
    pub skip_status: Option<u16>,
    /// The requests, at least one.
    pub requests: Vec<Request>,
}

/// Distribution of a random value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Draw {
    /// A whole number from the first value to the second, both included.
    Integer(i64, i64),
    /// A string of this many letters and digits.
    Letters(u32),
    /// One of these strings, all equally likely.
    Choice(Vec<String>),
}

/// How a request is cut into pieces.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Split {
    /// Each request is cut in this way.
    Each(Cut),
    /// Each request is cut in two at every position in turn, then sent byte by byte.
    All,
}

/// A request, sent one or more times.
#[derive(Clone, Debug)]
pub struct Request {
    /// The bytes to send.
    pub send: Send,
    /// Number of times the request is sent.
    pub times: u32,
    /// The expected response.
    pub expect: Expect,
    /// Expected state of the connection after the response.
    pub connection: Connection,
}

/// The bytes of a request.
#[derive(Clone, Debug)]
pub enum Send {
    /// An HTTP request, composed from its parts.
    Http {
        /// Method, such as `GET`.
        method: String,
        /// Request target, such as `/users?page=2`.
        path: Template,
        /// Whether the version is HTTP/1.0 instead of 1.1.
        is_old: bool,
        /// Headers other than `Host` and the headers that describe the body.
        headers: Vec<(String, Template)>,
        /// Body of the request; `None` sends no body.
        body: Option<Template>,
        /// Whether the body is sent as one chunk.
        chunked: bool,
    },
    /// Bytes written as a string.
    Text(Template),
    /// Bytes written as hexadecimal digits.
    Hex(Template),
}

/// A response that a request must get: an HTTP response, exact bytes, or a line.
#[derive(Clone, Debug)]
pub enum Expect {
    /// An HTTP response that meets these requirements.
    Http(Box<ExpectHttp>),
    /// Exactly these bytes, written as a string.
    Text(Template),
    /// Exactly these bytes, written as hexadecimal digits.
    Hex(Template),
    /// A line that matches this regular expression.
    Line(Regex),
}

/// Requirements for an HTTP response.
#[derive(Clone, Debug, Default)]
pub struct ExpectHttp {
    /// Allowed statuses; any if empty.
    pub status: Vec<u16>,
    /// Headers that must be present with these values.
    pub headers: Vec<(String, Template)>,
    /// Headers whose values must match these regular expressions.
    pub header_matches: Vec<(String, Regex)>,
    /// Names of headers that must be missing.
    pub absent: Vec<String>,
    /// Expected body; `None` accepts any.
    pub body: Option<Template>,
    /// Expected length of the body, bytes; `None` accepts any.
    pub length: Option<u64>,
    /// Regular expression that the body must match; `None` accepts any body.
    pub matches: Option<Regex>,
    /// JSONPaths into the body, each with its expected value.
    pub json: Vec<(JsonPath, Json)>,
    /// Path whose GET response must have the same status and body; `None` for no comparison.
    pub like: Option<Template>,
}

/// A JSON value whose strings are templates.
#[derive(Clone, Debug)]
pub enum Json {
    /// A value without templates, used unchanged.
    Value(serde_json::Value),
    /// A string. A template that is a single expression takes the type of its value.
    Text(Template),
    /// A list of values.
    List(Vec<Json>),
    /// An object as a list of names and values.
    Object(Vec<(String, Json)>),
}

/// Expected state of a connection after a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Connection {
    /// The connection stays open and nothing more arrives.
    Stays,
    /// The server closes the connection.
    Closes,
    /// The server may close the connection.
    MayClose,
    /// The server may close the connection instead of responding; the case then sends nothing more on the connection.
    Abandoned,
}

impl Case {
    /// Samples the values of a repetition. Equal seeds and repetitions give equal values.
    pub fn draw(&self, seed: u64, repetition: u32) -> Values {
        // The name is part of the seed, so that the cases of one file get different values.
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
    /// Fills the templates of a JSON value. A string that is a single expression keeps the type of its value.
    pub fn json(&self, json: &Json) -> serde_json::Value {
        match json {
            Json::Value(value) => value.clone(),
            Json::Text(template) => match self.alone(template) {
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

/// Decodes hexadecimal digits and ignores white space. `None` for other characters or an odd number of digits.
pub fn bytes_of_hex(text: &str) -> Option<Vec<u8>> {
    let digits = text.chars().filter(|next| !next.is_ascii_whitespace()).map(|next| next.to_digit(16));
    let digits = digits.collect::<Option<Vec<u32>>>()?;
    (digits.len() % 2 == 0).then(|| digits.chunks(2).map(|pair| (pair[0] * 16 + pair[1]) as u8).collect())
}

/// Maximum total length of a case's requests if they are cut at every position, bytes. Each cut takes a connection.
pub const SPLIT_MAX_BYTES: usize = 4096;

/// One way to cut a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Cut {
    /// The request is sent whole.
    Whole,
    /// The request is cut after each of these numbers of bytes, in ascending order.
    At(Vec<usize>),
    /// The request is cut after every byte.
    Bytes,
}

impl Cut {
    /// A description for messages, such as `cut after 4 bytes`; `None` for a whole request.
    pub fn words(&self) -> Option<String> {
        match self {
            Cut::Whole => None,
            Cut::At(at) => {
                let at = at.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
                Some(format!("cut after {at} byte{}", if at == "1" { "" } else { "s" }))
            }
            Cut::Bytes => Some("byte by byte".to_owned()),
        }
    }

    /// Offsets at which the pieces of a request of `length` bytes end, in ascending order; the last one is `length`.
    pub fn ends(&self, length: usize) -> Vec<usize> {
        let mut ends: Vec<usize> = match self {
            Cut::Whole => Vec::new(),
            Cut::At(at) => at.iter().copied().filter(|at| (1..length).contains(at)).collect(),
            Cut::Bytes => (1..length).collect(),
        };
        ends.push(length);
        ends
    }

    /// The pieces of a request, in order.
    pub fn pieces<'b>(&self, bytes: &'b [u8]) -> impl Iterator<Item = &'b [u8]> {
        let mut begin = 0;
        self.ends(bytes.len()).into_iter().map(move |end| &bytes[std::mem::replace(&mut begin, end)..end])
    }
}

/// The ways to cut a request of `length` bytes, one per connection. `None` if `length` is too large for [`Split::All`].
pub fn cuts(split: &Split, length: usize) -> Option<Vec<Cut>> {
    match split {
        Split::Each(cut) => Some(vec![cut.clone()]),
        Split::All if length > SPLIT_MAX_BYTES => None,
        Split::All => Some((1..length).map(|at| Cut::At(vec![at])).chain([Cut::Bytes]).collect()),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn pieces_add_up_to_the_whole(bytes in prop::collection::vec(any::<u8>(), 0..200), at in prop::collection::btree_set(1usize..300, 0..6)) {
            let cuts_once = [Cut::Whole, Cut::Bytes, Cut::At(at.into_iter().collect())].map(Split::Each);
            for split in cuts_once.into_iter().chain([Split::All]) {
                for cut in cuts(&split, bytes.len()).unwrap() {
                    let pieces = cut.pieces(&bytes).collect::<Vec<_>>();
                    prop_assert_eq!(&pieces.concat(), &bytes);
                    prop_assert!(bytes.is_empty() || pieces.iter().all(|piece| !piece.is_empty()), "{:?}", cut);
                }
            }
        }

        #[test]
        fn all_cuts_every_position_once(length in 1usize..300) {
            let cuts = cuts(&Split::All, length).unwrap();
            let positions = cuts.iter().filter_map(|cut| if let Cut::At(at) = cut { Some(at[0]) } else { None });
            prop_assert_eq!(positions.collect::<Vec<_>>(), (1..length).collect::<Vec<_>>());
            prop_assert_eq!(cuts.last(), Some(&Cut::Bytes));
        }
    }

    #[test]
    fn describes_cuts_and_limits_length() {
        assert_eq!(Cut::At(vec![1]).words().as_deref(), Some("cut after 1 byte"));
        assert_eq!(Cut::At(vec![4, 17]).words().as_deref(), Some("cut after 4, 17 bytes"));
        assert_eq!(cuts(&Split::All, SPLIT_MAX_BYTES + 1), None);
        assert_eq!(cuts(&Split::Each(Cut::Bytes), SPLIT_MAX_BYTES + 1), Some(vec![Cut::Bytes]));
    }
}
