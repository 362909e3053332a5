//! Parses files of URLs with weights for a load on one server.
//!
//! One request per line, `[WEIGHT] [METHOD] URL`, separated by blanks. Empty lines are ignored, and
//! everything after a `#` that begins a line or a part.
//!
//! ```text
//! # weight  method  URL
//! 8         GET     http://127.0.0.1:8080/
//! 1         POST    http://127.0.0.1:8080/orders
//! http://127.0.0.1:8080/health
//! ```

use std::ops::Range;

use config::{Diagnostic, Invalid, Place, Report};

use crate::http;
use crate::url::{self, Url};

/// Maximum size of a file, bytes.
pub const FILE_MAX_BYTES: usize = 16 << 20;
/// Maximum number of requests in a file.
pub const ENTRIES_MAX: usize = 100_000;
/// Maximum weight.
pub const WEIGHT_MAX: u32 = 1_000_000;
/// Maximum number of reported errors. A file with more is probably not a list of URLs.
const MISTAKES_MAX: usize = 50;

/// A line of the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Relative frequency among the requests of the file; 1 by default.
    pub weight: u32,
    /// Method, if given.
    pub method: Option<String>,
    /// URL of the request.
    pub url: Url,
    /// Line, from 1.
    pub line: usize,
}

/// Parses a file of URLs: at least one request, all with the same origin. Fails with all errors and
/// their places, at most 50.
pub fn parse(text: &str) -> Result<Vec<Entry>, Vec<Diagnostic>> {
    let report = Report::new("the file", text, &[]);
    if text.len() > FILE_MAX_BYTES {
        let message = format!("{} bytes, at most {FILE_MAX_BYTES} allowed", text.len());
        report.mistake(place(0..0), message, None);
    }
    let mut entries = Vec::<Entry>::new();
    let mut start = text.len() - text.trim_start_matches('\u{feff}').len();
    for (line, number) in text[start..].split('\n').zip(1..) {
        if report.count() >= MISTAKES_MAX || text.len() > FILE_MAX_BYTES || entries.len() > ENTRIES_MAX {
            break;
        }
        let entry = entry(line, start, number, entries.first(), &report);
        entries.extend(entry);
        start += line.len() + 1;
    }
    if entries.is_empty() && report.count() == 0 {
        report.mistake(place(0..0), "no URL in this file", "write one per line".to_owned());
    }
    if entries.len() > ENTRIES_MAX {
        report.mistake(place(text.len()..text.len()), format!("more than {ENTRIES_MAX} URLs"), None);
    }
    report.finish().map(|()| entries)
}

/// Parses a line that begins at byte `start`. `None` if it has no request, or errors, which are reported.
fn entry(line: &str, start: usize, number: usize, first: Option<&Entry>, report: &Report) -> Option<Entry> {
    let mistake = |span: Range<usize>, error: Invalid| report.invalid(place(span), error);
    let mut parts = Vec::new();
    let mut at = start;
    for part in line.split([' ', '\t', '\r']) {
        if part.starts_with('#') {
            break;
        }
        if !part.is_empty() {
            parts.push((part, at..at + part.len()));
        }
        at += part.len() + 1;
    }
    let has_weight = parts.first().is_some_and(|(part, _)| part.bytes().all(|byte| byte.is_ascii_digit()));
    let weight = has_weight.then(|| parts.remove(0));
    let weight = weight.map_or(Some(1), |(part, span)| {
        let weight = part.parse().ok().filter(|weight| (1..=WEIGHT_MAX).contains(weight));
        if weight.is_none() {
            mistake(span, Invalid::new(format!("`{part}` is not a weight from 1 to {WEIGHT_MAX}")));
        }
        weight
    });
    let (method, (text, span)) = match parts.as_slice() {
        [] if line.trim_start().starts_with('#') || line.trim().is_empty() => return None,
        [one] => (None, one.clone()),
        [method, one] => (Some(method.clone()), one.clone()),
        [] | [_, _, ..] => {
            let from = start + line.len() - line.trim_start().len();
            let to = parts.last().map_or(start + line.trim_end().len(), |(_, span)| span.end);
            let hint = match parts.iter().any(|(part, _)| part.contains("://")) {
                true => "write one URL per line, percent-encode spaces, and start comments with `#`",
                false => "write `http://host/path`, `GET http://host/path` or `3 GET http://host/path`",
            };
            mistake(from..to, Invalid::new("expected `[WEIGHT] [METHOD] URL`").hint(hint));
            return None;
        }
    };
    let method = method.map(|(part, span)| http::method(part).map_err(|error| mistake(span, error))).transpose();
    let url = url::parse(text).map_err(|error| mistake(span.clone(), error)).ok()?;
    if !url.protocol.has_path() {
        mistake(span, Invalid::new("only `http` and `https` URLs can be listed"));
        return None;
    }
    if let Some(first) = first.filter(|first| !first.url.same_origin(&url)) {
        let message =
            format!("`{}` is not the same server as `{}` in line {}", url.origin(), first.url.origin(), first.line);
        mistake(span, Invalid::new(message).hint("load one server at a time"));
        return None;
    }
    Some(Entry { weight: weight?, method: method.ok()?, url, line: number })
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
                .map(|Entry { weight, method, url, line }| {
                    format!("{line}: {weight} {} {url}", method.as_deref().unwrap_or("-"))
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
