//! Templates with placeholders, such as `https://{host}/users/{number*3}`.

use std::borrow::Cow;

use config::Invalid;

use crate::template::{self, Braces, Part};

/// Maximum number of characters of `{random:N}`.
pub const RANDOM_MAX: u32 = 64;

/// Meaning of a placeholder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Field {
    /// A name, replaced by its value.
    Name,
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
    let is_placeholder = |inner| Ok((!matches!(field(inner), Ok(None))).then_some(()));
    let parts = template::parts(text, Braces::Single, is_placeholder).expect("no placeholder is an error");
    let text_of = |part| match part {
        Part::Text(text) => Cow::Borrowed(text),
        Part::Field(inner, ()) => Cow::Owned(format!("{{{OPEN}}}{inner}}}")),
    };
    parts.into_iter().map(text_of).collect()
}

/// Splits a template at its placeholders; all other braces are literal. Fails at an invalid number, as in `{random:0}`.
pub fn parts(text: &str) -> Result<Vec<Part<'_, Field>>, Invalid> {
    template::parts(text, Braces::Single, field)
}

fn field(inner: &str) -> Result<Option<Field>, Invalid> {
    let number = |text: &str, low: u64, high: u64| {
        let number = text.parse::<u64>().ok().filter(|number| (low..=high).contains(number));
        let message = || format!("`{{{inner}}}`: `{}` is not a number from {low} to {high}", text.escape_debug());
        number.ok_or_else(|| Invalid::new(message()))
    };
    Ok(match inner {
        "number" => Some(Field::Number { times: 1 }),
        _ if let Some(times) = inner.strip_prefix("number*") => {
            Some(Field::Number { times: number(times, 1, 1_000_000)? })
        }
        _ if let Some(length) = inner.strip_prefix("random:") => {
            Some(Field::Random { length: number(length, 1, u64::from(RANDOM_MAX))? as u32 })
        }
        _ => is_name(inner).then_some(Field::Name),
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
        let words = |part: &Part<'_, Field>| match part {
            Part::Text(text) => format!("{text:?}"),
            Part::Field(name, Field::Name) => (*name).to_owned(),
            Part::Field(_, Field::Number { times }) => format!("number*{times}"),
            Part::Field(_, Field::Random { length }) => format!("random:{length}"),
        };
        let found = match parts(text) {
            Ok(parts) => parts.iter().map(words).collect::<Vec<_>>().join(" "),
            Err(error) => error.message,
        };
        assert_eq!(found, expected, "{text}");
    }

    #[test]
    fn splits_templates_into_parts() {
        check("", "");
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
