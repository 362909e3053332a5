//! Parses case files.

use config::{Diagnostic, Invalid, NamedText, Node, Place, Report, Value as Toml, node};
use regex::bytes::{Regex, RegexBuilder};
use serde_json_path::JsonPath;

use super::SPLIT_MAX_BYTES;
use super::keys::{CASES, CONNECTIONS, SPLITS};
use super::template_expressions::{Template, Value, is_name};
use super::{Case, Connection, Cut, Draw, Expect, ExpectHttp, Json, Request, Send, Split, Values, bytes_of_hex};
use crate::validate_http::{self, numeric_statuses};

/// Maximum length of a case file, bytes.
pub const TEXT_MAX_BYTES: usize = 256 * 1024;
const REGEX_MAX_BYTES: usize = 1 << 20;
const OWN_NAMES: [(&str, Value); 2] = [("index", Value::Integer(0)), ("path", Value::Text(String::new()))];
const OF_BODY: [&str; 2] = ["Content-Length", "Transfer-Encoding"];

type Section<'a> = config::Section<'a, ()>;
type Names = [(String, Value)];

/// Parses a case file. Fails with all errors, in the order of the file.
pub fn parse(text: &str) -> Result<Vec<Case>, Vec<Diagnostic>> {
    let report = Report::new("the case file", text, &[]);
    report.check_length("a case file", TEXT_MAX_BYTES)?;
    let root = node::document(text, &report);
    let file = Section::whole(&root, &CASES, (), &report);
    file.check();
    let mut cases = Vec::<Case>::new();
    for section in file.tables("case", "a case").iter().flatten() {
        let case = case(section);
        let is_known = cases.iter().any(|known| known.name == case.name);
        section.rule(is_known, "name", format!("duplicate case `{}`", case.name.escape_debug()), None);
        cases.push(case);
    }
    let hint = "begin one with `[[case]]`";
    report.rule(cases.is_empty() && report.count() == 0, file.place_of("case"), "the case file has no case", hint);
    report.finish()?;
    Ok(cases)
}

fn case(section: &Section) -> Case {
    section.check();
    let name = section.text("name").unwrap_or_default();
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    let is_valid = (1..=60).contains(&name.len()) && name.bytes().all(fits);
    let hint = "use 1 to 60 letters, digits, `-`, `_` and `.`";
    let message = format!("`{}` is not a valid case name", name.escape_debug());
    section.rule(section.has("name") && !is_valid, "name", message, hint);
    let random = random(section);
    let mut names = OWN_NAMES.map(|(name, example)| (name.to_owned(), example)).to_vec();
    names.extend(random.iter().map(|(name, draw)| match draw {
        Draw::Integer(..) => (name.clone(), Value::Integer(0)),
        Draw::Letters(_) | Draw::Choice(_) => (name.clone(), Value::Text(String::new())),
    }));
    let tables = section.tables("request", "a request");
    let hint = "begin one with `[[case.request]]`";
    section.rule(tables.is_empty() && section.has("request"), "request", "the case has no request", hint);
    let flag = |key| section.flag(key).unwrap_or_default();
    let case = Case {
        promise: section.text("promise").unwrap_or_else(|| name.clone()),
        name,
        repeat: section.small("repeat").unwrap_or(if random.is_empty() { 1 } else { 10 }),
        random,
        split: split(section),
        pipelined: flag("pipelined"),
        half_close: flag("half_close"),
        skip_status: section.small("skip_status"),
        requests: tables.iter().flatten().filter_map(|table| request(table, &names)).collect(),
    };
    let last = case.requests.len().saturating_sub(1);
    for (index, (table, request)) in tables.iter().flatten().zip(&case.requests).enumerate() {
        let closes = request.connection != Connection::Stays;
        if closes && (case.half_close || case.pipelined && index < last) {
            let whole = if case.half_close { "half_close" } else { "pipelined" };
            let message = format!("`connection` of a request does not apply if the case is `{whole}`");
            table.report.mistake(table.place, message, "drop one of the two".to_owned());
        }
        let message = "`connection = \"closes\"` with `times`: only one can be the last";
        table.report.rule(request.connection == Connection::Closes && request.times > 1, table.place, message, None);
    }
    check_filled(&case, section);
    case
}

/// Checks filled templates: hexadecimal digits must form whole bytes, and a request must not be too long to cut.
fn check_filled(case: &Case, section: &Section) {
    let values = case.draw(0, 0).with("index", Value::Integer(0)).with("path", Value::Text("/".to_owned()));
    let is_odd = |template: &Template| bytes_of_hex(&values.fill(template)).is_none();
    let has_odd_hex = |request: &Request| {
        matches!(&request.send, Send::Hex(template) if is_odd(template))
            || matches!(&request.expect, Expect::Hex(template) if is_odd(template))
    };
    let hint = "write two digits for each byte, `{n:8x}` for 4 bytes of a number";
    let message = format!("a `hex` of case `{}` is not a number of bytes", case.name);
    section.rule(case.requests.iter().any(has_odd_hex), "name", message, hint);
    let length: usize = case.requests.iter().map(|request| length(&request.send, &values)).sum();
    let hint = "name positions (`split = [4, 17]`) or use `split = \"bytes\"`";
    let message = format!("`split = \"all\"` of {length} bytes, at most {SPLIT_MAX_BYTES}");
    section.rule(case.split == Split::All && length > SPLIT_MAX_BYTES, "split", message, hint);
}

fn length(send: &Send, values: &Values) -> usize {
    match send {
        Send::Text(template) => values.fill(template).len(),
        Send::Hex(template) => values.fill(template).len() / 2,
        Send::Http { path, body, .. } => {
            100 + values.fill(path).len() + body.as_ref().map_or(0, |body| values.fill(body).len())
        }
    }
}

/// Reads the random values of a case. Reports invalid values; a value of unknown kind becomes one letter.
fn random(section: &Section) -> Vec<(String, Draw)> {
    let mut all = Vec::new();
    for (name, table) in section.named("random") {
        table.check_keys();
        let own = OWN_NAMES.iter().any(|(own, _)| *own == name);
        let hint = "use letters, digits and `_`, starting with a letter; `index` and `path` are taken";
        let message = format!("`{}` is not a valid name of a random value", name.escape_debug());
        section.report.rule(!is_name(&name) || own, table.place, message, hint);
        let draw = match table.one_of(&["integer", "letters", "choice"]) {
            Some("integer") => integers(&table),
            Some("letters") => Draw::Letters(table.small("letters").unwrap_or(1)),
            Some(_) => {
                let texts = table.texts("choice");
                table.rule(texts.is_empty(), "choice", format!("`{}.choice` is empty", table.name), None);
                let message = format!("each of `{}.choice` must be ASCII", table.name);
                table.rule(texts.iter().any(|text| !text.is_ascii()), "choice", message, None);
                if texts.is_empty() { Draw::Letters(1) } else { Draw::Choice(texts) }
            }
            None => Draw::Letters(1),
        };
        all.push((name, draw));
    }
    all
}

fn integers(table: &Section) -> Draw {
    if let Some(Toml::List(items)) = table.table.get("integer").map(|entry| &entry.node.value)
        && let [Node { value: Toml::Integer(low), .. }, Node { value: Toml::Integer(high), .. }] = items.as_slice()
        && low <= high
    {
        return Draw::Integer(*low, *high);
    }
    let message = format!("`{}.integer` must be the lowest and the highest whole number", table.name);
    table.mistake("integer", message, "write `integer = [0, 999]`".to_owned());
    Draw::Integer(0, 0)
}

fn split(section: &Section) -> Split {
    let Some(Toml::List(items)) = section.table.get("split").map(|entry| &entry.node.value) else {
        return section.choice("split", SPLITS).map_or(Split::Each(Cut::Whole), |split| split());
    };
    let mut at = Vec::new();
    for item in items {
        match item.value {
            Toml::Integer(position @ 1..=0x10_0000) if at.last().is_none_or(|last| *last < position as usize) => {
                at.push(position as usize);
            }
            _ => {
                let message = "each of `split` must be a number of bytes, 1 to 1,048,576, in ascending order";
                section.report.mistake(item.place, message, None);
                break;
            }
        }
    }
    Split::Each(Cut::At(at))
}

fn template(section: &Section, key: &str, names: &Names) -> Option<Template> {
    section.text_as(key, |text| Template::parse(text, names))
}

fn headers(section: &Section, key: &str) -> Vec<(String, Place, String)> {
    let header = |NamedText { name, name_place, text, .. }: NamedText| {
        let name = section.report.valid(name_place, validate_http::field_name(&name))?;
        Some((name, name_place, text))
    };
    section.named_texts(key).into_iter().filter_map(header).collect()
}

fn templates(section: &Section, key: &str, names: &Names) -> Vec<(String, Template)> {
    let read = |(name, place, value): (String, Place, String)| {
        let message = format!("the value of `{name}` has a line break");
        section.report.rule(value.contains(['\r', '\n']), place, message, None);
        Some((name, section.report.valid(place, Template::parse(&value, names))?))
    };
    headers(section, key).into_iter().filter_map(read).collect()
}

fn regex(text: &str) -> Result<Regex, Invalid> {
    RegexBuilder::new(text).size_limit(REGEX_MAX_BYTES).build().map_err(|error| {
        let why = error.to_string();
        let last = why.lines().last().unwrap_or_default().trim_start_matches("error: ");
        let error = Invalid::new(format!("invalid regular expression: {last}"));
        error.hint("a TOML string in `'...'` needs no `\\\\`")
    })
}

fn request(section: &Section, names: &Names) -> Option<Request> {
    section.check_keys();
    let kind = section.one_of(&["path", "text", "hex"]);
    if kind.is_some_and(|kind| kind != "path") {
        let of_http = ["method", "version", "headers", "body", "chunked"];
        section.refuse(of_http, "does not apply to a request of bytes", "write `path` for an HTTP request");
    }
    let (expect, connection) = read_expect(&section.section_or_empty("expect"), names);
    let template = |key| template(section, key, names).unwrap_or_default();
    let send = match kind? {
        "path" => http(section, names),
        "text" => Send::Text(template("text")),
        _ => Send::Hex(template("hex")),
    };
    Some(Request { send, times: section.small("times").unwrap_or(1), expect, connection })
}

fn http(section: &Section, names: &Names) -> Send {
    let method = section.text_as("method", validate_http::method).unwrap_or_default();
    let path = section.text_as("path", |text| {
        if text.bytes().any(|byte| byte.is_ascii_control()) || text.split('{').next().unwrap_or_default().contains(' ')
        {
            return Err(Invalid::new("a request target has no spaces and no control characters"));
        }
        Template::parse(text, names)
    });
    let is_old = section.choice("version", &[("1.1", false), ("1.0", true)]).unwrap_or_default();
    let headers = templates(section, "headers", names);
    let (has_body, chunked) = (section.has("body"), section.flag("chunked").unwrap_or_default());
    section.rule(chunked && !has_body, "chunked", "`chunked` without a `body`", "add `body = \"...\"`");
    for (name, _) in headers.iter().filter(|_| has_body) {
        if OF_BODY.iter().any(|own| own.eq_ignore_ascii_case(name)) {
            let message = format!("`{name}` is set from the body");
            section.mistake("headers", message, "drop it, or send the request as `text`".to_owned());
        }
    }
    let (path, body) = (path.unwrap_or_default(), template(section, "body", names));
    Send::Http { method, path, is_old, headers, body, chunked }
}

fn read_expect(section: &Section, names: &Names) -> (Expect, Connection) {
    section.check_keys();
    let connection = section.choice("connection", CONNECTIONS).unwrap_or(Connection::Stays);
    if let Some(first) = ["text", "hex", "line"].into_iter().find(|key| section.has(key)) {
        let others = section.keys.names().filter(|key| *key != "connection" && *key != first);
        let why = format!("cannot be combined with `{first}`: bytes are compared as a whole");
        section.refuse(others, &why, "drop one of the two");
        let expect = match first {
            "text" => Expect::Text(template(section, first, names).unwrap_or_default()),
            "hex" => Expect::Hex(template(section, first, names).unwrap_or_default()),
            _ => section.text_as(first, regex).map_or_else(|| Expect::Text(Template::default()), Expect::Line),
        };
        return (expect, connection);
    }
    let read = |(name, place, text): (_, _, String)| Some((name, section.report.valid(place, regex(&text))?));
    let header_matches = headers(section, "header_matches").into_iter().filter_map(read);
    let status = section.table.get("status");
    let expect = ExpectHttp {
        status: status.map(|entry| numeric_statuses(&entry.node, 100, section.report)).unwrap_or_default(),
        headers: templates(section, "headers", names),
        header_matches: header_matches.collect(),
        absent: section.texts("absent"),
        body: template(section, "body", names),
        length: section.count("length"),
        matches: section.text_as("matches", regex),
        json: json_paths(section, names),
        like: template(section, "like", names),
    };
    (Expect::Http(Box::new(expect)), connection)
}

fn json_paths(section: &Section, names: &Names) -> Vec<(JsonPath, Json)> {
    let Some(table) = section.section("json") else { return Vec::new() };
    let one = |entry: &node::Entry| {
        let value = json(&entry.node, names, section.report);
        let path = JsonPath::parse(&entry.key).map_err(|error| {
            let message = format!("invalid JSONPath `{}`: {}", entry.key.escape_debug(), error.message());
            Invalid::new(message).hint("a path begins with `$`: `$.items[0].name`")
        });
        section.report.valid(entry.key_place, path).zip(value)
    };
    table.table.iter().filter_map(one).collect()
}

fn json(node: &Node, names: &Names, report: &Report) -> Option<Json> {
    Some(match &node.value {
        Toml::Text(text) => Json::Text(report.valid(node.place, Template::parse(text, names))?),
        Toml::Integer(number) => Json::Value((*number).into()),
        Toml::Number(number) => Json::Value((*number).into()),
        Toml::Flag(flag) => Json::Value((*flag).into()),
        Toml::List(items) => Json::List(items.iter().filter_map(|item| json(item, names, report)).collect()),
        Toml::Table(table) => {
            let field = |entry: &node::Entry| Some((entry.key.clone(), json(&entry.node, names, report)?));
            Json::Object(table.iter().filter_map(field).collect())
        }
        Toml::Other(kind) => {
            report.mistake(node.place, format!("a JSON value cannot be {kind}"), None);
            return None;
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mistakes(text: &str) -> String {
        match parse(text) {
            Ok(cases) => format!("{} cases", cases.len()),
            Err(all) => all.iter().map(|one| one.in_file("c.toml") + "\n").collect(),
        }
    }

    #[test]
    fn examples_are_valid_values() {
        assert_eq!(config::check_declared_examples::mistakes(&CASES), Vec::<String>::new());
    }

    #[test]
    fn parses_the_example_file() {
        let text = include_str!("../../../../examples/verify.toml");
        assert_eq!(mistakes(text), "5 cases");
    }

    #[test]
    fn errors_are_reported_all_at_once() {
        insta::assert_snapshot!(mistakes(
            r#"
            [[case]]
            name = "two words"
            random = { path = { letters = 3 }, n = { integer = [5, 1] }, m = {} }
            split = "al"

            [[case.request]]
            path = "/{word}"
            text = "x"
            expect = { status = [200, 7], matches = '(', json = { "sum" = 1 } }

            [[case]]
            name = "hex"
            request = [{ hex = "123", expect = { hex = "{index:3x}" } }]

            [[case]]
            name = "hex"
            repeat = 0
            reqest = []

            [[case]]
            name = "bytes"
            half_close = true
            request = [{ text = "a", body = "b", expect = { text = "c", status = 200, connection = "closes" } }]
            "#
        ));
    }

    #[test]
    fn seeds_are_reproducible_and_cases_differ() {
        let text = r#"
            [[case]]
            name = "one"
            random = { n = { integer = [-5, 5] }, w = { letters = 12 }, c = { choice = ["a", "b"] } }
            request = [{ path = "/{n}" }]
        "#;
        let [case] = &parse(text).unwrap()[..] else { panic!("one case") };
        let shown = |case: &Case, seed, repetition| {
            let values = case.draw(seed, repetition);
            ["n", "w", "c"].map(|name| format!("{:?}", values.get(name)))
        };
        assert_eq!(shown(case, 1, 0), shown(case, 1, 0));
        assert_ne!(shown(case, 1, 0), shown(case, 1, 1));
        assert_ne!(shown(case, 1, 0), shown(case, 2, 0));
        assert_ne!(shown(case, 1, 0), shown(&Case { name: "two".to_owned(), ..case.clone() }, 1, 0));
        for repetition in 0..200 {
            let Value::Integer(n) = case.draw(7, repetition).get("n") else { panic!("a number") };
            assert!((-5..=5).contains(&n));
        }
    }
}
