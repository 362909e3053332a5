//! `[middle.NAME]`: what stands between generator and subject, and the factor `through`, whose levels say which of them do.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use crate::expand::factors::Factor;
use crate::expand::subject;
use crate::middle::{DIRECT, MiddlePlan, THROUGH};
use crate::nearest::suggestion;
use crate::node::{Place, Table, Value};
use crate::plan::Level;
use crate::report::Report;
use crate::section::{Bounds, Section, Setting};
use crate::template::{self, PORT};

const KEYS: [&str; 10] =
    ["build", "command", "directory", "environment", "files", "calls", "cpus", "port", "ready_timeout", "stop_timeout"];
const CPUS: Bounds<u64> = Bounds { low: 1, high: 4096, text: "1 to 4,096, or \"subject\"" };
/// Most middles that requests pass one after another.
const CHAIN_MAX: usize = 8;

/// The middles of a study by name, and where each begins.
pub(crate) struct Middles<'a> {
    tables: BTreeMap<&'a str, (&'a Table, Place)>,
    report: &'a Report<'a>,
}

/// The middles; those that are no tables are reported and left out.
pub(crate) fn read<'a>(root: &'a Table, factors: &[Factor], report: &'a Report<'a>) -> Middles<'a> {
    let mut middles = Middles { tables: BTreeMap::new(), report };
    let Some(entry) = root.get("middle") else { return middles };
    let Value::Table(all) = &entry.node.value else {
        let message = format!("`middle` is a table of middles, not {}", entry.node.value.kind());
        report.mistake(entry.node.place, message, "begin each with its name: `[middle.haproxy]`".to_owned());
        return middles;
    };
    for entry in all.iter() {
        let name = entry.key.as_str();
        if name == DIRECT || name.is_empty() || name.contains('+') || name.trim() != name {
            let message = format!("`{}` cannot be the name of a middle", name.escape_debug());
            let hint = "`direct` stands for none, and `a + b` for one behind another".to_owned();
            report.mistake(entry.key_place, message, hint);
            continue;
        }
        match &entry.node.value {
            Value::Table(table) => {
                middles.section(name, table, entry.key_place, &[]).only(&KEYS);
                middles.tables.insert(name, (table, entry.key_place));
            }
            other => {
                report.mistake(entry.node.place, format!("`middle.{name}` is a table, not {}", other.kind()), None)
            }
        }
    }
    if !factors.iter().any(|factor| factor.name == THROUGH) && !super::lost(THROUGH, report) {
        let hint = "add `through = [\"direct\", \"NAME\"]` to `[factors]`".to_owned();
        report.missing(entry.key_place, "no factor `through` says which design points pass a middle", hint);
    }
    middles
}

impl<'a> Middles<'a> {
    fn section<'b>(&'b self, name: &str, table: &'b Table, place: Place, settings: &'b [Setting<'b>]) -> Section<'b> {
        let (name, table) = (format!("middle.{name}"), Cow::Borrowed(table));
        Section { name, table, place, settings, report: self.report }
    }

    /// What the requests of a design point pass, the generator's neighbour first; `None` only where a mistake was reported.
    pub(crate) fn of(&self, settings: &[Setting<'_>]) -> Option<Vec<MiddlePlan>> {
        if self.tables.is_empty() {
            return Some(Vec::new());
        }
        let Some(setting) = settings.iter().find(|setting| setting.factor == THROUGH) else { return Some(Vec::new()) };
        let mistake = |message: String, hint: Option<String>| {
            self.report.mistake(setting.place, message, hint);
            None
        };
        let Level::Text(level) = setting.level else {
            return mistake(format!("a level of `through` is `direct` or a middle, not `{}`", setting.level), None);
        };
        if level == DIRECT {
            return Some(Vec::new());
        }
        let names = level.split('+').map(str::trim).collect::<Vec<_>>();
        if names.len() > CHAIN_MAX {
            return mistake(format!("`{level}` has more than {CHAIN_MAX} middles"), None);
        }
        if names.iter().collect::<BTreeSet<_>>().len() < names.len() {
            return mistake(format!("`{level}` passes a middle twice"), None);
        }
        let known = || self.tables.keys().copied().chain([DIRECT]);
        if let Some(unknown) = names.iter().find(|name| !self.tables.contains_key(**name)) {
            let message = format!("`{}` is no middle", unknown.escape_debug());
            return mistake(message, Some(suggestion(unknown, known())));
        }
        // Every one is read, so that all mistakes are found.
        let read = names.into_iter().map(|name| {
            let (table, place) = self.tables[name];
            one(name, &self.section(name, table, place, settings))
        });
        read.collect::<Vec<_>>().into_iter().collect()
    }
}

fn one(name: &str, middle: &Section) -> Option<MiddlePlan> {
    middle.required("command", "\"haproxy -db -f {folder}/haproxy.cfg\"");
    let command = middle.text("command");
    if command.as_ref().is_some_and(|command| command.trim().is_empty()) {
        middle.mistake("command", format!("`{}.command` is empty", middle.name), None);
    }
    command.iter().for_each(|command| subject::can_be_started(middle, "command", command));
    let files = files(middle);
    let calls = super::load::given(middle, "calls", middle.text_as("calls", file_name));
    let port = super::load::given(middle, "port", middle.small("port", &subject::PORTS));
    let cpus = cpus(middle);
    let (build, directory) = (subject::build(middle), subject::optional(middle, "directory"));
    let environment = subject::environment(middle);
    let (ready, stop) = subject::timeouts(middle);
    let (command, files) = (command?, files?);
    let has_port = |text: &str| template::templates(text).iter().any(|(_, name)| *name == PORT);
    if port == Some(None) && files.is_empty() && !has_port(&command) {
        let hint = "pass `{port}` to it, or set `port` to the one it always uses".to_owned();
        middle.mistake("command", format!("`{}.command` has no `{{port}}`", middle.name), hint);
    }
    Some(MiddlePlan {
        name: name.to_owned(),
        build: build?,
        command,
        directory: directory?,
        environment: environment?,
        files,
        calls: calls?,
        cpus: cpus?,
        port: port?.map(|port| u16::try_from(port).expect("its bounds fit 16 bits")),
        ready_timeout_ns: ready?,
        stop_timeout_ns: stop?,
    })
}

/// Processors of its own; 0: the subject's.
fn cpus(middle: &Section) -> Option<u32> {
    if !middle.has("cpus") || middle.is_word("cpus", "subject") {
        return Some(0);
    }
    middle.small("cpus", &CPUS)
}

fn files(middle: &Section) -> Option<BTreeMap<String, String>> {
    if !middle.has("files") {
        return Some(BTreeMap::new());
    }
    let section = middle.section("files")?;
    let mut fine = true;
    let mut files = BTreeMap::new();
    for entry in section.table.iter() {
        if let Err((message, hint)) = file_name(&entry.key) {
            section.report.mistake(entry.key_place, message, hint);
            fine = false;
        }
        match section.text(&entry.key) {
            Some(template) => drop(files.insert(entry.key.clone(), template)),
            None => fine = false,
        }
    }
    fine.then_some(files)
}

/// A name without a folder: it lies in the middle's own.
fn file_name(name: &str) -> Result<String, (String, Option<String>)> {
    if name.is_empty() || name.contains(['/', '\0']) || name.starts_with('.') {
        let hint = "it lies in the folder that the middle has for itself, `{folder}`".to_owned();
        return Err((format!("`{}` is not the name of a file without a folder", name.escape_debug()), Some(hint)));
    }
    Ok(name.to_owned())
}
