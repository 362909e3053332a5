//! Texts of a file of others that commands a terminal: where reports show them as they are, there may be none.

use std::fmt;

use serde::Deserializer;
use serde::de::{DeserializeSeed, Error, MapAccess, SeqAccess, Visitor};

/// Keys whose texts come from servers and builds, which may print anything; reports show these escaped.
const ESCAPED: [&str; 4] = ["builds", "error_examples", "message", "warnings"];

/// Whether all keys and texts of a JSON value can be printed, but for those below [`ESCAPED`]. It is walked, not kept.
///
/// # Errors
/// The first text that cannot, or a mistake in the JSON.
pub(crate) fn check(json: &str) -> Result<(), serde_json::Error> {
    // Most have none of what such a text is written with.
    let suspects = ["\\u00", "\\b", "\\f", "\\r"];
    if suspects.iter().all(|escape| !json.contains(escape)) && !json.chars().any(char::is_control) {
        return Ok(());
    }
    Walk.deserialize(&mut serde_json::Deserializer::from_str(json))
}

fn printable<E: Error>(text: &str) -> Result<(), E> {
    match text.chars().find(|c| c.is_control() && !matches!(c, '\n' | '\t')) {
        Some(c) => Err(E::custom(format!("a control character, {}, in a text", c.escape_default()))),
        None => Ok(()),
    }
}

struct Walk;

impl<'de> DeserializeSeed<'de> for Walk {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Walk {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any value")
    }

    fn visit_bool<E>(self, _: bool) -> Result<(), E> {
        Ok(())
    }

    fn visit_i64<E>(self, _: i64) -> Result<(), E> {
        Ok(())
    }

    fn visit_u64<E>(self, _: u64) -> Result<(), E> {
        Ok(())
    }

    fn visit_f64<E>(self, _: f64) -> Result<(), E> {
        Ok(())
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<(), E> {
        printable(text)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<(), A::Error> {
        while items.next_element_seed(Walk)?.is_some() {}
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some(key) = map.next_key::<String>()? {
            printable(&key)?;
            if ESCAPED.contains(&key.as_str()) {
                map.next_value::<serde::de::IgnoredAny>()?;
            } else {
                map.next_value_seed(Walk)?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_reports_escape_may_command_a_terminal() {
        for (json, fine) in [
            (r#"{"a": ["plain, é\n\t", 1, -1, 1.5, null, true]}"#, true),
            (r#"{"text": "not \\u001b at all"}"#, true),
            (r#"{"message": "\u001b[2J", "builds": [{"x": "\u0007"}], "error_examples": {"\r": "\b"}}"#, true),
            (r#"{"question": "\u001b[2J"}"#, false),
            (r#"{"host": {"name": ["\u0007"]}}"#, false),
            (r#"{"\u001b": 1}"#, false),
            ("{\"a\": \"\u{9b}\"}", false),
            (r#"{"a": "\r"}"#, false),
        ] {
            assert_eq!(check(json).is_ok(), fine, "{json}");
        }
    }
}
