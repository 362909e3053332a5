//! What a person sees of a run while it works: one line that moves on a terminal, one line a block elsewhere.

use std::collections::BTreeMap;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use lab::{Phase, Progress};
use study::record::{Build, BuildOutcome, Outcome};
use study::{Plan, Record};

use crate::output;

/// The bar of one run.
pub(crate) struct Bar {
    plan: Plan,
    bar: ProgressBar,
    moves: bool,
    /// Values of the metric that the stop rule looks at, by point.
    values: BTreeMap<usize, Vec<f64>>,
    done: usize,
    failed: usize,
    block: Option<u32>,
    /// The latest estimate, in words.
    estimate: String,
    /// The pairs of a comparison.
    pairs: Option<analysis::gate::Live>,
}

impl Bar {
    /// The bar of a run that has `done` trials already.
    pub(crate) fn new(plan: &Plan, done: usize) -> Self {
        let moves = output::stderr_is_terminal();
        let target = if moves { ProgressDrawTarget::stderr() } else { ProgressDrawTarget::hidden() };
        let bar = ProgressBar::with_draw_target(Some(plan.estimate().trials_min), target);
        // The template is a constant; if it were wrong, every run would show it.
        let style = ProgressStyle::with_template("{bar:24} {pos} of {len}+ trials, {elapsed}, {eta} left  {wide_msg}");
        bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
        bar.set_position(done as u64);
        bar.enable_steady_tick(Duration::from_millis(500));
        let bar = Self {
            plan: plan.clone(),
            bar,
            moves,
            values: BTreeMap::new(),
            done,
            failed: 0,
            block: None,
            estimate: String::new(),
            pairs: analysis::gate::Live::new(plan),
        };
        let estimate = plan.estimate();
        bar.line(&format!(
            "{}: {} design point{}, {} to {} trials, {} to {}",
            plan.study,
            plan.points.len(),
            if plan.points.len() == 1 { "" } else { "s" },
            estimate.trials_min,
            estimate.trials_max,
            output::time_words(estimate.seconds_min),
            output::time_words(estimate.seconds_max)
        ));
        bar
    }

    /// Writes a line that stays, above the bar.
    fn line(&self, text: &str) {
        self.bar.suspend(|| output::message(text));
    }

    pub(crate) fn built(&mut self, build: &Build) {
        match &build.outcome {
            BuildOutcome::Ready => {}
            BuildOutcome::Skipped { reason } => self.line(&format!("skipped: `{}`: {reason}", build.command)),
            BuildOutcome::Unrunnable { reason } => {
                self.line(&format!("cannot run here: `{}`: {reason}", build.command))
            }
            BuildOutcome::Failed { output_tail } => {
                self.line(&format!("build failed: `{}`\n{}", build.command, indent(output_tail)));
            }
            BuildOutcome::Unverified { case, reason } => {
                self.line(&format!("breaks its contract: `{}`: {case}: {reason}", build.command));
            }
        }
    }

    pub(crate) fn show(&mut self, progress: &Progress) {
        if let Phase::Build | Phase::Verify = progress.phase {
            let doing = if progress.phase == Phase::Build { "building" } else { "verifying" };
            self.bar.set_message(format!("{doing} {}", self.label(progress.point).unwrap_or_default()));
            return;
        }
        // A search has steps, of which each gets a line when it has ended, in place of blocks.
        let searching = self.plan.points[progress.point].load.search.is_some();
        if self.block != Some(progress.block) && !searching {
            if let (Some(block), false, None) = (self.block, self.moves, &self.pairs) {
                self.line(&format!(
                    "block {} done: {} trials, {} failed; {}",
                    block + 1,
                    self.done,
                    self.failed,
                    self.estimate
                ));
            }
            self.block = Some(progress.block);
        }
        let label = self.label(progress.point).unwrap_or_default();
        let what = match progress.phase {
            Phase::Build | Phase::Verify | Phase::Start => "starting",
            Phase::Warmup => "warming up",
            Phase::Measure => "measuring",
            Phase::Stop => "stopping",
        };
        let live = progress.live.as_ref().filter(|live| live.rate_per_s > 0.0);
        let live =
            live.map(|live| format!(" {}", analysis::number::quantity(live.rate_per_s, "1/s"))).unwrap_or_default();
        self.bar.set_message(format!("{what} {label}{live}   {}", self.estimate));
    }

    pub(crate) fn recorded(&mut self, record: &Record) {
        self.done += 1;
        self.bar.set_position(self.done as u64);
        // More than the least: the length grows with what is done.
        if self.done as u64 > self.bar.length().unwrap_or(0) {
            self.bar.set_length(self.done as u64);
        }
        let label = self.label(record.point);
        let before = label.as_ref().map_or(String::new(), |label| format!("{label}: "));
        if let Outcome::Failed(failure) = &record.outcome {
            self.failed += 1;
            let words = record.subject.stderr_tail.trim();
            // The message of a subject that ended has its last words already.
            let said = words.lines().last().is_none_or(|last| failure.message.contains(last.trim()));
            let words = if said { String::new() } else { format!("\n  last output:\n{}", indent(words)) };
            self.line(&format!("failed: {before}{}{words}", failure.message));
            return;
        }
        if let Some(step) = analysis::step(&self.plan, record) {
            return self.line(&format!("{before}{step}"));
        }
        let rule = &self.plan.trials;
        if let Some(pairs) = &mut self.pairs {
            if let Some((text, is_look)) = pairs.recorded(&self.plan, record) {
                if is_look && !self.moves {
                    self.bar.suspend(|| output::message(&text));
                }
                self.estimate = format!("[{text}]");
            }
            return;
        }
        let Some(value) = analysis::metric_value(record, &rule.metric, rule.level) else { return };
        let values = self.values.entry(record.point).or_default();
        values.push(value);
        if let Some(estimate) = stats::interval::mean(values, rule.level) {
            self.estimate = format!(
                "[{before}{} {} ±{:.1} %]",
                rule.metric,
                analysis::number::quantity(
                    estimate.point,
                    study::metric::Metric::named(&rule.metric).map_or("", |metric| metric.unit)
                ),
                estimate.relative_half_width() * 100.0
            );
        }
    }

    pub(crate) fn end(&mut self) {
        self.bar.finish_and_clear();
    }

    /// Says something that concerns the whole run.
    pub(crate) fn note(&self, text: &str) {
        self.line(text);
    }

    /// The levels of a point; `None`: the study has no factors.
    fn label(&self, point: usize) -> Option<String> {
        let factors = &self.plan.points[point].factors;
        let levels = self.plan.factors.iter().filter_map(|name| {
            let level = factors.get(name)?;
            Some(if level.as_f64().is_some() { format!("{name} {level}") } else { level.to_string() })
        });
        let levels = levels.collect::<Vec<_>>();
        (!levels.is_empty()).then(|| levels.join(", "))
    }
}

fn indent(text: &str) -> String {
    text.lines().map(|line| format!("    {line}")).collect::<Vec<_>>().join("\n")
}
