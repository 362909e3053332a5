//! Parses files of weighted requests for a load on one server. Each line is `[WEIGHT] [METHOD] URL`, with parts
//! separated by blanks, or a JSON object in vegeta's format, with the body in base64. Empty lines are ignored. In the
//! first format, a comment starts with a `#` at the beginning of a line or after a blank.

use std::collections::BTreeMap;
use std::ops::Range;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use config::place::span_of;
use config::{Diagnostic, Invalid, Place, Report};
use serde::Deserialize;

use crate::url::{self, Url};
use crate::{request_values, validate_http};

/// Maximum size of a request file, bytes.
pub const FILE_MAX_BYTES: usize = 16 << 20;
/// Maximum number of requests in a file.
pub const ENTRIES_MAX: usize = 100_000;
/// Maximum weight of a request.
pub const WEIGHT_MAX: u32 = 1_000_000;
/// Maximum number of reported errors. A file with more errors is probably not a list of URLs.
const MISTAKES_MAX: usize = 50;

/// A request from one line of the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Relative frequency among the requests of the file; 1 by default.
    pub weight: u32,
    /// HTTP method; `None` if the line has none.
    pub method: Option<String>,
    /// URL of the request, with the origin that all entries have in common.
    pub url: Url,
    /// Headers that only this request has.
    pub headers: Vec<(String, String)>,
    /// Body of this request, bytes; `None` if it has none.
    pub body: Option<Vec<u8>>,
    /// Name in reports; `None` if it has none.
    pub name: Option<String>,
    /// Line number, from 1.
    pub line: usize,
}

/// Parses a request file: at least one request, all with the same origin. Fails with up to 50 errors and their places.
pub fn parse(text: &str) -> Result<Vec<Entry>, Vec<Diagnostic>> {
    let report = Report::new("the file", text, &[]);
    let message = format!("{} bytes, at most {FILE_MAX_BYTES} allowed", text.len());
    report.rule(text.len() > FILE_MAX_BYTES, place(0..0), message, None);
    let mut entries = Vec::<Entry>::new();
    let mut start = text.len() - text.trim_start_matches('\u{feff}').len();
    let is_json = text[start..].trim_start().starts_with('{');
    for (line, number) in text[start..].split('\n').zip(1..) {
        if report.count() >= MISTAKES_MAX || text.len() > FILE_MAX_BYTES || entries.len() > ENTRIES_MAX {
            break;
        }
        let read = if is_json { json_entry } else { entry };
        entries.extend(read(line, start, number, entries.first(), &report));
        start += line.len() + 1;
    }
    report.rule(entries.is_empty() && report.count() == 0, place(0..0), "no URL in this file", "write one per line");
    let message = format!("more than {ENTRIES_MAX} URLs");
    report.rule(entries.len() > ENTRIES_MAX, place(text.len()..text.len()), message, None);
    report.finish().map(|()| entries)
}

/// Parses a line that begins at byte `start`. `None` if it has no request, or if it has errors, which are reported.
fn entry(line: &str, start: usize, number: usize, first: Option<&Entry>, report: &Report) -> Option<Entry> {
    let line_place = place(start..start + line.len());
    let mistake = |part: &str, error: Invalid| report.invalid(line_place.part(span_of(part, line)), error);
    let words = line.split([' ', '\t', '\r']).take_while(|word| !word.starts_with('#'));
    let mut words = words.filter(|word| !word.is_empty()).collect::<Vec<_>>();
    let has_weight = words.first().is_some_and(|word| word.bytes().all(|byte| byte.is_ascii_digit()));
    let word = if has_weight { words.remove(0) } else { "1" };
    let weight = word.parse().ok().filter(|weight| (1..=WEIGHT_MAX).contains(weight));
    if weight.is_none() {
        mistake(word, Invalid::new(format!("`{word}` is not a weight from 1 to {WEIGHT_MAX}")));
    }
    let (method, text) = match words[..] {
        [] if line.trim_start().starts_with('#') || line.trim().is_empty() => return None,
        [text] => (None, text),
        [method, text] => (Some(method), text),
        [] | [_, _, ..] => {
            let from = line.len() - line.trim_start().len();
            let to = words.last().map_or(line.trim_end().len(), |last| span_of(last, line).end);
            let hint = match words.iter().any(|word| word.contains("://")) {
                true => "write one URL per line, percent-encode spaces, and start comments with `#`",
                false => "write `http://host/path`, `GET http://host/path` or `3 GET http://host/path`",
            };
            mistake(&line[from..to], Invalid::new("expected `[WEIGHT] [METHOD] URL`").hint(hint));
            return None;
        }
    };
    let method = method.map(|word| validate_http::method(word).map_err(|error| mistake(word, error))).transpose();
    let url = url_beside(text, first).map_err(|error| mistake(text, error)).ok()?;
    let (weight, method) = (weight?, method.ok()?);
    Some(Entry { weight, method, url, headers: Vec::new(), body: None, name: None, line: number })
}

fn url_beside(text: &str, first: Option<&Entry>) -> Result<Url, Invalid> {
    let url = url::parse(text)?;
    request_values::parts(text)?;
    if !url.protocol.has_path() {
        return Err(Invalid::new("only `http` and `https` URLs can be listed"));
    }
    let Some(first) = first.filter(|first| !first.url.same_origin(&url)) else { return Ok(url) };
    let (own, other) = (url.origin(), first.url.origin());
    let message = format!("`{own}` is not the same server as `{other}` in line {}", first.line);
    Err(Invalid::new(message).hint("load one server at a time"))
}

/// A line in vegeta's JSON format, extended by a weight and a name.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct JsonEntry {
    weight: Option<u32>,
    method: Option<String>,
    url: String,
    #[serde(default)]
    header: BTreeMap<String, Vec<String>>,
    body: Option<String>,
    name: Option<String>,
}

/// Parses a JSON object in a line that begins at byte `start`. `None` if it is empty or has errors, which are reported.
fn json_entry(line: &str, start: usize, number: usize, first: Option<&Entry>, report: &Report) -> Option<Entry> {
    if line.trim().is_empty() {
        return None;
    }
    let mistake = |error: Invalid| report.invalid(place(start..start + line.trim_end().len()), error);
    let read = serde_json::from_str::<JsonEntry>(line).map_err(|error| {
        // Removes the place in the line from the message, such as `at line 1 column 9`, since the error has its own.
        let message = error.to_string();
        let message = message.rsplit_once(" at line").map_or(message.as_str(), |(message, _)| message);
        let column = error.column().saturating_sub(1);
        let at = start + (0..=column).rev().find(|at| line.is_char_boundary(*at)).unwrap_or(0);
        let hint = "a line looks like `{\"method\": \"POST\", \"url\": \"http://host/path\", \"body\": \"base64\"}`";
        report.invalid(place(at..start + line.trim_end().len().max(at - start)), Invalid::new(message).hint(hint));
    });
    let JsonEntry { weight, method, url, header, body, name } = read.ok()?;
    let weight = weight.unwrap_or(1);
    if !(1..=WEIGHT_MAX).contains(&weight) {
        mistake(Invalid::new(format!("`{weight}` is not a weight from 1 to {WEIGHT_MAX}")));
    }
    let method = method.map(|method| validate_http::method(&method)).transpose().map_err(mistake);
    let url = url_beside(&url, first).map_err(mistake);
    let fields = header.iter().flat_map(|(name, values)| values.iter().map(move |value| (name, value)));
    let headers = fields.map(|(name, value)| {
        request_values::parts(value)?;
        Ok((validate_http::field_name(name)?, validate_http::field_value(name, value)?))
    });
    let headers = headers.collect::<Result<Vec<_>, _>>().map_err(mistake);
    let decoded = |text: String| {
        let body = BASE64_STANDARD.decode(text);
        let body = body.map_err(|error| Invalid::new(format!("`body` is not base64: {error}")))?;
        request_values::parts(std::str::from_utf8(&body).unwrap_or_default()).map_err(|error| error.of("`body`"))?;
        Ok(body)
    };
    let body = body.map(decoded).transpose().map_err(mistake);
    let name = name.map(|name| validate_http::request_name(&name)).transpose().map_err(mistake);
    let (method, url, headers, body) = (method.ok()?, url.ok()?, headers.ok()?, body.ok()?);
    Some(Entry { weight, method, url, headers, body, name: name.ok()?, line: number })
}

fn place(span: Range<usize>) -> Place {
    Place { set: None, start: span.start, end: span.end }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(text: &str) -> Vec<String> {
        match parse(text) {
            Ok(entries) => entries
                .iter()
                .map(|Entry { weight, method, url, headers, body, name, line }| {
                    let headers = headers.iter().map(|(name, value)| format!(" {name}={value}")).collect::<String>();
                    let body = body.as_ref().map_or(String::new(), |body| format!(" {}", body.escape_ascii()));
                    let name = name.as_ref().map_or(String::new(), |name| format!(" ({name})"));
                    format!("{line}: {weight} {} {url}{headers}{body}{name}", method.as_deref().unwrap_or("-"))
                })
                .collect(),
            Err(mistakes) => mistakes
                .iter()
                .map(|mistake| {
                    let marked = &text[mistake.span.clone()];
                    format!("{mistake} [{marked}] {}", mistake.hint.as_deref().unwrap_or("-"))
                })
                .collect(),
        }
    }

    #[test]
    fn weight_and_method_are_optional() {
        let text = "\u{feff}# what is asked\r\n\r\n8 GET http://h/a#x\r\n\thttp://h:80/b # often\n3 http://H/c\nPOST http://h\n  #";
        assert_eq!(
            said(text),
            ["3: 8 GET http://h/a", "4: 1 - http://h/b", "5: 3 - http://h/c", "6: 1 POST http://h/"]
        );
    }

    #[test]
    fn json_lines_have_headers_and_bodies() {
        let text = concat!(
            "\n{\"url\": \"http://h/a\"}\r\n\n",
            r#"{"method":"POST","url":"http://h/{{seq}}","header":{"B":["2","3"],"A":["{{uuid}}"]},"body":"e30K","weight":7,"name":"order"}"#,
        );
        assert_eq!(said(text), ["2: 1 - http://h/a", "4: 7 POST http://h/{{seq}} A={{uuid}} B=2 B=3 {}\\n (order)"]);
    }

    #[test]
    fn json_errors_have_places() {
        let text = concat!(
            "{\"url\": \"http://h/\"}\n",
            "{\"url\": 7}\n",
            "{\"uri\": \"http://h/\"}\n",
            "{\"url\": \"http://h/\", \"weight\": 0}\n",
            "{\"url\": \"http://h/\", \"method\": \"get\"}\n",
            "{\"url\": \"http://i/\"}\n",
            "{\"url\": \"http://h/\", \"body\": \"?\"}\n",
            "http://h/\n",
            "{\"url\": \"http://h/\", \"header\": {\"A\": [\"1\\r\\n\"]}}\n",
            "{\"url\": \"http://h/\", \"name\": \"a\\nb\"}",
        );
        let said = said(text);
        let short = said.iter().map(|text| text.split(" [").next().unwrap_or_default()).collect::<Vec<_>>();
        assert_eq!(
            short,
            [
                "2:9: invalid type: integer `7`, expected a string",
                "3:6: unknown field `uri`, expected one of `weight`, `method`, `url`, `header`, `body`, `name`",
                "4:1: `0` is not a weight from 1 to 1000000",
                "5:1: `get` is not `GET`: HTTP methods are case-sensitive",
                "6:1: `http://i` is not the same server as `http://h` in line 1",
                "7:1: `body` is not base64: Invalid symbol 63, offset 0.",
                "8:1: expected value",
                "9:1: '\\r' is not allowed in the value of `A`",
                "10:1: `a\\nb` must be printable text of 1 to 100 bytes",
            ]
        );
    }

    #[test]
    fn reports_every_error_with_its_place() {
        let text = "http://h/\n0 http://h/\nget http://h/\nGET 3 http://h/\nhttp://h/a b c\nhttp://i/\n7\npingpong://h:1\n/path\nGO http://u:p@h/\nfoo bar baz";
        assert_eq!(
            said(text),
            [
                "2:1: `0` is not a weight from 1 to 1000000 [0] -",
                "3:1: `get` is not `GET`: HTTP methods are case-sensitive [get] write `GET`",
                "4:1: expected `[WEIGHT] [METHOD] URL` [GET 3 http://h/] write one URL per line, percent-encode \
                 spaces, and start comments with `#`",
                "5:1: expected `[WEIGHT] [METHOD] URL` [http://h/a b c] write one URL per line, percent-encode spaces, \
                 and start comments with `#`",
                "6:1: `http://i` is not the same server as `http://h` in line 1 [http://i/] load one server at a time",
                "7:1: expected `[WEIGHT] [METHOD] URL` [7] write `http://host/path`, `GET http://host/path` or `3 GET \
                 http://host/path`",
                "8:1: only `http` and `https` URLs can be listed [pingpong://h:1] -",
                "9:1: `/path` is not a URL: missing `http://` [/path] a URL looks like `http://127.0.0.1:8080/path`",
                "10:4: credentials in URLs are not supported [http://u:p@h/] send it as a header: `-H 'Authorization: \
                 Basic ...'`",
                "11:1: expected `[WEIGHT] [METHOD] URL` [foo bar baz] write `http://host/path`, `GET http://host/path` \
                 or `3 GET http://host/path`",
            ]
        );
    }

    #[test]
    fn wrong_values_have_places() {
        assert_eq!(
            said("http://h/{{seq}}\nhttp://h/a{{sec}}\nhttp://h/{{seq}}{{seq"),
            [
                "2:11: unknown value `{{sec}}` [{{sec}}] write {{seq}} or {{seq:1000}}",
                "3:17: `{{seq` is not closed with `}}` [{{seq] `{{` begins a value; for a literal one, write `{{braces}}`",
            ]
        );
        let header = r#"{"url": "http://h/", "header": {"A": ["{{sec}}"]}}"#;
        let body = r#"{"url": "http://h/", "body": "e3tzZWN9fQ=="}"#;
        let said = said(&format!("{header}\n{body}"));
        assert!(said[0].starts_with("1:40: unknown value `{{sec}}` [{{sec}}]"), "{said:?}");
        assert!(said[1].starts_with("2:1: `body`: unknown value `{{sec}}`"), "{said:?}");
    }

    #[test]
    fn finds_an_error_in_the_millionth_line() {
        let text = format!("{{\"url\": \"http://h/\"}}{}{{\"url\": \"http://h/\",}}", "\n".repeat(999_999));
        assert!(said(&text)[0].starts_with("1000000:21: trailing comma"), "{:?}", said(&text));
    }

    #[test]
    fn limits() {
        assert_eq!(said("# nothing\n\n"), ["1:1: no URL in this file [] write one per line"]);
        assert_eq!(said(""), ["1:1: no URL in this file [] write one per line"]);
        assert_eq!(said("ä ä ä ä\n".repeat(1000).as_str()).len(), MISTAKES_MAX);
        assert_eq!(
            said("99999999999 http://h/"),
            ["1:1: `99999999999` is not a weight from 1 to 1000000 [99999999999] -"]
        );
        let many = "http://h\n".repeat(ENTRIES_MAX + 1);
        assert_eq!(said(&many), [format!("{}:1: more than 100000 URLs [] -", ENTRIES_MAX + 2)]);
        let long = " ".repeat(FILE_MAX_BYTES + 1);
        assert!(said(&long)[0].contains("bytes, at most"));
    }
}
