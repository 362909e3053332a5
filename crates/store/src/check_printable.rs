//! Rejects imported strings with terminal control characters, unless reports escape them.

use serde::de::Error;
use serde_json::Value;

/// JSON keys of strings from servers and builds, which may contain any character. Reports escape these strings.
const ESCAPED: [&str; 4] = ["builds", "error_examples", "message", "warnings"];

/// Checks that `json` is valid and that its keys and strings are printable, except strings below the keys [`ESCAPED`].
pub(crate) fn check(json: &str) -> Result<(), serde_json::Error> {
    // Fast path: most JSON contains no escape that could stand for a control character.
    let suspects = ["\\u00", "\\b", "\\f", "\\r"];
    let has_escape = json.contains('\\') && suspects.iter().any(|escape| json.contains(escape));
    // U+0080 to U+009F start with 0xC2 in UTF-8.
    if !has_escape && !json.bytes().any(|byte| byte < 0x20 || byte == 0x7f || byte == 0xc2) {
        return Ok(());
    }
    value(&serde_json::from_str(json)?)
}

fn value(found: &Value) -> Result<(), serde_json::Error> {
    match found {
        Value::String(found) => text(found),
        Value::Array(items) => items.iter().try_for_each(value),
        Value::Object(pairs) => pairs.iter().try_for_each(|(key, inner)| {
            text(key)?;
            if ESCAPED.contains(&key.as_str()) { Ok(()) } else { value(inner) }
        }),
        Value::Null | Value::Bool(_) | Value::Number(_) => Ok(()),
    }
}

fn text(text: &str) -> Result<(), serde_json::Error> {
    let control = text.chars().find(|c| c.is_control() && !matches!(c, '\n' | '\t'));
    let wrong = |c: char| Err(Error::custom(format!("a control character, {}, in a text", c.escape_default())));
    control.map_or(Ok(()), wrong)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn allows_control_characters_only_where_reports_escape_them() {
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
