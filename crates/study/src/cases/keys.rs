//! Declares every key of a case file, for parsing, docs/reference/verify.md and `quintain help cases`.

use config::keys::Kind::{Count, Either, Flag, List, Named, Table, Tables, Text, Word};
use config::keys::Missing::{self, Is, Means, Mistake};
use config::show;
use config::{Key, Keys, Kind};
use serde_json::json;

use super::{Connection, Split};

const fn key(name: &'static str, kind: Kind, example: &'static str, missing: Missing, text: &'static str) -> Key {
    Key { name, kind, example, missing, text }
}

pub(super) const REPEAT_MAX: u64 = 1000;
pub(super) const TIMES_MAX: u64 = 10_000;
/// Maximum length of random text, and maximum body length in `expect`.
pub(super) const LETTERS_MAX: u64 = 65_536;
pub(super) const LENGTH_MAX: u64 = 16 << 20;

pub(super) const CONNECTIONS: &[(&str, Connection)] = &[
    ("stays", Connection::Stays),
    ("closes", Connection::Closes),
    ("may-close", Connection::MayClose),
    ("abandoned", Connection::Abandoned),
];
type MakeSplit = fn() -> Split;

pub(super) const SPLITS: &[(&str, MakeSplit)] =
    &[("none", || Split::No), ("all", || Split::All), ("bytes", || Split::Bytes)];

const STATUS: Kind = Count(100, 599);
const VALUE: Kind = Kind::other("a value");
const NONE: Missing = Means("none");
const NOT_CHECKED: Missing = Means("not checked");

/// Keys of a case file.
pub static CASES: Keys = Keys {
    name: "",
    text: "Cases of `quintain verify`: requests and expected responses",
    keys: &[key(
        "case",
        Tables(&CASE),
        "[{ name = \"home\", request = [{ path = \"/\", expect = { status = 200 } }] }]",
        Mistake,
        "the cases, in their order",
    )],
};

static CASE: Keys = Keys {
    name: "case",
    text: "A case: requests on one connection",
    keys: &[
        key("name", Text, "\"sum\"", Mistake, "its name, unique, for `--case`: letters, digits, `-`, `_` and `.`"),
        key("promise", Text, "\"two numbers are added\"", Means("the name"), "the promise, in one line"),
        key("request", Tables(&REQUEST), "[{ path = \"/\" }]", Mistake, "the requests, in their order"),
        key(
            "random",
            Named(&Table(&RANDOM)),
            "{ a = { integer = [0, 999] } }",
            NONE,
            "values sampled for each repetition, by name; `{name}` and `{a + b}` insert them into the strings of its requests",
        ),
        key(
            "repeat",
            Count(1, REPEAT_MAX),
            "20",
            Means("1; 10 with `random`"),
            "repetitions, each on a connection of its own",
        ),
        key(
            "split",
            Either(&[Word("split", super::words_of_splits), List(&Count(1, 1 << 20))]),
            "\"all\"",
            Is("\"none\""),
            "where to cut each request, so that it arrives in pieces: at `\"all\"` positions in turn and byte by byte, only `\"bytes\"`, or after these numbers of bytes; the server must not respond before a request is complete",
        ),
        key("pipelined", Flag, "true", Is("false"), "sends all requests at once, before any response is read"),
        key(
            "half_close",
            Flag,
            "true",
            Is("false"),
            "shuts down the sending side after the last request; expects all responses, then the end",
        ),
        key(
            "skip_status",
            STATUS,
            "404",
            NONE,
            "skips the case if the first response has this status: an optional feature",
        ),
    ],
};

static RANDOM: Keys = Keys {
    name: "case.random.NAME",
    text: "A random value: one of these keys",
    keys: &[
        key(
            "integer",
            Kind::Other(
                "the lowest and the highest whole number",
                || json!({ "type": "array", "items": { "type": "integer" }, "minItems": 2, "maxItems": 2 }),
            ),
            "[0, 999]",
            NONE,
            "a whole number",
        ),
        key("letters", Count(1, LETTERS_MAX), "12", NONE, "number of letters and digits"),
        key("choice", List(&Text), "[\"a\", \"b\"]", NONE, "one of these"),
    ],
};

static REQUEST: Keys = Keys {
    name: "case.request",
    text: "A request: HTTP, or bytes as they are (`text` or `hex`). Strings may have `{name}`, expressions with `+ - * ( )`, `length`, `lower`, `upper` and `reverse`, and the names `path` (of the URL, or `--path`) and `index` (the number of the request among `times`, from 0); `{n:8x}` is 8 hexadecimal digits",
    keys: &[
        key("method", Text, "\"POST\"", Is("\"GET\""), "HTTP method"),
        key("path", Text, "\"/sum?a={a}&b={b}\"", Means("no HTTP: `text` or `hex`"), "request target"),
        key(
            "version",
            Word("version", || vec!["1.1", "1.0"]),
            "\"1.0\"",
            Is("\"1.1\""),
            "HTTP version; with 1.0 no `Host` is added",
        ),
        key(
            "headers",
            Named(&Text),
            "{ Accept = \"application/json\" }",
            NONE,
            "headers in addition to `Host` and the body's",
        ),
        key("body", Text, "'{\"a\": {a}}'", NONE, "body, with its `Content-Length`"),
        key("chunked", Flag, "true", Is("false"), "sends the body as one chunk in place of `Content-Length`"),
        key("text", Text, "\"get k\\r\\n\"", NONE, "bytes to send, as text"),
        key("hex", Text, "\"{word:8x}\"", NONE, "bytes to send, as hexadecimal digits; spaces are skipped"),
        key("times", Count(1, TIMES_MAX), "1000", Is("1"), "number of times to send it"),
        key("expect", Table(&EXPECT), "{ status = 200 }", Means("any complete HTTP response"), "the expected response"),
    ],
};

static EXPECT: Keys = Keys {
    name: "case.request.expect",
    text: "The expected response: HTTP, complete and framed by RFC 9112, or bytes (`text`, `hex` or `line`)",
    keys: &[
        key("status", Either(&[STATUS, List(&STATUS)]), "200", NOT_CHECKED, "status, or those allowed"),
        key("headers", Named(&Text), "{ Content-Length = \"4\" }", NOT_CHECKED, "headers, each with its value"),
        key(
            "header_matches",
            Named(&Text),
            "{ Content-Type = \"^text/plain\" }",
            NOT_CHECKED,
            "headers, each with a regular expression found in its value",
        ),
        key("absent", List(&Text), "[\"Server\"]", NOT_CHECKED, "headers that must be absent"),
        key("body", Text, "\"{a + b}\"", NOT_CHECKED, "the body"),
        key("length", Count(0, LENGTH_MAX), "1024", NOT_CHECKED, "bytes of the body"),
        key("matches", Text, "'^\\d+$'", NOT_CHECKED, "regular expression found in the body"),
        key(
            "json",
            Named(&VALUE),
            "{ \"$.sum\" = \"{a + b}\" }",
            NOT_CHECKED,
            "JSONPath (RFC 9535) into the body, each with the one value found there; a string that is one expression is its value, number or text",
        ),
        key(
            "like",
            Text,
            "\"{path}\"",
            NOT_CHECKED,
            "the status and body of an earlier GET of this path; the body only if it is the same each time. For HEAD: the status, and `Content-Length` if present",
        ),
        key("text", Text, "\"END\\r\\n\"", NONE, "these bytes, as text"),
        key("hex", Text, "\"{word + 1:8x}\"", NONE, "these bytes, as hexadecimal digits"),
        key(
            "line",
            Text,
            "'^VERSION '",
            NONE,
            "a line that ends with a line feed, as a regular expression; without the line end",
        ),
        key(
            "connection",
            Word("fate of a connection", super::words_of_connections),
            "\"closes\"",
            Is("\"stays\""),
            "`stays`; `closes` behind the response; `may-close` then, and the next request takes another; `abandoned`: a response, or only the end, and the next request takes another",
        ),
    ],
};

fn heading(keys: &Keys) -> String {
    match keys.name {
        "" => "A case file".to_owned(),
        name @ ("case" | "case.request") => format!("`[[{name}]]`"),
        name => format!("`[{name}]`"),
    }
}

/// Replaces the key tables of docs/reference/verify.md and keeps the text above them.
pub fn page(file: &str) -> String {
    let (text, _) = file.split_once("\n### ").unwrap_or((file, ""));
    let table = |keys: &'static Keys| format!("\n### {}\n\n{}", heading(keys), show::table(keys));
    text.trim_end().to_owned() + "\n" + &show::tables(&CASES).into_iter().map(table).collect::<String>()
}

/// Renders the keys of one table, or of all, for a terminal. `None` if no table has this name.
pub fn help(name: Option<&str>) -> Option<String> {
    show::help(&CASES, name, heading)
}

/// Names of the tables of a case file.
pub fn names() -> Vec<&'static str> {
    show::tables(&CASES).into_iter().map(|keys| keys.name).filter(|name| !name.is_empty()).collect()
}
