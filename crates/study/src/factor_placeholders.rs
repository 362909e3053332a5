//! Templates such as `{clients}` in the strings of a study. A name is a letter or `_`, then letters, digits, `_` and
//! `-`. Other braces are literal, so JSON needs no escapes; `{{…}}` is a request value ([`crate::request_values`]).

use crate::template::{self, Braces, Part};

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

fn split<'t, T>(text: &'t str, read: impl Fn(&'t str) -> Option<T>) -> Vec<Part<'t, T>> {
    let parts = template::parts(text, Braces::SingleOnly, |name| Ok(is_name(name).then(|| read(name)).flatten()));
    parts.expect("no placeholder is an error")
}

/// The names of the templates in `text`, in order.
pub(crate) fn names(text: &str) -> Vec<&str> {
    let name = |part| if let Part::Field(name, ()) = part { Some(name) } else { None };
    split(text, |_| Some(())).into_iter().filter_map(name).collect()
}

pub(crate) fn is_name(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-'))
}

/// Replaces each template in `text` with the `value` of its name. Templates without a value remain unchanged.
pub fn fill(text: &str, value: impl Fn(&str) -> Option<String>) -> String {
    let text_of = |part: Part<'_, String>| match part {
        Part::Text(text) => text.to_owned(),
        Part::Field(_, value) => value,
    };
    split(text, value).into_iter().map(text_of).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn check(text: &str, expect: &[&str]) {
        assert_eq!(names(text), expect, "{text}");
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
