//! Progress of a run on stderr: a bar, estimates and the current load on a terminal, otherwise one line per block.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use indicatif::ProgressBar;
use lab::{Phase, Progress};
use study::record::{Build, BuildOutcome, Outcome};
use study::{Plan, Record};

use crate::live_chart::Strip;
use crate::output::{self, last_lines};

/// Maximum number of estimates shown at once.
const ESTIMATES: usize = 8;

const TRIALS_FOR_INTERVAL: usize = 3;

pub(crate) struct Bar {
    plan: Plan,
    /// Hidden without a terminal. Its position is the number of trials.
    bar: ProgressBar,
    /// Values of the stop rule's metric, by design point.
    values: BTreeMap<usize, Vec<f64>>,
    failed: usize,
    block: Option<u32>,
    /// Estimate of each design point as text. A comparison has a single estimate, at index 0.
    estimates: BTreeMap<usize, String>,
    /// Latest estimate, to be appended to a line; empty after a run was resumed.
    estimate: String,
    strip: Strip,
    /// Design points for which the output of a failed server was shown.
    failures: BTreeSet<usize>,
    pairs: Option<analysis::gate::Live>,
}

impl Bar {
    pub(crate) fn new(plan: &Plan, done: usize) -> Self {
        let estimate = plan.estimate();
        let template = "{bar:24} {pos} of {len}+ trials, {elapsed}, {eta} left\n{msg}";
        let bar = output::bar(template, Some(estimate.trials_min), true);
        bar.set_position(done as u64);
        bar.enable_steady_tick(Duration::from_millis(500));
        let bar = Self {
            plan: plan.clone(),
            bar,
            values: BTreeMap::new(),
            failed: 0,
            block: None,
            estimates: BTreeMap::new(),
            estimate: String::new(),
            strip: Strip::default(),
            failures: BTreeSet::new(),
            pairs: analysis::gate::Live::new(plan),
        };
        let range = |least: String, most: String| if least == most { least } else { format!("{least} to {most}") };
        let trials = range(estimate.trials_min.to_string(), estimate.trials_max.to_string());
        let time = range(output::time_words(estimate.seconds_min), output::time_words(estimate.seconds_max));
        let points = analysis::number::count(plan.points.len() as u64, "design point");
        bar.note(&format!("{}: {points}, {trials} trials, {time}", plan.study));
        bar
    }

    pub(crate) fn note(&self, text: &str) {
        self.bar.suspend(|| output::message(text));
    }

    pub(crate) fn built(&mut self, build: &Build) {
        let command = &build.command;
        self.note(&match &build.outcome {
            BuildOutcome::Ready => return,
            BuildOutcome::Skipped { reason } => format!("skipped: `{command}`: {reason}"),
            BuildOutcome::Unrunnable { reason } => format!("cannot run here: `{command}`: {reason}"),
            BuildOutcome::Failed { output_tail } => format!("build failed: `{command}`\n{}", last_lines(output_tail)),
            BuildOutcome::Unverified { case, reason } => format!("breaks its contract: `{command}`: {case}: {reason}"),
        });
    }

    pub(crate) fn show(&mut self, progress: &Progress) {
        let what = match progress.phase {
            Phase::Build => "building",
            Phase::Verify => "verifying",
            Phase::Start => "starting",
            Phase::Warmup => "warming up",
            Phase::Measure => "measuring",
            Phase::Stop => "stopping",
        };
        let now = format!("{what} {}", self.label(progress.point));
        if let Phase::Build | Phase::Verify = progress.phase {
            return self.bar.set_message(analysis::visible(&now).into_owned());
        }
        // A search has steps instead of blocks, and each step gets its own line when it ends.
        let searching = self.plan.points[progress.point].load.search.is_some();
        if self.block != Some(progress.block) && !searching {
            if let (Some(block), true, None) = (self.block, self.bar.is_hidden(), &self.pairs) {
                let (done, failed, estimate) = (self.bar.position(), self.failed, &self.estimate);
                self.note(&format!("block {} done: {done} trials, {failed} failed{estimate}", block + 1));
            }
            self.block = Some(progress.block);
        }
        match &progress.live {
            Some(live) => self.strip.add(&live.load, live.server),
            None if progress.phase == Phase::Start => self.strip = Strip::default(),
            None => {}
        }
        if !self.bar.is_hidden() {
            let shown = self.estimates.keys().position(|point| *point == progress.point).unwrap_or(0);
            let estimates = self.estimates.values().skip(shown / ESTIMATES * ESTIMATES).take(ESTIMATES);
            let lines = estimates.map(|words| format!("  {words}")).chain([now]);
            self.bar.set_message(self.strip.below(lines, 1));
        }
    }

    pub(crate) fn recorded(&mut self, record: &Record) {
        self.bar.inc(1);
        // The bar starts with the minimum number of trials and grows beyond it.
        self.bar.set_length(self.bar.length().unwrap_or(0).max(self.bar.position()));
        let label = self.label(record.point);
        let before = if label.is_empty() { label } else { label + ": " };
        if let Outcome::Failed(failure) = &record.outcome {
            self.failed += 1;
            // The server's output in later failures of the same design point adds no information.
            let is_first = self.failures.insert(record.point);
            let words = if is_first { record.subject.stderr_tail.trim() } else { "" };
            // If the server exited, the message of the failure already includes its last output.
            let said = words.lines().last().is_none_or(|last| failure.message.contains(last.trim()));
            let words = if said { String::new() } else { format!("\n  last output:\n{}", last_lines(words)) };
            return self.note(&format!("failed: {before}{}{words}", failure.message));
        }
        if let Some(step) = analysis::step(&self.plan, record) {
            return self.note(&format!("{before}{step}"));
        }
        let rule = &self.plan.trials;
        if let Some(pairs) = &mut self.pairs {
            if let Some((text, is_look)) = pairs.recorded(&self.plan, record) {
                if is_look && self.bar.is_hidden() {
                    self.bar.suspend(|| output::message(&text));
                }
                self.estimates.insert(0, text);
            }
            return;
        }
        let Some(value) = analysis::values(record, rule.level).get(&rule.metric) else { return };
        let values = self.values.entry(record.point).or_default();
        values.push(value);
        let n = values.len();
        if let Some(estimate) = stats::interval::mean(values, rule.level) {
            let unit = study::Metric::named(&rule.metric).map_or("", |metric| metric.unit);
            let value = analysis::number::quantity(estimate.point, unit);
            let mut words = format!("{before}{} {value}", rule.metric);
            // The interval of two trials is often wider than the value. A quick run claims no interval.
            if n >= TRIALS_FOR_INTERVAL && !rule.quick {
                words += &format!(" ±{:.1} %", estimate.relative_half_width() * 100.0);
            }
            self.estimate = format!("; [{words}]");
            self.estimates.insert(record.point, format!("{words}, {n} trials"));
        }
    }

    pub(crate) fn end(&mut self) {
        self.bar.finish_and_clear();
    }

    /// Levels of a design point; empty if the study has no factors.
    fn label(&self, point: usize) -> String {
        let factors = &self.plan.points[point].factors;
        let levels = self.plan.factors.iter().filter_map(|name| {
            let level = factors.get(name)?;
            Some(if level.as_f64().is_some() { format!("{name} {level}") } else { level.to_string() })
        });
        levels.collect::<Vec<_>>().join(", ")
    }
}
