//! What is asked over HTTP: the keys of `[load]` that have a meaning with `protocol = "http"` and `"https"`, and `[[load.request]]`.

use config::Place;
use config::node::Value;

use crate::http::{self, HttpError};
use crate::keys::REQUEST;
use crate::keys::words::CONNECTIONS;
use crate::plan::{BodyPlan, HttpPlan, HttpRequestPlan};
use crate::section::Section;
use crate::spec::{Connection, Expect, HttpRequest, Protocol, Tls};

/// Keys that belong to encryption.
const TLS: [&str; 4] = ["insecure", "ca_file", "server_name", "resume"];
/// Keys of `[load]` that have a meaning over HTTP alone.
const OWN: [&str; 10] = [
    "path",
    "method",
    "headers",
    "body",
    "body_file",
    "request",
    "expect_status",
    "expect_body",
    "pipeline",
    "connection",
];
/// Requests of a mix at most.
const REQUESTS_MAX: usize = 1000;

/// What `[load]` says of HTTP, or of its absence.
#[derive(Debug)]
pub(crate) struct Http {
    /// `None`: another protocol.
    pub(crate) plan: Option<HttpPlan>,
    pub(crate) pipeline: u32,
    pub(crate) connection: Connection,
}

/// Reports unknown keys of requests.
pub(crate) fn check_keys(load: &Section) {
    requests(load).iter().for_each(Section::check_keys);
}

/// What is asked with `protocol`; `None` only where a mistake was reported.
pub(crate) fn read(load: &Section, protocol: Protocol) -> Option<Http> {
    if !protocol.has_path() {
        let dialect = protocol.dialect();
        let own = OWN.iter().chain(&TLS);
        for key in own.filter(|key| load.has(key) && !(dialect.is_some() && **key == "pipeline")) {
            let hint = "it is for `http` and `https`: change `protocol`, or drop it".to_owned();
            load.mistake(key, format!("`load.{key}` does not apply to protocol `{protocol}`"), hint);
        }
        let pipeline = if dialect.is_some() { pipeline(load, Connection::KeepAlive)? } else { 1 };
        return Some(Http { plan: None, pipeline, connection: Connection::KeepAlive });
    }
    let connection = load.choice("connection", CONNECTIONS);
    let kept = connection.unwrap_or_default();
    let pipeline = pipeline(load, kept);
    let requests = mix(load, kept);
    let tls = if protocol == Protocol::Https { tls(load).map(Some) } else { no_tls(load) };
    let expect = expect(load, requests.as_deref());
    connection?;
    let plan = HttpPlan { requests: requests?, tls: tls?, expect: expect? };
    Some(Http { plan: Some(plan), pipeline: pipeline?, connection: kept })
}

/// Reports a mistake at the value of `key`, as the parts of requests tell it.
fn told(load: &Section, key: &str, error: &HttpError) {
    load.mistake(key, error.to_string(), error.hint());
}

fn pipeline(load: &Section, connection: Connection) -> Option<u32> {
    let depth = load.small("pipeline")?;
    if depth > 1 {
        let alone = |key: &str, why: &str, hint: &str| {
            load.mistake(key, format!("`pipeline` must be 1 with {why}"), hint.to_owned());
        };
        if connection == Connection::PerRequest {
            alone("pipeline", "one connection per request", "drop `pipeline`, or set `connection = \"keep-alive\"`");
        }
        if load.has("think") {
            alone("think", "think time", "drop `think`, or `pipeline`");
        }
    }
    Some(depth)
}

/// The requests: those of `[[load.request]]`, or the one that `[load]` describes.
fn mix(load: &Section, connection: Connection) -> Option<Vec<HttpRequestPlan>> {
    let common = headers(load);
    if !load.has("request") {
        let request = request(load, Some(Vec::new()), connection);
        return Some(vec![request?]);
    }
    for key in ["path", "method", "body", "body_file"].iter().filter(|key| load.has(key)) {
        let hint = format!("write `{key}` in each of them, or drop them");
        load.mistake(key, format!("`load.{key}` cannot be combined with `[[load.request]]`"), hint);
    }
    let sections = load.tables("request", "a request");
    if sections.is_empty() {
        let hint = "begin each request with `[[load.request]]`".to_owned();
        load.mistake("request", "`load.request` is empty", hint);
        return None;
    }
    if sections.len() > REQUESTS_MAX {
        let message = format!("{} requests, a mix allows at most {REQUESTS_MAX}", sections.len());
        load.mistake("request", message, None);
        return None;
    }
    let requests = sections.iter().map(|section| request(section.as_ref()?, common.clone(), connection));
    // Every one is read, so that all mistakes are found.
    requests.collect::<Vec<_>>().into_iter().collect()
}

/// The tables of `[[load.request]]`; of what else may stand there nothing is said yet.
fn requests<'a>(load: &'a Section<'a>) -> Vec<Section<'a>> {
    let Some(Value::List(items)) = load.table.get("request").map(|entry| &entry.node.value) else { return Vec::new() };
    let section = |item: &'a config::node::Node| match &item.value {
        Value::Table(table) => Some(load.inner(table, &REQUEST, item.place)),
        _ => None,
    };
    items.iter().filter_map(section).collect()
}

/// One request; `common` are header fields that it has where it does not give them itself.
fn request(
    section: &Section,
    common: Option<Vec<(String, String)>>,
    connection: Connection,
) -> Option<HttpRequestPlan> {
    let weight = section.keys.get("weight").map_or(Some(1), |_| section.small("weight"));
    let method = section.text_as("method", |text| http::method(text).map_err(words));
    let path = section.text_as("path", |text| http::target(text).map_err(words));
    let body = body(section);
    let headers = headers(section);
    let (mut all, headers) = (common?, headers?);
    all.retain(|(name, _)| !headers.iter().any(|(own, _)| own.eq_ignore_ascii_case(name)));
    all.extend(headers);
    let plan = HttpRequestPlan { weight: weight?, method: method?, path: path?, headers: all, body: body? };
    check_whole(section, &plan, connection);
    Some(plan)
}

/// What is wrong with a request as a whole: its header fields, against its body and its connection.
fn check_whole(section: &Section, plan: &HttpRequestPlan, connection: Connection) {
    let of_file = matches!(plan.body, Some(BodyPlan::File(_)));
    let body = match &plan.body {
        Some(BodyPlan::Text(text)) => text.clone().into_bytes(),
        Some(BodyPlan::File(_)) | None => Vec::new(),
    };
    let (method, target, headers) = (plan.method.clone(), plan.path.clone(), plan.headers.clone());
    let request = HttpRequest { weight: plan.weight, method, target, headers, body };
    for error in http::mistakes(&request, connection) {
        let (name, mut message, mut hint) = (field_of(&error), error.to_string(), error.hint());
        if of_file && matches!(error, HttpError::Length { .. }) {
            // How long a file is will be known when it is read.
            message = "`Content-Length` cannot be combined with `body_file`".to_owned();
        }
        if let HttpError::Ends { name, .. } = error {
            hint = Some(match (name, connection) {
                ("Connection", Connection::KeepAlive) => {
                    "for one connection per request, set `connection = \"per-request\"`".to_owned()
                }
                _ => "drop it: only HTTP/1.1 is measured".to_owned(),
            });
        }
        section.report.mistake(place_of_field(section, name), message, hint);
    }
}

/// The header field that a mistake is about; empty: all of them.
fn field_of(error: &HttpError) -> &'static str {
    match error {
        HttpError::Length { .. } => "Content-Length",
        HttpError::TransferEncoding => "Transfer-Encoding",
        HttpError::Repeated { name, .. } | HttpError::Ends { name, .. } => name,
        _ => "",
    }
}

/// Where a field of that name stands; the request where it has it from elsewhere.
fn place_of_field(section: &Section, name: &str) -> Place {
    let fields = section.table.table("headers");
    let field = fields.and_then(|fields| fields.iter().find(|entry| entry.key.eq_ignore_ascii_case(name)));
    field.map_or_else(|| section.place_of("headers"), |entry| entry.node.place)
}

fn headers(section: &Section) -> Option<Vec<(String, String)>> {
    if !section.has("headers") {
        return Some(Vec::new());
    }
    let fields = section.section("headers")?;
    let mut all = Vec::<(String, String)>::new();
    let mut fine = true;
    for entry in fields.table.iter() {
        let value = match &entry.node.value {
            Value::Integer(number) => Some(number.to_string()),
            _ => fields.text(&entry.key),
        };
        let Some(value) = value else {
            fine = false;
            continue;
        };
        match http::field_of(&entry.key, &value) {
            Ok((name, _)) if all.iter().any(|(known, _)| known.eq_ignore_ascii_case(&name)) => {
                let message = format!("duplicate header `{name}`");
                fields.report.mistake(entry.key_place, message, None);
                fine = false;
            }
            Ok(field) => all.push(field),
            Err(error @ HttpError::FieldName { .. }) => {
                fields.report.mistake(entry.key_place, error.to_string(), error.hint());
                fine = false;
            }
            Err(error) => {
                told(&fields, &entry.key, &error);
                fine = false;
            }
        }
    }
    fine.then_some(all)
}

/// A body; `Some(None)` where there is none.
fn body(section: &Section) -> Option<Option<BodyPlan>> {
    if section.has("body") && section.has("body_file") {
        let message = format!("`{}` has both `body` and `body_file`, only one is allowed", section.name);
        section.mistake("body_file", message, None);
        return None;
    }
    if section.has("body_file") {
        let file = section.text("body_file")?;
        if file.trim().is_empty() {
            section.mistake("body_file", "`body_file` is empty", None);
            return None;
        }
        return Some(Some(BodyPlan::File(file)));
    }
    let body = section.given("body", section.text("body"))?;
    Some(body.filter(|text| !text.is_empty()).map(BodyPlan::Text))
}

fn tls(load: &Section) -> Option<Tls> {
    let insecure = load.flag("insecure");
    let ca_file = load.given("ca_file", load.text("ca_file"));
    let server_name = load.text("server_name");
    let resume = load.flag("resume");
    if insecure == Some(true) && load.has("ca_file") {
        let hint = "drop one of the two".to_owned();
        load.mistake("ca_file", "`insecure` accepts any certificate, so `ca_file` has no effect", hint);
    }
    Some(Tls {
        // Where the subject listens has no name of its own; a certificate for tests is most often this one's.
        server_name: server_name?,
        insecure: insecure?,
        ca_file: ca_file?,
        resume: resume?,
    })
}

fn no_tls(load: &Section) -> Option<Option<Tls>> {
    for key in TLS.iter().filter(|key| load.has(key)) {
        let hint = "set `protocol = \"https\"`, or drop it".to_owned();
        load.mistake(key, format!("`load.{key}` needs `https`"), hint);
    }
    Some(None)
}

fn expect(load: &Section, requests: Option<&[HttpRequestPlan]>) -> Option<Expect> {
    let status = load.given("expect_status", statuses(load));
    let body = load.given("expect_body", load.text("expect_body"));
    if load.has("expect_body") && requests.is_some_and(|all| all.iter().any(|request| request.method == "HEAD")) {
        let hint = "drop `expect_body`, or use `GET`".to_owned();
        load.mistake("expect_body", "the response to `HEAD` has no body", hint);
    }
    Some(Expect { status: status?, body: body?.map(String::into_bytes) })
}

/// `200`, `[200, 204]`, `"2xx"`, `"200,204"`; `None`: mistaken, or not there.
fn statuses(load: &Section) -> Option<Vec<u16>> {
    let node = &load.table.get("expect_status")?.node;
    let Value::List(items) = &node.value else {
        let words = |text: &str| http::statuses(text).map_err(words);
        return match &node.value {
            Value::Integer(status) => match http::statuses(&status.to_string()) {
                Ok(statuses) => Some(statuses),
                Err(error) => {
                    told(load, "expect_status", &error);
                    None
                }
            },
            _ => load.text_as("expect_status", words),
        };
    };
    if items.is_empty() {
        let hint = "drop it to accept 200 to 299".to_owned();
        load.mistake("expect_status", "`load.expect_status` is empty", hint);
        return None;
    }
    let mut all = Vec::new();
    let mut fine = true;
    for item in items {
        let text = match &item.value {
            Value::Integer(status) => status.to_string(),
            Value::Text(text) => text.clone(),
            other => {
                let message = format!("a status must be a number such as `200`, not {}", other.kind());
                load.report.mistake(item.place, message, None);
                fine = false;
                continue;
            }
        };
        match http::statuses(&text) {
            Ok(statuses) => all.extend(statuses),
            Err(error) => {
                load.report.mistake(item.place, error.to_string(), error.hint());
                fine = false;
            }
        }
    }
    all.sort_unstable();
    all.dedup();
    fine.then_some(all)
}

fn words(error: HttpError) -> (String, Option<String>) {
    (error.to_string(), error.hint())
}
