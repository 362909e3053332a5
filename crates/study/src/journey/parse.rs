//! Parses journeys.

use config::{Diagnostic, Invalid, NamedText, Node, Place, Report, Value, node, suggestion};

use crate::journey::condition;
use crate::journey::placeholders::{self, Field};
use crate::journey::{Argument, Call, Journey, OWN_SCHEMAS, PRESETS, Schema, Step, reply_path};
use crate::keys::JOURNEY;
use crate::template::Part;
use crate::time_law;
use crate::validate_http;

/// Maximum length of a journey file, bytes.
pub const TEXT_MAX_BYTES: usize = 256 * 1024;
/// Maximum number of steps of a journey.
pub(crate) const STEPS_MAX: usize = 1000;

const OWN_FIELDS: [&str; 6] = ["Host", "Content-Length", "Transfer-Encoding", "Connection", "Upgrade", "Expect"];
const RESERVED: [&str; 2] = ["number", "random"];

type Section<'a> = config::Section<'a, ()>;

/// Parses a journey and checks syntax, names, templates and paths, without reading schemas. Fails with all errors.
pub fn parse(text: &str) -> Result<Journey, Vec<Diagnostic>> {
    let report = Report::new("the journey", text, &[]);
    report.check_length("a journey", TEXT_MAX_BYTES)?;
    let root = node::document(text, &report);
    let mut reader = Reader { report: &report, text, names: Vec::new(), taken: Vec::new() };
    let journey = reader.journey(&Section::whole(&root, &JOURNEY, (), &report));
    report.finish()?;
    Ok(journey)
}

/// The built-in journey of this name; `None` if there is none.
pub fn preset(name: &str) -> Option<Journey> {
    let (_, text) = PRESETS.iter().find(|preset| preset.0 == name)?;
    Some(parse(text).expect("every preset is covered by a test"))
}

struct Reader<'r> {
    report: &'r Report<'r>,
    text: &'r str,
    names: Vec<String>,
    taken: Vec<String>,
}

impl Reader<'_> {
    fn add_name(&mut self, NamedText { name, name_place, .. }: &NamedText) {
        if !placeholders::is_name(name) || RESERVED.contains(&name.as_str()) {
            let message = format!("`{}` is not a valid template name", name.escape_debug());
            let hint =
                "use letters, digits and `_`, starting with a letter; `number` and `random` are reserved".to_owned();
            self.report.mistake(*name_place, message, hint);
        } else if self.names.contains(name) {
            let hint = "choose another: targets, `let` and values taken share their names".to_owned();
            self.report.mistake(*name_place, format!("duplicate name `{name}`"), hint);
        } else {
            self.names.push(name.clone());
        }
    }

    fn check_template(&self, text: &str, place: Place, may_draw: bool) {
        let parts = placeholders::parts(text).map_err(|error| self.report.invalid(place, error));
        for part in parts.into_iter().flatten() {
            let Part::Field(inner, field) = part else { continue };
            let error = match field {
                Field::Name if !self.names.iter().any(|name| name == inner) => {
                    let hint = suggestion(inner, self.names.iter().map(String::as_str));
                    Invalid::new(format!("`{inner}` is not defined here")).hint(hint)
                }
                Field::Random { .. } if !may_draw => {
                    let hint = "write `name = \"{random:8}\"` in `[let]`, and `{name}` here";
                    Invalid::new("`{random:N}` only works in `let`").hint(hint)
                }
                _ => continue,
            };
            self.report.invalid(place, error.part(&format!("{{{inner}}}")));
        }
    }

    fn template(&self, section: &Section, key: &str) -> Option<String> {
        let text = section.text(key)?;
        self.check_template(&text, section.place_of(key), false);
        Some(text)
    }

    fn journey(&mut self, top: &Section) -> Journey {
        top.check();
        let mut journey = Journey { name: top.text("name").unwrap_or_default(), ..Journey::default() };
        for target in top.named_texts("targets") {
            self.add_name(&target);
            let url = &target.text;
            let is_http = url.is_empty() || url.starts_with("http://") || url.starts_with("https://");
            let message = format!("`{}` is not an HTTP URL", url.escape_debug());
            self.report.rule(!is_http, target.place, message, "a target looks like `https://127.0.0.1:8443`");
            journey.targets.push((target.name, target.text));
        }
        for NamedText { name, text: file, place, .. } in top.named_texts("schemas") {
            if !file.ends_with(".thrift") && !file.ends_with(".wsdl") {
                let hint = format!("built-in schemas: {}", OWN_SCHEMAS.join(", "));
                let message = format!("`{}` is neither a `.thrift` nor a `.wsdl` file", file.escape_debug());
                self.report.mistake(place, message, hint);
            }
            journey.schemas.push(Schema { name, file, text: String::new() });
        }
        for value in top.named_texts("let") {
            self.check_template(&value.text, value.place, true);
            self.add_name(&value);
            journey.lets.push((value.name, value.text));
        }
        let steps = top.tables("step", "a step");
        if top.has("step") && !(1..=STEPS_MAX).contains(&steps.len()) {
            top.mistake("step", format!("{} steps, expected 1 to {STEPS_MAX}", steps.len()), None);
            return journey;
        }
        let is_once = |step: &&Section| step.flag("once") == Some(true);
        let repeated = steps.iter().flatten().skip_while(is_once).collect::<Vec<_>>();
        let hint = "remove it from the last one: each journey needs a call";
        top.rule(repeated.is_empty() && steps.iter().any(Option::is_some), "step", "all steps have `once`", hint);
        for step in [steps.iter().flatten().next(), repeated.first().copied()].into_iter().flatten() {
            let hint = "drop `when`, or begin with another step";
            step.rule(step.has("when"), "when", "the first call of a journey cannot be skipped", hint);
        }
        for late in repeated.into_iter().filter(is_once) {
            late.mistake("once", "a step with `once` follows one without", "move it to the start".to_owned());
        }
        journey.steps = steps.iter().flatten().filter_map(|step| self.step(step, &journey.schemas)).collect();
        journey
    }

    fn step(&mut self, step: &Section, schemas: &[Schema]) -> Option<Step> {
        step.check();
        let begin = step.table.iter().map(|entry| entry.key_place.start).min().unwrap_or(step.place.start);
        let line = self.text.as_bytes()[..begin.min(self.text.len())].iter().filter(|byte| **byte == b'\n').count() + 1;
        let when = step.text_as("when", |text| condition::parse(text).map_err(Invalid::new)).map(|condition| {
            for side in [&condition.left, &condition.right] {
                self.check_template(side, step.place_of("when"), false);
            }
            step.text("when").unwrap_or_default()
        });
        let url = self.template(step, "url");
        let mut call = self.call(step, schemas);
        let headers = step.named_texts("headers");
        for NamedText { name, name_place, text, place } in &headers {
            self.check_template(text, *place, false);
            let field = validate_http::field_name(name).and_then(|name| validate_http::field_value(&name, text));
            self.report.valid(*name_place, field);
            let is_own = OWN_FIELDS.iter().any(|own| own.eq_ignore_ascii_case(name));
            let message = format!("`{name}` is set from the URL and body");
            self.report.rule(is_own, *name_place, message, "drop it");
        }
        let is_rest = !step.has("thrift") && !step.has("soap");
        let root = if is_rest { "body" } else { "result" };
        let (mut expect, mut take) = (Vec::new(), Vec::new());
        let expected = step.section("expect");
        for entry in expected.iter().flat_map(|expected| expected.table.iter()) {
            if is_rest && entry.key == "status" {
                let read = validate_http::numeric_statuses(&entry.node, 200, self.report);
                if let Some((Call::Rest { status, .. }, _)) = &mut call {
                    *status = read;
                }
                continue;
            }
            self.report.valid(entry.key_place, reply_path::rooted(&entry.key, root));
            let message = "`[any]` is random, so its value is unknown";
            self.report.rule(entry.key.contains("[any]"), entry.key_place, message, "`take` it");
            expect.extend(self.argument(&entry.node).map(|value| (entry.key.clone(), value)));
        }
        for part in step.named_texts("take") {
            let (source, _) = reply_path::optional(&part.text);
            self.report.valid(part.place, reply_path::source(source, root));
            // A later step may take another value under the same name.
            if !self.taken.contains(&part.name) {
                self.add_name(&part);
                self.taken.push(part.name.clone());
            }
            take.push((part.name, part.text));
        }
        let (call, named) = call?;
        let operation = if step.has("name") { step.text("name")? } else { named };
        let is_valid = (1..=200).contains(&operation.len()) && !operation.contains(char::is_control);
        step.rule(!is_valid, "name", "an operation name must be 1 to 200 characters", None);
        let headers = headers.into_iter().map(|header| (header.name, header.text)).collect();
        let think = step.text_as("think", |text| time_law::think(text).map(|_| text.to_owned()));
        Some(Step {
            operation,
            line: line as u32,
            url: url?,
            call,
            once: step.flag("once").unwrap_or_default(),
            think: think.unwrap_or_default(),
            repeat: step.small("repeat").unwrap_or(1),
            when: when.unwrap_or_default(),
            headers,
            take,
            expect,
        })
    }

    fn call(&self, step: &Section, schemas: &[Schema]) -> Option<(Call, String)> {
        let kinds = ["thrift", "soap", "method"].into_iter().filter(|key| step.has(key)).collect::<Vec<_>>();
        for other in kinds.iter().skip(1) {
            step.mistake(other, format!("`{other}` and `{}` together: a step is one call", kinds[0]), None);
        }
        let kind = kinds.first().copied().unwrap_or("method");
        let (foreign, hint) = match kind {
            "method" => ("arguments", "add `thrift` or `soap`, or write a `body`"),
            _ => ("body", "write `arguments`"),
        };
        step.rule(step.has(foreign), foreign, format!("`{foreign}` does not apply to this step"), hint);
        if kind == "method" {
            let method = if step.has(kind) { step.text_as(kind, validate_http::method)? } else { "GET".to_owned() };
            let body = self.template(step, "body");
            let url = step.text("url").unwrap_or_default();
            let path = url.split(['?', '#']).next().unwrap_or_default();
            let path = path.split_once("://").map_or(path, |parts| parts.1);
            let path = path.find('/').map_or("/", |at| &path[at..]);
            let named = format!("{method} {path}");
            return Some((Call::Rest { method, body, status: Vec::new() }, named));
        }
        let text = step.text(kind)?;
        let [example, wanted] =
            if kind == "thrift" { ["notes UserStore.getUser", ".thrift"] } else { ["chess MakeAMove", ".wsdl"] };
        let hint = format!("write `{kind} = \"{example}\"`");
        let Some((schema, called)) = text.split_once(' ').map(|(schema, called)| (schema, called.trim())) else {
            step.mistake(kind, "schema name, space, operation", hint);
            return None;
        };
        let known = schemas.iter().find(|known| known.name == schema);
        if known.is_none() {
            let hint = suggestion(schema, schemas.iter().map(|known| known.name.as_str()));
            step.mistake(kind, format!("unknown schema `{}`", schema.escape_debug()), hint);
        }
        let is_other = known.is_some_and(|known| !known.file.ends_with(wanted));
        step.rule(is_other, kind, format!("the schema `{schema}` is not a `{wanted}` file"), None);
        let fields = step.section("arguments");
        let fields = fields.iter().flat_map(|fields| fields.table.iter());
        let fields = fields.filter_map(|entry| Some((entry.key.clone(), self.argument(&entry.node)?)));
        let (arguments, schema) = (Argument::Record(fields.collect()), schema.to_owned());
        if kind == "soap" {
            return Some((Call::Soap { schema, operation: called.to_owned(), arguments }, called.to_owned()));
        }
        let Some((_, method)) = called.split_once('.') else {
            step.mistake(kind, "a method needs its service's name and a dot before it", hint);
            return None;
        };
        Some((Call::Thrift { schema, method: called.to_owned(), arguments }, method.to_owned()))
    }

    fn argument(&self, node: &Node) -> Option<Argument> {
        Some(match &node.value {
            Value::Flag(flag) => Argument::Flag(*flag),
            Value::Integer(integer) => Argument::Integer(*integer),
            Value::Number(number) => Argument::Number(*number),
            Value::Text(text) => {
                self.check_template(text, node.place, false);
                Argument::Text(text.clone())
            }
            Value::List(items) => Argument::List(items.iter().filter_map(|item| self.argument(item)).collect()),
            Value::Table(table) => {
                let field = |entry: &node::Entry| Some((entry.key.clone(), self.argument(&entry.node)?));
                Argument::Record(table.iter().filter_map(field).collect())
            }
            Value::Other(kind) => {
                self.report.mistake(node.place, format!("{kind} cannot be passed in a call"), None);
                return None;
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(text: &str) -> Vec<String> {
        let mistakes = parse(text).err().unwrap_or_default();
        mistakes.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn presets_have_the_calls_of_the_case_studies() {
        for (name, calls) in [
            (
                "evernote",
                "getNoteStoreUrl listLinkedNotebooks authenticateToSharedNotebook getSharedNotebookByAuth findNotes",
            ),
            ("chess", "MakeGame GetMyGames MakeAMove GetMyGames MakeAMove GetMyGames GetMyGames"),
            ("twitter", "/1.1/friends/list.json /1.1/statuses/user_timeline.json /1.1/statuses/retweet/__id__.json"),
        ] {
            let journey = preset(name).unwrap();
            let steps = journey.steps.iter().map(|step| step.operation.as_str()).collect::<Vec<_>>().join(" ");
            assert_eq!((journey.name.as_str(), steps.as_str()), (name, calls));
            assert_eq!(journey.files().count(), 0, "{name}");
        }
        assert_eq!(PRESETS.len(), 3);
        assert_eq!(preset("facebook"), None);
    }

    #[test]
    fn parses_a_journey() {
        let text = r#"
name = "shop"
targets = { shop = "http://127.0.0.1:1" }
let = { who = "u{random:4}" }

[[step]]
url = "{shop}/basket?user={who}"
method = "POST"
body = '{"user": "{who}"}'
headers = { Accept = "application/json" }
take = { id = "body.id" }
expect = { status = [200, 201], "count(body.items)" = 0 }

[[step]]
name = "pay"
url = "{shop}/pay/{id}"
"#;
        let journey = parse(text).unwrap_or_else(|mistakes| panic!("{mistakes:?}"));
        assert_eq!(journey.operations(), ["POST /basket", "pay"]);
        let step = &journey.steps[0];
        assert_eq!(step.line, 7);
        assert_eq!(
            step.call,
            Call::Rest {
                method: "POST".to_owned(),
                body: Some(r#"{"user": "{who}"}"#.to_owned()),
                status: vec![200, 201]
            }
        );
        assert_eq!(step.take, [("id".to_owned(), "body.id".to_owned())]);
        assert_eq!(step.expect, [("count(body.items)".to_owned(), Argument::Integer(0))]);
    }

    #[test]
    fn reports_all_errors_with_their_places() {
        let text = r#"
nam = "x"
targets = { api = "ftp://x", number = "" }
schemas = { a = "a.thrift", b = "b.json" }
let = { t = "{nothing}", api = "x" }

[[step]]
url = "{apii}/x"
thrift = "a Service.m"
method = "GET"
arguments = 5

[[step]]
url = "{api}/{random:3}"
soap = "a M"
expect = { "body.x" = 1979-05-27, "body.z" = -inf }
take = { a = "result[", t = "result" }

[[step]]
thrift = "c x"
body = "x"

[[step]]
url = 5
method = "G T"
expect = { status = 99, "body..x" = 1 }

[[step]]
url = "{api}"
thrift = "a m"
"#;
        let found = told(text);
        for expected in [
            "2:1: unknown key `nam`",
            "1:1: the journey has no `name`",
            "`ftp://x` is not an HTTP URL",
            "`number` is not a valid template name",
            "`b.json` is neither a `.thrift` nor a `.wsdl` file",
            "`nothing` is not defined here",
            "duplicate name `api`",
            "`apii` is not defined here",
            "`method` and `thrift` together: a step is one call",
            "`step.arguments` must be a table",
            "`{random:N}` only works in `let`",
            "the schema `a` is not a `.wsdl` file",
            "a date cannot be passed in a call",
            "16:46: a number that is not finite",
            "`body`: paths must begin with `result` here",
            "`result[` is not a path into a response",
            "duplicate name `t`",
            "`step` has no `url`",
            "unknown schema `c`",
            "`body` does not apply to this step",
            "a method needs its service's name",
            "`step.url` must be a string, not an integer",
            "a status must be a number from 200 to 599",
            "`body..x` is not a path",
        ] {
            assert!(found.iter().any(|mistake| mistake.contains(expected)), "{expected} in {found:#?}");
        }
    }

    #[test]
    fn taken_names_exist_after_their_step() {
        let early = "name = \"x\"\ntargets = { a = \"\" }\n[[step]]\nurl = \"{a}/{id}\"\ntake = { id = \"body.id\" }\n";
        assert_eq!(told(early), ["4:12: `id` is not defined here"]);
        let late = format!("{early}[[step]]\nurl = \"{{a}}/{{id}}\"\n").replacen("/{id}", "/", 1);
        assert_eq!(told(&late), Vec::<String>::new());
    }

    #[test]
    fn rejects_what_journeys_cannot_take_or_repeat() {
        let step =
            |lines: &str| format!("name = \"x\"\ntargets = {{ a = \"http://a\" }}\n[[step]]\nurl = \"{{a}}\"\n{lines}");
        let steps = |first: &str, second: &str| format!("{}\n[[step]]\nurl = \"{{a}}\"\n{second}", step(first));
        for (text, expected) in [
            (step("take = { b = \"header\" }"), "`header` is not one name"),
            (step("take = { b = \"count(cookie.sid)\" }"), "`count(cookie.sid)` is not one name"),
            (step("take = { b = \"match([)\" }"), "`[` is not a regular expression: unclosed character class"),
            (step("take = { b = \"result.x\" }"), "paths must begin with `body` here"),
            (step("expect = { \"body[any]\" = 1 }"), "`[any]` is random"),
            (step("once = true"), "all steps have `once`"),
            (steps("", "once = true"), "a step with `once` follows one without"),
            (step("think = \"2h\""), "`2h` has a median above 1h"),
            (step("think = \"normal:1s,2s\""), "`normal:1s,2s` is not one of `TIME`, `constant:TIME`"),
            (step("repeat = 0"), "`step.repeat` must be 1 to 10,000, not 0"),
            (step("when = \"1 < 2\""), "the first call of a journey cannot be skipped"),
            (steps("once = true", "when = \"1 < 2\""), "the first call of a journey cannot be skipped"),
            (steps("", "when = \"{x} < 2\""), "`x` is not defined here"),
            (steps("", "when = \"x\""), "`x` has no `==`"),
        ] {
            let found = told(&text);
            assert!(found.len() == 1 && found[0].contains(expected), "{found:?}");
        }
        let good = "take = { b = \"header.x-id\", c = \"cookie.sid\", d = \"match(a(.))?\", \
                    e = \"decoded(cookie.sid)\" }\nthink = \"uniform:1s,2s\"\n\
                    repeat = 3";
        assert_eq!(told(&steps("once = true", good)), Vec::<String>::new());
    }

    #[test]
    fn rejects_invalid_journeys() {
        assert!(!told("").is_empty());
        assert!(!told("= = =").is_empty());
        assert!(told(&" ".repeat(TEXT_MAX_BYTES + 1))[0].contains("limited to 262144 bytes"));
        assert!(told("name = \"x\"\nstep = 5")[0].contains("a list of tables"));
        assert!(told("name = \"x\"\nstep = []")[0].contains("0 steps"));
        assert!(told("name = \"x\"\nstep = [5]")[0].contains("a step must be a table"));
    }
}
