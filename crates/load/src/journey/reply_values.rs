//! Finds values in replies by path and compares them with expectations.

use codecs::value::Value;
use study::journey::reply_path::{Part, Path};

/// Maximum length of a value that a message shows, in characters.
const SHOWN: usize = 60;

/// Finds the value at a path; `None` if there is none. `pick` returns a random number below its argument.
pub(crate) fn find<'v>(path: &Path, reply: &'v Value, pick: &mut dyn FnMut(u64) -> u64) -> Option<&'v Value> {
    path.parts.iter().try_fold(reply, |value, part| match (part, value) {
        (Part::Field(name), Value::Record(_)) => value.get(name),
        (Part::Field(name), Value::Map(pairs)) => {
            pairs.iter().find(|(key, _)| matches!(key, Value::Text(key) if key == name)).map(|pair| &pair.1)
        }
        (Part::Element(place), Value::List(items)) => items.get(*place),
        (Part::Any, Value::List(items)) if !items.is_empty() => items.get(pick(items.len() as u64) as usize),
        _ => None,
    })
}

pub(crate) fn extract(
    path: &Path,
    words: &str,
    reply: &Value,
    pick: &mut dyn FnMut(u64) -> u64,
) -> Result<Value, String> {
    let found = find(path, reply, pick).ok_or_else(|| format!("`{words}` is not in the response"))?;
    match (path.is_count, found) {
        (true, Value::List(items)) => Ok(Value::Integer(items.len() as i64)),
        (true, Value::Map(pairs)) => Ok(Value::Integer(pairs.len() as i64)),
        (true, other) => Err(format!("`{words}` counts {}, which is not a list", article(other))),
        (false, Value::Null | Value::List(_) | Value::Map(_) | Value::Record(_)) => {
            Err(format!("`{words}` is {}, not a single value", article(found)))
        }
        (false, single) => Ok(single.clone()),
    }
}

pub(crate) fn expect(path: &Path, words: &str, expected: &Value, reply: &Value) -> Result<(), String> {
    // Expectations have no random elements, so the result of `pick` does not matter.
    let pick = &mut |_| 0;
    let missing = || format!("`{words}` is not in the response, expected {}", show(expected));
    let found = match path.is_count {
        true => extract(path, words, reply, pick)?,
        false => find(path, reply, pick).cloned().ok_or_else(missing)?,
    };
    if is_same(&found, expected) {
        return Ok(());
    }
    Err(format!("`{words}` is {}, expected {}", show(&found), show(expected)))
}

/// Whether a value is as expected. A record may have more fields than expected.
fn is_same(found: &Value, expected: &Value) -> bool {
    match (found, expected) {
        (Value::Double(found), Value::Integer(expected)) => *found == *expected as f64,
        (Value::Bytes(found), Value::Text(expected)) => found == expected.as_bytes(),
        (Value::List(found), Value::List(expected)) => {
            found.len() == expected.len()
                && found.iter().zip(expected).all(|(found, expected)| is_same(found, expected))
        }
        (Value::Record(_), Value::Record(expected)) => {
            let mut fields = expected.iter();
            fields.all(|(name, expected)| found.get(name).is_some_and(|found| is_same(found, expected)))
        }
        _ => found == expected,
    }
}

fn article(value: &Value) -> &'static str {
    match value {
        Value::Null => "nothing",
        Value::List(_) => "a list",
        Value::Map(_) => "a map",
        Value::Record(_) => "a record",
        _ => "a single value",
    }
}

fn show(value: &Value) -> String {
    let text = match value {
        Value::Text(text) => format!("{text:?}"),
        Value::Integer(integer) => integer.to_string(),
        Value::Bool(flag) => flag.to_string(),
        Value::Double(double) => double.to_string(),
        Value::Bytes(bytes) => format!("{} bytes", bytes.len()),
        other => return article(other).to_owned(),
    };
    if let Some((at, _)) = text.char_indices().nth(SHOWN) { format!("{}...", &text[..at]) } else { text }
}

#[cfg(test)]
mod tests {
    use study::journey::reply_path;

    use super::*;

    fn reply() -> Value {
        Value::record([
            ("total", Value::Integer(2)),
            (
                "notes",
                Value::List(vec![Value::record([("title", "one".into())]), Value::record([("title", "two".into())])]),
            ),
            ("nothing", Value::Null),
        ])
    }

    fn taken(text: &str) -> String {
        match extract(&reply_path::parse(text).unwrap(), text, &reply(), &mut |count| count - 1) {
            Ok(value) => show(&value),
            Err(error) => error,
        }
    }

    #[test]
    fn finds_values_by_path() {
        for (path, expected) in [
            ("result.total", "2"),
            ("result.notes[1].title", "\"two\""),
            ("count(result.notes)", "2"),
            ("result.notes[any].title", "\"two\""),
            ("result.notes[2].title", "`result.notes[2].title` is not in the response"),
            ("result.notes", "`result.notes` is a list, not a single value"),
            ("result.nothing", "`result.nothing` is nothing, not a single value"),
            ("result.total.x", "`result.total.x` is not in the response"),
            ("count(result.total)", "`count(result.total)` counts a single value, which is not a list"),
        ] {
            assert_eq!(taken(path), expected);
        }
    }

    #[test]
    fn compares_values_with_expectations() {
        let told =
            |text: &str, expected: Value| expect(&reply_path::parse(text).unwrap(), text, &expected, &reply()).err();
        assert_eq!(told("result.total", Value::Integer(2)), None);
        assert_eq!(told("count(result.notes)", Value::Integer(2)), None);
        assert_eq!(told("result", Value::record([("total", Value::Integer(2))])), None, "records may have more");
        assert_eq!(told("result.total", Value::Integer(3)).unwrap(), "`result.total` is 2, expected 3");
        assert_eq!(told("result.total", "2".into()).unwrap(), "`result.total` is 2, expected \"2\"");
        assert_eq!(told("result.x", Value::Bool(true)).unwrap(), "`result.x` is not in the response, expected true");
        let long = told("result.notes[0].title", "x".repeat(100).into()).unwrap();
        assert!(long.ends_with("..."), "{long}");
    }
}
