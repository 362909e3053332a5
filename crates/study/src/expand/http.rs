//! Reads the keys of `[load]` for `protocol = "http"` and `"https"`, and `[[load.request]]`.

use std::collections::{BTreeMap, BTreeSet};

use config::{Invalid, NamedText, Node, Value};

use crate::grpc;
use crate::keys::allowed_words::{CONNECTIONS, GRPC_MESSAGES, HTTP_VERSIONS};
use crate::keys::load_keys;
use crate::plan::{BodyPlan, HttpPlan, HttpRequestPlan};
use crate::request_values::{self, with_names};
use crate::section_at_design_point::Section;
use crate::spec::{ClientCertificate, Connection, Expect, Http2Settings, HttpRequest, Protocol, Tls};
use crate::validate_http;

type Values = BTreeMap<String, String>;

const REQUESTS_MAX: usize = 1000;

/// Reads the requests (`None` unless HTTP), the maximum number in flight per connection, and how
/// long connections are kept.
pub(super) fn read(load: &Section, protocol: Protocol) -> (Option<HttpPlan>, u32, Connection) {
    let is_cache = protocol.dialect().is_some();
    let pipeline = if is_cache || protocol.has_path() { load.small("pipeline").unwrap_or(1) } else { 1 };
    if !protocol.has_path() {
        let own = load_keys("HTTP").chain(load_keys("https:")).filter(|key| !(is_cache && *key == "pipeline"));
        let hint = "it is for `http` and `https`: change `protocol`, or drop it";
        load.refuse(own, &format!("does not apply to protocol `{protocol}`"), hint);
        return (None, pipeline, Connection::KeepAlive);
    }
    let grpc = load.flag("grpc").unwrap_or_default();
    let version = load.choice("http", HTTP_VERSIONS);
    load.rule(grpc && load.has("http") && version == Some(false), "http", "gRPC needs HTTP/2", "drop it");
    let http2 = grpc || version.unwrap_or_default();
    let streams = load.small("streams").unwrap_or(1);
    load.rule(http2 && pipeline > 1, "pipeline", "HTTP/2 has no `pipeline`", "set `streams` instead");
    load.rule(!http2 && streams > 1, "streams", "`streams` needs HTTP/2", "set `http = \"2\"`, or drop it");
    let http2_settings = http2_settings(load, http2);
    let pipeline = if http2 { streams } else { pipeline };
    let mut connection = load.choice("connection", CONNECTIONS).unwrap_or_default();
    if let Some(requests) = load.small("requests_per_connection") {
        let hint = "drop one of the two";
        load.rule(load.has("connection"), "connection", "`requests_per_connection` decides when connections end", hint);
        connection = Connection::Requests(requests);
    }
    let values = named_values(load);
    let mut requests = mix(load, &values, connection);
    if grpc {
        check_grpc(load, &mut requests);
    }
    let expect = Expect { grpc, ..expect(load, &values, &requests) };
    let proto = proto(load, grpc);
    let in_turn = load.choice("messages", GRPC_MESSAGES).unwrap_or_default();
    load.rule(in_turn && !grpc, "messages", "`messages` needs gRPC", "set `grpc = true`, or drop it");
    let tls = tls(load, protocol);
    let http = HttpPlan { requests, tls, http2, http2_settings, expect, proto, in_turn, values };
    (Some(http), pipeline, connection)
}

fn http2_settings(load: &Section, http2: bool) -> Http2Settings {
    let bytes = |key: &str, default: u32| {
        let bytes = load.bytes(key).and_then(|bytes| u32::try_from(bytes).ok());
        load.rule(load.has(key) && !http2, key, format!("`{key}` needs HTTP/2"), "set `http = \"2\"`, or drop it");
        bytes.unwrap_or(default)
    };
    let default = Http2Settings::default();
    Http2Settings {
        stream_window_bytes: bytes("stream_window", default.stream_window_bytes),
        connection_window_bytes: bytes("connection_window", default.connection_window_bytes),
        header_table_bytes: bytes("header_table", default.header_table_bytes),
    }
}

fn proto(load: &Section, grpc: bool) -> Option<String> {
    let proto = load.text("proto")?;
    load.rule(!grpc, "proto", "`proto` needs gRPC", "set `grpc = true`, or drop it");
    let hint = "use `expect_json`";
    let message = "`expect_body` compares encoded messages, but `proto` makes them JSON";
    load.rule(load.has("expect_body"), "expect_body", message, hint);
    Some(proto)
}

/// Makes `POST` the default method of gRPC calls, and checks their paths and messages.
fn check_grpc(load: &Section, requests: &mut [HttpRequestPlan]) {
    for plan in requests {
        if plan.method == "GET" {
            plan.method = "POST".to_owned();
        }
        // A message in a file cannot be checked yet, because the file is read when a trial starts.
        let call = grpc::prepare(without_file(plan));
        load.report.valid(load.place_of("grpc"), call);
    }
}

fn mix(load: &Section, values: &Values, connection: Connection) -> Vec<HttpRequestPlan> {
    if !load.has("request") {
        return vec![request(load, &[], values, connection)];
    }
    let hint = "write it in each request, or drop the requests";
    load.refuse(["path", "method", "body", "body_file"], "cannot be combined with `[[load.request]]`", hint);
    let (common, sections) = (headers(load), load.tables("request", "a request"));
    load.rule(sections.is_empty(), "request", "`load.request` is empty", "begin each request with `[[load.request]]`");
    let message = format!("{} requests, a mix allows at most {REQUESTS_MAX}", sections.len());
    load.rule(sections.len() > REQUESTS_MAX, "request", message, None);
    sections.iter().flatten().take(REQUESTS_MAX).map(|section| request(section, &common, values, connection)).collect()
}

/// Reads a request from `[load]` or `[[load.request]]`. Its own headers override the `common` ones.
fn request(section: &Section, common: &[(String, String)], values: &Values, connection: Connection) -> HttpRequestPlan {
    let own = headers(section);
    let is_own = |name: &str| own.iter().any(|(own, _)| own.eq_ignore_ascii_case(name));
    let common = common.iter().filter(|(name, _)| !is_own(name)).cloned().collect::<Vec<_>>();
    let weight = section.keys.get("weight").and_then(|_| section.small("weight"));
    let method = section.text_as("method", validate_http::method);
    let path = section.text_as("path", validate_http::target);
    let name = section.keys.get("name").and_then(|_| section.text_as("name", validate_http::request_name));
    let plan = HttpRequestPlan {
        name,
        weight: weight.unwrap_or(1),
        method: method.unwrap_or_default(),
        path: with_names(&path.unwrap_or_default(), values),
        headers: [common, own].concat().into_iter().map(|(name, text)| (name, with_names(&text, values))).collect(),
        body: body(section, values),
    };
    check_whole(section, &plan, connection);
    plan
}

fn check_whole(section: &Section, plan: &HttpRequestPlan, connection: Connection) {
    // Errors point at the key or field, or at `headers` if the request inherits the field.
    let mistake = |name: &str, error: Invalid| {
        let fields = section.table.table("headers");
        let field = fields.and_then(|fields| fields.iter().find(|entry| entry.key.eq_ignore_ascii_case(name)));
        let key = if section.has(name) { name } else { "headers" };
        let place = field.map_or_else(|| section.place_of(key), |entry| entry.node.place);
        section.report.invalid(place, error);
    };
    let mut request = without_file(plan);
    // A body file is read later, so its length is unknown here.
    if matches!(plan.body, Some(BodyPlan::File(_)))
        && request.headers.extract_if(.., |(name, _)| name.eq_ignore_ascii_case("Content-Length")).count() > 0
    {
        let error = Invalid::new("`Content-Length` cannot be combined with `body_file`");
        mistake("Content-Length", error.hint("drop it: the correct length is sent"));
    }
    let to_close = "for one connection per request, set `connection = \"per-request\"`";
    let mistakes = validate_http::mistakes(&request, connection, to_close);
    mistakes.into_iter().for_each(|(field, error)| mistake(field, error));
}

/// The request of a plan, without the content of its body file.
fn without_file(plan: &HttpRequestPlan) -> HttpRequest {
    let HttpRequestPlan { weight, method, path: target, headers, body, .. } = plan.clone();
    let body = if let Some(BodyPlan::Text(text)) = body { text.into_bytes() } else { Vec::new() };
    HttpRequest { weight, method, target, headers, body, name: None }
}

fn named_values(load: &Section) -> Values {
    let Some(table) = load.section("values") else { return Values::new() };
    let form = |name: &str| table.text_as(name, |form| request_values::check_named(name, form)).unwrap_or_default();
    table.table.keys().map(|name| (name.to_owned(), form(name))).collect()
}

fn headers(section: &Section) -> Vec<(String, String)> {
    let mut all = Vec::<(String, String)>::new();
    for NamedText { name, name_place, text, place } in section.named_texts("headers") {
        let Some(name) = section.report.valid(name_place, validate_http::field_name(&name)) else { continue };
        let is_known = all.iter().any(|(known, _)| known.eq_ignore_ascii_case(&name));
        section.report.rule(is_known, name_place, format!("duplicate header `{name}`"), None);
        let value = section.report.valid(place, validate_http::field_value(&name, &text));
        all.extend(value.filter(|_| !is_known).map(|value| (name, value)));
    }
    all
}

fn body(section: &Section, values: &Values) -> Option<BodyPlan> {
    let message = format!("`{}` has both `body` and `body_file`, only one is allowed", section.name);
    section.rule(section.has("body") && section.has("body_file"), "body_file", message, None);
    if section.has("body_file") {
        let file = section.text("body_file")?;
        section.rule(file.trim().is_empty(), "body_file", "`body_file` is empty", None);
        return Some(BodyPlan::File(file));
    }
    let text = section.text("body").filter(|text| !text.is_empty())?;
    Some(BodyPlan::Text(with_names(&text, values)))
}

pub(super) fn trust(load: &Section) -> (bool, Option<String>) {
    let (insecure, ca_file) = (load.flag("insecure").unwrap_or_default(), load.text("ca_file"));
    let hint = "drop one of the two";
    let message = "`insecure` accepts any certificate, so `ca_file` has no effect";
    load.rule(insecure && load.has("ca_file"), "ca_file", message, hint);
    (insecure, ca_file)
}

/// Reads `cert_file` and `key_file`. One file may contain both, as curl's `--cert` allows.
pub(super) fn client_certificate(load: &Section) -> Option<ClientCertificate> {
    let hint = "add `cert_file`, or drop it";
    let message = "`key_file` needs the certificate of the key";
    load.rule(load.has("key_file") && !load.has("cert_file"), "key_file", message, hint);
    let cert_file = load.text("cert_file")?;
    let key_file = load.text("key_file").unwrap_or_else(|| cert_file.clone());
    Some(ClientCertificate { cert_file, key_file })
}

fn tls(load: &Section, protocol: Protocol) -> Option<Tls> {
    if protocol != Protocol::Https {
        load.refuse(load_keys("https:"), "needs `https`", "set `protocol = \"https\"`, or drop it");
        return None;
    }
    let (insecure, ca_file) = trust(load);
    let server_name = load.text("server_name").unwrap_or_default();
    let client = client_certificate(load);
    Some(Tls { server_name, insecure, ca_file, client, resume: load.flag("resume").unwrap_or_default() })
}

fn expect(load: &Section, values: &Values, requests: &[HttpRequestPlan]) -> Expect {
    if requests.iter().any(|request| request.method == "HEAD") {
        let of_bodies = ["expect_body", "expect_json", "expect_matches", "expect_length"];
        load.refuse(of_bodies, "does not apply: the response to `HEAD` has no body", "drop it, or use `GET`");
    }
    let json = load.section("expect_json").map_or_else(Vec::new, |paths| {
        let keys = paths.table.keys().map(str::to_owned).collect::<Vec<_>>();
        let value = |path: String| Some((paths.text_as(&path, |text| validate_http::json_check(&path, text))?, path));
        keys.into_iter().filter_map(value).map(|(text, path)| (path, with_names(&text, values))).collect()
    });
    let body = load.text("expect_body").map(|text| with_names(&text, values).into_bytes());
    let matches = load.text_as("expect_matches", validate_http::regex);
    let length = load.text_as("expect_length", validate_http::length_range);
    let check_one_in = load.fraction("check").filter(|share| *share < 1.0).map_or(0, validate_http::one_in);
    Expect { status: statuses(load), body, json, matches, length, check_one_in, grpc: false, grpc_schema: None }
}

fn statuses(load: &Section) -> Option<Vec<u16>> {
    let node = &load.table.get("expect_status")?.node;
    if let Value::Text(_) = &node.value {
        return load.text_as("expect_status", validate_http::statuses);
    }
    let items = if let Value::List(items) = &node.value { items.as_slice() } else { std::slice::from_ref(node) };
    load.rule(items.is_empty(), "expect_status", "`load.expect_status` is empty", "drop it to accept 200 to 299");
    let read = |item: &Node| match &item.value {
        Value::Integer(status) => validate_http::statuses(&status.to_string()),
        Value::Text(text) => validate_http::statuses(text),
        other => Err(Invalid::new(format!("a status must be a number such as `200`, not {}", other.kind()))),
    };
    let read = |item: &Node| load.report.valid(item.place, read(item));
    let all = items.iter().filter_map(read).flatten().collect::<BTreeSet<_>>();
    Some(all.into_iter().collect())
}
