//! The parser of all templates, which are strings with placeholders in braces. Each kind of template gives the meaning
//! of its placeholders: levels of factors, values of journeys, expressions of cases and values of requests.

use config::Invalid;

/// The braces of a kind of template. Braces that begin no placeholder are literal, so JSON needs no escapes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Braces {
    /// `{name}`.
    Single,
    /// `{name}`, except in `{{name}}`, which is a value of a request.
    SingleOnly,
    /// `{name}`, and `{{` is a literal brace.
    SingleOrEscaped,
    /// `{{name}}`. An unclosed `{{` is an error.
    Double,
}

/// A part of a template.
#[derive(Clone, Debug, PartialEq)]
pub enum Part<'t, T> {
    /// Literal characters.
    Text(&'t str),
    /// The string between the braces of a placeholder, and the meaning of the placeholder.
    Field(&'t str, T),
}

/// Splits a template at its placeholders. `read` parses the string between braces, and returns `None` if it is literal.
/// Fails at the first invalid or unclosed placeholder.
pub fn parts<'t, T>(
    text: &'t str,
    braces: Braces,
    read: impl Fn(&'t str) -> Result<Option<T>, Invalid>,
) -> Result<Vec<Part<'t, T>>, Invalid> {
    let (open, close) = if braces == Braces::Double { ("{{", "}}") } else { ("{", "}") };
    let (mut parts, mut copied, mut at) = (Vec::new(), 0, 0);
    while let Some(found) = text[at..].find(open) {
        let start = at + found;
        at = start + open.len();
        let after = &text[at..];
        let end = match braces {
            Braces::Double => Some(after.find(close).ok_or_else(|| unclosed(&text[start..]))?),
            _ => after.find(['{', '}', '"']).filter(|end| after[*end..].starts_with('}')),
        };
        let is_value = |end: usize| text[..start].ends_with('{') && after[end + 1..].starts_with('}');
        let Some(end) = end.filter(|end| braces != Braces::SingleOnly || !is_value(*end)) else {
            if braces == Braces::SingleOrEscaped && after.starts_with('{') {
                parts.push(Part::Text(&text[copied..at]));
                at += 1;
                copied = at;
            }
            continue;
        };
        let (inner, whole) = (&after[..end], &text[start..at + end + close.len()]);
        let Some(field) = read(inner).map_err(|error| error.part(whole))? else { continue };
        if copied < start {
            parts.push(Part::Text(&text[copied..start]));
        }
        parts.push(Part::Field(inner, field));
        at = start + whole.len();
        copied = at;
    }
    if copied < text.len() {
        parts.push(Part::Text(&text[copied..]));
    }
    Ok(parts)
}

fn unclosed(rest: &str) -> Invalid {
    let shown = rest.chars().take(22).collect::<String>();
    let error = Invalid::new(format!("`{}` is not closed with `}}}}`", shown.escape_debug()));
    error.hint("`{{` begins a value; for a literal one, write `{{braces}}`").part(rest)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::Braces::{Double, Single, SingleOnly, SingleOrEscaped};
    use super::*;

    fn is_name(inner: &str) -> Result<Option<()>, Invalid> {
        if inner.contains('!') {
            return Err(Invalid::new("wrong"));
        }
        Ok(inner.starts_with(char::is_alphabetic).then_some(()))
    }

    fn check(braces: Braces, text: &str, expected: &str) {
        let shown = |part: &Part<'_, ()>| match part {
            Part::Text(text) => (*text).to_owned(),
            Part::Field(inner, ()) => format!("<{inner}>"),
        };
        let found = match parts(text, braces, is_name) {
            Ok(parts) => parts.iter().map(shown).collect::<Vec<_>>().join(" "),
            Err(error) => format!("{:?}: {error}", error.span_in(text).unwrap()),
        };
        assert_eq!(found, expected, "{braces:?} {text}");
    }

    #[test]
    fn splits_templates() {
        for (text, single, single_only, escaped, double) in [
            ("", "", "", "", ""),
            ("a{b}c", "a <b> c", "a <b> c", "a <b> c", "a{b}c"),
            ("{{b}}", "{ <b> }", "{{b}}", "{ b}}", "<b>"),
            ("{{b}", "{ <b>", "{ <b>", "{ b}", "0..4: `{{b}` is not closed with `}}`"),
            ("é{b!}", "2..6: wrong", "2..6: wrong", "2..6: wrong", "é{b!}"),
            ("{{a}}{{b!}}", "6..10: wrong", "{{a}}{{b!}}", "{ a}}{ b!}}", "5..11: wrong"),
            ("{{a{b}}}", "{{a <b> }}", "{{a <b> }}", "{ a <b> }}", "<a{b> }"),
            (
                r#"{"n": {b}, {1}}"#,
                r#"{"n":  <b> , {1}}"#,
                r#"{"n":  <b> , {1}}"#,
                r#"{"n":  <b> , {1}}"#,
                r#"{"n": {b}, {1}}"#,
            ),
            ("{", "{", "{", "{", "{"),
            ("}{", "}{", "}{", "}{", "}{"),
        ] {
            for (braces, expected) in
                [(Single, single), (SingleOnly, single_only), (SingleOrEscaped, escaped), (Double, double)]
            {
                check(braces, text, expected);
            }
        }
    }

    proptest! {
        #[test]
        fn parts_form_the_text_again(text in "[{}a-c\"! é]*", doubled: bool) {
            let (braces, open, close) = if doubled { (Double, "{{", "}}") } else { (Single, "{", "}") };
            if let Ok(parts) = parts(&text, braces, is_name) {
                let again = parts.iter().map(|part| match part {
                    Part::Text(text) => (*text).to_owned(),
                    Part::Field(inner, ()) => format!("{open}{inner}{close}"),
                });
                prop_assert_eq!(again.collect::<String>(), text);
            }
        }
    }
}
