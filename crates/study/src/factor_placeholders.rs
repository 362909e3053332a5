//! Templates such as `{clients}` in the strings of a study. A name is a letter or `_`, then letters, digits, `_` and
//! `-`. Other braces are literal, so JSON needs no escapes; `{{…}}` is a request value ([`crate::request_values`]).

use std::ops::Range;

pub(crate) const PORT: &str = "port";

/// Names that the lab fills in for the server: the address, the port, and a second port for servers that listen on two.
pub(crate) const SUBJECT: [&str; 3] = ["address", PORT, "second_port"];

/// Names of ports, besides `{port}`, that the lab fills into the commands and files of proxies.
pub(crate) const PROXY_PORTS: [&str; 6] =
    ["next_port", "subject_port", "second_port", "admin_port", "peer_port", "second_peer_port"];

pub(crate) const PORT_OF: &str = "_port";

pub(crate) fn port_of(companion: &str) -> String {
    format!("{companion}{PORT_OF}")
}

/// Whether the lab fills in the name, which then cannot be a factor.
pub(crate) fn is_reserved(name: &str) -> bool {
    ["address", PORT, "folder"].contains(&name) || name.ends_with(PORT_OF)
}

/// Finds each `{...}` without inner braces. Returns its byte range, with the braces, and the string between them.
pub(crate) fn braced(text: &str) -> impl Iterator<Item = (Range<usize>, &str)> {
    text.match_indices('{').filter_map(|(open, _)| {
        let inner = &text[open + 1..];
        let length = inner.find(['{', '}']).filter(|at| inner[*at..].starts_with('}'))?;
        Some((open..open + length + 2, &inner[..length]))
    })
}

pub(crate) fn templates(text: &str) -> Vec<(Range<usize>, &str)> {
    let is_value = |span: &Range<usize>| text[..span.start].ends_with('{') && text[span.end..].starts_with('}');
    braced(text).filter(|(span, name)| is_name(name) && !is_value(span)).collect()
}

pub(crate) fn is_name(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-'))
}

/// Replaces each template in `text` with the `value` of its name. Templates without a value remain unchanged.
pub fn fill(text: &str, value: impl Fn(&str) -> Option<String>) -> String {
    let mut filled = String::with_capacity(text.len());
    let mut copied = 0;
    for (span, name) in templates(text) {
        if let Some(value) = value(name) {
            filled.push_str(&text[copied..span.start]);
            filled.push_str(&value);
            copied = span.end;
        }
    }
    filled.push_str(&text[copied..]);
    filled
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn check(text: &str, expect: &[&str]) {
        assert_eq!(templates(text).into_iter().map(|(_, name)| name).collect::<Vec<_>>(), expect, "{text}");
    }

    #[test]
    fn templates_are_names_in_braces() {
        check("subjects/{server}/{server} -p {port}", &["server", "server", "port"]);
        check("no template", &[]);
        check("{}", &[]);
        check("{a b}", &[]);
        check("{1}", &[]);
        check(r#"{"json": {n}}"#, &["n"]);
        check("{{a}}", &[]);
        check("{{rand:1..{a}}}", &["a"]);
        check("{unclosed", &[]);
        check("}{a-b_1}{", &["a-b_1"]);
        check("{é}{x}", &["x"]);
    }

    #[test]
    fn filled_values_are_not_filled_again() {
        let value = |name: &str| (name == "a").then(|| "{b}".to_owned());
        assert_eq!(fill("{a}-{b}-{a}", value), "{b}-{b}-{b}");
        assert_eq!(fill("é{a}é", value), "é{b}é");
    }

    proptest! {
        #[test]
        fn templates_without_values_remain(text in "[{}a-c\" é]*") {
            prop_assert_eq!(fill(&text, |_| None), text.clone());
            prop_assert_eq!(fill(&text, |name| Some(format!("{{{name}}}"))), text);
        }
    }
}
