//! A journey file becomes a [`Journey`], or all of its mistakes.

use config::nearest::suggestion;
use config::node::{self, Entry, Node, Table, Value};
use config::{Diagnostic, Place, Report};

use crate::journey::template::{self, Part};
use crate::journey::{Argument, Call, Journey, OWN_SCHEMAS, PRESETS, Schema, Step, path};
use crate::keys::{JOURNEY, Keys};

/// Longest text of a journey file, bytes.
pub const TEXT_MAX_BYTES: usize = 256 * 1024;
/// Steps of a journey at most.
const STEPS_MAX: usize = 1000;

/// Header fields that are not a step's to set.
const OWN_FIELDS: [&str; 6] = ["Host", "Content-Length", "Transfer-Encoding", "Connection", "Upgrade", "Expect"];
/// Names that mean something else in braces.
const RESERVED: [&str; 2] = ["number", "random"];

/// Reads a journey: syntax, names, templates and paths. Schemas are not looked at.
///
/// # Errors
/// Every mistake in it, in the order of the text.
pub fn parse(text: &str) -> Result<Journey, Vec<Diagnostic>> {
    let report = Report::new("the journey", text, &[]);
    if text.len() > TEXT_MAX_BYTES {
        let message = format!("a journey is limited to {TEXT_MAX_BYTES} bytes, this one has {}", text.len());
        report.mistake(Place::default(), message, None);
        report.finish()?;
    }
    let root = node::document(text, &report);
    let mut reader = Reader { report: &report, text, names: Vec::new() };
    let journey = reader.journey(&root);
    report.finish()?;
    Ok(journey)
}

/// The preset of that name.
pub fn preset(name: &str) -> Option<Journey> {
    let (_, text) = PRESETS.iter().find(|preset| preset.0 == name)?;
    Some(parse(text).expect("every preset is covered by a test"))
}

struct Reader<'r> {
    report: &'r Report<'r>,
    text: &'r str,
    /// Names that templates may have so far.
    names: Vec<String>,
}

impl Reader<'_> {
    fn only(&self, table: &Table, known: &Keys, whose: &str) {
        for entry in table.iter().filter(|entry| known.get(&entry.key).is_none()) {
            let hint = suggestion(&entry.key, known.names());
            self.report.mistake(entry.key_place, format!("unknown key `{}` {whose}", entry.key.escape_debug()), hint);
        }
    }

    fn text_of<'t>(&self, entry: &'t Entry) -> Option<&'t str> {
        match &entry.node.value {
            Value::Text(text) => Some(text),
            other => {
                let message = format!("`{}` must be a string, not {}", entry.key.escape_debug(), other.kind());
                self.report.mistake(entry.node.place, message, None);
                None
            }
        }
    }

    fn table_of<'t>(&self, table: &'t Table, key: &str) -> Option<&'t Table> {
        let entry = table.get(key)?;
        match &entry.node.value {
            Value::Table(inner) => Some(inner),
            other => {
                self.report.mistake(entry.node.place, format!("`{key}` must be a table, not {}", other.kind()), None);
                None
            }
        }
    }

    /// Keys with texts, in the order of the file.
    fn texts<'t>(&self, table: &'t Table, key: &str) -> Vec<(&'t Entry, &'t str)> {
        let entries = self.table_of(table, key).map(Table::iter).into_iter().flatten();
        entries.filter_map(|entry| Some((entry, self.text_of(entry)?))).collect()
    }

    fn new_name(&mut self, entry: &Entry) {
        let name = entry.key.as_str();
        if !template::is_name(name) || RESERVED.contains(&name) {
            let message = format!("`{}` is not a valid template name", name.escape_debug());
            let hint =
                "use letters, digits and `_`, starting with a letter; `number` and `random` are reserved".to_owned();
            self.report.mistake(entry.key_place, message, hint);
        } else if self.names.iter().any(|known| known == name) {
            let hint = "choose another: a name is unique within a journey".to_owned();
            self.report.mistake(entry.key_place, format!("duplicate name `{name}`"), hint);
        } else {
            self.names.push(name.to_owned());
        }
    }

    /// Checks a template against the names that there are so far.
    fn template(&self, text: &str, place: Place, may_draw: bool) {
        let parts = match template::parts(text) {
            Ok(parts) => parts,
            Err(message) => return self.report.mistake(place, message, None),
        };
        for part in parts {
            match part {
                Part::Name(name) if !self.names.contains(&name) => {
                    let hint = suggestion(&name, self.names.iter().map(String::as_str));
                    let message = format!("`{name}` is not defined here");
                    return self.report.mistake(place, message, hint);
                }
                Part::Random { .. } if !may_draw => {
                    let hint = "write `name = \"{random:8}\"` in `[let]`, and `{name}` here".to_owned();
                    return self.report.mistake(place, "`{random:N}` only works in `let`", hint);
                }
                _ => {}
            }
        }
    }

    fn journey(&mut self, root: &Table) -> Journey {
        self.only(root, &JOURNEY, "in a journey");
        let name = root.get("name").and_then(|entry| self.text_of(entry)).unwrap_or_default().to_owned();
        if root.get("name").is_none() {
            self.report.missing(Place::default(), "the journey has no `name`", "add `name = \"evernote\"`".to_owned());
        }
        let mut journey = Journey { name, ..Journey::default() };
        for (entry, url) in self.texts(root, "targets") {
            self.new_name(entry);
            if !url.is_empty() && !url.starts_with("http://") && !url.starts_with("https://") {
                let message = format!("`{}` is not an HTTP URL", url.escape_debug());
                self.report.mistake(
                    entry.node.place,
                    message,
                    "a target looks like `https://127.0.0.1:8443`".to_owned(),
                );
            }
            journey.targets.push((entry.key.clone(), url.to_owned()));
        }
        for (entry, file) in self.texts(root, "schemas") {
            if !file.ends_with(".thrift") && !file.ends_with(".wsdl") {
                let hint = format!("built-in schemas: {}", OWN_SCHEMAS.join(", "));
                let message = format!("`{}` is neither a `.thrift` nor a `.wsdl` file", file.escape_debug());
                self.report.mistake(entry.node.place, message, hint);
            }
            journey.schemas.push(Schema { name: entry.key.clone(), file: file.to_owned(), text: String::new() });
        }
        for (entry, text) in self.texts(root, "let") {
            self.template(text, entry.node.place, true);
            self.new_name(entry);
            journey.lets.push((entry.key.clone(), text.to_owned()));
        }
        match root.get("step").map(|entry| (entry, &entry.node.value)) {
            None => {
                self.report.missing(Place::default(), "the journey has no `[[step]]`", "a step is a call".to_owned())
            }
            Some((entry, Value::List(items))) if items.is_empty() || items.len() > STEPS_MAX => {
                self.report.mistake(
                    entry.node.place,
                    format!("{} steps, expected 1 to {STEPS_MAX}", items.len()),
                    None,
                );
            }
            Some((_, Value::List(items))) => {
                for item in items {
                    match &item.value {
                        Value::Table(table) => journey.steps.extend(self.step(table, item.place, &journey.schemas)),
                        other => self.report.mistake(
                            item.place,
                            format!("a step must be a table, not {}", other.kind()),
                            None,
                        ),
                    }
                }
            }
            Some((entry, other)) => {
                let message = format!("`step` must be a list of tables, not {}", other.kind());
                self.report.mistake(entry.node.place, message, "begin each step with `[[step]]`".to_owned());
            }
        }
        journey
    }

    /// One step; `None` where a mistake leaves none.
    fn step(&mut self, table: &Table, place: Place, schemas: &[Schema]) -> Option<Step> {
        let keys = JOURNEY.key("step").kind.table().expect("a step is a table");
        self.only(table, keys, "in a step");
        let begin = table.iter().map(|entry| entry.key_place.start).min().unwrap_or(place.start);
        let line = self.text.as_bytes()[..begin.min(self.text.len())].iter().filter(|byte| **byte == b'\n').count() + 1;
        let here = table.iter().next().map_or(place, |entry| entry.key_place);
        let url = table.get("url").and_then(|entry| Some((entry, self.text_of(entry)?)));
        match url {
            Some((entry, url)) => self.template(url, entry.node.place, false),
            None if table.get("url").is_none() => {
                self.report.missing(here, "the step has no `url`", "add `url = \"{api}/path\"`".to_owned());
            }
            None => {}
        }
        let call = self.call(table, schemas);
        let headers = self.texts(table, "headers");
        for (entry, value) in &headers {
            self.template(value, entry.node.place, false);
            if let Err(error) = crate::http::field_of(&entry.key, value) {
                self.report.mistake(entry.key_place, error.to_string(), error.hint());
            } else if OWN_FIELDS.iter().any(|own| own.eq_ignore_ascii_case(&entry.key)) {
                let message = format!("`{}` is set from the URL and body", entry.key);
                self.report.mistake(entry.key_place, message, "drop it".to_owned());
            }
        }
        let headers = headers.into_iter().map(|(entry, value)| (entry.key.clone(), value.to_owned())).collect();
        // Also where a mistake leaves no call.
        let is_rest = table.get("thrift").is_none() && table.get("soap").is_none();
        let root = if is_rest { "body" } else { "result" };
        let mut call = call;
        let mut expect = Vec::new();
        for entry in self.table_of(table, "expect").map(Table::iter).into_iter().flatten() {
            if is_rest && entry.key == "status" {
                let read = self.statuses(&entry.node);
                if let Some((Call::Rest { status, .. }, _)) = &mut call {
                    *status = read;
                }
                continue;
            }
            self.path(&entry.key, entry.key_place, root);
            expect.extend(self.argument(&entry.node).map(|value| (entry.key.clone(), value)));
        }
        let mut take = Vec::new();
        for (entry, text) in self.texts(table, "take") {
            self.path(text, entry.node.place, root);
            self.new_name(entry);
            take.push((entry.key.clone(), text.to_owned()));
        }
        let (call, named) = call?;
        let operation = match table.get("name") {
            Some(entry) => self.text_of(entry)?.to_owned(),
            None => named,
        };
        if operation.is_empty() || operation.len() > 200 || operation.contains(char::is_control) {
            let place = table.get("name").map_or(here, |entry| entry.node.place);
            self.report.mistake(place, "an operation name must be 1 to 200 characters", None);
        }
        Some(Step { operation, line: line as u32, url: url?.1.to_owned(), call, headers, take, expect })
    }

    /// What is called, and the name that it has where none is given.
    fn call(&self, table: &Table, schemas: &[Schema]) -> Option<(Call, String)> {
        let kinds = ["thrift", "soap", "method"].into_iter().filter_map(|key| table.get(key)).collect::<Vec<_>>();
        for entry in kinds.iter().skip(1) {
            let message = format!("`{}` and `{}` together: a step is one call", entry.key, kinds[0].key);
            self.report.mistake(entry.key_place, message, None);
        }
        let kind = kinds.first().copied();
        let is_rest = kind.is_none_or(|entry| entry.key == "method");
        let foreign: &[&str] = if is_rest { &["arguments"] } else { &["body"] };
        for entry in foreign.iter().filter_map(|key| table.get(key)) {
            let hint = if is_rest { "add `thrift` or `soap`, or write a `body`" } else { "write `arguments`" };
            let message = format!("`{}` does not apply to this step", entry.key);
            self.report.mistake(entry.key_place, message, hint.to_owned());
        }
        if is_rest {
            let method = match kind {
                Some(entry) => {
                    let text = self.text_of(entry)?;
                    let read = crate::http::method(text);
                    read.map_err(|error| self.report.mistake(entry.node.place, error.to_string(), error.hint())).ok()?
                }
                None => "GET".to_owned(),
            };
            let body = match table.get("body") {
                Some(entry) => {
                    let text = self.text_of(entry)?;
                    self.template(text, entry.node.place, false);
                    Some(text.to_owned())
                }
                None => None,
            };
            let url = table.get("url").and_then(|entry| self.text_of(entry)).unwrap_or_default();
            let path = url.split(['?', '#']).next().unwrap_or_default();
            let path = path.split_once("://").map_or(path, |parts| parts.1);
            let path = path.find('/').map_or("/", |at| &path[at..]);
            let named = format!("{method} {path}");
            return Some((Call::Rest { method, body, status: Vec::new() }, named));
        }
        let entry = kind?;
        let text = self.text_of(entry)?;
        let example = if entry.key == "thrift" { "notes UserStore.getUser" } else { "chess MakeAMove" };
        let Some((schema, called)) = text.split_once(' ').map(|(schema, called)| (schema, called.trim())) else {
            let hint = format!("write `{} = \"{example}\"`", entry.key);
            self.report.mistake(entry.node.place, "schema name, space, operation", hint);
            return None;
        };
        let wanted = if entry.key == "thrift" { ".thrift" } else { ".wsdl" };
        match schemas.iter().find(|known| known.name == schema) {
            None => {
                let hint = suggestion(schema, schemas.iter().map(|known| known.name.as_str()));
                self.report.mistake(entry.node.place, format!("unknown schema `{}`", schema.escape_debug()), hint);
            }
            Some(known) if !known.file.ends_with(wanted) => {
                self.report.mistake(entry.node.place, format!("the schema `{schema}` is not a `{wanted}` file"), None);
            }
            Some(_) => {}
        }
        let arguments = match table.get("arguments") {
            Some(entry) => match self.argument(&entry.node)? {
                record @ Argument::Record(_) => record,
                _ => {
                    self.report.mistake(entry.node.place, "`arguments` must be a table of arguments by name", None);
                    return None;
                }
            },
            None => Argument::Record(Vec::new()),
        };
        let schema = schema.to_owned();
        if entry.key == "thrift" {
            let Some((_, method)) = called.split_once('.') else {
                let hint = format!("write `thrift = \"{example}\"`");
                self.report.mistake(entry.node.place, "a method needs its service's name and a dot before it", hint);
                return None;
            };
            let named = method.to_owned();
            return Some((Call::Thrift { schema, method: called.to_owned(), arguments }, named));
        }
        Some((Call::Soap { schema, operation: called.to_owned(), arguments }, called.to_owned()))
    }

    fn statuses(&self, node: &Node) -> Vec<u16> {
        let status = |node: &Node| match node.value {
            Value::Integer(status @ 200..=599) => Some(status as u16),
            _ => {
                self.report.mistake(node.place, "a status must be a number from 200 to 599", None);
                None
            }
        };
        match &node.value {
            Value::List(all) => all.iter().filter_map(status).collect(),
            _ => status(node).into_iter().collect(),
        }
    }

    fn path(&self, text: &str, place: Place, root: &str) {
        match path::parse(text) {
            Err(message) => self.report.mistake(place, message, None),
            Ok(path) if path.root != root => {
                let message = format!("`{}`: paths must begin with `{root}` here", path.root);
                self.report.mistake(place, message, None);
            }
            Ok(_) => {}
        }
    }

    fn argument(&self, node: &Node) -> Option<Argument> {
        Some(match &node.value {
            Value::Flag(flag) => Argument::Flag(*flag),
            Value::Integer(integer) => Argument::Integer(*integer),
            Value::Number(number) => Argument::Number(*number),
            Value::Text(text) => {
                self.template(text, node.place, false);
                Argument::Text(text.clone())
            }
            Value::List(items) => {
                // Every item is read, so that all mistakes are told.
                let items = items.iter().map(|item| self.argument(item)).collect::<Vec<_>>();
                Argument::List(items.into_iter().collect::<Option<_>>()?)
            }
            Value::Table(table) => {
                let fields = table.iter().map(|entry| Some((entry.key.clone(), self.argument(&entry.node)?)));
                Argument::Record(fields.collect::<Vec<_>>().into_iter().collect::<Option<_>>()?)
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
    fn presets_are_read_and_have_the_calls_of_the_case_studies() {
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
    fn a_journey_is_read() {
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
    fn all_mistakes_are_told_with_their_places() {
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
            "2:1: unknown key `nam` in a journey",
            "1:1: the journey has no `name`",
            "`ftp://x` is not an HTTP URL",
            "`number` is not a valid template name",
            "`b.json` is neither a `.thrift` nor a `.wsdl` file",
            "`nothing` is not defined here",
            "duplicate name `api`",
            "`apii` is not defined here",
            "`method` and `thrift` together: a step is one call",
            "`arguments` must be a table",
            "`{random:N}` only works in `let`",
            "the schema `a` is not a `.wsdl` file",
            "a date cannot be passed in a call",
            "16:46: a number that is not finite",
            "`body`: paths must begin with `result` here",
            "`result[` is not a path into a response",
            "duplicate name `t`",
            "the step has no `url`",
            "unknown schema `c`",
            "`body` does not apply to this step",
            "a method needs its service's name",
            "`url` must be a string, not an integer",
            "a status must be a number from 200 to 599",
            "`body..x` is not a path",
        ] {
            assert!(found.iter().any(|mistake| mistake.contains(expected)), "{expected} in {found:#?}");
        }
    }

    #[test]
    fn a_name_is_there_after_the_step_that_takes_it() {
        let early = "name = \"x\"\ntargets = { a = \"\" }\n[[step]]\nurl = \"{a}/{id}\"\ntake = { id = \"body.id\" }\n";
        assert_eq!(told(early), ["4:7: `id` is not defined here"]);
        let late = format!("{early}[[step]]\nurl = \"{{a}}/{{id}}\"\n").replacen("/{id}", "/", 1);
        assert_eq!(told(&late), Vec::<String>::new());
    }

    #[test]
    fn what_is_no_journey_is_told() {
        assert!(!told("").is_empty());
        assert!(!told("= = =").is_empty());
        assert!(told(&" ".repeat(TEXT_MAX_BYTES + 1))[0].contains("limited to 262144 bytes"));
        assert!(told("name = \"x\"\nstep = 5")[0].contains("a list of tables"));
        assert!(told("name = \"x\"\nstep = []")[0].contains("0 steps"));
        assert!(told("name = \"x\"\nstep = [5]")[0].contains("a step must be a table"));
    }
}
