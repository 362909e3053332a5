//! Paths into replies, such as `result[0].noteStoreUrl`, `body.users` or `count(result.notes)`.

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

/// Splits off a final `?`, which lets the value be missing or `null`. Returns the rest and whether there was a `?`.
pub fn optional(text: &str) -> (&str, bool) {
    text.strip_suffix('?').map_or((text, false), |text| (text, true))
}

/// The expression of `match(REGEX)`, whose first group, or else whole match, is the value. `None` for other sources.
pub fn pattern(text: &str) -> Option<&str> {
    text.strip_prefix("match(")?.strip_suffix(')')
}

/// The name in `decoded(cookie.NAME)`, whose value is the cookie without its percent escapes. `None` for other sources.
pub fn decoded_cookie(text: &str) -> Option<&str> {
    text.strip_prefix("decoded(cookie.")?.strip_suffix(')').filter(|name| is_name(name))
}

/// Parses a path. Fails with a message if the syntax is invalid or the path has more than 32 parts.
pub fn parse(text: &str) -> Result<Path, String> {
    let wrong = |why: &str| format!("`{}` is not a path into a response: {why}", text.escape_debug());
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
            Err(error) => error,
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
        assert_eq!((pattern("match(a(b)c)"), pattern("match(a"), pattern("body")), (Some("a(b)c"), None, None));
        let cookies = ["decoded(cookie.XSRF-TOKEN)", "decoded(cookie.a.b)", "decoded(cookie.a"].map(decoded_cookie);
        assert_eq!(cookies, [Some("XSRF-TOKEN"), None, None]);
        check("count(result.notes)", "count result notes");
    }

    #[test]
    fn rejects_invalid_paths() {
        for text in ["", ".a", "a.", "a..b", "a[", "a[]", "a[x]", "a[-1]", "a[0", "a[0]b", "count(a", "a b"] {
            assert!(parse(text).unwrap_err().contains("is not a path into a response"), "{text}");
        }
        assert!(parse(&format!("a{}", ".b".repeat(33))).is_err());
    }
}
