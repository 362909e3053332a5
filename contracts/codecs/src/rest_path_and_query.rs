//! REST path templates with their parameters, queries and forms. [`crate::json`] reads bodies.
//! ```
//! use codecs::rest_path_and_query::Template;
//! let retweet = Template::parse("/1.1/statuses/retweet/{id}.json").unwrap();
//! let found = retweet.matches("/1.1/statuses/retweet/21%2F7.json").unwrap();
//! assert_eq!((found[0].0, found[0].1.as_ref()), ("id", "21/7"));
//! ```
//! A template's segments are fixed text with at most one `{name}`, which matches one or more characters except `/`.
//! Percent escapes are decoded per segment, so `%2F` does not separate segments. `/a` and `/a/` are different paths.

use std::borrow::Cow;

use percent_encoding::percent_decode_str;

/// Maximum size of a template, in bytes.
pub const PATH_MAX_BYTES: usize = 8 << 10;

/// A path template with named parts, such as `/users/{id}`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Template {
    segments: Vec<Segment>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Segment {
    before: String,
    /// The name of the variable part, and the fixed text after it.
    name: Option<(String, String)>,
}

impl Template {
    /// Parses a template and decodes the percent escapes in its fixed text. Fails with all errors.
    pub fn parse(text: &str) -> Result<Template, Vec<String>> {
        if text.len() > PATH_MAX_BYTES {
            return Err(vec![format!("{} bytes, over the limit of {PATH_MAX_BYTES}", text.len())]);
        }
        let mut mistakes = Vec::new();
        if !text.starts_with('/') {
            mistakes.push("a path must start with `/`".to_owned());
        }
        if text.contains(['?', '#']) {
            mistakes.push("a template must not contain `?` or `#`".to_owned());
        }
        let mut segments = Vec::new();
        let mut names = Vec::<&str>::new();
        for segment in text.strip_prefix('/').unwrap_or(text).split('/') {
            let mut first = None;
            let mut rest = segment;
            while let Some((before, inner)) = rest.split_once('{') {
                let Some((name, after)) = inner.split_once('}') else {
                    mistakes.push("`{` without `}`".to_owned());
                    break;
                };
                let is_name = name.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_')
                    && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
                if !is_name {
                    let name = name.escape_default();
                    mistakes.push(format!("`{name}` is not a valid name: only letters, digits and `_`"));
                } else if names.contains(&name) {
                    mistakes.push(format!("duplicate name `{name}`"));
                }
                if first.is_some() {
                    mistakes.push("a second name in one segment".to_owned());
                }
                names.push(name);
                first = first.or(Some((before, name)));
                rest = after;
            }
            if rest.contains('}') {
                mistakes.push("`}` without `{`".to_owned());
            }
            if decode(segment).is_none() {
                mistakes.push("an escape that is not valid UTF-8".to_owned());
            }
            let fixed = |text: &str| decode(text).unwrap_or_default().into_owned();
            let before = first.map_or(segment, |(before, _)| before);
            let name = first.map(|(_, name)| (name.to_owned(), fixed(rest)));
            segments.push(Segment { before: fixed(before), name });
        }
        if mistakes.is_empty() { Ok(Template { segments }) } else { Err(mistakes) }
    }

    /// The names of the variable parts, in order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.segments.iter().filter_map(|segment| segment.name.as_ref()).map(|(name, _)| name.as_str())
    }

    /// The parameters of a matching `path`, given without its query. `None` if `path` does not match or is not UTF-8.
    pub fn matches<'p>(&self, path: &'p str) -> Option<Vec<(&str, Cow<'p, str>)>> {
        let mut rest = path.strip_prefix('/')?.split('/');
        let mut parameters = Vec::new();
        for segment in &self.segments {
            let found = decode(rest.next()?)?;
            match &segment.name {
                None if found == segment.before => {}
                Some((name, after)) => {
                    let inner = match found {
                        Cow::Borrowed(text) => Cow::Borrowed(between(text, &segment.before, after)?),
                        Cow::Owned(text) => Cow::Owned(between(&text, &segment.before, after)?.to_owned()),
                    };
                    parameters.push((name.as_str(), inner));
                }
                None => return None,
            }
        }
        rest.next().is_none().then_some(parameters)
    }
}

fn between<'t>(text: &'t str, before: &str, after: &str) -> Option<&'t str> {
    text.strip_prefix(before)?.strip_suffix(after).filter(|inner| !inner.is_empty())
}

/// Decodes percent escapes. `None` if the result is not valid UTF-8. Keeps a `%` that does not start an escape.
fn decode(text: &str) -> Option<Cow<'_, str>> {
    percent_decode_str(text).decode_utf8().ok()
}

/// Parses a query (the text between `?` and `#`) or a form (`application/x-www-form-urlencoded`) into names and values,
/// in order. `+` means a space. Empty pairs (`&&`) are skipped, and a name without `=` has an empty value. `None` for
/// more than `limit` pairs or an escape that is not UTF-8. Source: the URL standard, section 5.1.
pub fn parameters(text: &str, limit: usize) -> Option<Vec<(Cow<'_, str>, Cow<'_, str>)>> {
    let pairs = text.split('&').filter(|pair| !pair.is_empty()).take(limit + 1).map(|pair| {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        Some((plus(name)?, plus(value)?))
    });
    pairs.collect::<Option<Vec<_>>>().filter(|all| all.len() <= limit)
}

fn plus(text: &str) -> Option<Cow<'_, str>> {
    if !text.contains('+') {
        return decode(text);
    }
    decode(&text.replace('+', " ")).map(|decoded| Cow::Owned(decoded.into_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_matches_segment_by_segment() {
        for (template, path, expect) in [
            ("/a", "/a", Some("")),
            ("/a", "/%61", Some("")),
            ("/", "/", Some("")),
            ("/{any}", "/b", Some("any=b")),
            ("/{any}", "/c%2Fd", Some("any=c/d")),
            ("/{any}", "/100%", Some("any=100%")),
            ("/{any}", "/%ff", None),
            ("/{any}", "/", None),
            ("/{any}", "a", None),
            ("/a{rest}.json", "/ab.json", Some("rest=b")),
            ("/a{rest}", "/a.json", Some("rest=.json")),
            ("/a{rest}", "/a", None),
            ("/{x}/{y}", "/c/d", Some("x=c y=d")),
            ("/a/{y}", "/a/", None),
            ("/a/{y}", "/a/b/c", None),
            ("/caf%C3%A9/{z}", "/caf\u{e9}/x", Some("z=x")),
            ("/1.1/statuses/retweet/{id}.json", "/1.1/statuses/retweet/21.json", Some("id=21")),
            ("/1.1/statuses/retweet/{id}.json", "/1.1/statuses/retweet/.json", None),
        ] {
            let parsed = Template::parse(template).unwrap();
            let found = parsed.matches(path).map(|parameters| {
                parameters.iter().map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>().join(" ")
            });
            assert_eq!(found.as_deref(), expect, "{template} {path}");
        }
    }

    #[test]
    fn template_errors_are_all_reported() {
        let check = |text: &str, expect: &[&str]| {
            assert_eq!(Template::parse(text).unwrap_err(), expect, "{text}");
        };
        check("a", &["a path must start with `/`"]);
        check("/a?b", &["a template must not contain `?` or `#`"]);
        check("/{a}{b}", &["a second name in one segment"]);
        check("/{a}/{a}", &["duplicate name `a`"]);
        check(
            "/é/{}/{1}/{x",
            &[
                "`` is not a valid name: only letters, digits and `_`",
                "`1` is not a valid name: only letters, digits and `_`",
                "`{` without `}`",
            ],
        );
        check("/a}", &["`}` without `{`"]);
        check("/%ff", &["an escape that is not valid UTF-8"]);
        check(&"/".repeat(PATH_MAX_BYTES + 1), &["8193 bytes, over the limit of 8192"]);
    }

    #[test]
    fn parameters_keep_their_order_and_repeat() {
        let all = parameters("a=1&b=x+y%2B&&a=2&c&=d&a=%C5%82", 10).unwrap();
        let all = all.iter().map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>();
        assert_eq!(all, ["a=1", "b=x y+", "a=2", "c=", "=d", "a=ł"]);
        assert_eq!(parameters("", 0), Some(Vec::new()));
        assert_eq!(parameters("a&b", 1), None);
        assert_eq!(parameters("a&b=%ff", 5), None);
    }
}
