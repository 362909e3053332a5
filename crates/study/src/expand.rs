//! A [`Study`] becomes a [`Plan`]: factors times levels, each design point with its own commands and numbers.

mod answer;
mod companion;
mod container;
mod effects;
mod factors;
mod figures;
mod gate;
mod http;
mod journey;
mod load;
mod proxy;
mod search;
mod slopes;
mod stop;
mod subject;
mod tables;
mod trials;
mod workload;

use std::borrow::Cow;
use std::collections::BTreeSet;

use config::nearest::suggestion;
use config::node::{Table, Value};
use config::{Diagnostic, Place, Report};
use factors::Factor;
use subject::Cpus;

use crate::keys;
use crate::plan::{self, Design, EffectsPlan, Figure, LoadPlan, Plan, Point, TrialRule};
use crate::section::{Section, Setting, Settings};
use crate::source::{Profile, Study, in_profile};
use crate::{sets, template};

pub(crate) use subject::check_variants;
pub use workload::parse as parse_workload;

/// Most design points of a plan, without the searches that find their capacities.
pub const POINTS_MAX: usize = 10_000;

/// What a plan depends on beside its study.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExpandOptions {
    /// Name of the study, the stem of its file.
    pub name: String,
    /// Seed of the order of the trials and of everything random in them.
    pub seed: u64,
    /// How much of it is carried out.
    pub profile: Profile,
    /// Processors that there are, for `"auto"` and to know what cannot be run.
    pub machine_cpus: u32,
    /// Whether these are the server's alone, as generators have machines of their own.
    pub generators_apart: bool,
    /// Keys and values that replace those of the study, over the profile; the last one wins. A factor's name with
    /// levels (`cores`, `1,2`), or a dotted key with a value (`load.stop.duration`, `2s`).
    pub sets: Vec<(String, String)>,
}

/// Expands a study. The same study and options give the same plan.
///
/// # Errors
/// Every mistake that the `sets` made, or that comes of them; [`Diagnostic::set`] says which it is in. And more than
/// [`POINTS_MAX`] design points.
pub fn expand(study: &Study, options: &ExpandOptions) -> Result<Plan, Vec<Diagnostic>> {
    let set_texts = options.sets.iter().map(|(key, value)| format!("{key}={value}")).collect::<Vec<_>>();
    let report = Report::new("the study", &study.text, &set_texts);
    let mut root = in_profile(&study.root, options.profile, &report);
    sets::apply(&mut root, &options.sets, &report);
    let expanded = points_of(
        &root,
        options.profile,
        Machine { cpus: options.machine_cpus, apart: options.generators_apart },
        &report,
    );
    report.finish()?;
    let Expanded { question, factors, points, trials, figures, tables, effects, slopes, answer, gate } =
        expanded.expect("missing values have been reported");
    let (study, text) = (options.name.clone(), study.text.clone());
    let seed = options.seed;
    Ok(Plan { study, question, text, seed, factors, points, trials, figures, tables, effects, slopes, answer, gate })
}

/// What the tables of a study say, whatever its name and seed.
pub(crate) struct Expanded {
    question: String,
    factors: Vec<String>,
    points: Vec<Point>,
    trials: TrialRule,
    figures: Vec<Figure>,
    tables: Vec<plan::Table>,
    effects: EffectsPlan,
    slopes: Vec<String>,
    answer: Option<plan::Asked>,
    gate: Option<crate::gate::Gate>,
}

/// Reads the tables of a study in one profile; `None` only where a mistake was reported.
pub(crate) fn points_of(root: &Table, profile: Profile, machine: Machine, report: &Report) -> Option<Expanded> {
    let top = Section::whole(root, &keys::STUDY, Settings(&[]), report);
    top.check_keys();
    top.required("question");
    let question = top.text("question");
    if question.as_ref().is_some_and(|question| question.trim().is_empty()) {
        top.mistake("question", "`question` is empty", None);
    }
    let subject = section(root, "subject", report);
    let load = section(root, "load", report);
    let factors = factors::read(root, machine, report);
    let companions = companion::read(root, report);
    check_templates(root, &factors, &companions.ports(), report);
    check_use(root, &factors, report);
    let trials = trials::read(root, profile, report);
    let figures = figures::read(&top, &factors, trials.as_ref());
    let tables = tables::read(&top);
    let effects = effects::read(&top);
    let slopes = slopes::read(&top);
    let answer = answer::read(&top, &factors);
    let metric = trials.as_ref().filter(|_| trials::names_metric(root)).map(|rule| rule.metric.as_str());
    let gate = gate::read(&top, &factors, metric);
    let proxies = proxy::read(root, &factors, report);
    let design = effects.as_ref().map_or(Design::Full, |effects| effects.design);
    let points = points(root, &factors, design, subject, &proxies, &companions, load, machine, report);
    Some(Expanded {
        question: question?,
        factors: factors.iter().map(|factor| factor.name.clone()).collect(),
        points: points?,
        trials: trials?,
        figures: figures?,
        tables: tables?,
        effects: effects?,
        slopes: slopes?,
        answer: answer?,
        gate: gate?,
    })
}

/// A text that may be missing; an empty one is none, so that a variant can take a build away.
fn optional(subject: &Section, key: &str) -> Option<Option<String>> {
    if !subject.has(key) {
        return Some(None);
    }
    Some(Some(subject.text(key)?).filter(|text| !text.trim().is_empty()))
}

/// The table of that name, which a study must have.
fn section<'a>(root: &'a Table, name: &str, report: &'a Report<'a>) -> Option<Section<'a>> {
    let Some(entry) = root.get(name) else {
        report.missing(Place::default(), format!("the study has no `[{name}]`"), format!("add `[{name}]`"));
        return None;
    };
    match &entry.node.value {
        Value::Table(table) => {
            let keys = keys::STUDY.get(name).and_then(|key| key.kind.table()).expect(
                "every study has tables of that \
                                                                                      name",
            );
            let (name, table, place) = (name.to_owned(), Cow::Borrowed(table), entry.key_place);
            Some(Section { name, table, keys, place, fill: Settings(&[]), report })
        }
        other => {
            let hint = format!("begin it with `[{name}]`");
            report.mistake(entry.node.place, format!("`{name}` must be a table, not {}", other.kind()), hint);
            None
        }
    }
}

/// The design points, the first factor changing slowest.
#[expect(clippy::too_many_arguments, reason = "the tables of a study, each read by its own module")]
fn points(
    root: &Table,
    factors: &[Factor],
    design: Design,
    subject: Option<Section>,
    proxies: &proxy::Proxies<'_>,
    companions: &companion::Companions<'_>,
    load: Option<Section>,
    machine: Machine,
    report: &Report,
) -> Option<Vec<Point>> {
    let count = factors.iter().map(|factor| factor.levels.len()).try_fold(1usize, usize::checked_mul);
    let count = count.filter(|count| *count <= POINTS_MAX);
    if count.is_none() {
        let sizes = factors.iter().map(|factor| factor.levels.len().to_string()).collect::<Vec<_>>().join(" x ");
        let place = factors.first().map_or(Place::default(), |factor| factor.place);
        let message = format!("the factors make {sizes} design points, the maximum is 10,000");
        report.mistake(place, message, "use fewer levels, or `--set FACTOR=LEVELS`".to_owned());
    }
    subject.iter().for_each(subject::check_keys);
    load.iter().for_each(load::check_keys);
    // Every point is read even after a mistake, and both tables whatever is wrong with the other, so that all mistakes
    // are found; of too many points one will do.
    let mut capacities = Vec::new();
    let wanted = (0..count.unwrap_or(1)).filter(|&index| design == Design::Full || changed(factors, index) < 2);
    let points = wanted.map(|index| {
        let settings = settings(factors, index);
        let subject = subject.as_ref().map(|subject| subject::read(&subject.filled_by(Settings(&settings))));
        let (proxies, companions) = (proxies.of(&settings), companions.of(&settings));
        let section = load.as_ref().map(|load| load.filled_by(Settings(&settings)));
        let section = section.as_ref().map(subject::with_variant);
        let load = section.as_ref().map(load::read);
        let stop = load.as_ref().and_then(|load| load.as_ref().map(|load| load.stop));
        let capacity = section.as_ref().map(|load| search::read(load, "capacity", stop));
        let ((mut subject, wanted), load, proxies, companions) = (subject??, load??, proxies?, companions?);
        capacities.push(capacity??);
        let levels = settings.iter().map(|setting| (setting.factor.to_owned(), setting.level.clone())).collect();
        subject.cpus = 0;
        let (proxy_cpus, companion_cpus, unrunnable) = (0, 0, None);
        let factors = levels;
        Some((Point { factors, subject, proxies, proxy_cpus, companions, companion_cpus, load, unrunnable }, wanted))
    });
    let points = points.collect::<Vec<_>>();
    count?;
    let points = points.into_iter().collect::<Option<Vec<_>>>()?;
    // What proxies have for themselves is kept free at every point: trials at `direct` must not have more of the machine.
    let own_cpus = |point: &Point| point.proxies.iter().map(|proxy| proxy.cpus).fold(0, u32::saturating_add);
    let proxy_cpus = points.iter().map(|(point, _)| own_cpus(point)).max().unwrap_or(0);
    let cpus_beside =
        |point: &Point| point.companions.iter().map(|companion| companion.cpus).fold(0, u32::saturating_add);
    let companion_cpus = points.iter().map(|(point, _)| cpus_beside(point)).max().unwrap_or(0);
    let others_cpus = proxy_cpus.saturating_add(companion_cpus);
    let placed = points.into_iter().map(|(mut point, wanted)| {
        let left = machine.cpus.saturating_sub(others_cpus);
        (point.subject.cpus, point.subject.cpus_wanted) =
            cpus(wanted, machine.generator(point.load.share_cpus, point.load.cpus), left);
        point.unrunnable = unrunnable(point.subject.cpus, others_cpus, &point.load, machine);
        (point.proxy_cpus, point.companion_cpus) = (proxy_cpus, companion_cpus);
        point
    });
    let mut points = placed.collect::<Vec<_>>();
    load.iter().for_each(|load| search::check_use(root, load, &points, report));
    search::link(&mut points, capacities);
    Some(points)
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

/// How many factors are not at their first level.
fn changed(factors: &[Factor], index: usize) -> usize {
    let first = |(setting, factor): (&Setting<'_>, &Factor)| *setting.level == factor.levels[0].0;
    settings(factors, index).iter().zip(factors).filter(|pair| !first((pair.0, pair.1))).count()
}

/// The processors that a subject gets, and those it would have used where this machine leaves it fewer.
fn cpus(wanted: Cpus, generator: u32, machine_cpus: u32) -> (u32, Option<u32>) {
    // One at least: a machine that is too small is told of where everything else is that it cannot run.
    let left = machine_cpus.saturating_sub(generator).max(1);
    match wanted {
        Cpus::Exactly(count) => (count, None),
        Cpus::UpTo(most) => (most.min(left), (most > left).then_some(most)),
        Cpus::All => (left, None),
    }
}

/// The processors of the server's machine.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Machine {
    pub(crate) cpus: u32,
    /// Whether generators are on others.
    pub(crate) apart: bool,
}

impl Machine {
    /// Those that a generator takes away from the server.
    pub(crate) fn generator(self, share: bool, cpus: Option<u32>) -> u32 {
        if self.apart || share { 0 } else { cpus.unwrap_or(1) }
    }
}

/// Why `machine` cannot run this.
fn unrunnable(server: u32, proxies: u32, load: &LoadPlan, machine: Machine) -> Option<String> {
    let generator = load.cpus.unwrap_or(1);
    let subject = server.saturating_add(proxies);
    let needed = match machine.apart {
        true => subject,
        false if load.share_cpus => subject.max(generator),
        false => subject.saturating_add(generator),
    };
    let plural = if needed == 1 { "" } else { "s" };
    (needed > machine.cpus).then(|| {
        let of_proxies = if proxies > 0 { format!(", {proxies} for proxies") } else { String::new() };
        let parts = match machine.apart {
            true => format!("{server} for the server{of_proxies}"),
            false if load.share_cpus => "shared by server and generator".to_owned(),
            false => format!("{server} for the server{of_proxies}, {generator} for the generator"),
        };
        format!("needs {needed} CPU{plural} ({parts}), has {}", machine.cpus)
    })
}

/// The texts that templates may stand in.
fn texts(root: &Table) -> Vec<(&str, Place)> {
    let mut texts = Vec::new();
    for entry in ["subject", "proxy", "companion", "load"].iter().filter_map(|name| root.get(name)) {
        entry.node.texts(&mut texts);
    }
    texts
}

/// Templates that name no factor, and `{port}` where nobody fills it in.
fn check_templates(root: &Table, factors: &[Factor], companions: &BTreeSet<String>, report: &Report) {
    // A misspelt `command` is one mistake, not two.
    let commands = subject::commands(root);
    let mut of_proxies = Vec::new();
    root.get("proxy").iter().for_each(|entry| entry.node.texts(&mut of_proxies));
    let of_proxies = of_proxies.into_iter().map(|(_, place)| place).collect::<BTreeSet<_>>();
    let mut of_companions = Vec::new();
    root.get("companion").iter().for_each(|entry| entry.node.texts(&mut of_companions));
    let of_companions = of_companions.into_iter().map(|(_, place)| place).collect::<BTreeSet<_>>();
    let environments = subject::environments(root);
    let with_ports = journey::with_ports(root);
    for (text, place) in texts(root) {
        for (_, name) in template::templates(text) {
            let written = format!("{{{name}}}");
            let at = report.source(place).find(&written).map_or(place, |at| place.part(at..at + written.len()));
            if of_proxies.contains(&place) && template::is_reserved(name)
                || with_ports.contains(&place) && journey::PORTS.contains(&name)
                || of_companions.contains(&place) && name == template::PORT
            {
                continue;
            }
            if companions.contains(name) {
                if !commands.contains(&place) && !environments.contains(&place) {
                    let message = format!("`{written}` only works in the command and the environment of `[subject]`");
                    report.mistake(at, message, None);
                }
                continue;
            }
            if template::SUBJECT.contains(&name) {
                let is_port = name == template::PORT;
                let is_allowed = commands.contains(&place) || is_port && environments.contains(&place);
                if !commands.is_empty() && !is_allowed {
                    let also = if is_port { ", `subject.environment` and the targets of a journey" } else { "" };
                    let message = format!("`{written}` only works in `subject.command`{also}");
                    report.mistake(at, message, None);
                }
            } else if journey::PORTS.contains(&name) {
                report.mistake(at, format!("`{written}` only works in proxies and the targets of a journey"), None);
            } else if !factors.iter().any(|factor| factor.name == name) && !lost(name, report) {
                let known =
                    factors.iter().map(|factor| factor.name.as_str()).chain(companions.iter().map(String::as_str));
                report.mistake(at, format!("`{written}` does not name a factor"), suggestion(name, known));
            }
        }
    }
}

/// Whether the factor of that name may have been lost to a syntax error.
fn lost(factor: &str, report: &Report) -> bool {
    report.lost(factor) || report.lost("factors")
}

/// Factors that change nothing: their trials would differ by chance alone and look like an effect.
fn check_use(root: &Table, factors: &[Factor], report: &Report) {
    let used = texts(root).into_iter().flat_map(|(text, _)| template::templates(text));
    let used = used.map(|(_, name)| name).collect::<BTreeSet<_>>();
    for factor in factors {
        let name = factor.name.as_str();
        let picks = name == crate::proxy::THROUGH && root.get("proxy").is_some();
        if !used.contains(name) && !picks && !subject::has_variant_of(root, factor) {
            let hint = format!("write `{{{name}}}` in `[subject]` or `[load]`, or drop the factor");
            report.missing(factor.place, format!("factor `{name}` is never used"), hint);
        }
    }
}
