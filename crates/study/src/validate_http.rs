//! Validates methods, request targets, fields and statuses, so that none can change the framing of a message.

use std::borrow::Cow;

use config::nearest::nearest;
use config::{Invalid, Node, Report, Value};
use percent_encoding::percent_decode_str;

use crate::request_values;
use crate::spec::{Connection, HttpRequest};

/// Maximum number of header fields per request.
pub const FIELDS_MAX: usize = 128;
/// Maximum length of a target, method or header field, bytes. Many servers accept less, such as 8 KiB in nginx.
pub const TEXT_MAX_BYTES: usize = 32 * 1024;

/// Known methods for suggestions (RFC 9110, section 9.3; RFC 5789).
const METHODS: [&str; 9] = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "CONNECT"];

const REQUEST_NAME_MAX_BYTES: usize = 100;

/// Checks the name of a request in reports. Fails unless it has 1 to 100 bytes, all printable.
pub fn request_name(text: &str) -> Result<String, Invalid> {
    let is_name = (1..=REQUEST_NAME_MAX_BYTES).contains(&text.len()) && !text.chars().any(char::is_control);
    let wrong = || {
        let shown = text.chars().take(REQUEST_NAME_MAX_BYTES).collect::<String>();
        let shown = shown.escape_debug();
        Invalid::new(format!("`{shown}` must be printable text of 1 to {REQUEST_NAME_MAX_BYTES} bytes"))
    };
    is_name.then(|| text.to_owned()).ok_or_else(wrong)
}

/// Checks a method and returns it. Fails unless it is a token other than `CONNECT` (RFC 9110, sections 9.1 and 5.6.2).
pub fn method(text: &str) -> Result<String, Invalid> {
    match METHODS.into_iter().find(|known| known.eq_ignore_ascii_case(text)) {
        Some("CONNECT") => return Err(Invalid::new("`CONNECT` opens a tunnel and cannot be measured")),
        Some(meant) if meant != text => {
            let message = format!("`{text}` is not `{meant}`: HTTP methods are case-sensitive");
            return Err(Invalid::new(message).hint(format!("write `{meant}`")));
        }
        _ => bounded("a method", text)?,
    }
    if !is_token(text) {
        let message = format!("`{text}` is not a valid HTTP method");
        return Err(Invalid::new(message).hint("use a method such as `GET` or `POST`"));
    }
    Ok(text.to_owned())
}

/// Checks a request target. Fails unless it is a path and query in visible ASCII (RFC 9112, section 3.2.1).
pub fn target(text: &str) -> Result<String, Invalid> {
    bounded("a path", text)?;
    if !text.starts_with('/') {
        return Err(Invalid::new(format!("the path `{text}` must begin with `/`")).hint(format!("write `/{text}`")));
    }
    let wrong = text.chars().find(|&character| !character.is_ascii_graphic() || character == '#');
    let Some(character) = wrong else { return Ok(text.to_owned()) };
    let hint = match character {
        '#' => "fragments are never sent; write `%23` for a literal `#`".to_owned(),
        _ => format!("percent-encode it: `{}`", percent_encoded(character)),
    };
    Err(Invalid::new(format!("{character:?} is not allowed in the path `{text}`")).hint(hint))
}

/// Parses a header field, `Name: value`, and removes outer blanks. Fails if name or value is invalid.
pub fn field(text: &str) -> Result<(String, String), Invalid> {
    bounded("a header", text)?;
    let Some((name, value)) = text.split_once(':') else {
        let hint = match nearest_header(text) {
            Some(name) => format!("write a colon after the name, `{name}: value`"),
            None => "a header looks like `Accept: text/html`".to_owned(),
        };
        return Err(Invalid::new(format!("`{text}` is not a valid header")).hint(hint));
    };
    Ok((field_name(name)?, field_value(name, value)?))
}

/// Checks the name of a header field. Fails unless it is a token (RFC 9110, section 5.1).
pub fn field_name(name: &str) -> Result<String, Invalid> {
    bounded("a header", name)?;
    if is_token(name) {
        return Ok(name.to_owned());
    }
    let hint = match name.trim() {
        trimmed if trimmed != name => format!("no spaces around the name: `{trimmed}: value`"),
        _ => "names are letters, digits and `-`, as in `X-Request-Id`".to_owned(),
    };
    Err(Invalid::new(format!("`{name}` is not a valid header name")).hint(hint))
}

/// Checks a field value and removes outer blanks. Fails at a control character (RFC 9110, section 5.5).
pub fn field_value(name: &str, value: &str) -> Result<String, Invalid> {
    bounded("a header", value)?;
    let value = value.trim_matches([' ', '\t']);
    match value.chars().find(|&character| character != '\t' && character.is_ascii_control()) {
        Some(character) => Err(Invalid::new(format!("{character:?} is not allowed in the value of `{name}`"))),
        None => Ok(value.to_owned()),
    }
}

/// Parses statuses such as `200,201`, `200-204` or `2xx` and returns them sorted, each once. Fails at the first error.
pub fn statuses(text: &str) -> Result<Vec<u16>, Invalid> {
    bounded("a list of statuses", text)?;
    let mut all = Vec::new();
    for part in text.split(',').map(str::trim) {
        let range = match part.as_bytes() {
            [class @ b'1'..=b'5', b'x' | b'X', b'x' | b'X'] => {
                let hundreds = u16::from(class - b'0') * 100;
                Some((hundreds, hundreds + 99))
            }
            _ => {
                let (first, last) = part.split_once('-').unwrap_or((part, part));
                status(first.trim()).zip(status(last.trim()))
            }
        };
        match range {
            Some((..200, _)) => {
                return Err(Invalid::new(format!("`{part}`: status codes below 200 are interim, not final")));
            }
            Some((first, last)) if first <= last => all.extend(first..=last),
            _ => {
                let message = format!("`{part}` is not a valid HTTP status");
                let hint = "write statuses, ranges or classes: `200,201`, `200-204`, `2xx`";
                return Err(Invalid::new(message).hint(hint));
            }
        }
    }
    all.sort_unstable();
    all.dedup();
    Ok(all)
}

/// Reads a status or a list of statuses, given as numbers. Reports other values and leaves them out.
pub(crate) fn numeric_statuses(node: &Node, least: i64, report: &Report) -> Vec<u16> {
    let items = if let Value::List(items) = &node.value { items.as_slice() } else { std::slice::from_ref(node) };
    let status = |item: &Node| match item.value {
        Value::Integer(status) if (least..=599).contains(&status) => Some(status as u16),
        _ => {
            report.mistake(item.place, format!("a status must be a number from {least} to 599"), None);
            None
        }
    };
    items.iter().filter_map(status).collect()
}

/// Describes a status that is not in `expected` (200 to 299 if empty), such as `status 401 (expected 2xx)`.
pub fn unexpected_status(status: u16, expected: &[u16]) -> String {
    let expected = if expected.is_empty() { "2xx".to_owned() } else { statuses_words(expected) };
    format!("status {status} (expected {expected})")
}

/// Formats sorted statuses, such as `2xx, 404`.
pub fn statuses_words(statuses: &[u16]) -> String {
    let follows = |a: &u16, b: &u16| a.checked_add(1) == Some(*b);
    let ranges = statuses.chunk_by(follows).map(|range| match range {
        [first, .., last] if first % 100 == 0 && *last == first.saturating_add(99) => format!("{}xx", first / 100),
        [first, .., last] => format!("{first} to {last}"),
        _ => range.iter().map(u16::to_string).collect(),
    });
    ranges.collect::<Vec<_>>().join(", ")
}

/// Parses a status of three digits, 100 to 599 (RFC 9110, section 15).
fn status(text: &str) -> Option<u16> {
    let digits = text.len() == 3 && text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse().ok().filter(|status| digits && (100..=599).contains(status))
}

/// Finds errors in a request whose parts are valid: fields that contradict its framing or the use of the connection.
/// Each error has its field's name, empty if there are too many fields. `to_close` is the hint for `Connection: close`.
pub fn mistakes<'r>(request: &'r HttpRequest, connection: Connection, to_close: &str) -> Vec<(&'r str, Invalid)> {
    let mut mistakes = Vec::new();
    let mut add = |field: &'r str, error: Invalid| mistakes.push((field, error));
    let named = |name: &str| {
        let fields = request.headers.iter().filter(|(given, _)| given.eq_ignore_ascii_case(name));
        fields.map(|(_, value)| value.as_str()).collect::<Vec<_>>()
    };
    if request.headers.len() > FIELDS_MAX {
        add("", Invalid::new(format!("{} headers, at most {FIELDS_MAX} allowed", request.headers.len())));
    }
    for name in ["Host", "Content-Length"] {
        let count = named(name).len();
        if count > 1 {
            add(name, Invalid::new(format!("`{name}` is given {count} times")));
        }
    }
    let body = std::str::from_utf8(&request.body).unwrap_or_default();
    let texts = request.headers.iter().map(|(name, value)| (name.as_str(), value.as_str()));
    for (field, text) in [("path", request.target.as_str()), ("body", body)].into_iter().chain(texts) {
        if let Err(error) = request_values::parts(text) {
            add(field, error);
        }
    }
    if let [given] = named("Content-Length")[..] {
        let message = if request_values::has_values(body) {
            Some("`Content-Length` cannot be combined with values in the body".to_owned())
        } else if given.bytes().all(|byte| byte.is_ascii_digit()) && given.parse() == Ok(request.body.len()) {
            None
        } else {
            Some(format!("`Content-Length: {given}`, but the body has {} bytes", request.body.len()))
        };
        if let Some(message) = message {
            add("Content-Length", Invalid::new(message).hint("drop it: the correct length is sent"));
        }
    }
    if !named("Transfer-Encoding").is_empty() {
        let message = "`Transfer-Encoding` cannot be set: bodies are sent with `Content-Length`";
        add("Transfer-Encoding", Invalid::new(message).hint("drop it: `Content-Length` is sent"));
    }
    let mut ends = |name: &'static str, value: &str, hint: &str| {
        add(name, Invalid::new(format!("`{name}: {value}` would end a keep-alive connection")).hint(hint));
    };
    const KEEPS_PROTOCOL: &str = "drop it: a load does not change its protocol";
    for value in named("Connection") {
        let option = |wanted: &str| value.split(',').any(|option| option.trim().eq_ignore_ascii_case(wanted));
        if option("upgrade") {
            ends("Connection", value, KEEPS_PROTOCOL);
        } else if option("close") && connection != Connection::PerRequest {
            ends("Connection", value, to_close);
        }
    }
    named("Upgrade").into_iter().for_each(|value| ends("Upgrade", value, KEEPS_PROTOCOL));
    mistakes
}

/// Checks a JSON path (RFC 9535) and its expected value, and returns the value. Fails if either is invalid.
pub fn json_check(path: &str, text: &str) -> Result<String, Invalid> {
    if let Err(error) = serde_json_path::JsonPath::parse(path) {
        let message = format!("`{}` is not a JSON path: {error}", path.escape_debug());
        return Err(Invalid::new(message).hint("a path looks like `$.items[0].id`"));
    }
    request_values::parts(text).map(|_| text.to_owned())
}

/// Checks a regular expression and returns it. Fails if it is invalid.
pub fn regex(text: &str) -> Result<String, Invalid> {
    let invalid = |error: regex::Error| {
        // The error's first lines repeat the expression; only the last one is needed.
        let (text, why) = (text.escape_debug(), error.to_string());
        let why = why.lines().last().unwrap_or_default().trim_start_matches("error: ");
        Invalid::new(format!("`{text}` is not a regular expression: {why}"))
    };
    regex::bytes::Regex::new(text).map(|_| text.to_owned()).map_err(invalid)
}

/// Parses the minimum and maximum length of a body, in bytes: `100`, `100..2000` or `100..`.
pub fn length_range(text: &str) -> Result<(u64, u64), Invalid> {
    let (least, most) = text.split_once("..").unwrap_or((text, text));
    let number = |text: &str, default| if text.trim().is_empty() { Some(default) } else { text.trim().parse().ok() };
    match (number(least, 0), number(most, u64::MAX)) {
        (Some(least), Some(most)) if least <= most && !text.trim().is_empty() => Ok((least, most)),
        _ => Err(Invalid::new(format!("`{}` is not a range of lengths", text.escape_debug()))
            .hint("write `100..2000`, in bytes")),
    }
}

/// Converts the fraction of responses to check to the `n` of "one in `n`". The fraction 0 gives `u32::MAX`.
pub fn one_in(fraction: f64) -> u32 {
    if fraction > 0.0 { (1.0 / fraction).round().min(f64::from(u32::MAX)) as u32 } else { u32::MAX }
}

/// Whether the string is a `token` (RFC 9110, section 5.6.2).
fn is_token(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte))
}

pub(crate) fn bounded(what: &str, text: &str) -> Result<(), Invalid> {
    let bytes = text.len();
    let error = || Invalid::new(format!("{what} of {bytes} bytes, at most {TEXT_MAX_BYTES} allowed"));
    (bytes <= TEXT_MAX_BYTES).then_some(()).ok_or_else(error)
}

/// Percent-encodes a character: each UTF-8 byte as `%XX`.
pub fn percent_encoded(character: char) -> String {
    character.to_string().bytes().map(|byte| format!("%{byte:02X}")).collect()
}

/// Decodes percent escapes and, in forms, `+`. Leaves other characters unchanged.
pub fn percent_decoded(text: &str, is_form: bool) -> String {
    let spaced = if is_form { Cow::Owned(text.replace('+', " ")) } else { Cow::Borrowed(text) };
    percent_decode_str(&spaced).decode_utf8().map_or_else(|_| text.to_owned(), Cow::into_owned)
}

fn nearest_header(text: &str) -> Option<&'static str> {
    const NAMES: &str = "Accept Accept-Encoding Accept-Language Authorization Cache-Control Connection \
        Content-Length Content-Type Cookie Host Origin User-Agent";
    let word = text.split([' ', '\t', '=']).next()?;
    nearest(word, NAMES.split(' '))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn say<T: std::fmt::Debug>(result: Result<T, Invalid>) -> String {
        match result {
            Ok(value) => format!("{value:?}"),
            Err(error) => format!("{error}; {}", error.hint.as_deref().unwrap_or_default()),
        }
    }

    #[test]
    fn methods() {
        for (text, said) in [
            ("GET", r#""GET""#),
            ("PURGE", r#""PURGE""#),
            ("M-SEARCH", r#""M-SEARCH""#),
            ("get", "`get` is not `GET`: HTTP methods are case-sensitive; write `GET`"),
            ("connect", "`CONNECT` opens a tunnel and cannot be measured; "),
            ("GET /", "`GET /` is not a valid HTTP method; use a method such as `GET` or `POST`"),
            ("", "`` is not a valid HTTP method; use a method such as `GET` or `POST`"),
            ("G\r\nX", "`G\r\nX` is not a valid HTTP method; use a method such as `GET` or `POST`"),
        ] {
            assert_eq!(say(method(text)), said);
        }
    }

    #[test]
    fn checks_of_bodies() {
        assert_eq!(length_range("100..2000"), Ok((100, 2000)));
        assert_eq!((length_range("7"), length_range("7..")), (Ok((7, 7)), Ok((7, u64::MAX))));
        for text in ["", "9..7", "a", "1..b"] {
            assert!(length_range(text).unwrap_err().message.contains("is not a range of lengths"), "{text}");
        }
        assert_eq!([1.0, 0.01, 0.3, 0.0].map(one_in), [1, 100, 3, u32::MAX]);
        assert_eq!(json_check("$.a", "{{seq}}"), Ok("{{seq}}".to_owned()));
        assert!(json_check("a", "1").unwrap_err().message.starts_with("`a` is not a JSON path"));
        assert!(json_check("$.a", "{{x}}").unwrap_err().message.starts_with("unknown value"));
        assert!(regex("(").unwrap_err().message.starts_with("`(` is not a regular expression"));
    }

    #[test]
    fn targets() {
        for (text, said) in [
            ("/", r#""/""#),
            ("/a?b=c&d=[e]|{f}", r#""/a?b=c&d=[e]|{f}""#),
            ("a", "the path `a` must begin with `/`; write `/a`"),
            ("", "the path `` must begin with `/`; write `/`"),
            ("/a b", "' ' is not allowed in the path `/a b`; percent-encode it: `%20`"),
            ("/ü", "'ü' is not allowed in the path `/ü`; percent-encode it: `%C3%BC`"),
            ("/a#b", "'#' is not allowed in the path `/a#b`; fragments are never sent; write `%23` for a literal `#`"),
            ("/\r\nX: y", "'\\r' is not allowed in the path `/\r\nX: y`; percent-encode it: `%0D`"),
        ] {
            assert_eq!(say(target(text)), said);
        }
        assert_eq!(say(target(&"/".repeat(TEXT_MAX_BYTES + 1))), "a path of 32769 bytes, at most 32768 allowed; ");
    }

    #[test]
    fn fields() {
        for (text, said) in [
            ("Accept: */*", r#"("Accept", "*/*")"#),
            ("X-A:b:c \t", r#"("X-A", "b:c")"#),
            ("X-Empty:", r#"("X-Empty", "")"#),
            ("X: ü", r#"("X", "ü")"#),
            ("Acept */*", "`Acept */*` is not a valid header; write a colon after the name, `Accept: value`"),
            ("x=1", "`x=1` is not a valid header; a header looks like `Accept: text/html`"),
            (": v", "`` is not a valid header name; names are letters, digits and `-`, as in `X-Request-Id`"),
            ("A : v", "`A ` is not a valid header name; no spaces around the name: `A: value`"),
            ("A: b\r\nC: d", "'\\r' is not allowed in the value of `A`; "),
            ("A: b\0", "'\\0' is not allowed in the value of `A`; "),
        ] {
            assert_eq!(say(field(text)), said);
        }
    }

    #[test]
    fn lists_of_statuses() {
        let wrong = |text: &str| {
            format!(
                "`{text}` is not a valid HTTP status; write statuses, ranges or classes: `200,201`, `200-204`, \
                     `2xx`"
            )
        };
        assert_eq!(statuses("404, 200,200").unwrap(), [200, 404]);
        assert_eq!(statuses("200-204").unwrap(), [200, 201, 202, 203, 204]);
        assert_eq!(statuses("3xx,200").unwrap().len(), 101);
        assert_eq!(statuses("2XX").unwrap(), (200..=299).collect::<Vec<_>>());
        for (text, part) in
            [("", ""), ("ok", "ok"), ("200,", ""), ("99", "99"), ("600", "600"), ("6xx", "6xx"), ("+20", "+20")]
        {
            assert_eq!(say(statuses(text)), wrong(part), "{text}");
        }
        assert_eq!(say(statuses("204-200")), wrong("204-200"));
        assert!(say(statuses("1xx")).starts_with("`1xx`: status codes below 200"));
        assert!(say(statuses("100-200")).starts_with("`100-200`: status codes below 200"));
    }

    #[test]
    fn formats_statuses() {
        for (list, words) in
            [("2xx", "2xx"), ("200,201,404", "200 to 201, 404"), ("503", "503"), ("4xx,200", "200, 4xx")]
        {
            assert_eq!(statuses_words(&statuses(list).unwrap()), words);
        }
        assert_eq!(statuses_words(&[]), "");
        assert_eq!(statuses_words(&[u16::MAX, 0]), "65535, 0");
    }

    #[test]
    fn checks_requests_as_a_whole() {
        let said = |headers: &[(&str, &str)], body: &[u8], connection| {
            let request = HttpRequest {
                weight: 1,
                method: "POST".to_owned(),
                target: "/".to_owned(),
                headers: headers.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect(),
                body: body.to_vec(),
                name: None,
            };
            let mistakes = mistakes(&request, connection, "");
            mistakes.iter().map(|(_, error)| error.to_string()).collect::<Vec<_>>().join("; ")
        };
        use Connection::{KeepAlive, PerRequest};
        assert_eq!(
            said(&[("Host", "a"), ("content-length", "3"), ("Connection", "keep-alive")], b"abc", KeepAlive),
            ""
        );
        assert_eq!(said(&[("Connection", "close")], b"", PerRequest), "");
        for (headers, text) in [
            (&[("Host", "a"), ("host", "b")][..], "`Host` is given 2 times"),
            (&[("Content-Length", "4")], "`Content-Length: 4`, but the body has 3 bytes"),
            (&[("Content-Length", "+3")], "`Content-Length: +3`, but the body has 3 bytes"),
            (&[("Content-Length", "3"), ("Content-Length", "3")], "`Content-Length` is given 2 times"),
            (
                &[("transfer-encoding", "chunked")],
                "`Transfer-Encoding` cannot be set: bodies are sent with \
                                                   `Content-Length`",
            ),
            (&[("Connection", "Close, x")], "`Connection: Close, x` would end a keep-alive connection"),
            (&[("Upgrade", "h2c")], "`Upgrade: h2c` would end a keep-alive connection"),
        ] {
            assert_eq!(said(headers, b"abc", KeepAlive), text);
        }
        for length in ["3", "8"] {
            let said = said(&[("content-length", length)], b"{{uuid}}", KeepAlive);
            assert_eq!(said, "`Content-Length` cannot be combined with values in the body");
        }
        assert_eq!(said(&[("A", "{{b}}")], b"{{uid}}", KeepAlive), "unknown value `{{uid}}`; unknown value `{{b}}`");
        assert_eq!(said(&[("A", "b"); FIELDS_MAX + 1], b"", KeepAlive), "129 headers, at most 128 allowed");
    }

    proptest! {
        #[test]
        fn accepted_parts_cannot_break_the_framing(text in "\\PC*|[ -~\\t\\r\\n\\x00]{0,40}") {
            let lines = |text: &str| text.contains(['\r', '\n', '\0']);
            if let Ok(method) = method(&text) {
                prop_assert!(!lines(&method) && !method.contains(' ') && !method.is_empty());
            }
            if let Ok(target) = target(&text) {
                prop_assert!(!lines(&target) && !target.contains(' '));
            }
            if let Ok((name, value)) = field(&text) {
                prop_assert!(!lines(&name) && !lines(&value) && !name.contains([' ', ':']));
            }
            if let Ok(statuses) = statuses(&text) {
                prop_assert!(!statuses.is_empty() && statuses.iter().all(|status| (200..600).contains(status)));
            }
        }
    }
}
