//! Declares every key of a case file, for parsing, docs/reference/verify.md and `quintain help cases`.

use config::keys::Kind::{Count, Either, Flag, List, Named, Table, Tables, Text, Word};
use config::keys::Missing::{self, Is, Means, Mistake};
use config::keys::{key, words};
use config::render_keys;
use config::{Keys, Kind};
use serde_json::json;

use super::{Connection, Cut, Split};

pub(super) const REPEAT_MAX: u64 = 1000;
pub(super) const TIMES_MAX: u64 = 10_000;
pub(super) const LETTERS_MAX: u64 = 65_536;
/// Maximum body length in `expect`, bytes.
pub(super) const LENGTH_MAX: u64 = 16 << 20;

pub(super) const CONNECTIONS: &[(&str, Connection)] = &[
    ("stays", Connection::Stays),
    ("closes", Connection::Closes),
    ("may-close", Connection::MayClose),
    ("abandoned", Connection::Abandoned),
];
type MakeSplit = fn() -> Split;
pub(super) const SPLITS: &[(&str, MakeSplit)] =
    &[("none", || Split::Each(Cut::Whole)), ("all", || Split::All), ("bytes", || Split::Each(Cut::Bytes))];

const STATUS: Kind = Count(100, 599);
const VALUE: Kind = Kind::other("a value");
const RANGE: Kind = Kind::Other(
    "the lowest and the highest whole number",
    || json!({ "type": "array", "items": { "type": "integer" }, "minItems": 2, "maxItems": 2 }),
);
const NONE: Missing = Means("none");
const NOT_CHECKED: Missing = Means("not checked");
const EXAMPLE: &str = "[{ name = \"home\", request = [{ path = \"/\", expect = { status = 200 } }] }]";

/// Keys of a case file.
pub static CASES: Keys = Keys {
    name: "",
    text: "Cases of `quintain verify`: requests and expected responses",
    keys: &[key("case", Tables(&CASE), EXAMPLE, Mistake).text("the cases, in their order")],
};

static CASE: Keys = Keys::new("case", "A case: requests on one connection").keys(&[
    key("name", Text, "\"sum\"", Mistake).text("its name, unique, for `--case`: letters, digits, `-`, `_` and `.`"),
    key("promise", Text, "\"two numbers are added\"", Means("the name")).text("the promise, in one line"),
    key("request", Tables(&REQUEST), "[{ path = \"/\" }]", Mistake).text("the requests, in their order"),
    key("random", Named(&Table(&RANDOM)), "{ a = { integer = [0, 999] } }", NONE)
        .text("values sampled for each repetition, by name; `{name}` and `{a + b}` insert them into the strings of its requests"),
    key("repeat", Count(1, REPEAT_MAX), "20", Means("1; 10 with `random`"))
        .text("repetitions, each on a connection of its own"),
    key("split", Either(&[Word("split", || words(SPLITS)), List(&Count(1, 1 << 20))]), "\"all\"", Is("\"none\""))
        .text("where to cut each request, so that it arrives in pieces: at `\"all\"` positions in turn and byte by byte, only `\"bytes\"`, or after these numbers of bytes; the server must not respond before a request is complete"),
    key("pipelined", Flag, "true", Is("false")).text("sends all requests at once, before any response is read"),
    key("half_close", Flag, "true", Is("false"))
        .text("shuts down the sending side after the last request; expects all responses, then the end"),
    key("skip_status", STATUS, "404", NONE)
        .text("skips the case if the first response has this status: an optional feature"),
]);

static RANDOM: Keys = Keys::new("case.random.NAME", "A random value: one of these keys").keys(&[
    key("integer", RANGE, "[0, 999]", NONE).text("a whole number"),
    key("letters", Count(1, LETTERS_MAX), "12", NONE).text("number of letters and digits"),
    key("choice", List(&Text), "[\"a\", \"b\"]", NONE).text("one of these"),
]);

static REQUEST: Keys = Keys {
    name: "case.request",
    text: "A request: HTTP, or raw bytes (`text` or `hex`). Strings can contain names and expressions in braces: `{name}`, `{a + b}`. Expressions can use `+ - * ( )`, `length`, `lower`, `upper` and `reverse`. Two names are predefined: `path` (of the URL, or `--path`) and `index` (the number of the request among `times`, from 0). `{n:8x}` inserts 8 hexadecimal digits",
    keys: &[
        key("method", Text, "\"POST\"", Is("\"GET\"")).text("HTTP method"),
        key("path", Text, "\"/sum?a={a}&b={b}\"", Means("no HTTP: `text` or `hex`")).text("request target"),
        key("version", Word("version", || vec!["1.1", "1.0"]), "\"1.0\"", Is("\"1.1\""))
            .text("HTTP version; with 1.0 no `Host` is added"),
        key("headers", Named(&Text), "{ Accept = \"application/json\" }", NONE)
            .text("headers in addition to `Host` and the body's"),
        key("body", Text, "'{\"a\": {a}}'", NONE).text("body, with its `Content-Length`"),
        key("chunked", Flag, "true", Is("false")).text("sends the body as one chunk in place of `Content-Length`"),
        key("text", Text, "\"get k\\r\\n\"", NONE).text("bytes to send, as text"),
        key("hex", Text, "\"{word:8x}\"", NONE).text("bytes to send, as hexadecimal digits; spaces are skipped"),
        key("times", Count(1, TIMES_MAX), "1000", Is("1")).text("number of times to send it"),
        key("expect", Table(&EXPECT), "{ status = 200 }", Means("any complete HTTP response"))
            .text("the expected response"),
    ],
};

static EXPECT: Keys = Keys {
    name: "case.request.expect",
    text: "The expected response: HTTP, complete and framed by RFC 9112, or bytes (`text`, `hex` or `line`)",
    keys: &[
        key("status", Either(&[STATUS, List(&STATUS)]), "200", NOT_CHECKED).text("status, or those allowed"),
        key("headers", Named(&Text), "{ Content-Length = \"4\" }", NOT_CHECKED).text("headers, each with its value"),
        key("header_matches", Named(&Text), "{ Content-Type = \"^text/plain\" }", NOT_CHECKED)
            .text("headers, each with a regular expression found in its value"),
        key("absent", List(&Text), "[\"Server\"]", NOT_CHECKED).text("headers that must be absent"),
        key("body", Text, "\"{a + b}\"", NOT_CHECKED).text("the body"),
        key("length", Count(0, LENGTH_MAX), "1024", NOT_CHECKED).text("bytes of the body"),
        key("matches", Text, "'^\\d+$'", NOT_CHECKED).text("regular expression found in the body"),
        key("json", Named(&VALUE), "{ \"$.sum\" = \"{a + b}\" }", NOT_CHECKED)
            .text("JSONPath (RFC 9535) into the body, each with the one value found there; a string that is one expression is its value, number or text"),
        key("like", Text, "\"{path}\"", NOT_CHECKED)
            .text("the status and body of an earlier GET of this path; the body only if it is the same each time. For HEAD: the status, and `Content-Length` if present"),
        key("text", Text, "\"END\\r\\n\"", NONE).text("these bytes, as text"),
        key("hex", Text, "\"{word + 1:8x}\"", NONE).text("these bytes, as hexadecimal digits"),
        key("line", Text, "'^VERSION '", NONE)
            .text("a line that ends with a line feed, as a regular expression; without the line end"),
        key("connection", Word("fate of a connection", || words(CONNECTIONS)), "\"closes\"", Is("\"stays\""))
            .text("`stays`; `closes` behind the response; `may-close` then, and the next request takes another; `abandoned`: a response, or only the end, and the next request takes another"),
    ],
};

/// Heading of a table in docs/reference/verify.md, such as `[[case]]`.
pub fn heading(keys: &Keys) -> String {
    match keys.name {
        "" => "A case file".to_owned(),
        name @ ("case" | "case.request") => format!("`[[{name}]]`"),
        name => format!("`[{name}]`"),
    }
}

/// Replaces the key tables of docs/reference/verify.md and keeps the text above them.
pub fn page(file: &str) -> String {
    let (text, _) = file.split_once("\n### ").unwrap_or((file, ""));
    let table = |keys: &'static Keys| format!("\n### {}\n\n{}", heading(keys), render_keys::table(keys));
    text.trim_end().to_owned() + "\n" + &render_keys::tables(&CASES).into_iter().map(table).collect::<String>()
}
