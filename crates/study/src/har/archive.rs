//! The parts of an HTTP archive that matter for a journey.

use std::borrow::Cow;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde::Deserialize;
use serde_json::Value;

#[derive(Debug, Deserialize)]
pub(super) struct Archive {
    pub(super) log: Log,
}

#[derive(Debug, Deserialize)]
pub(super) struct Log {
    pub(super) entries: Vec<Entry>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Entry {
    started_date_time: String,
    /// Time from the start of the request to the end of the response, ms; negative if unknown.
    time: Option<f64>,
    pub(super) request: Request,
    pub(super) response: Response,
    /// Resource type, such as `document`, `xhr` or `script`; recorded only by Chromium.
    #[serde(rename = "_resourceType")]
    kind: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Request {
    pub(super) method: String,
    pub(super) url: String,
    #[serde(default)]
    pub(super) headers: Vec<Pair>,
    pub(super) post_data: Option<PostData>,
}

/// A header.
#[derive(Debug, Deserialize)]
pub(super) struct Pair {
    pub(super) name: String,
    #[serde(default)]
    pub(super) value: String,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct PostData {
    #[serde(default)]
    pub(super) mime_type: String,
    #[serde(default)]
    text: String,
    /// Fields of a form or, from chrome-har, of a JSON object. They replace `text`.
    #[serde(default)]
    params: Vec<Param>,
}

#[derive(Debug, Deserialize)]
struct Param {
    name: String,
    #[serde(default)]
    value: Value,
}

#[derive(Debug, Deserialize)]
pub(super) struct Response {
    /// Status code; 0 if there was no response.
    pub(super) status: i64,
    #[serde(default)]
    pub(super) headers: Vec<Pair>,
    #[serde(default)]
    content: Content,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Content {
    mime_type: String,
    text: String,
    encoding: String,
}

/// Characters that forms encode.
const RESERVED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');
const DAY_MS: f64 = 86_400_000.0;
const STATIC_KINDS: [&str; 7] = ["stylesheet", "script", "image", "font", "media", "manifest", "texttrack"];
const STATIC_TYPES: [&str; 6] = ["image/", "font/", "audio/", "video/", "text/css", "application/font"];
const STATIC_ENDINGS: [&str; 20] = [
    ".avif", ".css", ".eot", ".gif", ".ico", ".jpeg", ".jpg", ".js", ".map", ".mjs", ".mp3", ".mp4", ".otf", ".png",
    ".svg", ".ttf", ".wasm", ".webm", ".webp", ".woff2",
];

impl Entry {
    /// Whether the response is probably a file that all users share, judging by resource type, media type or file name.
    pub(super) fn is_static(&self) -> bool {
        let path = self.request.url.split(['?', '#']).next().unwrap_or_default().to_ascii_lowercase();
        let media_type = self.response.content.mime_type.to_ascii_lowercase();
        self.kind.as_deref().is_some_and(|kind| STATIC_KINDS.contains(&kind))
            || STATIC_TYPES.iter().any(|start| media_type.starts_with(start))
            || media_type.contains("javascript")
            || STATIC_ENDINGS.iter().any(|end| path.ends_with(end))
    }

    pub(super) fn has_no_credentials(&self) -> bool {
        let Entry { request, response, .. } = self;
        let mut names = request.headers.iter().chain(&response.headers).map(|header| header.name.to_ascii_lowercase());
        names.all(|name| !["authorization", "cookie", "set-cookie"].contains(&name.as_str()))
    }

    /// Time of day at which the request started, ms; `None` if the date is malformed.
    fn started_ms(&self) -> Option<f64> {
        let (_, time) = self.started_date_time.split_once('T')?;
        let end = time.find(['Z', 'z', '+', '-']).unwrap_or(time.len());
        let mut parts = time[..end].split(':').map(|part| part.parse::<f64>().ok().filter(|part| part.is_finite()));
        let [hours, minutes, seconds] = [parts.next()??, parts.next()??, parts.next()??];
        Some(((hours * 60.0 + minutes) * 60.0 + seconds) * 1e3)
    }

    /// Time from the response to `earlier` until this request, ms; negative if they overlap, `None` if unknown.
    pub(super) fn pause_ms(&self, earlier: &Entry) -> Option<f64> {
        let between = (self.started_ms()? - earlier.started_ms()?).rem_euclid(DAY_MS);
        Some(between - earlier.took_ms())
    }

    pub(super) fn ends_after(&self, earlier: &Entry) -> bool {
        self.pause_ms(earlier).is_none_or(|pause_ms| pause_ms + self.took_ms() > 0.0)
    }

    fn took_ms(&self) -> f64 {
        self.time.unwrap_or(0.0).max(0.0)
    }
}

impl PostData {
    pub(super) fn text(&self) -> Cow<'_, str> {
        if !self.text.is_empty() {
            return self.text.as_str().into();
        }
        if self.mime_type.contains("json") && !self.params.is_empty() {
            let fields = self.params.iter().map(|param| (param.name.clone(), param.value.clone()));
            return Value::Object(fields.collect()).to_string().into();
        }
        let encoded = |text: &str| utf8_percent_encode(text, RESERVED).to_string();
        let value = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        let pairs = self.params.iter().map(|pair| format!("{}={}", encoded(&pair.name), encoded(&value(&pair.value))));
        pairs.collect::<Vec<_>>().join("&").into()
    }
}

impl Response {
    pub(super) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|header| header.name.eq_ignore_ascii_case(name)).map(|header| header.value.as_str())
    }

    /// The body of the response; empty if it was not recorded or is not UTF-8.
    pub(super) fn text(&self) -> Cow<'_, str> {
        let Content { text, encoding, .. } = &self.content;
        if encoding.is_empty() {
            return text.into();
        }
        let bytes = BASE64_STANDARD.decode(text).ok();
        bytes.and_then(|bytes| String::from_utf8(bytes).ok()).unwrap_or_default().into()
    }
}
