//! Tests the report and the blame for messages that break the declared types of an operation.

use crate::adapters_in_memory::{World, ask, settings};
use contract::monitor::report::{Kind, ReportVerdict};
use contract::monitor::{Call, MemoryStore, Monitor, Outcome};
use contract::{Field, MessageValue, Schema, Signature, Type, Value, check};
use serde_json::{Value as Json, json};

fn replied(of: &str, result: Json) -> String {
    let mut world = World::of_text(&format!("contract 1 service S {{ f(a: int) -> {of}; }}"));
    world.adapter("client", "client");
    world.configure("client", "s:1", "S", &["server"], None);
    let reports = world.call(&ask("client", "s:1", "f", json!([1]), result)).reports;
    for report in &reports {
        assert_eq!((report.kind, report.found), (Kind::Postcondition, ReportVerdict::Fails), "{report}");
        assert_eq!((report.blamed.as_slice(), report.clause.as_str()), (&["server".to_owned()][..], "S.f.type.reply"));
    }
    reports.into_iter().map(|report| report.reason.unwrap()).collect::<Vec<_>>().join("; ")
}

#[track_caller]
fn check_reply(of: &str, result: Json, expect: &str) {
    assert_eq!(replied(of, result.clone()), expect, "{of} {result}");
}

#[test]
fn matching_types_are_not_reported() {
    for (of, result) in [
        ("any", json!([1, "x"])),
        ("int", json!(1)),
        ("int", json!(1.0)),
        ("float", json!(3)),
        ("float", json!(0.5)),
        ("text", json!("x")),
        ("bytes", json!("eA==")),
        ("list<any>", json!([1, "x", null])),
        ("map<text, int>", json!({"a": 1})),
        ("{a: int, b?: text}", json!({"a": 1})),
        ("{a: int, b?: text}", json!({"a": 1, "b": null})),
        ("{a: int}", json!({"a": 1, "more": "than is declared"})),
        ("list<{a: list<int>}>", json!([{"a": []}, {"a": [1]}])),
    ] {
        check_reply(of, result, "");
    }
}

#[test]
fn mismatches_are_reported_with_their_path() {
    check_reply("int", json!("1"), "`result` is text, must be an int");
    check_reply("int", json!(1.5), "`result` is a float, must be an int");
    check_reply("bool", json!(0), "`result` is an int, must be a bool");
    check_reply("{a: int}", json!([]), "`result` is a list, must be a record");
    check_reply("list<int>", json!({}), "`result` is a map or record, must be a list");
    check_reply("{a: int}", json!({}), "`result.a` is missing, must be an int");
    check_reply("{a: int}", json!({"a": null}), "`result.a` is missing, must be an int");
    check_reply("{a?: int}", json!({"a": "x"}), "`result.a` is text, must be an int");
    check_reply(
        "list<{b: {c: text}}>",
        json!([{"b": {"c": "x"}}, {"b": {"c": 7}}]),
        "`result[1].b.c` is an int, must be text",
    );
    check_reply("list<text>", json!(["x", null]), "`result[1]` is nothing, must be text");
    check_reply("map<text, int>", json!({"a": 1, "b": []}), "`result[...]` is a list, must be an int");
}

#[test]
fn mistyped_request_blames_the_sender() {
    let mut world = World::of_text("contract 1 service S { f(a: {n: int}) { requires few: a.n < 5 } }");
    world.adapter("server", "server");
    world.configure("server", "s:1", "S", &["server"], None);
    let mut asked = ask("nobody", "s:1", "f", json!([{"n": "many"}]), json!(null));
    (asked.client, asked.public) = (None, Some("server"));
    let reports = world.call(&asked).reports;
    assert_eq!((reports[0].kind, reports[0].found), (Kind::Precondition, ReportVerdict::Fails));
    assert_eq!(
        (reports[0].blamed.as_slice(), reports[0].clause.as_str()),
        (&["unknown".to_owned()][..], "S.f.type.request")
    );
    let told = reports[0].to_string();
    let first = told.lines().next().unwrap();
    assert_eq!(
        first,
        "[Whip] Contract Failure: Failed precondition for RPC f ((a: a record)): `a.n` is text, must be an int"
    );
    assert!(told.contains("Blaming: unknown (precondition failure)"), "{told}");
}

#[test]
fn untyped_operations_are_not_checked() {
    let mut world = World::of_text("contract 1 service S { f(a: int) -> int { untyped ensures some: result != 0 } }");
    world.adapter("client", "client");
    world.configure("client", "s:1", "S", &["server"], None);
    let reports = world.call(&ask("client", "s:1", "f", json!(["x"]), json!("y"))).reports;
    assert!(reports.iter().all(|report| report.found != ReportVerdict::Fails), "{reports:?}");
}

fn one(text: &str, schema: Option<&Schema>, operation: &str, result: MessageValue<'_>) -> Vec<(ReportVerdict, String)> {
    let contract = std::sync::Arc::new(check(text, schema).contract.unwrap());
    let service = contract.service("S").unwrap();
    let operation = contract.operation(service, operation).unwrap();
    let mut monitor = Monitor::new(contract, settings("client"), MemoryStore::new(1 << 20, None), 0);
    monitor.configure("s:1", service, &["server"], None, 0);
    let call = Call { endpoint: "s:1", operation, args: &[] };
    let ticket = monitor.request_sent(call, 0).ticket.unwrap();
    let stepped = monitor.reply_received(call, ticket, Outcome { value: result.value(), is_error: false }, None, 0);
    stepped.reports.into_iter().map(|report| (report.found, report.reason.unwrap_or_default())).collect()
}

#[test]
fn http_type_applies_to_bodies_of_successful_replies() {
    const TEXT: &str = "contract 1 service S { GET \"/\"() -> {a: int}; }";
    let http_of = |text: &str, code: i64, body: MessageValue<'static>| {
        let headers = MessageValue::record([("x", Value::Int(code).into())]);
        let result = [("code", Value::Int(code).into()), ("headers", headers), ("body", body)];
        one(text, None, "GET /", MessageValue::record(result))
    };
    let http = |code, body| http_of(TEXT, code, body);
    let fails = |why: &str| vec![(ReportVerdict::Fails, format!("`result.body` is {why}"))];
    assert_eq!(
        http(200, MessageValue::malformed("not valid JSON: expected value")),
        fails("not valid JSON: expected value")
    );
    assert_eq!(http(200, MessageValue::List(Vec::new())), fails("a list, must be a record"));
    assert_eq!(http(201, Value::Missing.into()), fails("missing, must be a record"));
    assert_eq!(
        http(200, Value::Opaque.into()),
        [(ReportVerdict::Unknown, "something in it could not be decoded".to_owned())]
    );
    for code in [204, 205, 206, 304, 404, 500] {
        assert_eq!(http(code, MessageValue::malformed("not valid JSON")), [], "{code}");
    }
    for of in ["text", "bytes"] {
        let text = TEXT.replace("{a: int}", of);
        assert_eq!(http_of(&text, 200, MessageValue::malformed("not valid JSON")), [], "{of}");
    }
}

#[test]
fn schema_types_apply_without_declared_types() {
    let open = |name: &str| Field { required: false, ..Field::new(name, Type::Int) };
    let mut schema = Schema::default();
    let fields = vec![Field::new("a", Type::Int), open("b"), Field::optional("next", Type::Named("Node".to_owned()))];
    schema.types.insert("Node".to_owned(), fields);
    let signature = Signature { params: Vec::new(), result: Some(Type::Named("Node".to_owned())) };
    schema.services.insert("S".to_owned(), [("f".to_owned(), signature)].into());
    let told = |text: &str, name: &'static str| {
        let inner = MessageValue::record([(name, Value::Int(1).into())]);
        let node = MessageValue::record([("a", Value::Int(1).into()), ("next", inner)]);
        one(text, Some(&schema), "f", node)
    };
    assert_eq!(told("contract 1 service S { f(); }", "a"), []);
    let missing = "`result.next.a` is missing, must be an int".to_owned();
    assert_eq!(told("contract 1 service S { f(); }", "b"), [(ReportVerdict::Fails, missing)]);
    assert_eq!(told("contract 1 service S { f() -> any; }", "b"), [], "the contract decides");
}
