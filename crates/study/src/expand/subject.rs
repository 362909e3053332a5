//! Reads `[subject]`, which defines the server's build and start, and `[subject.variants]`, whose keys differ by level.

use std::collections::{BTreeMap, BTreeSet};

use config::{Entry, NamedText, Report, Table, suggestion};

use crate::expand::factor_levels::{self, Factor};
use crate::expand::{ExpandOptions, optional};
use crate::factor_placeholders::{self, PORT};
use crate::plan::{ProcessPlan, SubjectPlan, VerifyPlan};
use crate::process_plan::{ContainerPlan, ENGINES, is_image};
use crate::section_at_design_point::Section;
use crate::shell_words;
use crate::study_and_profiles::{Profile, in_profile};

pub(super) const VARIED: [&str; 2] = ["subject", "load"];

pub(super) fn check_keys(subject: &Section) {
    subject.check_keys();
    check_variants_keys(subject);
}

/// Reports unknown keys of a section's variants. A variant may have all keys of the section except `variants`.
pub(super) fn check_variants_keys(section: &Section) {
    let known = section.keys.names().filter(|name| *name != "variants").collect::<Vec<_>>();
    let Some(variants) = section.section("variants") else { return };
    for entry in variants.table.iter() {
        variants.section_of(&entry.key, section.keys).iter().for_each(|variant| variant.only(&known));
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Cpus {
    /// Exactly this many CPUs; otherwise the point cannot be run.
    Exactly(u32),
    /// This many CPUs, or fewer if the generator leaves fewer.
    UpTo(u32),
    All,
}

pub(super) fn read(subject: &Section) -> (SubjectPlan, Cpus) {
    let subject = &with_variant(subject);
    let (process, verify) = (process(subject, true, PASS_PORT), verify(subject));
    (SubjectPlan { process, verify, ..SubjectPlan::default() }, cpus(subject))
}

pub(super) const PASS_PORT: &str =
    "pass `{port}` to the server here or in `environment`, or set `port` to the one it always uses";

/// Reads how a process is built, started and stopped. Reports `hint` if a needed port is neither set nor passed.
pub(super) fn process(section: &Section, needs_port: bool, hint: &str) -> ProcessPlan {
    let in_container = section.filled("image").map_or(section.has("image"), |(image, _)| !image.trim().is_empty());
    // A container with a known port needs no `command`.
    let knows_port = section.has("port") || in_container && section.has("publish");
    let (environment, build) = (environment(section), optional(section, "build"));
    build.iter().for_each(|command| check_words(section, "build", command));
    section.required_if(!(in_container && knows_port), "command");
    let command = section.text("command");
    if let Some(command) = &command {
        let has_port = |text: &String| factor_placeholders::names(text).contains(&PORT);
        check_words(section, "command", command);
        if command.trim().is_empty() && !in_container {
            section.mistake("command", format!("`{}.command` is empty", section.name), None);
        } else if needs_port && !knows_port && !has_port(command) && !environment.values().any(has_port) {
            section.mistake("command", format!("`{}.command` has no `{{port}}`", section.name), hint.to_owned());
        }
    }
    ProcessPlan {
        build,
        command: command.unwrap_or_default(),
        container: section.keys.get("image").and_then(|_| container(section)),
        directory: optional(section, "directory"),
        environment,
        port: section.small("port"),
        ready_timeout_ns: section.duration_ns("ready_timeout").unwrap_or_default(),
        stop_timeout_ns: section.duration_ns("stop_timeout").unwrap_or_default(),
    }
}

fn verify(subject: &Section) -> Option<VerifyPlan> {
    match subject.filled("verify") {
        Some((text, _)) if !["true", "false"].contains(&text.as_str()) => {
            optional(subject, "verify").map(|file| VerifyPlan { cases: Some(file) })
        }
        _ => subject.flag("verify")?.then(VerifyPlan::default),
    }
}

fn cpus(subject: &Section) -> Cpus {
    let up_to = |table: Section| {
        table.check();
        table.small("up_to")
    };
    match subject.is_table("cpus") {
        true => Cpus::UpTo(subject.section("cpus").and_then(up_to).unwrap_or_default()),
        false if subject.is_word("cpus", "all") => Cpus::All,
        false => Cpus::Exactly(subject.small("cpus").unwrap_or_default()),
    }
}

fn check_words(section: &Section, key: &str, command: &str) {
    if !command.trim().is_empty()
        && let Err(error) = shell_words::check(command)
    {
        section.report.invalid(section.place_of(key), error.of(&format!("`{}.{key}`", section.name)));
    }
}

fn environment(subject: &Section) -> BTreeMap<String, String> {
    let variable = |NamedText { name, name_place, text, .. }: NamedText| {
        let message = format!("`{}` is not a valid environment variable name", name.escape_debug());
        subject.report.rule(name.is_empty() || name.contains(['=', '\0']), name_place, message, None);
        (name, text)
    };
    subject.named_texts("environment").into_iter().map(variable).collect()
}

/// The section `[subject]` or `[load]` with the keys of the variant that the point's levels select.
pub(super) fn with_variant<'a>(subject: &Section<'a>) -> Section<'a> {
    let mut table = subject.table.clone();
    if let Some(variants) = subject.table.table("variants") {
        let levels = subject.fill.0.iter().map(|setting| setting.level.to_string());
        let chosen = levels.filter_map(|level| variants.table(&level));
        chosen.flat_map(Table::iter).for_each(|entry| table.to_mut().put(entry.clone()));
    }
    Section { table, ..subject.clone() }
}

pub(super) fn has_variant_of(root: &Table, factor: &Factor) -> bool {
    let names = |entry: &Entry| factor.levels.iter().any(|(level, _)| level.to_string() == entry.key);
    VARIED.iter().flat_map(|section| variants(root, section)).any(names)
}

/// The variants of a section, each with its level as the key.
pub(super) fn variants<'a>(root: &'a Table, section: &str) -> impl Iterator<Item = &'a Entry> + use<'a> {
    root.table(section).and_then(|table| table.table("variants")).into_iter().flat_map(Table::iter)
}

/// Reports variants that are named after no level in any profile or after levels of two factors. Ignores `--set`,
/// because a variant may belong to a level that `--set` excludes.
pub(super) fn check_variants(root: &Table, report: &Report) {
    let mut words: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    let mut variants = BTreeMap::new();
    let muted = Report::new("the study", "", &[]);
    for profile in Profile::ALL {
        let merged = in_profile(root, profile, &muted);
        for factor in factor_levels::read(&merged, &ExpandOptions::default(), &muted) {
            for (level, _) in factor.levels {
                words.entry(level.to_string()).or_default().insert(factor.name.clone());
            }
        }
        for section in VARIED {
            variants.extend(self::variants(&merged, section).map(|entry| (entry.key_place, entry.key.clone())));
        }
    }
    for (place, variant) in variants {
        let factors = words.get(&variant);
        if factors.is_none_or(BTreeSet::is_empty) {
            let known = words.keys().map(String::as_str);
            let message = format!("variant `{variant}` is not a level of any factor");
            report.missing(place, message, suggestion(&variant, known));
        }
        if let Some(factors) = factors.filter(|factors| factors.len() > 1) {
            let factors = factors.iter().map(|factor| format!("`{factor}`")).collect::<Vec<_>>().join(" and ");
            let message = format!("variant `{variant}` is a level of {factors}");
            report.mistake(place, message, "rename one of the levels".to_owned());
        }
    }
}

const ONLY: [&str; 3] = ["engine", "publish", "options"];

fn container(section: &Section) -> Option<ContainerPlan> {
    let name = &section.name;
    let Some(image) = optional(section, "image") else {
        if !section.has("image") {
            section.refuse(ONLY, "needs an `image`", "add the image of the container, or drop the key");
        }
        return None;
    };
    let message = format!("`{name}.image`: `{}` is not a valid image name", image.escape_debug());
    let hint = "name it as `podman images` or `docker images` does: `localhost/mine:latest`";
    section.rule(!is_image(&image), "image", message, hint);
    let options = optional(section, "options").unwrap_or_default();
    let words = shell_words::arguments(&options).map_err(|error| error.of(&format!("`{name}.options`")));
    let words = section.report.valid(section.place_of("options"), words).unwrap_or_default();
    for option in words.iter().filter_map(|word| word.split('=').next()) {
        if let Some((_, instead)) = OWN.iter().find(|(own, _)| own.contains(&option)) {
            let message = format!("`{name}.options`: `{option}` is set by quintain");
            section.mistake("options", message, instead.map(str::to_owned));
        }
    }
    let engine = section.choice("engine", ENGINES).unwrap_or_default();
    Some(ContainerPlan { image, engine, publish: section.small("publish"), options })
}

/// Container options that only the lab may set, each with an alternative for studies if there is one.
const OWN: [(&[&str], Option<&str>); 6] = [
    (&["--name", "--rm", "--detach", "-d"], None),
    (&["--cpuset-cpus"], Some("set `cpus`")),
    (&["--network", "--net"], Some("set `publish` for a network of its own")),
    (&["--publish", "-p"], Some("set `publish`")),
    (&["--env", "-e"], Some("set `environment`")),
    (&["--pull"], Some("pull the image before the run")),
];
