//! Validates methods, request targets, header fields and statuses from flags and study files.
//! Accepted values cannot change the framing of a message.

use config::nearest::nearest;
use thiserror::Error;

use crate::spec::{Connection, HttpRequest};

/// Maximum header fields per request.
pub const FIELDS_MAX: usize = 128;
/// Maximum length of a request target, method or header field, bytes. Servers accept less: nginx 8
/// KiB.
pub const TEXT_MAX_BYTES: usize = 32 * 1024;

/// Why a part of a request cannot be sent. The message quotes the text; the caller adds the place.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum HttpError {
    /// The method is not a token (RFC 9110, 9.1 and 5.6.2).
    #[error("`{text}` is not a valid HTTP method")]
    Method {
        /// The text.
        text: String,
    },
    /// A known method in lower case. Methods are case-sensitive (RFC 9110, 9.1).
    #[error("`{text}` is not `{meant}`: HTTP methods are case-sensitive")]
    MethodCase {
        /// The text.
        text: String,
        /// The probable method.
        meant: &'static str,
    },
    /// The method `CONNECT`, which opens a tunnel.
    #[error("`CONNECT` opens a tunnel and cannot be measured")]
    Connect,
    /// The request target is not in origin form (RFC 9112, 3.2.1).
    #[error("the path `{text}` must begin with `/`")]
    TargetStart {
        /// The text.
        text: String,
    },
    /// An invalid character in the request target.
    #[error("{character:?} is not allowed in the path `{text}`")]
    TargetCharacter {
        /// The text.
        text: String,
        /// The first such character.
        character: char,
    },
    /// Not `Name: value`.
    #[error("`{text}` is not a valid header")]
    Field {
        /// The text.
        text: String,
    },
    /// The name of the field is not a token (RFC 9110, 5.1).
    #[error("`{name}` is not a valid header name")]
    FieldName {
        /// The text before the colon.
        name: String,
    },
    /// The value has a line end, a zero byte or another control character (RFC 9110, 5.5).
    #[error("{character:?} is not allowed in the value of `{name}`")]
    FieldValue {
        /// Name of the field.
        name: String,
        /// The first such character.
        character: char,
    },
    /// Longer than [`TEXT_MAX_BYTES`].
    #[error("{what} of {bytes} bytes, at most {TEXT_MAX_BYTES} allowed")]
    TooLong {
        /// The name of the part, with its article.
        what: &'static str,
        /// Length, bytes.
        bytes: usize,
    },
    /// Not a status, a range or a class.
    #[error("`{text}` is not a valid HTTP status")]
    Status {
        /// The invalid part.
        text: String,
    },
    /// 100 to 199.
    #[error("`{text}`: status codes below 200 are interim, not final")]
    Interim {
        /// The text.
        text: String,
    },
    /// A field that may occur only once (RFC 9110, 5.3 and 7.2).
    #[error("`{name}` is given {count} times")]
    Repeated {
        /// Name of the field.
        name: &'static str,
        /// Number of occurrences.
        count: usize,
    },
    /// `Content-Length` differs from the length of the body.
    #[error("`Content-Length: {given}`, but the body has {actual} bytes")]
    Length {
        /// The given value.
        given: String,
        /// Length of the body, bytes.
        actual: usize,
    },
    /// `Transfer-Encoding`: bodies are sent with their length.
    #[error("`Transfer-Encoding` cannot be set: bodies are sent with `Content-Length`")]
    TransferEncoding,
    /// `Connection` or `Upgrade` would end HTTP/1.1 on a keep-alive connection.
    #[error("`{name}: {value}` would end a keep-alive connection")]
    Ends {
        /// Name of the field.
        name: &'static str,
        /// Its value.
        value: String,
    },
    /// Too many header fields.
    #[error("{count} headers, at most {FIELDS_MAX} allowed")]
    TooManyFields {
        /// Number of fields.
        count: usize,
    },
}

impl HttpError {
    /// A suggestion, if there is one.
    pub fn hint(&self) -> Option<String> {
        let hint = match self {
            HttpError::Method { .. } => "use a method such as `GET` or `POST`".to_owned(),
            HttpError::MethodCase { meant, .. } => format!("write `{meant}`"),
            HttpError::TargetStart { text } => format!("write `/{text}`"),
            HttpError::TargetCharacter { character: '#', .. } => "fragments are never sent; write `%23` for a literal \
                                                                  `#`"
            .to_owned(),
            HttpError::TargetCharacter { character, .. } => format!("percent-encode it: `{}`", encoded(*character)),
            HttpError::Field { text } => match nearest_header(text) {
                Some(name) => format!("write a colon after the name, `{name}: value`"),
                None => "a header looks like `Accept: text/html`".to_owned(),
            },
            HttpError::FieldName { name } if name.trim() != name => {
                format!("no spaces around the name: `{}: value`", name.trim())
            }
            HttpError::FieldName { .. } => "names are letters, digits and `-`, as in `X-Request-Id`".to_owned(),
            HttpError::Status { .. } => "write statuses, ranges or classes: `200,201`, `200-204`, `2xx`".to_owned(),
            HttpError::Length { .. } => "drop it: the correct length is sent".to_owned(),
            HttpError::TransferEncoding => "drop it: `Content-Length` is sent".to_owned(),
            HttpError::Ends { .. } => "for one connection per request, use `connection = \"per-request\"`".to_owned(),
            _ => return None,
        };
        Some(hint)
    }
}

/// Known methods, for suggestions (RFC 9110, 9.3; RFC 5789).
const METHODS: [&str; 9] = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "CONNECT"];

/// Validates a method: any token except `CONNECT`.
pub fn method(text: &str) -> Result<String, HttpError> {
    let fits = bounded("a method", text);
    let known = METHODS.into_iter().find(|known| known.eq_ignore_ascii_case(text));
    match known {
        Some("CONNECT") => Err(HttpError::Connect),
        Some(meant) if meant != text => Err(HttpError::MethodCase { text: text.to_owned(), meant }),
        Some(_) => Ok(text.to_owned()),
        None if is_token(text) => fits.map(|()| text.to_owned()),
        None => fits.and(Err(HttpError::Method { text: text.to_owned() })),
    }
}

/// Validates a request target: path and query in visible ASCII. Everything else is sent unchanged,
/// because a test may want to send a target that browsers would not.
pub fn target(text: &str) -> Result<String, HttpError> {
    bounded("a path", text)?;
    if !text.starts_with('/') {
        return Err(HttpError::TargetStart { text: text.to_owned() });
    }
    match text.chars().find(|&character| !character.is_ascii_graphic() || character == '#') {
        Some(character) => Err(HttpError::TargetCharacter { text: text.to_owned(), character }),
        None => Ok(text.to_owned()),
    }
}

/// Parses a header field, `Name: value`, and removes blanks around the value. The value may be
/// empty.
pub fn field(text: &str) -> Result<(String, String), HttpError> {
    bounded("a header", text)?;
    let (name, value) = text.split_once(':').ok_or_else(|| HttpError::Field { text: text.to_owned() })?;
    field_of(name, value)
}

/// Validates a header field given as name and value.
pub fn field_of(name: &str, value: &str) -> Result<(String, String), HttpError> {
    bounded("a header", name)?;
    bounded("a header", value)?;
    if !is_token(name) {
        return Err(HttpError::FieldName { name: name.to_owned() });
    }
    let value = value.trim_matches([' ', '\t']);
    match value.chars().find(|&character| character != '\t' && character.is_ascii_control()) {
        Some(character) => Err(HttpError::FieldValue { name: name.to_owned(), character }),
        None => Ok((name.to_owned(), value.to_owned())),
    }
}

/// Parses the valid statuses: `200`, `200,201`, `200-204`, `2xx`. Returns them in ascending order
/// without duplicates.
pub fn statuses(text: &str) -> Result<Vec<u16>, HttpError> {
    bounded("a list of statuses", text)?;
    let mut all = Vec::new();
    for part in text.split(',').map(str::trim) {
        let wrong = || HttpError::Status { text: part.to_owned() };
        let (first, last) = match part.as_bytes() {
            [class @ b'1'..=b'5', b'x' | b'X', b'x' | b'X'] => {
                let hundreds = u16::from(class - b'0') * 100;
                (hundreds, hundreds + 99)
            }
            _ => match part.split_once('-') {
                Some((first, last)) => {
                    (status(first.trim()).ok_or_else(wrong)?, status(last.trim()).ok_or_else(wrong)?)
                }
                None => status(part).map(|one| (one, one)).ok_or_else(wrong)?,
            },
        };
        if first < 200 {
            return Err(HttpError::Interim { text: part.to_owned() });
        }
        if last < first {
            return Err(wrong());
        }
        all.extend(first..=last);
    }
    all.sort_unstable();
    all.dedup();
    Ok(all)
}

/// Describes a status that is not among `expected` (empty: 200 to 299): `status 401 (expected
/// 2xx)`.
pub fn unexpected_status(status: u16, expected: &[u16]) -> String {
    let expected = if expected.is_empty() { "2xx".to_owned() } else { statuses_words(expected) };
    format!("status {status} (expected {expected})")
}

/// Formats ascending statuses: `2xx, 404`.
pub fn statuses_words(statuses: &[u16]) -> String {
    let follows = |a: &u16, b: &u16| a.checked_add(1) == Some(*b);
    let ranges = statuses.chunk_by(follows).map(|range| match range {
        [first, .., last] if first % 100 == 0 && *last == first.saturating_add(99) => format!("{}xx", first / 100),
        [first, .., last] => format!("{first} to {last}"),
        _ => range.iter().map(u16::to_string).collect(),
    });
    ranges.collect::<Vec<_>>().join(", ")
}

/// Parses three digits, 100 to 599 (RFC 9110, 15).
fn status(text: &str) -> Option<u16> {
    let digits = text.len() == 3 && text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse().ok().filter(|status| digits && (100..=599).contains(status))
}

/// Errors in a request as a whole: fields that contradict its framing or the use of the connection.
/// Its parts must be valid already.
pub fn mistakes(request: &HttpRequest, connection: Connection) -> Vec<HttpError> {
    let mut mistakes = Vec::new();
    let named = |name: &str| {
        let fields = request.headers.iter().filter(|(given, _)| given.eq_ignore_ascii_case(name));
        fields.map(|(_, value)| value.as_str()).collect::<Vec<_>>()
    };
    if request.headers.len() > FIELDS_MAX {
        mistakes.push(HttpError::TooManyFields { count: request.headers.len() });
    }
    for name in ["Host", "Content-Length"] {
        let count = named(name).len();
        if count > 1 {
            mistakes.push(HttpError::Repeated { name, count });
        }
    }
    if let [given] = named("Content-Length")[..]
        && !(given.bytes().all(|byte| byte.is_ascii_digit()) && given.parse() == Ok(request.body.len()))
    {
        mistakes.push(HttpError::Length { given: given.to_owned(), actual: request.body.len() });
    }
    if !named("Transfer-Encoding").is_empty() {
        mistakes.push(HttpError::TransferEncoding);
    }
    let mut ends = |name, value: &str| mistakes.push(HttpError::Ends { name, value: value.to_owned() });
    for value in named("Connection") {
        let option = |wanted: &str| value.split(',').any(|option| option.trim().eq_ignore_ascii_case(wanted));
        if option("upgrade") || (option("close") && connection == Connection::KeepAlive) {
            ends("Connection", value);
        }
    }
    for value in named("Upgrade") {
        ends("Upgrade", value);
    }
    mistakes
}

/// Whether the text is a `token` (RFC 9110, 5.6.2).
fn is_token(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte))
}

fn bounded(what: &'static str, text: &str) -> Result<(), HttpError> {
    match text.len() {
        bytes if bytes > TEXT_MAX_BYTES => Err(HttpError::TooLong { what, bytes }),
        _ => Ok(()),
    }
}

fn encoded(character: char) -> String {
    let mut bytes = [0; 4];
    character.encode_utf8(&mut bytes).bytes().map(|byte| format!("%{byte:02X}")).collect()
}

/// The header name closest to the start of a text without a colon.
fn nearest_header(text: &str) -> Option<&str> {
    const NAMES: [&str; 12] = [
        "Accept",
        "Accept-Encoding",
        "Accept-Language",
        "Authorization",
        "Cache-Control",
        "Connection",
        "Content-Length",
        "Content-Type",
        "Cookie",
        "Host",
        "Origin",
        "User-Agent",
    ];
    let word = text.split([' ', '\t', '=']).next()?;
    nearest(word, NAMES)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn say<T: std::fmt::Debug>(result: Result<T, HttpError>) -> String {
        match result {
            Ok(value) => format!("{value:?}"),
            Err(error) => format!("{error}; {}", error.hint().unwrap_or_default()),
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
            };
            let mistakes = mistakes(&request, connection);
            mistakes.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
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
