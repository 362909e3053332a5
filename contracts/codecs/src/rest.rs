//! REST: which operation a method and a path are, with what parameters; queries, forms and headers. Bodies are [`crate::json`]'s.
//!
//! ```
//! use codecs::rest::{Router, Template};
//!
//! let list = Template::parse("/1.1/statuses/{kind}.json").unwrap();
//! let retweet = Template::parse("/1.1/statuses/retweet/{id}.json").unwrap();
//! let router = Router::new([("GET", &list), ("POST", &retweet)]).unwrap();
//! let found = router.find("POST", "/1.1/statuses/retweet/21%2F7.json").unwrap();
//! assert_eq!((found.route, found.parameters[0].0, found.parameters[0].1.as_ref()), (1, "id", "21/7"));
//! ```
//!
//! # How a path is matched
//!
//! Segments are what is between slashes. One of a template is fixed text with at most one `{name}`, which stands for one or more characters but `/`.
//! Percent escapes are resolved after a path is cut into segments, so that `%2F` is no slash between them. Where several templates match, the one
//! whose first segment in which they differ is more fixed wins: text alone before text with a name (the more text, the better) before a name alone. Two
//! templates that differ in their names alone are a mistake, told when the router is made. `/a` and `/a/` are two paths.

use std::borrow::Cow;

use percent_encoding::percent_decode_str;

/// Most bytes of a template, and of a path that is looked for.
pub const PATH_MAX_BYTES: usize = 8 << 10;

/// A path with names for what changes in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Template {
    text: String,
    segments: Vec<Segment>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Segment {
    before: String,
    /// The name, and the text behind it.
    name: Option<(String, String)>,
}

/// What is wrong with a template.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("column {column}: {what}")]
pub struct TemplateError {
    /// Column in characters, from 1.
    pub column: usize,
    /// What is wrong.
    pub what: String,
}

impl Template {
    /// Reads a template. Escapes in its fixed text are resolved, as those of paths are.
    ///
    /// # Errors
    ///
    /// All its mistakes.
    pub fn parse(text: &str) -> Result<Template, Vec<TemplateError>> {
        let mut mistakes = Vec::new();
        let mut tell = |at: usize, what: String| {
            mistakes.push(TemplateError { column: text[..at].chars().count() + 1, what });
        };
        if text.len() > PATH_MAX_BYTES {
            tell(0, format!("{} bytes, over the limit of {PATH_MAX_BYTES}", text.len()));
            return Err(mistakes);
        }
        if !text.starts_with('/') {
            tell(0, "a path must start with `/`".to_owned());
        }
        if let Some(at) = text.find(['?', '#']) {
            tell(at, "a template must not contain `?` or `#`".to_owned());
        }
        let mut segments = Vec::new();
        let mut names = Vec::<&str>::new();
        for segment in text.strip_prefix('/').unwrap_or(text).split('/') {
            let at = segment.as_ptr() as usize - text.as_ptr() as usize;
            let mut parts = Vec::new();
            let mut rest = segment;
            while let Some(open) = rest.find('{') {
                let begin = at + segment.len() - rest.len() + open;
                let Some(close) = rest[open..].find('}') else {
                    tell(begin, "`{` without `}`".to_owned());
                    break;
                };
                let name = &rest[open + 1..open + close];
                let is_name = name.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_')
                    && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
                if !is_name {
                    tell(
                        begin,
                        format!("`{}` is not a valid name: only letters, digits and `_`", name.escape_default()),
                    );
                } else if names.contains(&name) {
                    tell(begin, format!("duplicate name `{name}`"));
                }
                if !parts.is_empty() {
                    tell(begin, "a second name in one segment".to_owned());
                }
                names.push(name);
                parts.push((&rest[..open], name));
                rest = &rest[open + close + 1..];
            }
            if let Some(stray) = rest.find('}') {
                tell(at + segment.len() - rest.len() + stray, "`}` without `{`".to_owned());
            }
            let fixed = |text: &str| decode(text).unwrap_or_default().into_owned();
            if decode(segment).is_none() {
                tell(at, "an escape that is not valid UTF-8".to_owned());
            }
            segments.push(match parts.first() {
                Some((before, name)) => {
                    Segment { before: fixed(before), name: Some(((*name).to_owned(), fixed(rest))) }
                }
                None => Segment { before: fixed(segment), name: None },
            });
        }
        if mistakes.is_empty() {
            Ok(Template { text: text.to_owned(), segments })
        } else {
            mistakes.sort_by_key(|mistake| mistake.column);
            Err(mistakes)
        }
    }

    /// As it was written.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The names in it, in their order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.segments.iter().filter_map(|segment| Some(segment.name.as_ref()?.0.as_str()))
    }

    /// The parameters, where a path without its query matches; `None` also for escapes that are no UTF-8.
    pub fn matches<'p>(&self, path: &'p str) -> Option<Vec<(&str, Cow<'p, str>)>> {
        let mut rest = path.strip_prefix('/')?.split('/');
        let mut parameters = Vec::new();
        for segment in &self.segments {
            let found = decode(rest.next()?)?;
            match &segment.name {
                None if found == segment.before => {}
                Some((name, after)) => parameters.push((name.as_str(), segment.inner(found, after)?)),
                None => return None,
            }
        }
        rest.next().is_none().then_some(parameters)
    }

    /// How fixed each segment is, the more the less: what templates are ordered by.
    fn looseness(&self) -> Vec<(u8, usize)> {
        let fixed = |segment: &Segment| match &segment.name {
            None => (0, 0),
            Some((_, after)) => match segment.before.len() + after.len() {
                0 => (2, 0),
                bytes => (1, usize::MAX - bytes),
            },
        };
        self.segments.iter().map(fixed).collect()
    }

    /// Its text without names: templates of the same shape match the same paths.
    fn shape(&self) -> Vec<(&str, Option<&str>)> {
        self.segments
            .iter()
            .map(|segment| (segment.before.as_str(), segment.name.as_ref().map(|name| name.1.as_str())))
            .collect()
    }
}

impl Segment {
    /// What stands for the name.
    fn inner<'p>(&self, found: Cow<'p, str>, after: &str) -> Option<Cow<'p, str>> {
        let inner = |text: &str| {
            let bytes = text.strip_prefix(self.before.as_str())?.strip_suffix(after)?.len();
            (bytes > 0).then_some(self.before.len()..self.before.len() + bytes)
        };
        let range = inner(&found)?;
        Some(match found {
            Cow::Borrowed(text) => Cow::Borrowed(&text[range]),
            Cow::Owned(text) => Cow::Owned(text[range].to_owned()),
        })
    }
}

/// A text with its percent escapes resolved; `None` where that is no UTF-8. A `%` that begins no escape stands for itself.
fn decode(text: &str) -> Option<Cow<'_, str>> {
    percent_decode_str(text).decode_utf8().ok()
}

/// Operations by method and path.
#[derive(Debug, Clone)]
pub struct Router<'t> {
    /// Method, template and place among what was given; those of a method with the most fixed first.
    routes: Vec<(&'t str, &'t Template, usize)>,
}

/// What a method and a path are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found<'t, 'p> {
    /// The place among what the router was made of.
    pub route: usize,
    /// Names and what stands for them, escapes resolved.
    pub parameters: Vec<(&'t str, Cow<'p, str>)>,
}

/// Two operations that match the same requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("routes {first} and {second} match the same requests")]
pub struct Ambiguous {
    /// The place of one.
    pub first: usize,
    /// The place of the other.
    pub second: usize,
}

impl<'t> Router<'t> {
    /// A router for methods with templates. Methods are compared as they are written (RFC 9110, section 9.1).
    ///
    /// # Errors
    ///
    /// The pairs that match the same requests.
    pub fn new(routes: impl IntoIterator<Item = (&'t str, &'t Template)>) -> Result<Router<'t>, Vec<Ambiguous>> {
        let routes = routes.into_iter().enumerate().map(|(place, (method, template))| (method, template, place));
        let mut routes = routes.collect::<Vec<_>>();
        routes.sort_by_cached_key(|route| (route.0, route.1.looseness(), route.2));
        let mut seen = std::collections::HashMap::new();
        let mut ambiguous = Vec::new();
        for (method, template, place) in &routes {
            if let Some(first) = seen.insert((*method, template.shape()), *place) {
                ambiguous.push(Ambiguous { first, second: *place });
            }
        }
        if ambiguous.is_empty() { Ok(Router { routes }) } else { Err(ambiguous) }
    }

    /// What a method and a path, its query behind `?` passed over, are; `None` where no template matches, and for paths over [`PATH_MAX_BYTES`].
    pub fn find<'p>(&self, method: &str, path: &'p str) -> Option<Found<'t, 'p>> {
        let path = path.split(['?', '#']).next().unwrap_or_default();
        if path.len() > PATH_MAX_BYTES {
            return None;
        }
        let of_method = self.routes.iter().filter(|route| route.0 == method);
        of_method.filter_map(|route| Some(Found { route: route.2, parameters: route.1.matches(path)? })).next()
    }
}

/// The parameters of a query, or of a form (`application/x-www-form-urlencoded`), in their order. Source: the URL standard, section 5.1.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Parameters<'p> {
    all: Vec<(Cow<'p, str>, Cow<'p, str>)>,
}

/// Why a query or a form is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ParametersError {
    /// Too many of them.
    #[error("more than {limit} parameters")]
    TooMany {
        /// The limit.
        limit: usize,
    },
    /// Escapes that are no UTF-8.
    #[error("parameter {place} is not valid UTF-8")]
    NotUtf8 {
        /// Which one, from 1.
        place: usize,
    },
}

impl<'p> Parameters<'p> {
    /// Reads what is behind `?` up to `#`, or a form's body. `+` is a blank. What is between two `&&` is passed over; a name without `=` has an empty value.
    ///
    /// # Errors
    ///
    /// More than `limit` of them, escapes that are no UTF-8.
    pub fn parse(text: &'p str, limit: usize) -> Result<Parameters<'p>, ParametersError> {
        let mut all = Vec::new();
        for pair in text.split('&').filter(|pair| !pair.is_empty()) {
            if all.len() == limit {
                return Err(ParametersError::TooMany { limit });
            }
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            match (plus(name), plus(value)) {
                (Some(name), Some(value)) => all.push((name, value)),
                _ => return Err(ParametersError::NotUtf8 { place: all.len() + 1 }),
            }
        }
        Ok(Parameters { all })
    }

    /// Those of a target, `/path?query`; none where it has no query.
    ///
    /// # Errors
    ///
    /// As [`Parameters::parse`].
    pub fn of_target(target: &'p str, limit: usize) -> Result<Parameters<'p>, ParametersError> {
        let target = target.split('#').next().unwrap_or_default();
        Parameters::parse(target.split_once('?').map_or("", |parts| parts.1), limit)
    }

    /// The first with this name.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.all.iter().find(|pair| pair.0 == name).map(|pair| pair.1.as_ref())
    }

    /// All with this name, in their order.
    pub fn get_all<'s>(&'s self, name: &'s str) -> impl Iterator<Item = &'s str> {
        self.all.iter().filter(move |pair| pair.0 == name).map(|pair| pair.1.as_ref())
    }

    /// All of them, in their order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&str, &str)> {
        self.all.iter().map(|pair| (pair.0.as_ref(), pair.1.as_ref()))
    }
}

fn plus(text: &str) -> Option<Cow<'_, str>> {
    if !text.contains('+') {
        return decode(text);
    }
    let blanks = text.replace('+', " ");
    decode(&blanks).map(|decoded| Cow::Owned(decoded.into_owned()))
}

/// Header fields by name, without regard to case.
#[derive(Debug, Clone, Copy)]
pub struct Headers<'h> {
    all: &'h [(&'h str, &'h [u8])],
}

impl<'h> Headers<'h> {
    /// Of fields in the order of the message.
    pub fn new(all: &'h [(&'h str, &'h [u8])]) -> Headers<'h> {
        Headers { all }
    }

    /// The first field with this name, blanks around its value taken off; `None` also where it is no UTF-8.
    pub fn get(&self, name: &str) -> Option<&'h str> {
        std::str::from_utf8(self.get_all(name).next()?).ok()
    }

    /// All fields with this name, in their order.
    pub fn get_all<'s>(&'s self, name: &'s str) -> impl Iterator<Item = &'h [u8]> + use<'s, 'h> {
        let same = self.all.iter().filter(move |field| field.0.eq_ignore_ascii_case(name));
        same.map(|field| field.1.trim_ascii())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(templates: &[(&str, &str)], method: &str, path: &str) -> String {
        let parsed =
            templates.iter().map(|(method, text)| (*method, Template::parse(text).unwrap())).collect::<Vec<_>>();
        let router = Router::new(parsed.iter().map(|(method, template)| (*method, template))).unwrap();
        match router.find(method, path) {
            Some(found) => {
                let parameters = found.parameters.iter().map(|(name, value)| format!(" {name}={value}"));
                format!("{}{}", templates[found.route].1, parameters.collect::<String>())
            }
            None => "none".to_owned(),
        }
    }

    #[test]
    fn the_most_fixed_template_wins() {
        let routes = [
            ("GET", "/{any}"),
            ("GET", "/a"),
            ("GET", "/a{rest}"),
            ("GET", "/a{rest}.json"),
            ("GET", "/{x}/{y}"),
            ("GET", "/{x}/b"),
            ("GET", "/a/{y}"),
            ("GET", "/"),
            ("POST", "/{any}"),
            ("GET", "/caf%C3%A9/{z}"),
        ];
        for (method, path, expect) in [
            ("GET", "/a", "/a"),
            ("GET", "/b", "/{any} any=b"),
            ("GET", "/ab", "/a{rest} rest=b"),
            ("GET", "/ab.json?c=d", "/a{rest}.json rest=b"),
            ("GET", "/a.json", "/a{rest} rest=.json"),
            ("GET", "/a/b", "/a/{y} y=b"),
            ("GET", "/c/b", "/{x}/b x=c"),
            ("GET", "/c/d#e", "/{x}/{y} x=c y=d"),
            ("GET", "/%61", "/a"),
            ("GET", "/c%2Fd", "/{any} any=c/d"),
            ("GET", "/100%", "/{any} any=100%"),
            ("GET", "/caf\u{e9}/x", "/caf%C3%A9/{z} z=x"),
            ("GET", "/", "/"),
            ("GET", "/a/", "none"),
            ("GET", "a", "none"),
            ("GET", "", "none"),
            ("GET", "/%ff", "none"),
            ("GET", "/a/b/c", "none"),
            ("POST", "/a", "/{any} any=a"),
            ("post", "/a", "none"),
        ] {
            assert_eq!(found(&routes, method, path), expect, "{method} {path}");
        }
        assert_eq!(found(&routes, "GET", &format!("/{}", "x".repeat(PATH_MAX_BYTES))), "none");
    }

    #[test]
    fn the_templates_of_the_case_study() {
        let routes = [
            ("GET", "/1.1/friends/list.json"),
            ("GET", "/1.1/statuses/user_timeline.json"),
            ("POST", "/1.1/statuses/retweet/{id}.json"),
        ];
        let check = |method, path, expect: &str| assert_eq!(found(&routes, method, path), expect);
        check("GET", "/1.1/friends/list.json?user_id=3", "/1.1/friends/list.json");
        check("POST", "/1.1/statuses/retweet/21.json", "/1.1/statuses/retweet/{id}.json id=21");
        check("POST", "/1.1/statuses/retweet/.json", "none");
        check("POST", "/1.1/statuses/retweet/.json.json", "/1.1/statuses/retweet/{id}.json id=.json");
    }

    #[test]
    fn all_mistakes_of_a_template_are_told() {
        let check = |text: &str, expect: &[&str]| {
            let told = Template::parse(text).unwrap_err();
            assert_eq!(told.iter().map(TemplateError::to_string).collect::<Vec<_>>(), expect, "{text}");
        };
        check("a", &["column 1: a path must start with `/`"]);
        check("/a?b", &["column 3: a template must not contain `?` or `#`"]);
        check("/{a}{b}", &["column 5: a second name in one segment"]);
        check("/{a}/{a}", &["column 6: duplicate name `a`"]);
        check(
            "/é/{}/{1}/{x",
            &[
                "column 4: `` is not a valid name: only letters, digits and `_`",
                "column 7: `1` is not a valid name: only letters, digits and `_`",
                "column 11: `{` without `}`",
            ],
        );
        check("/a}", &["column 3: `}` without `{`"]);
        check("/%ff", &["column 2: an escape that is not valid UTF-8"]);
        check(&"/".repeat(PATH_MAX_BYTES + 1), &["column 1: 8193 bytes, over the limit of 8192"]);
        let template = Template::parse("/a/{b}/{c}.x").unwrap();
        assert_eq!((template.names().collect::<Vec<_>>(), template.text()), (vec!["b", "c"], "/a/{b}/{c}.x"));
    }

    #[test]
    fn routes_that_match_the_same_are_told() {
        let (one, two) = (Template::parse("/a/{x}").unwrap(), Template::parse("/a/{y}").unwrap());
        let told = Router::new([("GET", &one), ("PUT", &one), ("GET", &two)]).unwrap_err();
        assert_eq!(told, [Ambiguous { first: 0, second: 2 }]);
    }

    #[test]
    fn parameters_keep_their_order_and_repeat() {
        let parameters = Parameters::of_target("/p?a=1&b=x+y%2B&&a=2&c&=d&a=%C5%82#a=9", 10).unwrap();
        let all = parameters.iter().map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>();
        assert_eq!(all, ["a=1", "b=x y+", "a=2", "c=", "=d", "a=ł"]);
        assert_eq!((parameters.get("a"), parameters.get("x")), (Some("1"), None));
        assert_eq!(parameters.get_all("a").collect::<Vec<_>>(), ["1", "2", "ł"]);
        assert_eq!(Parameters::of_target("/p", 0).unwrap().iter().len(), 0);
        assert_eq!(Parameters::parse("a&b", 1), Err(ParametersError::TooMany { limit: 1 }));
        assert_eq!(Parameters::parse("a&b=%ff", 5), Err(ParametersError::NotUtf8 { place: 2 }));
    }

    #[test]
    fn headers_are_found_without_regard_to_case() {
        let fields: [(&str, &[u8]); 4] =
            [("Host", b"h"), ("authorization", b" OAuth x "), ("X-Bad", b"\xff"), ("HOST", b"i")];
        let headers = Headers::new(&fields);
        assert_eq!(
            (headers.get("Authorization"), headers.get("x-bad"), headers.get("none")),
            (Some("OAuth x"), None, None)
        );
        assert_eq!(headers.get_all("host").collect::<Vec<_>>(), [b"h", b"i"]);
    }
}
