//! Templates with placeholders, such as `https://{host}/users/{number*3}`.

use crate::factor_placeholders::braced;

/// Maximum number of characters of `{random:N}`.
pub const RANDOM_MAX: u32 = 64;

/// A piece of a template.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Part {
    /// Literal characters.
    Text(String),
    /// A name, replaced by its value.
    Name(String),
    /// A multiple of the number of the journey.
    Number {
        /// The factor by which the number is multiplied.
        times: u64,
    },
    /// Random characters from `a` to `z` and `0` to `9`.
    Random {
        /// Number of characters.
        length: u32,
    },
}

pub(crate) const OPEN: &str = "open";

/// A template that yields `text` unchanged: `{open}` replaces each brace that would start a placeholder.
pub(crate) fn literal(text: &str) -> String {
    let (mut out, mut end) = (String::with_capacity(text.len()), 0);
    for (span, inner) in braced(text) {
        if !matches!(part(inner), Ok(None)) {
            out += &text[end..span.start];
            out += "{open}";
            end = span.start + 1;
        }
    }
    out + &text[end..]
}

/// Splits a template at its placeholders; all other braces are literal. Fails at an invalid number, as in `{random:0}`.
pub fn parts(text: &str) -> Result<Vec<Part>, String> {
    let (mut parts, mut begin) = (Vec::new(), 0);
    for (span, inner) in braced(text) {
        let Some(found) = part(inner)? else { continue };
        if span.start > begin {
            parts.push(Part::Text(text[begin..span.start].to_owned()));
        }
        parts.push(found);
        begin = span.end;
    }
    if begin < text.len() || parts.is_empty() {
        parts.push(Part::Text(text[begin..].to_owned()));
    }
    Ok(parts)
}

fn part(inner: &str) -> Result<Option<Part>, String> {
    let number = |text: &str, low: u64, high: u64| {
        let number = text.parse::<u64>().ok().filter(|number| (low..=high).contains(number));
        number.ok_or_else(|| format!("`{{{inner}}}`: `{}` is not a number from {low} to {high}", text.escape_debug()))
    };
    Ok(match inner {
        "number" => Some(Part::Number { times: 1 }),
        _ if let Some(times) = inner.strip_prefix("number*") => {
            Some(Part::Number { times: number(times, 1, 1_000_000)? })
        }
        _ if let Some(length) = inner.strip_prefix("random:") => {
            Some(Part::Random { length: number(length, 1, u64::from(RANDOM_MAX))? as u32 })
        }
        _ => is_name(inner).then(|| Part::Name(inner.to_owned())),
    })
}

/// Whether a string can be a name: a letter or `_`, then letters, digits and `_`.
pub fn is_name(text: &str) -> bool {
    text.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_')
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: &str) {
        let words = |part: &Part| match part {
            Part::Text(text) => format!("{text:?}"),
            Part::Name(name) => name.clone(),
            Part::Number { times } => format!("number*{times}"),
            Part::Random { length } => format!("random:{length}"),
        };
        let found = match parts(text) {
            Ok(parts) => parts.iter().map(words).collect::<Vec<_>>().join(" "),
            Err(error) => error,
        };
        assert_eq!(found, expected, "{text}");
    }

    #[test]
    fn splits_templates_into_parts() {
        check("", "\"\"");
        check("plain", "\"plain\"");
        check("{url}", "url");
        check("a{b}c{number}", "\"a\" b \"c\" number*1");
        check("/x?id={number*3}", "\"/x?id=\" number*3");
        check("user-{random:8}", "\"user-\" random:8");
        check("{a}{b}", "a b");
    }

    #[test]
    fn other_braces_are_literal() {
        check(r#"{"id": 1}"#, r#""{\"id\": 1}""#);
        check(r#"{"id": {id}}"#, r#""{\"id\": " id "}""#);
        check("{", "\"{\"");
        check("}{", "\"}{\"");
        check("{a", "\"{a\"");
        check("{{a}}", "\"{\" a \"}\"");
        check("{1a}", "\"{1a}\"");
        check("{é}", "\"{é}\"");
    }

    #[test]
    fn literal_texts_have_no_names() {
        for (text, template) in [
            ("{\"a\": {\"b\": 1}}", "{\"a\": {\"b\": 1}}"),
            ("query { user {id} }", "query { user {open}id} }"),
            ("{number}{random:99}{x y}", "{open}number}{open}random:99}{x y}"),
        ] {
            assert_eq!(literal(text), template);
        }
    }

    #[test]
    fn rejects_numbers_out_of_bounds() {
        check("{number*0}", "`{number*0}`: `0` is not a number from 1 to 1000000");
        check("{number*x}", "`{number*x}`: `x` is not a number from 1 to 1000000");
        check("{random:65}", "`{random:65}`: `65` is not a number from 1 to 64");
        check("{random:}", "`{random:}`: `` is not a number from 1 to 64");
    }
}
