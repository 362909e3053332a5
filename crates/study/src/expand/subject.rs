//! `[subject]`: how the server is built and started, and `[subject.variants]`, where one level needs it otherwise.

use std::collections::{BTreeMap, BTreeSet};

use config::nearest::suggestion;
use config::node::{Table, Value};
use config::{Place, Report};

use crate::expand::factors::Factor;
use crate::expand::{container, optional};
use crate::plan::{Level, SubjectPlan, VerifyPlan};
use crate::section::Section;
use crate::source::{Profile, in_profile};
use crate::template::{self, PORT};
use crate::words;

/// The sections that a level may have otherwise.
const VARIED: [&str; 2] = ["subject", "load"];

/// Reports unknown keys.
pub(crate) fn check_keys(subject: &Section) {
    subject.check_keys();
    check_variants_keys(subject);
}

/// Reports unknown keys of the variants of a section, which has all but variants of their own.
pub(super) fn check_variants_keys(section: &Section) {
    let known = section.keys.names().filter(|name| *name != "variants").collect::<Vec<_>>();
    let Some(variants) = section.section("variants") else { return };
    for entry in variants.table.iter() {
        variants.section_of(&entry.key, section.keys).iter().for_each(|variant| variant.only(&known));
    }
}

/// How many processors a subject is to have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cpus {
    /// So many, or the point cannot be run.
    Exactly(u32),
    /// So many, or what the generator leaves where that is less.
    UpTo(u32),
    /// What the generator leaves.
    All,
}

/// The subject of one design point, and the processors it is to have; `None` only where a mistake was reported.
pub(crate) fn read(subject: &Section) -> Option<(SubjectPlan, Cpus)> {
    let subject = &with_variant(subject);
    let (plan, cpus, verify) = (server(subject), cpus(subject), verify(subject));
    Some((SubjectPlan { verify: verify?, ..plan? }, cpus?))
}

/// A server, process or container: of the subject, or of a companion. Its processors are not read here.
pub(super) fn server(subject: &Section) -> Option<SubjectPlan> {
    let container = container::read(subject);
    let in_container = container.as_ref().is_none_or(Option::is_some);
    let has_port = subject.has("port");
    let port = subject.small("port");
    // The port of a container may be known: its own command needs no arguments then.
    let knows_port = has_port || in_container && subject.has("publish");
    let command = if in_container && knows_port && !subject.has("command") {
        Some(String::new())
    } else {
        subject.required("command");
        subject.text("command")
    };
    let environment = environment(subject);
    let has_port_in = |text: &str| template::templates(text).iter().any(|(_, name)| *name == PORT);
    // Unknown if the environment has a mistake of its own.
    let in_environment = environment.as_ref().is_none_or(|all| all.values().any(|value| has_port_in(value)));
    if let Some(command) = &command {
        if command.trim().is_empty() && !in_container {
            subject.mistake("command", format!("`{}.command` is empty", subject.name), None);
        } else if !knows_port && !in_environment && !has_port_in(command) {
            let hint = "pass `{port}` to the server here or in `environment`, or set `port` to the one it always uses";
            subject.mistake("command", format!("`{}.command` has no `{{port}}`", subject.name), hint.to_owned());
        }
        can_be_started(subject, "command", command);
    }
    let build = build(subject);
    let (ready, stop) = (subject.duration_ns("ready_timeout"), subject.duration_ns("stop_timeout"));
    let directory = optional(subject, "directory");
    Some(SubjectPlan {
        build: build?,
        command: command?,
        container: container?,
        directory: directory?,
        revision: None,
        environment: environment?,
        // What the machine has is not known here.
        cpus: 0,
        cpus_wanted: None,
        port: if has_port { Some(u16::try_from(port?).expect("its bounds fit 16 bits")) } else { None },
        ready_timeout_ns: ready?,
        stop_timeout_ns: stop?,
        verify: None,
    })
}

/// Whether it is verified: `true`, or a file with more cases.
fn verify(subject: &Section) -> Option<Option<VerifyPlan>> {
    match subject.filled("verify") {
        Some((text, _)) if !["true", "false"].contains(&text.as_str()) => {
            Some(optional(subject, "verify")?.map(|file| VerifyPlan { cases: Some(file) }))
        }
        _ => Some(subject.flag("verify")?.then(VerifyPlan::default)),
    }
}

fn cpus(subject: &Section) -> Option<Cpus> {
    match subject.table.get("cpus").map(|entry| &entry.node.value) {
        Some(Value::Table(_)) => {
            let table = subject.section("cpus")?;
            table.check_keys();
            table.required("up_to");
            table.small("up_to").map(Cpus::UpTo)
        }
        Some(Value::Text(_)) if subject.is_word("cpus", "all") => Some(Cpus::All),
        _ => subject.small("cpus").map(Cpus::Exactly),
    }
}

/// The command that builds it.
pub(super) fn build(section: &Section) -> Option<Option<String>> {
    let build = optional(section, "build")?;
    build.iter().for_each(|command| can_be_started(section, "build", command));
    Some(build)
}

/// Reports a command that does not mean what it says when no shell reads it.
pub(super) fn can_be_started(section: &Section, key: &str, command: &str) {
    // An empty one has been reported.
    if !command.trim().is_empty()
        && let Err(mistake) = words::check(command)
    {
        section.mistake(key, format!("`{}.{key}`: {mistake}", section.name), mistake.hint);
    }
}

pub(super) fn environment(subject: &Section) -> Option<BTreeMap<String, String>> {
    if !subject.has("environment") {
        return Some(BTreeMap::new());
    }
    let section = subject.section("environment")?;
    let mut environment = BTreeMap::new();
    for entry in section.table.iter() {
        if entry.key.is_empty() || entry.key.contains(['=', '\0']) {
            let message = format!("`{}` is not a valid environment variable name", entry.key.escape_debug());
            section.report.mistake(entry.key_place, message, None);
        }
        let value = match &entry.node.value {
            Value::Integer(number) => Some(number.to_string()),
            _ => section.text(&entry.key),
        };
        environment.insert(entry.key.clone(), value);
    }
    environment.into_iter().map(|(key, value)| Some((key, value?))).collect()
}

/// `[subject]` or `[load]` with the keys of the variant that one of this point's levels has.
pub(crate) fn with_variant<'a>(subject: &Section<'a>) -> Section<'a> {
    let variants = subject.table.table("variants");
    let levels = subject.fill.0.iter().map(|setting| setting.level.to_string());
    let chosen = levels.filter_map(|level| variants?.table(&level)).collect::<Vec<_>>();
    let mut table = subject.table.clone();
    for entry in chosen.into_iter().flat_map(Table::iter) {
        table.to_mut().put(entry.clone());
    }
    Section { table, ..subject.clone() }
}

/// Whether the level of some variant is one of `factor`'s.
pub(crate) fn has_variant_of(root: &Table, factor: &Factor) -> bool {
    let names = |variants: &Table| factor.levels.iter().any(|(level, _)| variants.get(&level.to_string()).is_some());
    VARIED.iter().filter_map(|section| root.table(section)?.table("variants")).any(names)
}

/// Where the commands stand, the only texts in which `{port}` is filled in.
pub(crate) fn commands(root: &Table) -> BTreeSet<Place> {
    with_variants(root).into_iter().filter_map(|table| table.get("command")).map(|entry| entry.node.place).collect()
}

/// Where its environment stands, in which the ports of companions are filled in, as they are in commands.
pub(crate) fn environments(root: &Table) -> BTreeSet<Place> {
    let mut texts = Vec::new();
    let tables = with_variants(root);
    tables.iter().filter_map(|table| table.get("environment")).for_each(|entry| entry.node.texts(&mut texts));
    texts.into_iter().map(|(_, place)| place).collect()
}

/// `[subject]` and its variants.
fn with_variants(root: &Table) -> Vec<&Table> {
    let subject = root.table("subject");
    let variants = subject.and_then(|subject| subject.table("variants")).into_iter().flat_map(Table::iter);
    let variants = variants.filter_map(|entry| match &entry.node.value {
        Value::Table(variant) => Some(variant),
        _ => None,
    });
    subject.into_iter().chain(variants).collect()
}

/// Reports variants whose name is no level in any profile, or a level of two factors. Not a matter of one profile, and
/// not of `--set`: a variant may wait for a level that is not asked for now.
pub(crate) fn check_variants(root: &Table, report: &Report) {
    // The words of every factor, over all profiles.
    let mut words: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    let mut variants = BTreeMap::new();
    let muted = Report::new("the study", "", &[]);
    for profile in Profile::ALL {
        let merged = in_profile(root, profile, &muted);
        for entry in merged.table("factors").into_iter().flat_map(Table::iter) {
            let Value::List(items) = &entry.node.value else { continue };
            let levels = items.iter().filter_map(|item| match &item.value {
                Value::Text(word) => Some(word.clone()),
                Value::Integer(level) => Some(Level::Integer(*level).to_string()),
                Value::Number(level) => Some(Level::Number(*level).to_string()),
                _ => None,
            });
            for level in levels {
                words.entry(level).or_default().insert(entry.key.clone());
            }
        }
        for section in VARIED {
            let found =
                merged.table(section).and_then(|table| table.table("variants")).into_iter().flat_map(Table::iter);
            variants.extend(found.map(|entry| (entry.key_place, entry.key.clone())));
        }
    }
    for (place, variant) in variants {
        let factors = words.get(&variant);
        if factors.is_none_or(BTreeSet::is_empty) {
            let known = words.keys().map(String::as_str);
            report.missing(
                place,
                format!("variant `{variant}` is not a level of any factor"),
                suggestion(&variant, known),
            );
        }
        if let Some(factors) = factors.filter(|factors| factors.len() > 1) {
            let factors = factors.iter().map(|factor| format!("`{factor}`")).collect::<Vec<_>>().join(" and ");
            report.mistake(
                place,
                format!("variant `{variant}` is a level of {factors}"),
                "rename one of the levels".to_owned(),
            );
        }
    }
}
