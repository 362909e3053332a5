//! Turns recorded requests into the steps of a journey.

use regex::Regex;
use serde_json::Value;

use super::archive::{Entry, Request};
use super::tokens::{Tokens, Wanted, is_distinctive};
use crate::journey::placeholders;
use crate::url::Url;
use crate::validate_http::{self, percent_decoded};

const THINK_LEAST_MS: f64 = 300.0;
const THINK_MOST_MS: f64 = 3.6e6;
const NAME_MAX_BYTES: usize = 150;

/// Headers that browsers add to requests or that the generator sets.
const OWN_HEADERS: &str = "accept-charset accept-encoding accept-language cache-control connection content-length \
    cookie dnt expect host if-modified-since if-none-match keep-alive origin pragma priority range referer te trailer \
    transfer-encoding upgrade upgrade-insecure-requests user-agent via x-client-data";

#[derive(Debug)]
pub(super) struct Kept<'h> {
    pub(super) entry: &'h Entry,
    pub(super) url: Url,
    pub(super) target: String,
}

/// Writes the steps as TOML, with the values that they take.
pub(super) fn written(kept: &[Kept<'_>], tokens: &mut Tokens) -> String {
    let mut steps = Vec::new();
    let mut ended: Option<&Entry> = None;
    for (at, one) in kept.iter().enumerate() {
        let pause_ms = ended.and_then(|ended| one.entry.pause_ms(ended));
        if ended.is_none_or(|ended| one.entry.ends_after(ended)) {
            ended = Some(one.entry);
        }
        steps.push(step(at, kept, pause_ms, tokens));
        tokens.add(at, path_of(&one.url), &one.entry.response);
    }
    // Only later steps tell which values a step takes.
    let with_end = |(at, mut step): (usize, String)| {
        let mut taken = tokens.taken(at).map(|taken| (taken.name.as_str(), taken.source.as_str())).peekable();
        if taken.peek().is_some() {
            step += &format!("take = {} # guess\n", table(taken));
        }
        let status = kept[at].entry.response.status;
        if !(200..=299).contains(&status) && status != 304 {
            step += &format!("expect = {{ status = {status} }}\n");
        }
        step
    };
    steps.into_iter().enumerate().map(with_end).collect()
}

fn path_of(url: &Url) -> &str {
    url.target.split('?').next().unwrap_or_default()
}

/// The lines of a step up to its body.
fn step(at: usize, kept: &[Kept<'_>], pause_ms: Option<f64>, tokens: &mut Tokens) -> String {
    let Kept { entry, url, target } = &kept[at];
    let method = &entry.request.method;
    let location = location(at, kept, tokens);
    let is_named = location.is_some();
    let template = location.unwrap_or_else(|| format!("{{{target}}}{}", url_template(&url.target, tokens)));
    let mut notes = Vec::new();
    let headers = headers(&entry.request, kept, tokens, &mut notes);
    let body = body(&entry.request, tokens, &mut notes);
    let mut out = "\n[[step]]\n".to_owned();
    notes.iter().for_each(|note| out += &format!("# {note}\n"));
    let mut line = |key: &str, value: String| out += &format!("{key} = {value}\n");
    if is_named || template.len() + method.len() > NAME_MAX_BYTES {
        let name = format!("{method} {}", path_of(url)).chars().take(NAME_MAX_BYTES).collect::<String>();
        line("name", quoted(&name));
    }
    line("url", quoted(&template));
    if let Some(pause_ms) = pause_ms.filter(|pause_ms| (THINK_LEAST_MS..=THINK_MOST_MS).contains(pause_ms)) {
        line("think", format!("\"{}s\"", (pause_ms / 100.0).round() / 10.0));
    }
    if method != "GET" {
        line("method", quoted(method));
    }
    if !headers.is_empty() {
        line("headers", table(headers.iter().map(|(name, value)| (name.as_str(), value.as_str()))));
    }
    if let Some(body) = body {
        line("body", quoted(&body));
    }
    out
}

fn body(request: &Request, tokens: &mut Tokens, notes: &mut Vec<String>) -> Option<String> {
    let data = request.post_data.as_ref()?;
    let text = data.text();
    if text.contains('\0') {
        notes.push("left out: the body, which is not a text".to_owned());
        return None;
    }
    let media_type = data.mime_type.to_ascii_lowercase();
    let (body, names) = match serde_json::from_str::<Value>(&text) {
        _ if text.is_empty() => return None,
        _ if media_type.starts_with("multipart/form-data") => multipart_template(&text, tokens),
        _ if media_type.contains("x-www-form-urlencoded") => {
            (pairs_template(&text, tokens), pairs(&text).map(|pair| pair.0.to_owned()).collect())
        }
        Ok(json @ (Value::Object(_) | Value::Array(_))) => json_template(&text, &json, tokens),
        _ => (placeholders::literal(&text), Vec::new()),
    };
    let is_secret = |name: &String| name.to_ascii_lowercase().contains("passw");
    if names.iter().any(is_secret) {
        notes.push("recorded: a user and a password; `{number}` or `let` can vary them".to_owned());
    }
    Some(body)
}

/// The URL as a placeholder for the `Location` of an earlier response; `None` if no `Location` is this URL.
fn location(at: usize, kept: &[Kept<'_>], tokens: &mut Tokens) -> Option<String> {
    let Kept { url, target, .. } = &kept[at];
    let whole = url.to_string();
    let before = kept[..at].iter().enumerate().rev();
    let (step, location) = before.into_iter().find_map(|(step, earlier)| {
        let location = earlier.entry.response.header("location")?.split('#').next().unwrap_or_default();
        let is_path = earlier.url.same_origin(url) && location == url.target && !location.starts_with("//");
        (is_path || location == whole).then_some((step, location))
    })?;
    let name = tokens.take(step, "header.location".to_owned(), "location", location);
    Some(if location == whole { format!("{{{name}}}") } else { format!("{{{target}}}{{{name}}}") })
}

fn url_template(target: &str, tokens: &mut Tokens) -> String {
    let (path, query) = target.split_once('?').map_or((target, None), |(path, query)| (path, Some(query)));
    let mut before = "";
    let parts = path.split('/').map(|part| {
        let hint = std::mem::replace(&mut before, part);
        value_template(part, Wanted { value: &percent_decoded(part, false), hint }, tokens)
    });
    let path = parts.collect::<Vec<_>>().join("/");
    query.map_or(path.clone(), |query| format!("{path}?{}", pairs_template(query, tokens)))
}

/// `raw` itself, or a placeholder if an earlier response contains its value.
fn value_template(raw: &str, wanted: Wanted<'_>, tokens: &mut Tokens) -> String {
    tokens.name(wanted).map_or_else(|| placeholders::literal(raw), |name| format!("{{{name}}}"))
}

fn pairs(text: &str) -> impl Iterator<Item = (&str, &str)> {
    text.split('&').map(|pair| pair.split_once('=').unwrap_or((pair, "")))
}

fn pairs_template(text: &str, tokens: &mut Tokens) -> String {
    let pair = |pair: &str| match pair.split_once('=') {
        None => placeholders::literal(pair),
        Some((name, raw)) => {
            let wanted = Wanted { value: &percent_decoded(raw, true), hint: &percent_decoded(name, true) };
            format!("{}={}", placeholders::literal(name), value_template(raw, wanted, tokens))
        }
    };
    text.split('&').map(pair).collect::<Vec<_>>().join("&")
}

/// A body of several parts (RFC 7578) with placeholders in place of values, and the names of its parts without a file.
fn multipart_template(text: &str, tokens: &mut Tokens) -> (String, Vec<String>) {
    let part = Regex::new("(?s); name=\"([^\"]*)\"(?:\r\n[^\r\n]+)*\r\n\r\n(.*?)\r\n--").expect("it is valid");
    let (mut out, mut names, mut end) = (String::new(), Vec::new(), 0);
    for part in part.captures_iter(text) {
        let (Some(name), Some(value)) = (part.get(1), part.get(2)) else { continue };
        out += &placeholders::literal(&text[end..value.start()]);
        out += &value_template(value.as_str(), Wanted { value: value.as_str(), hint: name.as_str() }, tokens);
        names.push(name.as_str().to_owned());
        end = value.end();
    }
    out += &placeholders::literal(&text[end..]);
    (out, names)
}

/// A JSON body in its recorded form with placeholders in place of values, and the names of its fields.
fn json_template(text: &str, json: &Value, tokens: &mut Tokens) -> (String, Vec<String>) {
    let mut values = Vec::new();
    leaves(json, "", &mut values);
    let mut replaced = Vec::new();
    for (hint, value) in &values {
        let (raw, plain, quote) = match value {
            Value::String(text) => (value.to_string(), text.clone(), "\""),
            other => (other.to_string(), other.to_string(), ""),
        };
        let Some(name) = tokens.name(Wanted { value: &plain, hint }) else { continue };
        let places = text.match_indices(&raw).map(|(at, _)| at..at + raw.len()).filter(|place| {
            let before = text[..place.start].trim_end().chars().next_back();
            let after = text[place.end..].trim_start().chars().next();
            before.is_some_and(|char| ":,[".contains(char)) && after.is_some_and(|char| ",]}".contains(char))
        });
        replaced.extend(places.map(|place| (place, format!("{quote}{{{name}}}{quote}"))));
    }
    replaced.sort_by_key(|(place, _)| place.start);
    let (mut out, mut end) = (String::new(), 0);
    for (place, template) in replaced {
        if place.start >= end {
            out += &placeholders::literal(&text[end..place.start]);
            out += &template;
            end = place.end;
        }
    }
    out += &placeholders::literal(&text[end..]);
    (out, values.into_iter().map(|value| value.0).collect())
}

fn leaves<'j>(json: &'j Value, key: &str, found: &mut Vec<(String, &'j Value)>) {
    match json {
        Value::Object(fields) => fields.iter().for_each(|(key, value)| leaves(value, key, found)),
        Value::Array(items) => items.iter().for_each(|value| leaves(value, key, found)),
        Value::String(_) | Value::Number(_) => found.push((key.to_owned(), json)),
        Value::Bool(_) | Value::Null => {}
    }
}

fn headers(
    request: &Request,
    kept: &[Kept<'_>],
    tokens: &mut Tokens,
    notes: &mut Vec<String>,
) -> Vec<(String, String)> {
    let mut headers = Vec::<(String, String)>::new();
    for header in &request.headers {
        let name = header.name.to_ascii_lowercase();
        let is_browsers =
            name.starts_with("sec-") || name.starts_with("proxy-") || OWN_HEADERS.split(' ').any(|own| own == name);
        let is_default = name == "accept" && (header.value.contains("text/html") || header.value.starts_with("*/*"))
            || name == "content-type" && request.post_data.is_none();
        let origin = kept.iter().find(|one| name == "origin" && one.url.origin() == header.value);
        let is_repeated = headers.iter().any(|known| known.0.eq_ignore_ascii_case(&name));
        let is_valid = validate_http::field(&format!("{}:{}", header.name, header.value)).is_ok();
        if let Some(one) = origin.filter(|_| request.method != "GET" && !is_repeated) {
            headers.push(("Origin".to_owned(), format!("{{{}}}", one.target)));
        }
        if is_browsers || is_default || is_repeated || !is_valid {
            continue;
        }
        let (scheme, value) = match header.value.split_once(' ') {
            Some((scheme, value)) if name == "authorization" => (format!("{} ", placeholders::literal(scheme)), value),
            _ => (String::new(), header.value.as_str()),
        };
        let template = value_template(value, Wanted { value, hint: &name }, tokens);
        if template == value
            && (name == "authorization" || is_distinctive(value) && name != "content-type" && name != "accept")
        {
            notes.push(format!("recorded: `{}` is in no response before, and may expire", header.name));
        }
        headers.push((header.name.clone(), format!("{scheme}{template}")));
    }
    headers
}

fn table<'t>(entries: impl Iterator<Item = (&'t str, &'t str)>) -> String {
    let is_bare = |key: &str| key.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'));
    let entry = |(key, value): (&str, &str)| {
        let key = if is_bare(key) { key.to_owned() } else { quoted(key) };
        format!("{key} = {}", quoted(value))
    };
    format!("{{ {} }}", entries.map(entry).collect::<Vec<_>>().join(", "))
}

/// A TOML string, literal if that saves escapes.
pub(super) fn quoted(text: &str) -> String {
    let is_literal = text.contains(['"', '\\']) && !text.contains(|char: char| char == '\'' || char.is_control());
    // JSON escapes are valid in TOML, but JSON does not escape DEL, which TOML forbids.
    if is_literal { format!("'{text}'") } else { Value::from(text).to_string().replace('\u{7f}', "\\u007f") }
}
