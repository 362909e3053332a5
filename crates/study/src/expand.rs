//! Parses study files (TOML) and reports all errors at once; [`crate::keys`] declares the keys. Expands a [`Study`] into
//! a [`Plan`]: one design point per combination of levels, with its commands and load.

mod factor_levels;
mod figures_and_tables;
mod http;
mod journey;
mod load;
mod proxies_and_companions;
mod question;
mod subject;
mod trials;
mod workload;

use std::collections::BTreeSet;

use config::{Diagnostic, Entry, Invalid, Place, Report, Table, Value, node, suggestion};

use factor_levels::Factor;
use subject::Cpus;

use crate::plan::{Design, LoadPlan, Plan, Point};
use crate::section_at_design_point::{Section, Setting, Settings};
use crate::study_and_profiles::{Profile, Study, TEXT_MAX_BYTES, in_profile};
use crate::{factor_placeholders, keys, set_overrides};

pub use workload::parse as parse_workload;

/// Maximum number of design points of a plan, not counting points added to find capacities.
pub const POINTS_MAX: usize = 10_000;

/// Inputs of a plan in addition to its study.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExpandOptions {
    /// Name of the study, the stem of its file.
    pub name: String,
    /// Seed for the order of trials and all randomness in them.
    pub seed: u64,
    /// Profile in which the study is expanded.
    pub profile: Profile,
    /// Number of CPUs of the machine, which determines the levels of `"auto"` and the points that cannot run here.
    pub machine_cpus: u32,
    /// Whether the server may use all CPUs because the generators run on their own machines.
    pub generators_apart: bool,
    /// Overrides of factors (`cores`, `1,2`) and dotted keys (`load.stop.duration`, `2s`). The last one for a key wins.
    pub sets: Vec<(String, String)>,
}

impl Default for ExpandOptions {
    fn default() -> Self {
        let (name, sets) = (String::new(), Vec::new());
        Self { name, seed: 1, profile: Profile::Default, machine_cpus: 2, generators_apart: false, sets }
    }
}

impl ExpandOptions {
    fn generator_cpus(&self, share: bool, cpus: Option<u32>) -> u32 {
        if self.generators_apart || share { 0 } else { cpus.unwrap_or(1) }
    }
}

/// Parses a study and checks syntax, names, types, units, ranges and references in all profiles. Fails with all errors.
pub fn parse(text: &str) -> Result<Study, Vec<Diagnostic>> {
    let report = Report::new("the study", text, &[]);
    report.check_length("a study", TEXT_MAX_BYTES)?;
    let root = node::document(text, &report);
    for profile in Profile::ALL {
        if profile == Profile::Default || root.get(profile.name()).is_some() {
            // Assumes two CPUs, since the number of CPUs is unknown here; no error depends on it.
            let options = ExpandOptions { profile, ..ExpandOptions::default() };
            plan_of(&in_profile(&root, profile, &report), text, &options, &report);
        }
    }
    subject::check_variants(&root, &report);
    report.finish()?;
    Ok(Study { text: text.to_owned(), root })
}

/// Expands a study. Equal arguments give equal plans. Fails with the errors that `--set` flags contain or cause.
pub fn expand(study: &Study, options: &ExpandOptions) -> Result<Plan, Vec<Diagnostic>> {
    let set_texts = options.sets.iter().map(|(key, value)| format!("{key}={value}")).collect::<Vec<_>>();
    let report = Report::new("the study", &study.text, &set_texts);
    let mut root = in_profile(&study.root, options.profile, &report);
    set_overrides::apply(&mut root, &options.sets, &report);
    let plan = plan_of(&root, &study.text, options, &report);
    report.finish().map(|()| plan)
}

/// Builds the plan of a study and reports all errors. Invalid values are replaced so that later errors are found too.
fn plan_of(root: &Table, text: &str, options: &ExpandOptions, report: &Report) -> Plan {
    let top = Section::whole(root, &keys::STUDY, Settings(&[]), report);
    top.check_keys();
    top.required("question");
    let question = top.text("question");
    let message = "`question` is empty";
    top.rule(question.as_ref().is_some_and(|question| question.trim().is_empty()), "question", message, None);
    let factors = factor_levels::read(root, options, report);
    let companions = proxies_and_companions::companions(&top);
    check_templates(root, &factors, &companions, report);
    check_use(root, &factors, report);
    let trials = trials::read(&top, options.profile);
    let effects = question::effects(&top);
    Plan {
        study: options.name.clone(),
        question: question.unwrap_or_default(),
        text: text.to_owned(),
        seed: options.seed,
        points: points(&top, &factors, effects.design, &companions, options),
        figures: figures_and_tables::read(&top, &factors, &trials),
        tables: figures_and_tables::tables(&top),
        slopes: slopes(&top),
        answer: question::answer(&top, &factors),
        gate: question::gate(&top, &factors, &trials),
        factors: factors.into_iter().map(|factor| factor.name).collect(),
        trials,
        effects,
    }
}

fn slopes(top: &Section) -> Vec<String> {
    let Some(slopes) = top.section("slopes") else { return Vec::new() };
    slopes.check();
    slopes.choices("over_requests").unwrap_or_default().into_iter().map(str::to_owned).collect()
}

fn optional(section: &Section, key: &str) -> Option<String> {
    section.text(key).filter(|text| !text.trim().is_empty())
}

fn section<'a>(top: &'a Section, name: &str) -> Option<Section<'a>> {
    if !top.has(name) {
        let report = top.report;
        report.missing(Place::default(), format!("the study has no `[{name}]`"), format!("add `[{name}]`"));
    }
    top.section(name)
}

fn points(
    top: &Section,
    factors: &[Factor],
    design: Design,
    companions: &[(String, Section)],
    options: &ExpandOptions,
) -> Vec<Point> {
    let (subject, load, proxies) =
        (section(top, "subject"), section(top, "load"), proxies_and_companions::read(top, factors));
    let count = factors.iter().map(|factor| factor.levels.len()).try_fold(1usize, usize::checked_mul);
    let count = count.filter(|count| *count <= POINTS_MAX).unwrap_or_else(|| {
        let sizes = factors.iter().map(|factor| factor.levels.len().to_string()).collect::<Vec<_>>().join(" x ");
        let place = factors.first().map_or(Place::default(), |factor| factor.place);
        let message = format!("the factors make {sizes} design points, the maximum is 10,000");
        top.report.mistake(place, message, "use fewer levels, or `--set FACTOR=LEVELS`".to_owned());
        1
    });
    subject.iter().for_each(subject::check_keys);
    load.iter().for_each(load::check_keys);
    let (mut points, mut capacities, mut wanted) = (Vec::new(), Vec::new(), Vec::new());
    for index in (0..count).filter(|&index| design == Design::Full || changed(factors, index) < 2) {
        let settings = settings(factors, index);
        let fill = Settings(&settings);
        let subject = subject.as_ref().map(|subject| subject::read(&subject.filled_by(fill)));
        let (proxies, companions) = (
            proxies_and_companions::of_point(&proxies, fill),
            proxies_and_companions::companions_of_point(companions, fill),
        );
        let load = load.as_ref().map(|load| load::read(&subject::with_variant(&load.filled_by(fill))));
        let (Some((subject, cpus)), Some((load, capacity))) = (subject, load) else { continue };
        let factors = settings.iter().map(|setting| (setting.factor.to_owned(), setting.level.clone())).collect();
        let proxy_cpus = proxies.iter().fold(0, |sum: u32, proxy| sum.saturating_add(proxy.cpus));
        let companion_cpus = companions.iter().fold(0, |sum: u32, companion| sum.saturating_add(companion.cpus));
        let unrunnable = None;
        points.push(Point { factors, subject, proxies, proxy_cpus, companions, companion_cpus, load, unrunnable });
        capacities.push(capacity);
        wanted.push(cpus);
    }
    // Every point reserves the same number of CPUs for proxies and companions, so that the server keeps its CPUs.
    let proxy_cpus = points.iter().map(|point| point.proxy_cpus).max().unwrap_or(0);
    let companion_cpus = points.iter().map(|point| point.companion_cpus).max().unwrap_or(0);
    let others = proxy_cpus.saturating_add(companion_cpus);
    for (point, wanted) in points.iter_mut().zip(wanted) {
        (point.proxy_cpus, point.companion_cpus) = (proxy_cpus, companion_cpus);
        let generator = options.generator_cpus(point.load.share_cpus, point.load.cpus);
        (point.subject.cpus, point.subject.cpus_wanted) =
            cpus(wanted, generator, options.machine_cpus.saturating_sub(others));
        point.unrunnable = unrunnable(point.subject.cpus, others, &point.load, options);
    }
    load.iter().for_each(|load| load::check_capacity_use(top, load, &points));
    load::link_capacities(&mut points, capacities);
    points
}

fn settings(factors: &[Factor], index: usize) -> Vec<Setting<'_>> {
    let mut rest = index;
    let mut settings = Vec::with_capacity(factors.len());
    for factor in factors.iter().rev() {
        let (level, place) = &factor.levels[rest % factor.levels.len()];
        rest /= factor.levels.len();
        settings.push(Setting { factor: &factor.name, level, place: *place });
    }
    settings.reverse();
    settings
}

fn changed(factors: &[Factor], index: usize) -> usize {
    let is_changed = |(setting, factor): &(Setting<'_>, &Factor)| *setting.level != factor.levels[0].0;
    settings(factors, index).into_iter().zip(factors).filter(is_changed).count()
}

/// The number of CPUs of the server and, if fewer than requested are left on this machine, the requested number.
fn cpus(wanted: Cpus, generator: u32, machine_cpus: u32) -> (u32, Option<u32>) {
    // At least one, because `unrunnable` reports machines that are too small.
    let left = machine_cpus.saturating_sub(generator).max(1);
    match wanted {
        Cpus::Exactly(count) => (count, None),
        Cpus::UpTo(most) => (most.min(left), (most > left).then_some(most)),
        Cpus::All => (left, None),
    }
}

fn unrunnable(server: u32, proxies: u32, load: &LoadPlan, options: &ExpandOptions) -> Option<String> {
    let (subject, generator) = (server.saturating_add(proxies), load.cpus.unwrap_or(1));
    let all = subject.saturating_add(generator);
    let of_proxies = if proxies > 0 { format!(", {proxies} for proxies") } else { String::new() };
    let (needed, parts) = match options.generators_apart {
        true => (subject, format!("{server} for the server{of_proxies}")),
        false if load.share_cpus => (subject.max(generator), "shared by server and generator".to_owned()),
        false => (all, format!("{server} for the server{of_proxies}, {generator} for the generator")),
    };
    let (plural, has) = (if needed == 1 { "" } else { "s" }, options.machine_cpus);
    (needed > has).then(|| format!("needs {needed} CPU{plural} ({parts}), has {has}"))
}

fn with_variants<'a>(root: &'a Table, name: &str) -> impl Iterator<Item = &'a Table> {
    let table_of = |entry: &'a Entry| if let Value::Table(table) = &entry.node.value { Some(table) } else { None };
    root.table(name).into_iter().chain(subject::variants(root, name).filter_map(table_of))
}

/// Lists the strings of a study in which templates are replaced, each with its section and key.
fn texts(root: &Table) -> Vec<((&'static str, &str), &str, Place)> {
    let named = ["proxy", "companion"].into_iter().filter_map(|section| Some((section, root.table(section)?)));
    let varied = subject::VARIED.into_iter();
    let varied = varied.flat_map(|section| with_variants(root, section).map(move |table| (section, table)));
    let mut found = Vec::new();
    for (section, table) in named.chain(varied) {
        let has_variants = subject::VARIED.contains(&section);
        for entry in table.iter().filter(|entry| !(has_variants && entry.key == "variants")) {
            let texts = entry.node.texts().into_iter();
            found.extend(texts.map(|(text, place)| ((section, entry.key.as_str()), text, place)));
        }
    }
    found
}

/// Reports templates that name no factor, and templates such as `{port}` in keys that the lab does not fill in.
fn check_templates(root: &Table, factors: &[Factor], companions: &[(String, Section)], report: &Report) {
    let ports = companions.iter().map(|(name, _)| factor_placeholders::port_of(name)).collect::<BTreeSet<_>>();
    let texts = texts(root);
    // A misspelled `command` should cause only one error.
    let has_command = texts.iter().any(|(spot, ..)| *spot == ("subject", "command"));
    for (spot, text, place) in texts {
        for name in factor_placeholders::names(text) {
            let of_lab: &[&str] = match spot {
                ("subject", "command") => &factor_placeholders::SUBJECT,
                ("subject", "environment") | ("companion", _) => &[factor_placeholders::PORT],
                ("load", "targets" | "resolve") => &journey::PORTS,
                _ => &[],
            };
            let is_filled = match spot {
                ("subject", "command" | "environment") if ports.contains(name) => true,
                ("proxy", _) => factor_placeholders::is_reserved(name),
                _ => of_lab.contains(&name),
            };
            if is_filled || factors.iter().any(|factor| factor.name == name) {
                continue;
            }
            let written = format!("{{{name}}}");
            let mistake = |message: String| report.invalid(place, Invalid::new(message).part(&written));
            if ports.contains(name) {
                mistake(format!("`{written}` only works in the command and the environment of `[subject]`"));
            } else if factor_placeholders::SUBJECT.contains(&name) {
                let is_port = name == factor_placeholders::PORT;
                let also = if is_port { ", `subject.environment` and the targets of a journey" } else { "" };
                if has_command {
                    mistake(format!("`{written}` only works in `subject.command`{also}"));
                }
            } else if journey::PORTS.contains(&name) {
                mistake(format!("`{written}` only works in proxies and the targets of a journey"));
            } else if !lost(name, report) {
                let known = factors.iter().map(|factor| factor.name.as_str()).chain(ports.iter().map(String::as_str));
                let known = known.chain(of_lab.iter().copied());
                let error = Invalid::new(format!("`{written}` does not name a factor")).hint(suggestion(name, known));
                report.invalid(place, error.part(&written));
            }
        }
    }
}

fn lost(factor: &str, report: &Report) -> bool {
    report.lost(factor) || report.lost("factors")
}

/// Reports unused factors, because chance differences between their levels would look like effects.
fn check_use(root: &Table, factors: &[Factor], report: &Report) {
    let used = texts(root).into_iter().flat_map(|(_, text, _)| factor_placeholders::names(text));
    let used = used.collect::<BTreeSet<_>>();
    for factor in factors {
        let name = factor.name.as_str();
        let picks = name == crate::process_plan::THROUGH && root.get("proxy").is_some();
        if !used.contains(name) && !picks && !subject::has_variant_of(root, factor) {
            let hint = format!("write `{{{name}}}` in `[subject]` or `[load]`, or drop the factor");
            report.missing(factor.place, format!("factor `{name}` is never used"), hint);
        }
    }
}
