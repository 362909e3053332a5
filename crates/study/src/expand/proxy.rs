//! `[proxy.NAME]`: what stands between generator and subject, and the factor `through`, whose levels say which of them do.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use config::nearest::suggestion;
use config::node::{Table, Value};
use config::{Place, Report};

use crate::expand::factors::Factor;
use crate::expand::subject;
use crate::keys::PROXY;
use crate::plan::Level;
use crate::proxy::{DIRECT, ProxyPlan, THROUGH};
use crate::section::{Section, Setting, Settings};
use crate::template::{self, PORT};

/// Most proxies that requests pass one after another.
const CHAIN_MAX: usize = 8;

/// The proxies of a study by name, and where each begins.
pub(crate) struct Proxies<'a> {
    tables: BTreeMap<&'a str, (&'a Table, Place)>,
    report: &'a Report<'a>,
}

/// The proxies; those that are no tables are reported and left out.
pub(crate) fn read<'a>(root: &'a Table, factors: &[Factor], report: &'a Report<'a>) -> Proxies<'a> {
    let mut proxies = Proxies { tables: BTreeMap::new(), report };
    let Some(entry) = root.get("proxy") else { return proxies };
    let Value::Table(all) = &entry.node.value else {
        let message = format!("`proxy` must be a table of proxies, not {}", entry.node.value.kind());
        report.mistake(entry.node.place, message, "begin each proxy with its name: `[proxy.haproxy]`".to_owned());
        return proxies;
    };
    for entry in all.iter() {
        let name = entry.key.as_str();
        if name == DIRECT || name.is_empty() || name.contains('+') || name.trim() != name {
            let message = format!("`{}` is not a valid proxy name", name.escape_debug());
            let hint = "`direct` means no proxy, `a + b` means a chain".to_owned();
            report.mistake(entry.key_place, message, hint);
            continue;
        }
        match &entry.node.value {
            Value::Table(table) => {
                proxies.section(name, table, entry.key_place, &[]).check_keys();
                proxies.tables.insert(name, (table, entry.key_place));
            }
            other => {
                report.mistake(entry.node.place, format!("`proxy.{name}` must be a table, not {}", other.kind()), None)
            }
        }
    }
    if !factors.iter().any(|factor| factor.name == THROUGH) && !super::lost(THROUGH, report) {
        let hint = "add `through = [\"direct\", \"NAME\"]` to `[factors]`".to_owned();
        report.missing(entry.key_place, "no factor `through` selects the design points with a proxy", hint);
    }
    proxies
}

impl<'a> Proxies<'a> {
    fn section<'b>(&'b self, name: &str, table: &'b Table, place: Place, settings: &'b [Setting<'b>]) -> Section<'b> {
        let (name, table) = (format!("proxy.{name}"), Cow::Borrowed(table));
        Section { name, table, keys: &PROXY, place, fill: Settings(settings), report: self.report }
    }

    /// What the requests of a design point pass, the generator's neighbour first; `None` only where a mistake was reported.
    pub(crate) fn of(&self, settings: &[Setting<'_>]) -> Option<Vec<ProxyPlan>> {
        if self.tables.is_empty() {
            return Some(Vec::new());
        }
        let Some(setting) = settings.iter().find(|setting| setting.factor == THROUGH) else { return Some(Vec::new()) };
        let mistake = |message: String, hint: Option<String>| {
            self.report.mistake(setting.place, message, hint);
            None
        };
        let Level::Text(level) = setting.level else {
            return mistake(format!("a level of `through` must be `direct` or a proxy, not `{}`", setting.level), None);
        };
        if level == DIRECT {
            return Some(Vec::new());
        }
        let names = level.split('+').map(str::trim).collect::<Vec<_>>();
        if names.len() > CHAIN_MAX {
            return mistake(format!("`{level}` has more than {CHAIN_MAX} proxies"), None);
        }
        if names.iter().collect::<BTreeSet<_>>().len() < names.len() {
            return mistake(format!("duplicate proxy in `{level}`"), None);
        }
        let known = || self.tables.keys().copied().chain([DIRECT]);
        if let Some(unknown) = names.iter().find(|name| !self.tables.contains_key(**name)) {
            let message = format!("unknown proxy `{}`", unknown.escape_debug());
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

fn one(name: &str, proxy: &Section) -> Option<ProxyPlan> {
    proxy.required("command");
    let command = proxy.text("command");
    if command.as_ref().is_some_and(|command| command.trim().is_empty()) {
        proxy.mistake("command", format!("`{}.command` is empty", proxy.name), None);
    }
    command.iter().for_each(|command| subject::can_be_started(proxy, "command", command));
    let files = files(proxy);
    let calls = proxy.given("calls", proxy.text_as("calls", file_name));
    let port = proxy.given("port", proxy.small("port"));
    let cpus = cpus(proxy);
    let (build, directory) = (subject::build(proxy), super::optional(proxy, "directory"));
    let environment = subject::environment(proxy);
    let (ready, stop) = (proxy.duration_ns("ready_timeout"), proxy.duration_ns("stop_timeout"));
    let (command, files) = (command?, files?);
    let has_port = |text: &str| template::templates(text).iter().any(|(_, name)| *name == PORT);
    let in_environment = environment.as_ref().is_none_or(|all| all.values().any(|value| has_port(value)));
    if port == Some(None) && files.is_empty() && !has_port(&command) && !in_environment {
        let hint = "pass `{port}` to it, or set `port` to the one it always uses".to_owned();
        proxy.mistake("command", format!("`{}.command` has no `{{port}}`", proxy.name), hint);
    }
    Some(ProxyPlan {
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
fn cpus(proxy: &Section) -> Option<u32> {
    if proxy.is_word("cpus", "subject") {
        return Some(0);
    }
    proxy.small("cpus")
}

fn files(proxy: &Section) -> Option<BTreeMap<String, String>> {
    if !proxy.has("files") {
        return Some(BTreeMap::new());
    }
    let section = proxy.section("files")?;
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

/// A name without a folder: it lies in the directory of the proxy.
fn file_name(name: &str) -> Result<String, (String, Option<String>)> {
    if name.is_empty() || name.contains(['/', '\0']) || name.starts_with('.') {
        let hint = "files are relative to the proxy's own directory, `{folder}`".to_owned();
        return Err((format!("`{}` is not a plain file name", name.escape_debug()), Some(hint)));
    }
    Ok(name.to_owned())
}
