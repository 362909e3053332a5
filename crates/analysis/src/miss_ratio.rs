//! Miss-ratio curves: measured misses at each memory limit, compared with simulated policies. A trial and its replay
//! ([`study::record::Reference`]) have the same keys in the same order, so their difference is precise.

use std::collections::BTreeMap;

use stats::growth_in_trials::{self, Series, Shown};
use study::plan::{Figure, FigureKind, Level, POLICIES};
use study::record::{IdlePolicy, Reference, Run};

use crate::enum_words_and_lists::{NAMED, serde_name};
use crate::findings::{CurvePolicy, Estimate, Findings, MissRatioCurve, MissRatioPoint, MissRatios, PolicyPoint, Row};
use crate::group_by_key::{distinct, grouped};
use crate::number::quantity;
use crate::trial_position_and_values::Kept;

/// Smallest relevant difference between miss ratios, as a fraction: a tenth of a percentage point.
const SMALL: f64 = 0.001;

const OWN_ENGINE: &str = "Eviction policies are simulated in quintain's own engine, which counts keys, values and its \
                          overhead against the memory limit: other servers deviate by their overhead, their accounting \
                          and their eviction.";

pub(crate) fn miss_ratios(findings: &Findings, run: &Run, trials: &[Kept]) -> Vec<MissRatios> {
    let wanted = findings.figures.iter().enumerate().filter(|(_, figure)| figure.kind == FigureKind::MissRatio);
    let mut all = wanted.flat_map(|(index, figure)| panels(findings, run, trials, index, figure)).collect::<Vec<_>>();
    judge(&mut all, findings, run, trials);
    all
}

fn judge(all: &mut [MissRatios], findings: &Findings, run: &Run, trials: &[Kept]) {
    let series = |curve: &MissRatioCurve, point: &MissRatioPoint| {
        let pairs = curve.policy.as_ref().map(|policy| pairs(&findings.rows[point.row], policy, run, trials));
        let changes = pairs.unwrap_or_default().iter().map(|(measured, simulated)| measured - simulated).collect();
        Series { changes, margin: SMALL }
    };
    let curves = || all.iter().flat_map(|panel| &panel.curves);
    let points = curves().flat_map(|curve| curve.points.iter().map(|point| series(curve, point))).collect::<Vec<_>>();
    let mut found = growth_in_trials::growth(&points, 1.0 - findings.level).into_iter();
    for panel in all {
        for point in panel.curves.iter_mut().flat_map(|curve| &mut curve.points) {
            let Some(growth) = found.next().filter(|_| point.difference.is_some()) else { continue };
            let is_large = growth.change.is_some_and(|change| change.point.abs() >= SMALL);
            point.p_adjusted = Some(growth.p_change);
            point.strays = is_large && matches!(growth.shown, Shown::Grows | Shown::Shrinks);
            point.keeps = growth.is_small;
        }
        panel.sentences = panel.curves.iter().filter_map(|curve| sentence(findings, curve)).collect();
    }
}

fn pairs(row: &Row, policy: &str, run: &Run, trials: &[Kept]) -> Vec<(f64, f64)> {
    let of_row = trials.iter().filter(|trial| trial.point == row.point && Some(trial.idle) == row.idle);
    let pair = |trial: &Kept| {
        let hit_ratio = trial.values.0.get("hit_ratio")?;
        let place = (trial.point, trial.block);
        let is_replay = |found: &&Reference| found.policy == policy && (found.point, found.block) == place;
        Some((1.0 - hit_ratio, run.references.iter().find(is_replay)?.miss_ratio()?))
    };
    of_row.filter_map(pair).collect()
}

fn panels(findings: &Findings, run: &Run, trials: &[Kept], index: usize, figure: &Figure) -> Vec<MissRatios> {
    let Some(x) = figure.x.as_ref() else { return Vec::new() };
    let is_axis = |name: &String| name == x || Some(name) == figure.series.as_ref();
    let rest = findings.factors.iter().filter(|factor| factor.levels.len() > 1 && !is_axis(&factor.name));
    let rest = rest.map(|factor| factor.name.clone()).collect::<Vec<_>>();
    let title = |row: &Row| if rest.is_empty() { String::new() } else { crate::label::label(&rest, &row.factors) };
    let panels = grouped(findings.rows.iter().enumerate().map(|(index, row)| (title(row), index)));
    let all = All { findings, run, trials, figure, x };
    let found = panels.into_iter().map(|(panel, rows)| all.panel(index, panel, &rows));
    found.filter(|found| !found.curves.is_empty()).collect()
}

struct All<'a> {
    findings: &'a Findings,
    run: &'a Run,
    trials: &'a [Kept],
    figure: &'a Figure,
    x: &'a str,
}

impl All<'_> {
    fn panel(&self, index: usize, panel: String, rows: &[usize]) -> MissRatios {
        let key = |row: &usize| {
            let row = &self.findings.rows[*row];
            (self.figure.series.as_ref().and_then(|series| row.factors.get(series)), row.idle)
        };
        let keys = distinct(rows.iter().filter(|row| self.findings.rows[**row].n > 0).map(key));
        let both = keys.iter().any(|(_, idle)| *idle != keys[0].1);
        let curve = |&(series, idle): &(Option<&Level>, Option<IdlePolicy>)| {
            let label = match (series, &self.figure.series) {
                (Some(Level::Text(word)), _) => word.clone(),
                (Some(level), Some(factor)) => format!("{factor} {level}"),
                _ => "measured".to_owned(),
            };
            let with_idle = idle.filter(|_| both).map_or(String::new(), |idle| format!(", idle {}", serde_name(idle)));
            let of_it = rows.iter().copied().filter(|row| key(row) == (series, idle)).collect::<Vec<_>>();
            self.curve(label + &with_idle, series, &of_it)
        };
        let curves = keys.iter().map(curve).filter(|curve| !curve.points.is_empty()).collect::<Vec<_>>();
        let points = rows.iter().map(|row| self.findings.rows[*row].point).collect::<Vec<_>>();
        let policies = self.figure.policies.iter().filter_map(|name| self.policy(name, &points)).collect::<Vec<_>>();
        let notes = self.notes(&policies, &points);
        MissRatios { figure: index, x: self.x.to_owned(), panel, curves, policies, sentences: Vec::new(), notes }
    }

    fn references<'s>(&'s self, policy: &'s str) -> impl Iterator<Item = &'s Reference> {
        self.run.references.iter().filter(move |reference| reference.policy == policy)
    }

    fn curve(&self, label: String, series: Option<&Level>, rows: &[usize]) -> MissRatioCurve {
        let own = self.figure.policy_of(series);
        let first = || self.figure.policies.iter().find(|name| !is_clairvoyant(name)).map(String::as_str);
        let policy = own.or_else(first).filter(|policy| self.references(policy).any(|found| found.gets > 0));
        let mut points = rows.iter().filter_map(|row| self.point(*row, policy)).collect::<Vec<_>>();
        points.sort_by_key(|point| point.capacity_bytes);
        let (is_own, policy) = (own.is_some(), policy.map(str::to_owned));
        MissRatioCurve { label, series: series.cloned(), policy, is_own, points }
    }

    fn point(&self, index: usize, policy: Option<&str>) -> Option<MissRatioPoint> {
        let row = &self.findings.rows[index];
        let capacity = row.factors.get(self.x)?;
        let capacity_bytes = self.figure.capacity_bytes(capacity)?;
        let mean = |metric: &str| row.mean(metric).filter(|mean| crate::number::drawable(*mean));
        let miss_ratio = 1.0 - mean("hit_ratio")?;
        let hits = crate::value::estimate_at(row, "hit_ratio", self.figure.interval);
        let pairs = policy.map_or_else(Vec::new, |policy| pairs(row, policy, self.run, self.trials));
        let simulated = pairs.iter().map(|(_, simulated)| *simulated).collect::<Vec<_>>();
        let differences = pairs.iter().map(|(measured, simulated)| measured - simulated).collect::<Vec<_>>();
        Some(MissRatioPoint {
            row: index,
            capacity: capacity.clone(),
            capacity_bytes,
            footprint_share: mean("footprint").map(|footprint| capacity_bytes as f64 / footprint),
            memory_bytes: mean("subject_memory"),
            miss_ratio,
            estimate: hits.map(|hits| Estimate { low: hits.high, high: hits.low, ..hits }.map(|hits| 1.0 - hits)),
            simulated: stats::interval::average(&simulated),
            difference: stats::interval::mean(&differences, self.findings.level),
            p_adjusted: None,
            strays: false,
            keeps: false,
        })
    }

    fn policy(&self, name: &str, points: &[usize]) -> Option<CurvePolicy> {
        let mut by_capacity: BTreeMap<u64, Vec<f64>> = BTreeMap::new();
        for reference in self.references(name).filter(|found| points.contains(&found.point)) {
            by_capacity.entry(reference.capacity_bytes).or_default().extend(reference.miss_ratio());
        }
        let point = |(capacity_bytes, ratios): (u64, Vec<f64>)| {
            let miss_ratio = stats::interval::average(&ratios)?;
            Some(PolicyPoint { capacity_bytes, miss_ratio, replays: ratios.len() })
        };
        let points = by_capacity.into_iter().filter_map(point).collect::<Vec<_>>();
        let text = POLICIES.iter().find(|(known, _)| *known == name).map_or("", |(_, text)| text);
        (!points.is_empty()).then(|| CurvePolicy { name: name.to_owned(), text: text.to_owned(), points })
    }

    fn notes(&self, policies: &[CurvePolicy], points: &[usize]) -> Vec<String> {
        let mut notes = Vec::new();
        if !policies.is_empty() {
            let texts = policies.iter().map(|policy| format!("{}: {}", policy.name, policy.text));
            notes.push(format!(
                "Simulated: the operations of the trials (seed, order, warm-up, fills, sets, deletions), replayed. {}.",
                texts.collect::<Vec<_>>().join("; ")
            ));
        }
        if policies.iter().any(|policy| !is_clairvoyant(&policy.name)) {
            notes.push(OWN_ENGINE.to_owned());
        }
        let own = self.run.references.iter().filter(|found| points.contains(&found.point));
        let missing = |found: &Reference| Some(format!("No simulated {}: {}.", found.policy, found.problem.as_ref()?));
        notes.extend(own.filter_map(missing));
        distinct(notes)
    }
}

fn is_clairvoyant(policy: &str) -> bool {
    policy.starts_with("belady")
}

/// Formats a memory limit without trailing zeros: `1 MiB`, `4.77 MiB`.
pub fn capacity(bytes: u64) -> String {
    let text = quantity(bytes as f64, "bytes");
    match text.split_once(' ') {
        Some((number, unit)) if number.contains('.') => {
            format!("{} {unit}", number.trim_end_matches('0').trim_end_matches('.'))
        }
        _ => text,
    }
}

/// Formats a difference of miss ratios (a fraction) in percentage points: `+1.20`.
pub fn points(fraction: f64) -> String {
    format!("{:+.2}", fraction * 100.0)
}

fn sentence(findings: &Findings, curve: &MissRatioCurve) -> Option<String> {
    let policy = curve.policy.as_ref()?;
    let compared = curve.points.iter().filter_map(|point| Some((point, point.difference?))).collect::<Vec<_>>();
    let largest = compared.iter().max_by(|a, b| a.1.point.abs().total_cmp(&b.1.point.abs()))?;
    let at = |point: &MissRatioPoint| capacity(point.capacity_bytes);
    let astray = compared.iter().filter(|(point, _)| point.strays).collect::<Vec<_>>();
    let all = crate::number::count(compared.len() as u64, "cache size");
    let label = &curve.label;
    if findings.quick {
        return Some(format!(
            "A quick run: {label} was within {} points of miss ratio of the simulated {policy} at {all}.",
            points(largest.1.point.abs()).trim_start_matches('+')
        ));
    }
    if astray.is_empty() {
        // A curve without a shown deviation is not proven to match.
        let within = format!(" within {} points", SMALL * 100.0);
        let (verb, within) = match (compared.iter().all(|(point, _)| point.keeps), curve.is_own) {
            (true, true) => ("matches", within.as_str()),
            (true, false) => ("misses as much as", within.as_str()),
            (false, _) => ("is not shown to deviate from", ""),
        };
        return Some(format!(
            "{label} {verb} the simulated {policy}{within} at {all}: the largest difference is {} points of miss ratio, at {}.",
            points(largest.1.point),
            at(largest.0)
        ));
    }
    let interval = |(point, found): &(&MissRatioPoint, Estimate)| {
        format!("{} points [{}, {}] at {}", points(found.point), points(found.low), points(found.high), at(point))
    };
    let named = astray.iter().take(NAMED).map(|found| interval(found)).collect::<Vec<_>>().join(", ");
    let more = astray.len().saturating_sub(NAMED);
    let more = if more > 0 { format!(", and {more} more") } else { String::new() };
    let verb = match curve.is_own {
        true => "deviates from",
        _ if astray.iter().all(|(_, found)| found.point < 0.0) => "misses less than",
        _ if astray.iter().all(|(_, found)| found.point > 0.0) => "misses more than",
        _ => "differs from",
    };
    Some(format!("{label} {verb} the simulated {policy} at {} of {all}: {named}{more}.", astray.len()))
}

/// Returns the sentences and notes of all panels without repetitions. Each starts with the panel's name.
pub fn sentences(findings: &Findings) -> impl Iterator<Item = String> {
    let of_panel = |found: &MissRatios| {
        let place = if found.panel.is_empty() { String::new() } else { format!("{}: ", found.panel) };
        found.sentences.iter().map(|sentence| format!("{place}{sentence}")).collect::<Vec<_>>()
    };
    let notes = findings.miss_ratios.iter().flat_map(|found| &found.notes).cloned();
    distinct(findings.miss_ratios.iter().flat_map(of_panel).chain(notes)).into_iter()
}

#[cfg(test)]
mod tests;
