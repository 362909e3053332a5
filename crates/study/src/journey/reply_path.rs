//! Paths into replies, such as `result[0].noteStoreUrl`, `body.users` or `count(result.notes)`.

use config::Invalid;
use regex::bytes::Regex;

use crate::validate_http;

const PARTS_MAX: usize = 32;

/// A path from the root of a reply to a value in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Path {
    /// Whether the path counts the elements of a value instead of returning it.
    pub is_count: bool,
    /// Name at the start of the path, such as `result` or `body`.
    pub root: String,
    /// Fields and elements to follow from the root.
    pub parts: Vec<Part>,
}

/// One step of a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Part {
    /// A field with this name.
    Field(String),
    /// The element of a list at this index, from 0.
    Element(usize),
    /// A randomly chosen element of a list.
    Any,
}

/// Source of a value that a step takes.
#[derive(Clone, Debug)]
pub enum Source {
    /// The value at this path in the reply.
    Value(Path),
    /// The header with this name.
    Header(String),
    /// The cookie with this name.
    Cookie(String),
    /// The cookie with this name, without its percent escapes.
    DecodedCookie(String),
    /// The first group, or else the whole match, of this expression in the body.
    Match(Regex),
}

/// Parses a source of `take`: a path, `header.NAME`, `cookie.NAME`, `decoded(cookie.NAME)` or `match(REGEX)`. Only plain
/// HTTP replies, whose `root` is `body`, have other sources than paths. Fails as [`rooted`] or for an invalid name or
/// regular expression.
pub fn source(text: &str, root: &str) -> Result<Source, Invalid> {
    if root != "body" {
        return rooted(text, root).map(Source::Value);
    }
    let argument = |function: &str| text.strip_prefix(function)?.strip_suffix(')');
    if let Some(name) = argument("decoded(cookie.").filter(|name| is_name(name)) {
        return Ok(Source::DecodedCookie(name.to_owned()));
    }
    if let Some(pattern) = argument("match(") {
        let valid = validate_http::regex(pattern)?;
        return Ok(Source::Match(Regex::new(&valid).expect("it is valid")));
    }
    let path = parse(text)?;
    match (path.root.as_str(), path.parts.as_slice()) {
        ("header", [Part::Field(name)]) if !path.is_count => Ok(Source::Header(name.clone())),
        ("cookie", [Part::Field(name)]) if !path.is_count => Ok(Source::Cookie(name.clone())),
        ("header" | "cookie", _) => {
            let error = Invalid::new(format!("`{}` is not one name", text.escape_debug()));
            Err(error.hint("write `header.Location`, or `cookie.sid`"))
        }
        _ => rooted(text, root).map(Source::Value),
    }
}

/// Parses a path that must begin with `root`. Fails as [`parse`].
pub fn rooted(text: &str, root: &str) -> Result<Path, Invalid> {
    let path = parse(text)?;
    if path.root == root {
        return Ok(path);
    }
    Err(Invalid::new(format!("`{}`: paths must begin with `{root}` here", path.root)))
}

/// Splits off a final `?`, which lets the value be missing or `null`. Returns the rest and whether there was a `?`.
pub fn optional(text: &str) -> (&str, bool) {
    text.strip_suffix('?').map_or((text, false), |text| (text, true))
}

/// Parses a path. Fails if the syntax is invalid or the path has more than 32 parts.
pub fn parse(text: &str) -> Result<Path, Invalid> {
    let wrong = |why: &str| Invalid::new(format!("`{}` is not a path into a response: {why}", text.escape_debug()));
    let (is_count, inner) = match text.strip_prefix("count(") {
        Some(rest) => (true, rest.strip_suffix(')').ok_or_else(|| wrong("`count(` without `)` at the end"))?),
        None => (false, text),
    };
    let end = inner.find(['.', '[']).unwrap_or(inner.len());
    let (root, mut rest) = inner.split_at(end);
    if !is_name(root) {
        return Err(wrong("must begin with a name, such as `result`"));
    }
    let mut parts = Vec::new();
    while !rest.is_empty() {
        if parts.len() == PARTS_MAX {
            return Err(wrong("more than 32 parts"));
        }
        if let Some(after) = rest.strip_prefix('.') {
            let end = after.find(['.', '[']).unwrap_or(after.len());
            let (name, after) = after.split_at(end);
            if !is_name(name) {
                return Err(wrong("expected a name after `.`"));
            }
            parts.push(Part::Field(name.to_owned()));
            rest = after;
        } else {
            let inner = rest.strip_prefix('[').and_then(|after| after.split_once(']'));
            let place = |text: &str| if text == "any" { Some(Part::Any) } else { text.parse().ok().map(Part::Element) };
            let Some((place, after)) = inner.and_then(|(text, after)| Some((place(text)?, after))) else {
                return Err(wrong("expected an index in brackets, `[0]`, or `[any]`"));
            };
            parts.push(place);
            rest = after;
        }
    }
    Ok(Path { is_count, root: root.to_owned(), parts })
}

fn is_name(text: &str) -> bool {
    !text.is_empty()
        && text.chars().all(|letter| letter.is_alphanumeric() || letter == '_' || letter == '-' || letter == '$')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: &str) {
        let found = match parse(text) {
            Ok(path) => {
                let parts = path.parts.iter().map(|part| match part {
                    Part::Field(name) => format!(" {name}"),
                    Part::Element(place) => format!(" #{place}"),
                    Part::Any => " any".to_owned(),
                });
                format!("{}{}{}", if path.is_count { "count " } else { "" }, path.root, parts.collect::<String>())
            }
            Err(error) => error.message,
        };
        assert_eq!(found, expected, "{text}");
    }

    #[test]
    fn parses_fields_and_elements() {
        check("result", "result");
        check("result[0].noteStoreUrl", "result #0 noteStoreUrl");
        check("body.users[12].id_str", "body users #12 id_str");
        check("body[0][1]", "body #0 #1");
        check("body.items[any].id", "body items any id");
        check("count(result.notes)", "count result notes");
    }

    #[test]
    fn parses_sources() {
        for (text, expected) in [
            ("match(a(b)c)", "Ok(Match(Regex(\"a(b)c\")))"),
            ("decoded(cookie.XSRF-TOKEN)", "Ok(DecodedCookie(\"XSRF-TOKEN\"))"),
            ("cookie.sid", "Ok(Cookie(\"sid\"))"),
            ("header.Location", "Ok(Header(\"Location\"))"),
        ] {
            assert_eq!(format!("{:?}", source(text, "body")), expected);
            assert!(source(text, "result").is_err());
        }
        for text in ["match(a", "match([)", "decoded(cookie.a.b)", "decoded(cookie.a", "cookie.a.b", "result"] {
            assert!(source(text, "body").is_err(), "{text}");
        }
        assert!(matches!(source("body.a", "body"), Ok(Source::Value(_))));
    }

    #[test]
    fn rejects_invalid_paths() {
        for text in ["", ".a", "a.", "a..b", "a[", "a[]", "a[x]", "a[-1]", "a[0", "a[0]b", "count(a", "a b"] {
            assert!(parse(text).unwrap_err().message.contains("is not a path into a response"), "{text}");
        }
        assert!(parse(&format!("a{}", ".b".repeat(33))).is_err());
    }
}
