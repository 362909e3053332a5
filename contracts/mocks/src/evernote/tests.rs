//! Compares the results of encoded calls with the table in the case study.

use super::*;

const URL: &str = "https://127.0.0.1:9444/";

/// Calls a method and describes its result, its exception or any other reply.
fn call(service: &Evernote, method: &str, arguments: Value, protocol: Protocol) -> String {
    let schema = &service.schema;
    let called = schema.service(service.service).unwrap().method(method).unwrap();
    let header = Header { name: method, kind: MessageKind::Call, sequence: 7, is_strict: true };
    let body = compose_message(protocol, Framing::Unframed, &header, schema, called.arguments, &arguments).unwrap();
    let target = if service.service == USER_STORE { "//edam/user" } else { "/" };
    let request = hyper::Request::builder().method("POST").uri(target).body(body.into()).unwrap();
    let answer = service.answer(&request);
    assert!(answer.status() == 200 && answer.headers()["content-type"] == "application/x-thrift", "{answer:?}");
    let reply = Message::decode(protocol, answer.body(), &Limits::DEFAULT).unwrap();
    assert_eq!((reply.header.name, reply.header.sequence), (method, 7));
    match reply.outcome(schema, called) {
        thrift::Outcome::Returned(value) => codecs::json::compose(&value.unwrap().to_value()),
        thrift::Outcome::Threw(name, value) => format!("{name} {}", codecs::json::compose(&value.to_value())),
        thrift::Outcome::Failed { message, code } => format!("failed {code}: {}", String::from_utf8_lossy(message)),
        thrift::Outcome::Missing => "missing".to_owned(),
    }
}

fn notes(profile: Profile, method: &str, arguments: Value) -> String {
    let service = Evernote::notes(profile, URL.to_owned());
    let binary = call(&service, method, arguments.clone(), Protocol::Binary);
    assert_eq!(call(&service, method, arguments, Protocol::Compact), binary);
    binary
}

fn token(text: &str) -> (&'static str, Value) {
    ("authenticationToken", text.into())
}

fn find(token_text: &str, notebook: &str, offset: i64, most: i64) -> Value {
    let filter = Value::record([("notebookGuid", notebook.into())]);
    let (offset, most) = (Value::Integer(offset), Value::Integer(most));
    Value::record([token(token_text), ("filter", filter), ("offset", offset), ("maxNotes", most)])
}

#[test]
fn account_returns_the_notes_url() {
    let user = Evernote::user(URL.to_owned());
    let ask = |method: &str, arguments: Value| call(&user, method, arguments, Protocol::Binary);
    assert_eq!(ask("getNoteStoreUrl", Value::record([token("t")])), format!("\"{URL}\""));
    assert_eq!(ask("getUser", Value::record([token("t")])), r#"{"id":1,"username":"quintain"}"#);
    let thrown = r#"userException {"errorCode":5,"parameter":"authenticationToken"}"#;
    assert_eq!(ask("getNoteStoreUrl", Value::record([token("")])), thrown);
    assert_eq!(ask("getNoteStoreUrl", Value::record([])), thrown);
}

#[test]
fn notes_are_shared_as_in_the_case_study() {
    let with = |fields: &[(&'static str, Value)]| Value::record(fields.iter().cloned());
    for (method, arguments, expected) in [
        (
            "listLinkedNotebooks",
            with(&[token("t")]),
            r#"[{"shareKey":"asd","guid":"guid00","noteStoreUrl":"https://127.0.0.1:9444/"}]"#,
        ),
        (
            "authenticateToSharedNotebook",
            with(&[("shareKey", "asd".into()), token("t")]),
            r#"{"currentTime":1494547200000,"authenticationToken":"temp10","expiration":1494550800000}"#,
        ),
        (
            "authenticateToSharedNotebook",
            with(&[("shareKey", "other".into()), token("t")]),
            r#"notFoundException {"identifier":"SharedNotebook.shareKey","key":"other"}"#,
        ),
        ("getSharedNotebookByAuth", with(&[token("temp10")]), r#"{"notebookGuid":"guid10"}"#),
        (
            "findNotes",
            find("temp10", "guid10", 0, 10),
            r#"{"startIndex":0,"totalNotes":1,"notes":[{"guid":"guid20","title":"test"}]}"#,
        ),
        ("findNotes", find("temp10", "guid10", 1, 10), r#"{"startIndex":1,"totalNotes":1,"notes":[]}"#),
        ("findNotes", find("temp10", "guid10", 0, 0), r#"{"startIndex":0,"totalNotes":1,"notes":[]}"#),
        ("findNotes", find("temp10", "guid10", -1, 10), r#"userException {"errorCode":2,"parameter":"offset"}"#),
        (
            "findNotes",
            find("temp10", "other", 0, 10),
            r#"notFoundException {"identifier":"NoteFilter.notebookGuid","key":"other"}"#,
        ),
        ("listNotebooks", with(&[token("t")]), r#"[{"guid":"guid0","name":"notes","defaultNotebook":true}]"#),
    ] {
        assert_eq!(notes(Profile::Shipped, method, arguments), expected, "{method}");
    }
}

#[test]
fn paper_profile_has_separate_keys_per_token() {
    let service = Evernote::notes(Profile::Paper, URL.to_owned());
    let linked = |text: &str| notes(Profile::Paper, "listLinkedNotebooks", Value::record([token(text)]));
    assert_ne!(linked("a"), linked("b"));
    assert_eq!(linked("a"), linked("a"));
    let key = service.share_key("a");
    let shared = service.shared_token(&key);
    let arguments = Value::record([("shareKey", key.as_str().into()), token("a")]);
    assert!(notes(Profile::Paper, "authenticateToSharedNotebook", arguments).contains(&shared));
    let notebook = service.notebook(&shared);
    for id in [&notebook, &uuid(4, "x")] {
        let parts = id.split('-').map(str::len).collect::<Vec<_>>();
        assert_eq!(parts, [8, 4, 4, 4, 12]);
        assert!(id.as_bytes()[14] == b'4' && b"89ab".contains(&id.as_bytes()[19]), "{id} is of version 4");
    }
    let found = notes(Profile::Paper, "findNotes", find(&shared, &notebook, 0, 10));
    assert!(found.contains("\"mime\":\"image/png\"") && found.contains(&notebook), "{found}");
    let arguments = Value::record([("shareKey", "asd".into()), token("a")]);
    assert!(notes(Profile::Paper, "authenticateToSharedNotebook", arguments).starts_with("notFoundException"));
}

#[test]
fn invalid_messages_return_errors() {
    let user = Evernote::user(URL.to_owned());
    let answer = |method: &str, target: &str, body: &[u8]| {
        user.answer(&hyper::Request::builder().method(method).uri(target).body(body.to_vec().into()).unwrap())
    };
    assert_eq!(answer("GET", "/edam/user", b"").status(), 405);
    assert_eq!(answer("POST", "/", b"").status(), 404);
    for body in
        [&b""[..], b"GET / HTTP/1.1", b"\x80\x01\x00\x01\x7f\xff\xff\xff", b"\x80\x01\x00\x01", b"\0\0\0\x05hello"]
    {
        assert_eq!(answer("POST", "/edam/user", body).status(), 400, "{body:?}");
    }
    let schema = &user.schema;
    let method = &schema.service(USER_STORE).unwrap().methods[0];
    for (name, kind, why) in [
        ("nothing", MessageKind::Call, "unknown method `nothing`"),
        (method.name.as_str(), MessageKind::Reply, "the message is not a call"),
    ] {
        let header = Header { name, kind, sequence: 1, is_strict: true };
        let arguments = Value::record([token("t")]);
        let body = compose_message(Protocol::Binary, Framing::Unframed, &header, schema, method.arguments, &arguments)
            .unwrap();
        let answer = answer("POST", "/edam/user", &body);
        let reply = Message::decode(Protocol::Binary, answer.body(), &Limits::DEFAULT).unwrap();
        assert_eq!(reply.header.kind, MessageKind::Exception);
        let thrift::Outcome::Failed { message, .. } = reply.outcome(schema, method) else { panic!("{name}") };
        assert_eq!(String::from_utf8_lossy(message), why);
    }
}
