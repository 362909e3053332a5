//! `[companion.NAME]`: what the server needs beside it.

use std::borrow::Cow;
use std::collections::BTreeSet;

use config::node::{Table, Value};
use config::{Place, Report};

use crate::companion::CompanionPlan;
use crate::expand::subject;
use crate::keys::COMPANION;
use crate::section::{Section, Setting, Settings};
use crate::template;

/// Most companions of a study.
const MOST: usize = 8;

/// The companions of a study, in the order of their names, and where each begins.
pub(crate) struct Companions<'a> {
    tables: Vec<(&'a str, &'a Table, Place)>,
    report: &'a Report<'a>,
}

/// The companions; those that are no tables are reported and left out.
pub(crate) fn read<'a>(root: &'a Table, report: &'a Report<'a>) -> Companions<'a> {
    let mut companions = Companions { tables: Vec::new(), report };
    let Some(entry) = root.get("companion") else { return companions };
    let Value::Table(all) = &entry.node.value else {
        let message = format!("`companion` must be a table of companions, not {}", entry.node.value.kind());
        report.mistake(entry.node.place, message, "begin each companion with its name: `[companion.db]`".to_owned());
        return companions;
    };
    for (nth, entry) in all.iter().enumerate() {
        let name = entry.key.as_str();
        let port = template::port_of(name);
        if nth == MOST {
            report.mistake(entry.key_place, format!("more than {MOST} companions"), None);
        }
        if !template::is_name(&port) || template::PROXY.contains(&port.as_str()) {
            let message = format!("`{}` is not a valid companion name", name.escape_debug());
            let hint = format!(
                "use letters, digits, `_` and `-`, so that `{{NAME_port}}` is its port, and none of {}",
                taken()
            );
            report.mistake(entry.key_place, message, hint);
            continue;
        }
        match &entry.node.value {
            Value::Table(table) => {
                companions.section(name, table, entry.key_place, &[]).check_keys();
                companions.tables.push((name, table, entry.key_place));
            }
            other => {
                let message = format!("`companion.{name}` must be a table, not {}", other.kind());
                report.mistake(entry.node.place, message, None);
            }
        }
    }
    companions.tables.sort_unstable_by_key(|(name, ..)| *name);
    companions
}

/// Names whose ports are others', in words.
fn taken() -> String {
    let names = template::PROXY.iter().filter_map(|name| name.strip_suffix(template::PORT_OF)).collect::<BTreeSet<_>>();
    names.into_iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
}

impl<'a> Companions<'a> {
    fn section<'b>(&'b self, name: &str, table: &'b Table, place: Place, settings: &'b [Setting<'b>]) -> Section<'b> {
        let (name, table) = (format!("companion.{name}"), Cow::Borrowed(table));
        Section { name, table, keys: &COMPANION, place, fill: Settings(settings), report: self.report }
    }

    /// The names of the templates that are their ports.
    pub(crate) fn ports(&self) -> BTreeSet<String> {
        self.tables.iter().map(|(name, ..)| template::port_of(name)).collect()
    }

    /// Those of a design point; `None` only where a mistake was reported.
    pub(crate) fn of(&self, settings: &[Setting<'_>]) -> Option<Vec<CompanionPlan>> {
        // Every one is read, so that all mistakes are found.
        let read =
            self.tables.iter().map(|(name, table, place)| one(name, &self.section(name, table, *place, settings)));
        read.collect::<Vec<_>>().into_iter().collect()
    }
}

fn one(name: &str, companion: &Section) -> Option<CompanionPlan> {
    let server = subject::server(companion);
    let (cpus, fresh) = (companion.small("cpus"), companion.flag("fresh"));
    let server = server?;
    Some(CompanionPlan {
        name: name.to_owned(),
        build: server.build,
        command: server.command,
        container: server.container,
        directory: server.directory,
        environment: server.environment,
        cpus: cpus?,
        port: server.port,
        fresh: fresh?,
        ready_timeout_ns: server.ready_timeout_ns,
        stop_timeout_ns: server.stop_timeout_ns,
    })
}
