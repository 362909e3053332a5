//! Schedule of a [`Plan`]: the order of its trials, their seeds and their estimated duration.

use crate::plan::{Plan, Point, SearchPlan};
use crate::record::Step;
use crate::spec::{Stop, Warmup};

/// Estimated time to start, connect to and stop a server, s. Each record has the actual time.
const START_S: f64 = 0.3;

/// Decision about the next trial at a design point.
#[derive(Clone, Debug, PartialEq)]
pub enum Next {
    /// One more trial, at the rate of the step, or as planned if `None`.
    Trial(Option<Step>),
    /// No more trials.
    Enough,
}

/// Estimated work of a plan, as bounds on trials and time.
#[derive(Clone, Copy, Debug, Default, PartialEq, serde::Serialize)]
pub struct Effort {
    /// Minimum number of trials over all points.
    pub trials_min: u64,
    /// Maximum number of trials over all points.
    pub trials_max: u64,
    /// Minimum time without builds, s. Phases that end after a number of requests count as 0.
    pub seconds_min: f64,
    /// Maximum time without builds, s. A block that has started is completed.
    pub seconds_max: f64,
}

impl Plan {
    /// Indices of all points, even unrunnable ones, shuffled for the block so that drift affects all points alike.
    pub fn order_of_block(&self, block: u32) -> Vec<usize> {
        let mut order = (0..self.points.len()).collect::<Vec<_>>();
        stats::Rng::stream(self.seed, stream(block, u32::MAX)).shuffle(&mut order);
        order
    }

    /// Whether this point's search runs first, because other points use rates it finds. Panics at an unknown point.
    pub fn comes_first(&self, point: usize) -> bool {
        self.points[point].load.search.as_ref().is_some_and(|search| search.first)
    }

    /// Maximum number of trials of a point, from its search or the trial rule. Panics at an unknown point.
    pub fn trials_max(&self, point: usize) -> u32 {
        self.points[point].load.search.as_ref().map_or(self.trials.max, |search| search.trials_max)
    }

    /// Seed of all trials of a block, independent of earlier trials. Every server therefore receives the same requests
    /// (common random numbers; Law, Simulation Modeling and Analysis, 5th ed., section 11.2).
    pub fn trial_seed(&self, block: u32) -> u64 {
        stats::Rng::stream(self.seed, stream(block, 0)).next_u64()
    }

    /// Estimates the work on the machine that the plan was expanded for.
    pub fn estimate(&self) -> Effort {
        let runnable = || self.points.iter().filter(|point| point.unrunnable.is_none());
        let mut all = Effort::default();
        for (point, search) in runnable().filter_map(|point| Some((point, point.load.search.as_ref()?))) {
            let effort = search_effort(point, search);
            all.trials_min += effort.trials_min;
            all.trials_max += effort.trials_max;
            all.seconds_min += effort.seconds_min;
            all.seconds_max += effort.seconds_max;
        }
        let trials = runnable().filter(|point| point.load.search.is_none()).map(trial_seconds).collect::<Vec<_>>();
        let points = trials.len() as u64;
        let add = |(least, most): (f64, f64), trial: &(f64, f64)| (least + trial.0, most + trial.1);
        let (block_min_s, block_max_s) = trials.iter().fold((0.0, 0.0), add);
        let (mut blocks_min, mut blocks_max) = (f64::from(self.trials.min), f64::from(self.trials.max));
        if let Some(max_ns) = self.trials.max_ns.filter(|_| points > 0) {
            // Blocks start until the time is up, so the last block may end late. Searches run before blocks.
            let left = |spent_s: f64| (max_ns as f64 / 1e9 - spent_s).max(0.0);
            blocks_min = blocks_min.min((left(all.seconds_max) / block_max_s).ceil().max(1.0));
            blocks_max = blocks_max.min((left(all.seconds_min) / block_min_s).ceil().max(1.0));
        }
        all.trials_min += points * blocks_min as u64;
        all.trials_max += points * blocks_max as u64;
        all.seconds_min += blocks_min * block_min_s;
        all.seconds_max += f64::from(self.trials.max) * block_max_s;
        // No search starts a trial after the time limit, but one trial of each search may end late.
        let search_block_s = runnable().filter(|point| point.load.search.is_some()).map(|point| trial_seconds(point).1);
        let last_s = search_block_s.sum::<f64>().max(block_max_s);
        let cap_s = self.trials.max_ns.map_or(f64::INFINITY, |max_ns| max_ns as f64 / 1e9 + last_s);
        Effort { seconds_max: all.seconds_max.min(cap_s), ..all }
    }
}

/// Bounds of a search's effort: from finding at once that the highest rate meets the objective, to the whole budget.
fn search_effort(point: &Point, search: &SearchPlan) -> Effort {
    let (least_s, most_s) = trial_seconds(point);
    let pilot = u64::from(search.from_per_s.is_none());
    let (mut trials_max, mut seconds_max) = (u64::from(search.trials_max), f64::from(search.trials_max) * most_s);
    if let Some(max_ns) = search.max_ns {
        let max_s = max_ns as f64 / 1e9;
        trials_max = trials_max.min((max_s / least_s).ceil() as u64);
        // The last trial starts before the limit and may end after it.
        seconds_max = seconds_max.min(max_s + most_s);
    }
    let trials_min = (1 + u64::from(search.confirm)).min(trials_max);
    let seconds_min = trials_min as f64 * least_s;
    Effort { trials_min: (trials_min + pilot).min(trials_max), trials_max, seconds_min, seconds_max }
}

/// Number of the random stream of a trial or, if `point` is `u32::MAX`, of a block's order. Plans have fewer points.
fn stream(block: u32, point: u32) -> u64 {
    u64::from(block) << 32 | u64::from(point)
}

/// Minimum and maximum duration of a trial, s.
fn trial_seconds(point: &Point) -> (f64, f64) {
    let (warmup_least_ns, warmup_most_ns) = match point.load.warmup {
        _ if matches!(point.load.stop, Stop::Volley { .. }) => (0, 0),
        Warmup::DurationNs(ns) => (ns, ns),
        Warmup::Requests(_) => (0, 0),
        Warmup::Steady { max_ns } => (0, max_ns),
    };
    let most_ns = point.load.stop.longest_ns();
    let least_ns = if matches!(point.load.stop, Stop::Duration { .. }) { most_ns } else { 0 };
    let seconds = |ns: u64| START_S + ns as f64 / 1e9;
    (seconds(warmup_least_ns.saturating_add(least_ns)), seconds(warmup_most_ns.saturating_add(most_ns)))
}
