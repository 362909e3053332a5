//! Tables of every construct and error of the language, with the expected result.

use contract::monitor::report::Kind;
use contract::{Env, MessageValue, STEPS_MAX, Scratch, Value, check};

fn message_value(json: &serde_json::Value) -> MessageValue<'static> {
    match json {
        serde_json::Value::Null => Value::Missing.into(),
        serde_json::Value::Bool(value) => Value::Bool(*value).into(),
        serde_json::Value::Number(number) => match number.as_i64() {
            Some(number) => Value::Int(number).into(),
            None => Value::Float(number.as_f64().unwrap()).into(),
        },
        serde_json::Value::String(text) if text == "<opaque>" => Value::Opaque.into(),
        serde_json::Value::String(text) => match text.strip_prefix("bytes:") {
            Some(bytes) => MessageValue::Bytes(bytes.as_bytes().to_vec().into()),
            None => MessageValue::text(text.clone()),
        },
        serde_json::Value::Array(items) => MessageValue::List(items.iter().map(message_value).collect()),
        serde_json::Value::Object(fields) => {
            MessageValue::record(fields.iter().map(|(name, value)| (name.clone(), message_value(value))))
        }
    }
}

fn message() -> serde_json::Value {
    serde_json::json!({
        "one": 1, "big": i64::MAX, "half": 0.5, "yes": true, "name": "Ann", "empty": "", "null": null, "bytes": "bytes:ab",
        "list": [1, 2, 3], "users": [{"id": 1, "n": "a"}, {"id": 2}], "map": {"k": "v", "7": 8}, "odd": "<opaque>",
        "nested": {"a": {"b": [10, 20]}}, "copy": {"a": {"b": [10, 20]}},
    })
}

/// Returns the verdict on `requires EXPRESSION`. The parameter `m` is the message and may have any type.
fn verdict(expression: &str, steps: u64) -> String {
    let text = format!("contract 1 service S {{ f(m) {{ requires {expression} }} }}");
    let checked = check(&text, None);
    let Some(contract) = checked.contract else {
        return checked
            .findings
            .iter()
            .map(|finding| format!("mistake: {}", finding.message))
            .collect::<Vec<_>>()
            .join("; ");
    };
    let operation = contract.operation(contract.service("S").unwrap(), "f").unwrap();
    let message = message_value(&message());
    let args = [message.value()];
    let env = Env { args: &args, outcome: Value::Missing, receiver: "host:1", steps_max: steps };
    let clause = contract.clauses(operation, Kind::Precondition).next().unwrap();
    let stop = |stop: contract::Stop| format!("`{}` {}", &text[stop.span.range()], stop.why);
    match clause.judge(env, &mut Scratch::default()) {
        Ok(true) => "holds".to_owned(),
        Ok(false) => "fails".to_owned(),
        Err(why) if why.why.is_unknown() => format!("unknown: {}", stop(why)),
        Err(why) => format!("error: {}", stop(why)),
    }
}

fn table(rows: &[(&str, &str)]) {
    let wrong = rows.iter().filter_map(|(expression, expected)| {
        let found = verdict(expression, STEPS_MAX);
        (found != *expected).then(|| format!("{expression}\n   is: {found}\n not: {expected}"))
    });
    let wrong = wrong.collect::<Vec<_>>();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

fn hold(expressions: &[&str]) {
    table(&expressions.iter().map(|expression| (*expression, "holds")).collect::<Vec<_>>());
}

#[test]
fn comparisons_and_arithmetic() {
    hold(&[
        "m.one == 1",
        "m.one != 2",
        "m.one < 2",
        "m.one <= 1",
        "m.one > 0",
        "m.one >= 1",
        "1 < 1.5",
        "m.half < 1",
        "1.0 == 1",
        "m.big > 9.2e18",
        "m.big < 9.3e18",
        "9007199254740993 > 9007199254740992.0",
        "1 + 2 * 3 == 7",
        "(1 + 2) * 3 == 9",
        "7 / 2 == 3",
        "-7 / 2 == -3",
        "-7 % 3 == -1",
        "7.0 / 2 == 3.5",
        "1 - 2 - 3 == -4",
        "\"a\" + 'b' == \"ab\"",
        "\"a\" < \"b\"",
        "[1] + [2, 3] == m.list",
        "m.nested == m.copy",
        "m.bytes == m.bytes",
        "-m.one == -1",
        "!(m.one == 2)",
        "(1, 2) == (1, 2)",
        "(1, 2) != (1, 3)",
        "m.list != [1, 2]",
        "m.list != 1",
        "m.users[0] != m.users[1]",
        "m.name != m.one",
    ]);
    table(&[
        ("m.one == 2", "fails"),
        ("m.big + 1 > 0", "error: `m.big + 1` the number does not fit in 64 bits"),
        ("-m.big - 2 < 0", "error: `-m.big - 2` the number does not fit in 64 bits"),
        ("m.one / (m.one - 1) == 1", "error: `m.one / (m.one - 1)` division by zero"),
        ("m.one % 0 == 1", "error: `m.one % 0` division by zero"),
        ("m.name < m.one", "error: `m.one` expected text, found an int"),
        ("m.name + m.one == \"\"", "error: `m.one` expected text, found an int"),
        ("m.yes < m.yes", "error: `m.yes` expected a number or text, found a bool"),
    ]);
}

#[test]
fn three_values() {
    table(&[
        ("m.gone == 1", "unknown: `m.gone` missing from the message"),
        ("m.null == 1", "unknown: `m.null` missing from the message"),
        ("m.gone.deeper == 1", "unknown: `m.gone` missing from the message"),
        ("m.odd == 1", "unknown: `m.odd` it could not be decoded"),
        ("!(m.gone == 1)", "unknown: `m.gone` missing from the message"),
        ("m.gone == 1 && false", "fails"),
        ("false && m.gone == 1", "fails"),
        ("m.gone == 1 || true", "holds"),
        ("m.one / 0 == 1 || true", "holds"),
        ("m.gone == 1 && true", "unknown: `m.gone` missing from the message"),
        ("m.gone == 1 || false", "unknown: `m.gone` missing from the message"),
        ("m.gone ? true : true", "unknown: `m.gone` missing from the message"),
        ("m.one ? true : true", "error: `m.one` expected a bool, found an int"),
        ("all(u in m.users : u.n == \"a\")", "unknown: `u.n` missing from the message"),
        ("all(u in m.users : u.id == 9 || u.n == \"a\")", "unknown: `u.n` missing from the message"),
        ("all(u in m.users : u.id == 2 && u.n == \"a\")", "fails"),
        ("any(u in m.users : u.n == \"a\")", "holds"),
        ("any(u in m.users : u.n == \"b\")", "unknown: `u.n` missing from the message"),
        ("count(u in m.users : u.n == \"a\") == 1", "unknown: `u.n` missing from the message"),
        ("has(m.gone.deeper) || m.one == 1", "holds"),
        ("has(m.one.deeper)", "error: `m.one` expected a map or record, found an int"),
    ]);
}

#[test]
fn access_and_loops() {
    hold(&[
        "m.nested.a.b[1] == 20",
        "m[\"one\"] == 1",
        "m.map.k == \"v\"",
        "m.map[\"7\"] == 8",
        "has(m.one)",
        "!has(m.gone)",
        "!has(m.null)",
        "!has(m.gone.x.y)",
        "get(m, \"gone\", 5) == 5",
        "get(m.map, \"k\", \"\") == \"v\"",
        "2 in m.list",
        "!(4 in m.list)",
        "\"k\" in m.map",
        "all(x in m.list : x > 0)",
        "any(x in m.list : x == 3)",
        "count(x in m.list : x > 1) == 2",
        "all(x in [] : false)",
        "!any(x in [] : true)",
        "all(k in m.map : len(k) == 1)",
        "let x = m.one; x + x == 2",
        "let x = 1; let y = 2; (x, y)[1] == 2",
        "m.yes ? m.one == 1 : false",
        "all(u in m.users : any(x in m.list : x == u.id))",
        "receiver == \"host:1\"",
        "let x = 1; (let x = 2; x == 2) && x == 1",
    ]);
    table(&[
        ("m.list[3] == 1", "error: `m.list[3]` index out of range"),
        ("m.list[-1] == 1", "error: `m.list[-1]` index out of range"),
        ("m.one.x == 1", "error: `m.one` expected a map or record, found an int"),
        ("m.one in m.one", "error: `m.one` expected a list, found an int"),
    ]);
}

#[test]
fn functions() {
    hold(&[
        "len(m.list) == 3",
        "len(\"äö\") == 2",
        "len(m.bytes) == 2",
        "len(m.map) == 2",
        "len(m.empty) == 0",
        "int(\"12\") == 12",
        "int(1.9) == 1",
        "int(-1.9) == -1",
        "float(\"0.5\") == m.half",
        "float(2) == 2.0",
        "text(1) == \"1\"",
        "text(m.name) == \"Ann\"",
        "text((17, false, 2)) == \"(17, False, 2)\"",
        "text((1,)) == \"(1,)\"",
        "text(()) == \"()\"",
        "text((\"it's\", 'a\"b', 0.5, true)) == '(\"it\\'s\", \\'a\"b\\', 0.5, True)'",
        "text(m.list) == \"[1, 2, 3]\"",
        "text(m.bytes) == \"b'ab'\"",
        "text(m.nested) == \"{'a': {'b': [10, 20]}}\"",
        "min(3, m.one, 2) == 1",
        "max(m.half, 1) == 1",
        "max(1, 2.5) == 2.5",
        "is_list(m.list)",
        "!is_list(m.map)",
        "is_map(m.map)",
        "is_text(m.name)",
        "is_int(m.one)",
        "!is_int(m.half)",
        "contains(m.name, \"nn\")",
        "starts_with(m.name, \"A\")",
        "ends_with(m.name, \"n\")",
        "lower(\"ÄB\") == \"äb\"",
        "matches(m.name, \"^[A-Z][a-z]+$\")",
        "split(\"1. e4 d5 2. d4 *\", \"[0-9]+\\\\. \") == [\"\", \"e4 d5 \", \"d4 *\"]",
        "len(split(\"*\", \"[0-9]+\\\\. \")) == 1",
        "uuid4(\"f47ac10b-58cc-4372-a567-0e02b2c3d479\")",
        "rfc822_date(\"Thu Jan 18 00:10:45 +0000 2007\")",
        "rfc3339(\"2007-01-18T00:10:45Z\")",
        "time_ms(\"1970-01-01T00:00:01\") == 1000",
        "pgn_valid(\"1. e4 *\")",
        "mime_valid(\"image/png\")",
        "url_host(\"https://u@h:1/p\") == \"h\"",
        "query_param(\"http://h/?a=1\", \"a\") == \"1\"",
        "!has(query_param(\"http://h/?a=1\", \"b\"))",
    ]);
    table(&[
        ("int(m.name) == 1", "error: `int(m.name)` the text is not a whole number"),
        ("int(1e300) == 1", "error: `int(1e300)` the number does not fit in 64 bits"),
        ("float(\"inf\") == 1", "error: `float(\"inf\")` the text is not a number"),
        ("time_ms(m.name) == 1", "error: `time_ms(m.name)` the text is not a time in RFC 3339 format"),
        ("url_host(m.name) == \"\"", "error: `url_host(m.name)` the text is not a URL with a host"),
        ("len(m.one) == 1", "error: `m.one` expected text, bytes, a list or a map, found an int"),
        ("max(m.name, m.one) == 1", "error: `m.name` expected a number, found text"),
    ]);
}

#[test]
fn expensive_expressions_stop_at_the_step_limit() {
    let list = format!("[{}]", (0..60).map(|_| "1").collect::<Vec<_>>().join(", "));
    let mut nested = "true".to_owned();
    for depth in 0..8 {
        nested = format!("all(x{depth} in {list} : {nested})");
    }
    assert!(verdict(&nested, STEPS_MAX).ends_with("step limit exceeded"));
    let mut doubled = "\"0123456789012345\"".to_owned();
    for depth in 0..40 {
        doubled = format!("let t{depth} = {doubled}; t{depth} + t{depth}");
        // Each variable's value is the whole previous expression, so each level doubles the string.
    }
    let found = verdict(&format!("len(({doubled})) > 0"), STEPS_MAX);
    assert!(found.ends_with("step limit exceeded"), "{found}");
    assert_eq!(verdict("m.one == 1", 5), "holds");
    assert!(verdict("m.one == 1", 4).starts_with("error"));
}

fn findings(text: &str) -> String {
    let checked = check(text, None);
    assert_eq!(checked.contract.is_none(), checked.findings.iter().any(|f| f.severity == contract::Severity::Mistake));
    contract::to_text("c", &checked.findings)
}

#[test]
fn all_mistakes_at_once() {
    let text = r#"contract 1
service A {
    f(a: int, b: txet, a) -> {x: int} {
        requires a > "1"
        requires result.x == 1
        requires a & b
        ensures w: result.y == 1
        ensures w: len(a) > 0
        ensures nothing == 1
        ensures a < 1 < 2
        ensures lenn("a") == 1
        ensures len("a", "b") == 1
        ensures a
        enshures true
        reply identifies Bee at 1 index result for x in a
        index a
        index a
        on_error error.kind == "x" && result == 1
        requires all(result in [1] : true)
        ensures matches("a", "(") || matches("a", text(1))
        ensures a.b == 1 || "x" in "y" || -"a" == 1 || "a" + 1 == 2 || (a == 1 ? 1 : "b") == 1
    }
    f();
    "/path"();
    GET "/{id}/{"(id); GET "/{id}"(id, bdy);
}
service A { g() { requires true
"#;
    insta::assert_snapshot!(findings(text));
}

#[test]
fn broken_files() {
    let mut all = String::new();
    for text in [
        "",
        "service A {}",
        "contract 2",
        "contract 1 sevrice A { }",
        "contract 1 schema x",
        "contract 1 service A { f( } g() { requires } h() { index 1 ; requires not a } i() -> list<int { } }",
        "contract 1 service A { f() requires true }",
        "contract 1 service A { f() { requires (1 + } } service B { f() { ensures [1, 2 } }",
        "contract 1 service A { f(list: list<{a: int b: int}>) { requires all(x of list : true) } }",
        "contract 1 service A { f() { requires 1 = 1 requires true and true requires let x 1; true } }",
        "contract 1 service A { f(a: {x: int) { requires a } g(b { ensures b } h() -> {x int} { requires c } }",
        "contract 1 service A f() { reply identifies B at 'a:1' } } service B { g() { reply identifies A at 'a:1' } }",
    ] {
        all += &format!("{text:?}\n{}\n", findings(text));
    }
    insta::assert_snapshot!(all);
}

#[test]
fn unclosed_text_is_reported_once() {
    for text in [
        "contract 1 service A { f(a: text) { requires a == \"x } }",
        "contract 1 service A { f(a: text) { requires a == 'x\n ensures result == 1 } }",
        "contract 1 service A { f(a) { requires contains(a, \"x) && (a == 1\n ensures result == 1 } g(); }",
        "contract 1 service A { f(a) { requires [a, 'x]\n && a == 1\n ensures result == 1 } }",
        "contract 1 service A { f(a: text) { requires a's == 1\n ensures result == 1 } }",
        "contract 1 service A { GET \"/users/{id}(id) {\n requires id == '1' } POST \"/\"(body); }",
        "contract 1 service A { f(a: \"text) {\n requires a == 1 } g() { requires true == true } }",
        "contract 1 schema \"a.thrift\nservice A { f(a: int) { requires a == 1 } }",
        "contract 1 service A { f(a) { reply identifies B at \"x index a for b in a\n} } service B { g() { index 'x' + 'y' } }",
        "contract 1 service A { f(a) { reply identifies B at a } }\nservice B \" { g(); }\nservice C { h(); }",
        "contract 1 service A { f(a) { index 'x\\\n requires a == 1 } }",
    ] {
        let found = findings(text);
        let mistakes = found.lines().filter(|line| line.contains(": error: ")).collect::<Vec<_>>();
        assert!(mistakes.len() == 1 && mistakes[0].ends_with("[text]"), "{text}\n{found}");
        let with_another = format!("{text}\nservice Z {{ z() {{ requires nobody == 1 }} }}");
        let found = findings(&with_another);
        let mistakes = found.lines().filter(|line| line.contains(": error: ")).collect::<Vec<_>>();
        assert!(mistakes.len() == 2 && mistakes[1].contains("`nobody`"), "{with_another}\n{found}");
    }
}

#[test]
fn nesting_and_length_are_limited() {
    let deep = |open: &str, close: &str| {
        let text =
            format!("contract 1 service S {{ f(m) {{ requires {}true{} }} }}", open.repeat(5000), close.repeat(5000));
        let found = findings(&text);
        assert!(found.contains("nests deeper than 64 levels"), "{}", &found[..found.len().min(300)]);
    };
    deep("(", ")");
    deep("!", "");
    deep("- ", "");
    deep("true && ", "");
    deep("[", "]");
    deep("all(x in m : ", ")");
    deep("let x = 1; ", "");
    deep("true ? true : ", "");
    let chain = format!("contract 1 service S {{ f(m) {{ requires m{} }} }}", ".a".repeat(5000));
    assert!(findings(&chain).contains("nests deeper than 64 levels"));
    let types = format!("contract 1 service S {{ f(m: {}int) ; }}", "list<".repeat(5000));
    assert!(findings(&types).contains("nests deeper than 64 levels"));
    assert!(findings(&" ".repeat(contract::TEXT_MAX_BYTES + 1)).contains("at most 1048576 bytes"));
    let many = format!("contract 1 service S {{ f(m) {{ {} }} }}", "requires nobody ".repeat(5000));
    assert_eq!(findings(&many).lines().count(), 2 * 100, "findings are limited");
}
