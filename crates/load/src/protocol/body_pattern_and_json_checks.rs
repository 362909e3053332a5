//! Checks of responses that need the whole body, for a share of the requests.

use std::ops::RangeInclusive;

use regex::bytes::Regex;
use serde_json::Value;
use serde_json_path::JsonPath;
use stats::random::mix;
use study::request_values::has_values;
use study::spec::Expect;

use super::varied_requests::{Values, Varied};
use crate::template_escaping::Syntax;

/// Maximum number of body bytes that a check reads.
pub(super) const BODY_MAX_BYTES: usize = 16 << 20;
/// Maximum length of a value that a message shows, in characters.
const SHOWN_MAX_CHARS: usize = 60;

#[derive(Debug)]
pub(super) struct Checks {
    /// Average number of responses per checked response.
    one_in: u64,
    key: u64,
    /// Expected body with values; a body without values is compared as it arrives.
    pub(super) body: Option<Varied>,
    json: Vec<(JsonPath, Varied)>,
    matches: Option<Regex>,
    length: Option<RangeInclusive<u64>>,
}

impl Checks {
    /// Prepares the checks. `None` if nothing needs the whole body.
    pub(super) fn new(expect: &Expect, values: &mut Values<'_>) -> Result<Option<Self>, Vec<String>> {
        let mut mistakes = Vec::new();
        let varied =
            expect.body.as_deref().and_then(|body| std::str::from_utf8(body).ok()).filter(|body| has_values(body));
        let varied = varied.map(|text| Varied::of_text(text, Syntax::of_body(None, text), values));
        let body = varied.and_then(|varied| mistakes_or(&mut mistakes, varied));
        let mut json = Vec::new();
        for (path, text) in &expect.json {
            let wrong = |error| format!("`{path}` is not a JSON path: {error}");
            let path = mistakes_or(&mut mistakes, JsonPath::parse(path).map_err(wrong));
            let text = mistakes_or(&mut mistakes, Varied::of_text(text, Syntax::Json, values));
            json.extend(path.zip(text));
        }
        let matches = expect.matches.as_deref().and_then(|text| {
            let wrong = |error| format!("`{text}` is not a regular expression: {error}");
            mistakes_or(&mut mistakes, Regex::new(text).map_err(wrong))
        });
        let length = expect.length.map(|(least, most)| least..=most);
        if !mistakes.is_empty() {
            return Err(mistakes);
        }
        let is_needed = body.is_some() || !json.is_empty() || matches.is_some() || length.is_some();
        let one_in = u64::from(expect.check_one_in.max(1));
        Ok(is_needed.then_some(Self { one_in, key: mix(values.seed ^ 0xc4ec), body, json, matches, length }))
    }

    /// Whether the response to this request is checked. Equal seeds select the same requests.
    pub(super) fn applies_to(&self, number: u64) -> bool {
        self.one_in == 1 || mix(self.key ^ number).is_multiple_of(self.one_in)
    }

    /// Describes the first failed check of a response; `None` if it passes all checks.
    #[cold]
    pub(super) fn problem(&self, number: u64, bytes: u64, body: &[u8]) -> Option<String> {
        if let Some(length) = self.length.as_ref().filter(|length| !length.contains(&bytes)) {
            return Some(format!("a body of {bytes} bytes, expected {} to {}", length.start(), length.end()));
        }
        if bytes > BODY_MAX_BYTES as u64 {
            return Some(format!("a body of {bytes} bytes cannot be checked, at most {BODY_MAX_BYTES} are"));
        }
        if let Some(expected) = self.body.as_ref().map(|text| text.bytes_of_request(number))
            && expected != body
        {
            return Some(format!("the body is {}, expected {}", shown(body), shown(&expected)));
        }
        if let Some(regex) = self.matches.as_ref().filter(|regex| !regex.is_match(body)) {
            return Some(format!("the body {} does not match `{regex}`", shown(body)));
        }
        if self.json.is_empty() {
            return None;
        }
        let value = match serde_json::from_slice::<Value>(body) {
            Ok(value) => value,
            Err(error) => return Some(format!("the body {} is not JSON: {error}", shown(body))),
        };
        self.json.iter().find_map(|(path, text)| {
            let expected = text.bytes_of_request(number);
            let found = path.query(&value).all();
            match found[..] {
                [one] if is_value(one, &expected) => None,
                [one] => {
                    Some(format!("`{path}` is {}, expected {}", shown(one.to_string().as_bytes()), shown(&expected)))
                }
                ref all => Some(format!("`{path}` has {} values, expected one: {}", all.len(), shown(&expected))),
            }
        })
    }
}

fn mistakes_or<T>(mistakes: &mut Vec<String>, result: Result<T, String>) -> Option<T> {
    result.map_err(|error| mistakes.push(error)).ok()
}

/// Whether a JSON value equals the expected bytes, either as JSON or as the content of a string.
fn is_value(found: &Value, expected: &[u8]) -> bool {
    if found.as_str().is_some_and(|found| found.as_bytes() == expected) {
        return true;
    }
    match (serde_json::from_slice::<Value>(expected), found) {
        (Ok(Value::Number(expected)), Value::Number(found)) => {
            *found == expected || found.as_f64() == expected.as_f64()
        }
        (Ok(expected), found) => *found == expected,
        (Err(_), _) => false,
    }
}

fn shown(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    let start = text.chars().take(SHOWN_MAX_CHARS).collect::<String>();
    let more = if start.len() < text.len() { "..." } else { "" };
    format!("`{}`{more}", start.escape_debug())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn checks(edit: impl FnOnce(&mut Expect)) -> Result<Option<Checks>, Vec<String>> {
        let mut expect = Expect::default();
        edit(&mut expect);
        Checks::new(&expect, &mut Values::new("", 1))
    }

    fn json(path: &str, expected: &str, body: &str) -> Option<String> {
        let checks = checks(|expect| expect.json = vec![(path.to_owned(), expected.to_owned())]);
        checks.unwrap().unwrap().problem(7, body.len() as u64, body.as_bytes())
    }

    #[test]
    fn json_values_are_compared_by_path() {
        for (path, expected, body) in [
            ("$.id", "7", r#"{"id": 7}"#),
            ("$.id", "7", r#"{"id": 7.0}"#),
            ("$.id", "7", r#"{"id": "7"}"#),
            ("$.name", "Ana", r#"{"name": "Ana"}"#),
            ("$.name", r#""Ana""#, r#"{"name": "Ana"}"#),
            ("$.items[1].ok", "true", r#"{"items": [{}, {"ok": true}]}"#),
            ("$.id", "{{seq}}", r#"{"id": 8}"#),
        ] {
            assert_eq!(json(path, expected, body), None, "{path} {expected} {body}");
        }
        let said = |path: &str, expected: &str, body: &str| json(path, expected, body).unwrap();
        assert_eq!(said("$.id", "7", r#"{"id": 8}"#), "`$.id` is `8`, expected `7`");
        assert_eq!(said("$.id", "7", "{}"), "`$.id` has 0 values, expected one: `7`");
        assert!(said("$.id", "7", "<html>").starts_with("the body `<html>` is not JSON: "));
    }

    #[test]
    fn bodies_are_matched_and_measured() {
        let matching = checks(|expect| expect.matches = Some("^a+$".to_owned())).unwrap().unwrap();
        assert_eq!(matching.problem(0, 2, b"aa"), None);
        assert_eq!(matching.problem(0, 2, b"ab").unwrap(), "the body `ab` does not match `^a+$`");
        let long = checks(|expect| expect.length = Some((2, 3))).unwrap().unwrap();
        assert_eq!(long.problem(0, 3, b""), None);
        assert_eq!(long.problem(0, 4, b"").unwrap(), "a body of 4 bytes, expected 2 to 3");
        let exact = checks(|expect| expect.body = Some(b"n={{seq:5}}".to_vec())).unwrap().unwrap();
        assert_eq!(exact.problem(4, 3, b"n=9"), None);
        assert_eq!(exact.problem(5, 3, b"n=9").unwrap(), "the body is `n=9`, expected `n=10`");
        assert!(checks(|_| ()).unwrap().is_none());
        assert!(checks(|expect| expect.body = Some(b"n=5".to_vec())).unwrap().is_none(), "compared as it arrives");
    }

    #[test]
    fn a_share_of_the_requests_is_checked() {
        let checks = checks(|expect| (expect.length, expect.check_one_in) = (Some((0, 1)), 100)).unwrap().unwrap();
        let count = (0..1_000_000).filter(|number| checks.applies_to(*number)).count();
        assert!((9_600..=10_400).contains(&count), "{count}: four standard deviations around 10,000");
    }

    #[test]
    fn wrong_checks_are_named_together() {
        let mistakes = checks(|expect| {
            expect.matches = Some("(".to_owned());
            expect.json = vec![("id".to_owned(), "1".to_owned()), ("$.a".to_owned(), "{{x}}".to_owned())];
        });
        let mistakes = mistakes.unwrap_err().join("\n");
        for said in ["`(` is not a regular expression", "`id` is not a JSON path", "unknown value `{{x}}`"] {
            assert!(mistakes.contains(said), "{mistakes}");
        }
    }
}
