//! Finds the highest offered rate at which a server keeps an objective, as a range that allows for noise.
//!
//! [`next`] is a pure function of the trials so far, so an interrupted search resumes from its trials. The objective is
//! not part of its input: each trial has an [`Outcome::Judged`] *excess*, the natural logarithm of value over bound. A
//! negative excess keeps the objective; with several conditions, the largest excess counts.
//!
//! `docs/method/search.md` describes the method: start, bracket, bisect, confirm. The search looks for the rate at
//! which half of all fresh starts of the server would keep the objective (RFC 9971, MLRsearch, with a goal exceed ratio
//! of one half). One trial decides a rate whose value is far from the bound; other rates need more (Shivam et al. 2008,
//! Cutting Corners). Excesses are clamped to ±[`LIMIT`], because latency above the capacity grows without bound. If
//! the generator spoiled most trials at a rate, the search goes no higher and has no upper end.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::interval::{self, Estimate};

/// Minimum number of trials for a firm verdict on a rate.
pub const FIRM: usize = 3;
/// Maximum number of trials at a rate that stays undecided.
pub const MOST_TRIALS: usize = 5;
/// Maximum absolute excess, as a natural logarithm: four times the bound, or a quarter of it.
pub const LIMIT: f64 = 1.386_294_361_119_890_6;
/// Confidence level of the intervals over the trials of one rate.
pub const LEVEL: f64 = 0.95;
/// Assumed half-width of the excess of a trial without an interval, as a natural logarithm: a factor of two.
const BLIND: f64 = std::f64::consts::LN_2;
/// Half-width of a normal 95 % interval in standard deviations.
const NORMAL: f64 = 1.959_963_984_540_054;
/// Number of spoiled trials after which a rate counts as too high for the generator.
const SPOILED: usize = 2;
/// Number of consecutive failed trials after which the search is abandoned.
const BROKEN: usize = 3;
/// First rate of a search without a usable pilot, per second.
const START_PER_S: f64 = 1_000.0;
/// Lowest rate of a search whose rules set none, per second.
const LOWEST_PER_S: f64 = 1.0;

/// Bounds, resolution and length of a search.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rules {
    /// Lowest rate and start of the search, per second; `None` starts with a pilot.
    pub from_per_s: Option<f64>,
    /// Highest allowed rate, per second; `None` sets no limit.
    pub to_per_s: Option<f64>,
    /// Target width of the range, as a fraction: the upper end divided by the lower end, minus one.
    pub resolution: f64,
    /// Number of fresh trials that must hold at the lower end.
    pub confirm: u32,
    /// Maximum number of trials of the search.
    pub trials_max: u32,
}

/// A trial whose rate was decided by the trials before it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Step {
    /// Purpose of the trial within the search.
    pub purpose: Purpose,
    /// Offered rate, requests per second; `None` for a closed loop.
    pub rate_per_s: Option<f64>,
}

/// Purpose of a trial within a search, or `share` outside of a search.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Purpose {
    /// A closed loop that finds the starting rate of a search.
    Pilot,
    /// A rate beyond all rates that the search has tried so far.
    Bracket,
    /// A rate between one that meets and one that misses the search's objective.
    Bisect,
    /// A repeat of a rate that the search could not judge.
    Repeat,
    /// A repeat of an end of the search's range.
    Confirm,
    /// A fraction of a capacity that an earlier search found.
    Share,
}

/// One trial of a search.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Trial {
    /// The closed loop before the search, with its rate per second; `None` if it failed.
    Pilot(Option<f64>),
    /// A trial at one offered rate.
    Step {
        /// Offered rate, requests per second.
        rate_per_s: f64,
        /// Purpose of the trial within the search.
        purpose: Purpose,
        /// Result of the trial at this rate.
        outcome: Outcome,
    },
}

/// Result of a trial at one rate.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Outcome {
    /// The trial measured the server.
    Judged {
        /// Natural logarithm of value divided by bound; negative if the trial kept the objective.
        excess: f64,
        /// Confidence interval of `excess` from within the trial; `None` if the trial gives none.
        interval: Option<(f64, f64)>,
    },
    /// The server broke down at this rate; counts as the largest excess.
    Broke,
    /// The generator was the limit, so the server's limit is unknown.
    Generator,
    /// There were too few responses for the metric: the rate is too low, or the trial too short.
    TooFew,
    /// The trial failed for a reason other than the load.
    Failed,
}

/// Verdict on one offered rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(rename = "SearchVerdict")]
pub enum Verdict {
    /// The objective is kept at this rate.
    Holds,
    /// The objective is broken at this rate.
    Fails,
    /// The trials show neither result.
    Undecided,
    /// The generator is the limit at this rate.
    Generator,
    /// There are too few responses to decide.
    TooFew,
    /// No trial at this rate measured the server.
    Unknown,
}

impl Verdict {
    /// Returns the verdict in words for reports.
    pub fn text(self) -> &'static str {
        match self {
            Verdict::Holds => "holds",
            Verdict::Fails => "fails",
            Verdict::Undecided => "undecided",
            Verdict::Generator => "generator-limited",
            Verdict::TooFew => "too few responses",
            Verdict::Unknown => "not run",
        }
    }
}

/// One offered rate with the verdict of its trials.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, JsonSchema)]
#[schemars(rename = "SearchRate")]
pub struct Rate {
    /// Offered rate, requests per second.
    pub rate_per_s: f64,
    /// Verdict of all trials at this rate together.
    pub verdict: Verdict,
    /// Number of trials that measured the server.
    pub trials: usize,
    /// Number of trials that kept the objective.
    pub kept: usize,
    /// Mean of ln(value / bound) of the worst condition, clamped, with its interval; `None` if no trial measured it.
    pub excess: Option<Estimate>,
    /// Whether the verdict rests on [`FIRM`] trials or more and, for a rate that holds, on the required confirmations.
    #[serde(skip)]
    pub confirmed: bool,
    /// Whether a confirming trial broke the objective.
    #[serde(skip)]
    shaken: bool,
    #[serde(skip)]
    spoiled: usize,
    #[serde(skip)]
    too_few: usize,
}

/// Next action of a search.
#[derive(Clone, Debug, PartialEq)]
pub enum Next {
    /// The trial to run next.
    Trial(Step),
    /// The search has ended with this result.
    Done(Found),
}

/// Result of a search: the range that it found and why it ended.
#[derive(Clone, Debug, PartialEq)]
pub struct Found {
    /// Highest rate that holds, below every failing or undecided rate.
    pub low: Result<End, Missing>,
    /// Lowest rate that fails.
    pub high: Result<End, Missing>,
    /// Why the search ended.
    pub ended: Ended,
    /// Rates between the ends that stayed undecided, ascending, per second.
    pub undecided_per_s: Vec<f64>,
    /// Rates above the upper end that held nevertheless, ascending, per second.
    pub contradictions_per_s: Vec<f64>,
    /// Number of trials, including the pilot.
    pub trials: usize,
}

/// One end of the range of a search.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, JsonSchema)]
#[schemars(rename = "SearchEnd")]
pub struct End {
    /// Offered rate, requests per second.
    pub rate_per_s: f64,
    /// Number of trials at this rate.
    pub trials: usize,
    /// Whether the end was confirmed. An unconfirmed end is a lead, not a finding.
    pub confirmed: bool,
}

/// Reason why an end of the range is missing.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Missing {
    /// Trials at or above this rate, per second, were limited by the generator.
    Generator(f64),
    /// The highest or lowest allowed rate, per second, at which the search stopped.
    Asked(f64),
    /// Trials at or below this rate, per second, had too few responses.
    TooFew(f64),
    /// The rates at this end stayed undecided.
    Undecided,
    /// The search ended before it found this end.
    Ended,
}

/// Reason why a search ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// The range is confirmed and within the resolution, or one end cannot be found.
    Found,
    /// Noise keeps the rates between the ends undecided.
    Noise,
    /// The maximum number of trials was reached.
    Trials,
    /// The time limit was reached.
    Time,
    /// Trials failed several times in a row.
    Broken,
}

/// Party that determined the result of a search.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(rename = "SearchBound")]
pub enum Bound {
    /// The search succeeded: it has a lower end, and an upper end unless the highest allowed rate holds.
    Found,
    /// The server: it misses the objective at every allowed rate, or breaks down.
    Subject,
    /// The measurement: the generator was the limit, or there were too few responses, too much noise or too few trials.
    Measuring,
}

impl Found {
    /// Returns which party determined the result.
    pub fn bound(&self) -> Bound {
        match (self.low, self.high) {
            (Ok(_), Ok(_) | Err(Missing::Asked(_))) => Bound::Found,
            (Err(Missing::Asked(_)), Ok(_)) => Bound::Subject,
            // A server that breaks down does not sustain the rate. A failed trial says nothing about the server.
            (Err(_), Ok(_)) if self.ended == Ended::Broken => Bound::Subject,
            _ => Bound::Measuring,
        }
    }
}

impl Rules {
    fn floor(&self) -> f64 {
        self.from_per_s.unwrap_or(LOWEST_PER_S)
    }

    fn top(&self) -> f64 {
        self.to_per_s.unwrap_or(f64::INFINITY)
    }

    fn start_rate(&self, pilot_per_s: Option<f64>) -> f64 {
        let begin = self.from_per_s.unwrap_or_else(|| even(pilot_per_s.map_or(START_PER_S, |rate| rate / 2.0)));
        begin.max(self.floor()).min(self.top())
    }
}

/// Decides the next action from the time limit and the trials. Their order matters only for failed trials at the end.
pub fn next(rules: &Rules, trials: &[Trial], time_is_over: bool) -> Next {
    let board = Board::new(rules, trials);
    let budget = |ended| Next::Done(board.found(ended));
    let broken = trials.iter().rev().take_while(|trial| is_broken(trial)).count();
    // If no trial ever succeeded, the load is unlikely to be the reason for the breakdowns.
    let broke = |trial: &Trial| matches!(trial, Trial::Step { outcome: Outcome::Broke, .. });
    let never_well = trials.iter().all(|trial| is_broken(trial) || broke(trial));
    if broken >= BROKEN || (never_well && trials.len() >= BROKEN) {
        return budget(Ended::Broken);
    }
    let wanted = board.wanted(trials);
    match wanted {
        Next::Done(_) => wanted,
        _ if trials.len() >= rules.trials_max as usize => budget(Ended::Trials),
        _ if time_is_over => budget(Ended::Time),
        _ => wanted,
    }
}

/// Returns the rates tried, ascending, each with its verdict.
pub fn rates(rules: &Rules, trials: &[Trial]) -> Vec<Rate> {
    Board::new(rules, trials).rates
}

fn is_broken(trial: &Trial) -> bool {
    matches!(trial, Trial::Pilot(None) | Trial::Step { outcome: Outcome::Failed, .. })
}

/// Rounds a rate to four digits, which is readable and finer than any resolution.
fn even(rate: f64) -> f64 {
    if !(rate.is_finite() && rate > 0.0) {
        return rate;
    }
    let unit = 10f64.powf(rate.log10().floor() - 3.0);
    // Powers of ten below one are inexact; their inverses are exact.
    if unit < 1.0 { (rate * (1.0 / unit).round()).round() / (1.0 / unit).round() } else { (rate / unit).round() * unit }
}

struct Board<'a> {
    rules: &'a Rules,
    rates: Vec<Rate>,
    pilot_per_s: Option<f64>,
    trials: usize,
}

impl<'a> Board<'a> {
    fn new(rules: &'a Rules, trials: &[Trial]) -> Self {
        let mut steps = trials
            .iter()
            .filter_map(|trial| match *trial {
                Trial::Step { rate_per_s, purpose, outcome } => Some((rate_per_s, purpose, outcome)),
                Trial::Pilot(_) => None,
            })
            .collect::<Vec<_>>();
        // The stable sort keeps the trials of one rate in the order in which they ran.
        steps.sort_by(|a, b| a.0.total_cmp(&b.0));
        let rates = steps.chunk_by(|a, b| a.0 == b.0).map(|steps| rate(rules, steps)).collect();
        let pilot_per_s = trials.iter().find_map(|trial| match trial {
            Trial::Pilot(reached) => reached.filter(|rate| rate.is_finite() && *rate > 0.0),
            Trial::Step { .. } => None,
        });
        Self { rules, rates, pilot_per_s, trials: trials.len() }
    }

    fn with(&self, verdict: Verdict) -> impl DoubleEndedIterator<Item = &Rate> {
        self.rates.iter().filter(move |rate| rate.verdict == verdict)
    }

    fn high(&self) -> Option<&Rate> {
        self.with(Verdict::Fails).next()
    }

    /// Lowest rate too high for the generator. Ignores hiccups below a rate that holds, and rates above one that fails.
    fn wall(&self) -> Option<&Rate> {
        let high = self.high().map_or(f64::INFINITY, |high| high.rate_per_s);
        let holds = self.with(Verdict::Holds).rfind(|rate| rate.rate_per_s < high).map_or(0.0, |rate| rate.rate_per_s);
        self.with(Verdict::Generator).find(|rate| holds < rate.rate_per_s && rate.rate_per_s < high)
    }

    /// Upper limit of the range: a failing rate, or a rate that is too high for the generator.
    fn ceiling(&self) -> Option<f64> {
        self.wall().or(self.high()).map(|rate| rate.rate_per_s)
    }

    /// Highest rate that holds, below the ceiling and below every undecided rate.
    fn low(&self) -> Option<&Rate> {
        let ceiling = self.ceiling().unwrap_or(f64::INFINITY);
        let undecided = self.with(Verdict::Undecided).next().map_or(f64::INFINITY, |rate| rate.rate_per_s);
        self.with(Verdict::Holds).rfind(|rate| rate.rate_per_s < ceiling.min(undecided))
    }

    fn wanted(&self, trials: &[Trial]) -> Next {
        let trial = |rate_per_s, purpose| Next::Trial(Step { purpose, rate_per_s: Some(rate_per_s) });
        let (low, ceiling) = (self.low().map(|rate| rate.rate_per_s), self.ceiling());
        let inside = |rate: &&Rate| {
            low.is_none_or(|low| low < rate.rate_per_s) && ceiling.is_none_or(|ceiling| rate.rate_per_s < ceiling)
        };
        let open = self.rates.iter().filter(inside).find(|rate| rate.is_open());
        let high = self.high().filter(|high| !high.confirmed);
        let is_below_held = |high: &&Rate| self.with(Verdict::Holds).any(|rate| rate.rate_per_s > high.rate_per_s);
        let narrow = |low: f64, high: f64| high <= low * (1.0 + self.rules.resolution) * (1.0 + 1e-9);
        match trials.last() {
            None if self.rules.from_per_s.is_none() => Next::Trial(Step { purpose: Purpose::Pilot, rate_per_s: None }),
            Some(Trial::Step { rate_per_s, purpose, outcome: Outcome::Failed }) => trial(*rate_per_s, *purpose),
            _ if self.rates.is_empty() => trial(self.rules.start_rate(self.pilot_per_s), Purpose::Bracket),
            _ if let Some(open) = open => trial(open.rate_per_s, Purpose::Repeat),
            // A rate that fails below one that holds is tried again before the search relies on the failure.
            _ if let Some(high) = high.filter(is_below_held) => trial(high.rate_per_s, Purpose::Repeat),
            _ if let Some(rate) = self.bracket() => trial(rate, Purpose::Bracket),
            _ if let Some(rate) = self.gap() => trial(rate, Purpose::Bisect),
            _ if let Some(high) = high.filter(|_| self.wall().is_none()) => trial(high.rate_per_s, Purpose::Repeat),
            _ if let Some(low) = self.low().filter(|low| !low.confirmed) => trial(low.rate_per_s, Purpose::Confirm),
            _ => Next::Done(self.found(match low.zip(ceiling) {
                Some((low, ceiling)) if !narrow(low, ceiling) => Ended::Noise,
                _ => Ended::Found,
            })),
        }
    }

    /// Next rate that extends the range; `None` if both ends exist.
    fn bracket(&self) -> Option<f64> {
        let known = |rate: &&Rate| rate.verdict != Verdict::Unknown;
        if self.ceiling().is_none() {
            let highest = self.rates.iter().rfind(known)?.rate_per_s;
            let wanted = even(highest * 2.0).min(self.rules.top());
            return (wanted > highest && wanted.is_finite()).then_some(wanted);
        }
        if self.low().is_none() {
            let lowest = self.rates.iter().find(known)?;
            let wanted = even(lowest.rate_per_s / 2.0).max(self.rules.floor());
            let judged = lowest.verdict != Verdict::TooFew;
            return (wanted < lowest.rate_per_s && judged).then_some(wanted);
        }
        None
    }

    /// Middle of the widest gap between ends, or between an end and undecided rates; `None` if all gaps are narrow.
    fn gap(&self) -> Option<f64> {
        let ceiling = self.ceiling()?;
        // A rate at or below a rate with too few responses cannot be judged, so the gap starts there.
        let floor = match self.low() {
            Some(low) => low.rate_per_s,
            None => self.with(Verdict::TooFew).rfind(|rate| rate.rate_per_s < ceiling)?.rate_per_s,
        };
        let between = |rate: &&Rate| floor < rate.rate_per_s && rate.rate_per_s < ceiling;
        let undecided = self.rates.iter().filter(between).map(|rate| rate.rate_per_s).collect::<Vec<_>>();
        // A rate between undecided rates would also stay undecided.
        let gaps = match (undecided.first(), undecided.last()) {
            (Some(first), Some(last)) => vec![(floor, *first), (*last, ceiling)],
            _ => vec![(floor, ceiling)],
        };
        let width = |gap: &(f64, f64)| gap.1 / gap.0;
        let widest = gaps.into_iter().max_by(|a, b| width(a).total_cmp(&width(b)))?;
        if width(&widest) <= (1.0 + self.rules.resolution) * (1.0 + 1e-9) {
            return None;
        }
        let middle = even((widest.0 * widest.1).sqrt());
        (widest.0 < middle && middle < widest.1).then_some(middle)
    }

    fn found(&self, ended: Ended) -> Found {
        let end = |rate: &Rate| End { rate_per_s: rate.rate_per_s, trials: rate.trials, confirmed: rate.confirmed };
        let (low, high, wall) = (self.low(), self.high(), self.wall());
        let high = high.filter(|_| wall.is_none());
        let complete = matches!(ended, Ended::Found | Ended::Noise);
        let tried = |at: f64| self.rates.iter().any(|rate| rate.rate_per_s == at);
        let at_limit = |limit: f64| match complete {
            true if tried(limit) => Missing::Asked(limit),
            true => Missing::Undecided,
            false => Missing::Ended,
        };
        let no_high = wall.map_or(at_limit(self.rules.top()), |wall| Missing::Generator(wall.rate_per_s));
        let no_low = match (self.with(Verdict::TooFew).next_back(), wall) {
            (Some(rate), _) => Missing::TooFew(rate.rate_per_s),
            (None, Some(wall)) if complete => Missing::Generator(wall.rate_per_s),
            _ => at_limit(self.rules.floor()),
        };
        let low_per_s = low.map_or(0.0, |rate| rate.rate_per_s);
        let high_per_s = high.or(wall).map_or(f64::INFINITY, |rate| rate.rate_per_s);
        let inside = |rate: &&Rate| low_per_s < rate.rate_per_s && rate.rate_per_s < high_per_s;
        let rates = |rates: &mut dyn Iterator<Item = &Rate>| rates.map(|rate| rate.rate_per_s).collect::<Vec<_>>();
        Found {
            low: low.map(end).ok_or(no_low),
            high: high.map(end).ok_or(no_high),
            ended,
            undecided_per_s: rates(&mut self.with(Verdict::Undecided).filter(inside)),
            contradictions_per_s: rates(&mut self.with(Verdict::Holds).filter(|rate| rate.rate_per_s > high_per_s)),
            trials: self.trials,
        }
    }
}

impl Rate {
    fn is_open(&self) -> bool {
        match self.verdict {
            Verdict::Undecided => !self.shaken && self.trials < MOST_TRIALS,
            Verdict::Unknown => self.spoiled > 0 || self.too_few > 0,
            _ => false,
        }
    }
}

fn rate(rules: &Rules, steps: &[(f64, Purpose, Outcome)]) -> Rate {
    let (mut excesses, mut insides, mut spreads) = (Vec::new(), Vec::new(), Vec::new());
    let (mut kept, mut confirmations, mut shaken) = (0, 0, false);
    let count = |result| steps.iter().filter(|(_, _, outcome)| *outcome == result).count();
    let (spoiled, too_few) = (count(Outcome::Generator), count(Outcome::TooFew));
    for (_, purpose, outcome) in steps {
        let (excess, interval) = match *outcome {
            Outcome::Judged { excess, interval } => (if excess.is_nan() { LIMIT } else { excess }, interval),
            Outcome::Broke => (LIMIT, Some((LIMIT, LIMIT))),
            Outcome::Generator | Outcome::TooFew | Outcome::Failed => continue,
        };
        let interval = interval.filter(|(low, high)| low <= high);
        let holds = excess < 0.0;
        kept += usize::from(holds);
        if *purpose == Purpose::Confirm {
            confirmations += 1;
            shaken |= !holds;
        }
        excesses.push(excess.clamp(-LIMIT, LIMIT));
        insides.push(interval.unwrap_or((excess - BLIND, excess + BLIND)));
        spreads.extend(interval.map(|(low, high)| (high - low) / 2.0 / NORMAL));
    }
    let trials = excesses.len();
    let estimate = estimate(&excesses, &insides, &spreads);
    let verdict = match (trials, estimate) {
        (0, _) | (_, None) if spoiled >= SPOILED => Verdict::Generator,
        (0, _) | (_, None) if too_few > 0 => Verdict::TooFew,
        (0, _) | (_, None) => Verdict::Unknown,
        // If the generator spoiled most trials, the others were valid only by chance.
        _ if spoiled > trials => Verdict::Generator,
        _ if too_few > trials => Verdict::TooFew,
        // There are too few trials for an interval, so each trial counts by itself, and all must agree.
        (..FIRM, _) if insides.iter().all(|(_, high)| *high < 0.0) => Verdict::Holds,
        (..FIRM, _) if insides.iter().all(|(low, _)| *low > 0.0) => Verdict::Fails,
        (..FIRM, _) => Verdict::Undecided,
        (_, Some(all)) if all.high < 0.0 && 2 * kept > trials && !shaken => Verdict::Holds,
        (_, Some(all)) if all.low > 0.0 && 2 * kept < trials => Verdict::Fails,
        _ => Verdict::Undecided,
    };
    let confirmed = trials >= FIRM && (verdict != Verdict::Holds || confirmations >= rules.confirm as usize);
    let rate_per_s = steps[0].0;
    Rate { rate_per_s, verdict, trials, kept, excess: estimate, confirmed, shaken, spoiled, too_few }
}

/// Mean excess with its interval: the trial's own interval for a single trial, otherwise Student's t over the trials.
/// Few trials may agree by chance, so their deviation counts as at least the average deviation within a trial.
fn estimate(excesses: &[f64], insides: &[(f64, f64)], spreads: &[f64]) -> Option<Estimate> {
    let point = interval::average(excesses)?;
    let n = excesses.len();
    if let [(low, high)] = insides {
        let (low, high) = (low.clamp(-LIMIT, LIMIT).min(point), high.clamp(-LIMIT, LIMIT).max(point));
        return Some(Estimate { point, low, high, level: LEVEL, n: 1 });
    }
    let inside = interval::average(spreads).unwrap_or(0.0).min(LIMIT);
    let deviation = interval::variance(excesses)?.sqrt().max(inside);
    let half_width = interval::t_two_sided(LEVEL, (n - 1) as f64) * deviation / (n as f64).sqrt();
    Some(Estimate::around(point, half_width, LEVEL, n as u64))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const RULES: Rules =
        Rules { from_per_s: Some(1_000.0), to_per_s: Some(1e6), resolution: 0.05, confirm: 3, trials_max: 60 };

    fn sure(excess: f64) -> Outcome {
        Outcome::Judged { excess, interval: Some((excess - 0.05, excess + 0.05)) }
    }

    /// A server that keeps its objective up to a rate of exactly `knee`.
    fn sharp(knee: f64) -> impl FnMut(f64, usize) -> Outcome {
        move |rate, _| sure(if rate <= knee { -1.0 } else { 1.0 })
    }

    fn search(
        rules: &Rules,
        pilot: Option<f64>,
        mut subject: impl FnMut(f64, usize) -> Outcome,
    ) -> (Vec<Trial>, Found) {
        let mut trials = Vec::new();
        loop {
            assert!(trials.len() <= rules.trials_max as usize, "endless: {trials:?}");
            match next(rules, &trials, false) {
                Next::Trial(Step { rate_per_s: None, .. }) => trials.push(Trial::Pilot(pilot)),
                Next::Trial(Step { rate_per_s: Some(rate_per_s), purpose }) => {
                    let outcome = subject(rate_per_s, trials.len());
                    trials.push(Trial::Step { rate_per_s, purpose, outcome });
                }
                Next::Done(found) => return (trials, found),
            }
        }
    }

    fn steps(trials: &[Trial]) -> String {
        let word = |trial: &Trial| match trial {
            Trial::Pilot(_) => "pilot".to_owned(),
            Trial::Step { rate_per_s, purpose, .. } => format!("{purpose:?} {rate_per_s}").to_lowercase(),
        };
        trials.iter().map(word).collect::<Vec<_>>().join(", ")
    }

    fn ends(found: &Found) -> (Option<f64>, Option<f64>) {
        (found.low.ok().map(|end| end.rate_per_s), found.high.ok().map(|end| end.rate_per_s))
    }

    #[test]
    fn brackets_bisects_and_confirms_a_sharp_knee() {
        let (trials, found) = search(&RULES, None, sharp(5_000.0));
        assert_eq!(
            steps(&trials),
            "bracket 1000, bracket 2000, bracket 4000, bracket 8000, bisect 5657, bisect 4757, bisect 5188, bisect 4968, \
             repeat 5188, repeat 5188, confirm 4968, confirm 4968, confirm 4968"
        );
        assert_eq!((ends(&found), found.ended), ((Some(4968.0), Some(5188.0)), Ended::Found));
        assert_eq!(found.low.map(|end| (end.trials, end.confirmed)), Ok((4, true)));
        assert_eq!(found.high.map(|end| (end.trials, end.confirmed)), Ok((3, true)));
        assert_eq!((found.trials, found.undecided_per_s.len(), found.contradictions_per_s.len()), (13, 0, 0));
    }

    #[test]
    fn starts_at_half_the_rate_of_the_pilot() {
        let rules = Rules { from_per_s: None, to_per_s: None, ..RULES };
        let (trials, found) = search(&rules, Some(42_000.0), sharp(39_000.0));
        assert!(steps(&trials).starts_with("pilot, bracket 21000, bracket 42000, bisect 29700,"), "{}", steps(&trials));
        assert!(found.low.unwrap().rate_per_s <= 39_000.0 && found.high.unwrap().rate_per_s > 39_000.0);
        // After a failed or nonsensical pilot, the search begins at the default rate.
        for nonsense in [None, Some(0.0), Some(f64::NAN), Some(f64::INFINITY)] {
            assert!(
                steps(&search(&rules, nonsense, sharp(2_500.0)).0).starts_with("pilot, bracket 1000, bracket 2000,")
            );
        }
        assert_eq!(ends(&search(&rules, Some(64_000.0), sharp(900.0)).1), (Some(878.1), Some(917.0)));
    }

    #[test]
    fn names_why_an_end_is_missing() {
        let check = |rules: &Rules, subject: &mut dyn FnMut(f64, usize) -> Outcome, low, high, missing| {
            let (trials, found) = search(rules, None, subject);
            assert_eq!(
                (ends(&found), (found.low.err(), found.high.err())),
                ((low, high), missing),
                "{}",
                steps(&trials)
            );
            assert_eq!(found.ended, Ended::Found);
        };
        let fast = Rules { to_per_s: Some(5_000.0), ..RULES };
        check(&fast, &mut sharp(1e9), Some(5_000.0), None, (None, Some(Missing::Asked(5_000.0))));
        check(&RULES, &mut sharp(10.0), None, Some(1_000.0), (Some(Missing::Asked(1_000.0)), None));
        let mut weak = |rate: f64, _| if rate > 6_000.0 { Outcome::Generator } else { sure(-1.0) };
        check(&RULES, &mut weak, Some(5907.0), None, (None, Some(Missing::Generator(6_169.0))));
        let mut useless = |_: f64, _: usize| Outcome::Generator;
        check(&RULES, &mut useless, None, None, (Some(Missing::Generator(1_000.0)), Some(Missing::Generator(1_000.0))));
        let mut few = |rate: f64, _| if rate < 3_000.0 { Outcome::TooFew } else { sharp(3_050.0)(rate, 0) };
        check(&RULES, &mut few, None, Some(3_084.0), (Some(Missing::TooFew(2_953.0)), None));
        let mut fragile = |rate: f64, _| if rate > 3_000.0 { Outcome::Broke } else { sure(-1.0) };
        check(&RULES, &mut fragile, Some(2_953.0), Some(3_084.0), (None, None));
    }

    #[test]
    fn repeats_a_rate_after_one_spoiled_trial() {
        let mut knee = sharp(5_000.0);
        let subject = |rate: f64, place: usize| if place == 2 { Outcome::Generator } else { knee(rate, place) };
        let (trials, found) = search(&RULES, None, subject);
        assert!(steps(&trials).starts_with("bracket 1000, bracket 2000, bracket 4000, repeat 4000, bracket 8000"));
        assert_eq!(ends(&found), (Some(4968.0), Some(5188.0)));
        let mut knee = sharp(5_000.0);
        let mut bad = 0;
        let subject = |rate: f64, place: usize| {
            bad += usize::from(rate == 4757.0);
            if rate == 4757.0 && bad <= 2 { Outcome::Generator } else { knee(rate, place) }
        };
        let (_, found) = search(&RULES, None, subject);
        assert_eq!(found.high, Err(Missing::Generator(4757.0)), "nothing above was tried any more");
    }

    #[test]
    fn repeats_a_rate_near_the_bound() {
        // Only the rate 5,657 is within the noise.
        let subject = |rate: f64, _: usize| {
            let excess = if rate < 5_500.0 {
                -1.0
            } else if rate > 5_800.0 {
                1.0
            } else {
                0.02
            };
            sure(excess)
        };
        let (trials, found) = search(&RULES, None, subject);
        assert_eq!(
            trials.iter().filter(|trial| matches!(trial, Trial::Step { rate_per_s: 5657.0, .. })).count(),
            MOST_TRIALS
        );
        assert_eq!((found.undecided_per_s.as_slice(), found.ended), (&[5657.0][..], Ended::Noise));
        let (low, high) = ends(&found);
        assert!(low.unwrap() < 5657.0 && 5657.0 < high.unwrap());
        assert!(5657.0 / low.unwrap() <= 1.0501 && high.unwrap() / 5657.0 <= 1.0501, "{found:?}");
    }

    #[test]
    fn replaces_a_lower_end_that_fails_confirmation() {
        // The rate 4,968 holds once and never again.
        let mut tries = 0;
        let subject = |rate: f64, _: usize| {
            tries += usize::from(rate == 4968.0);
            if rate == 4968.0 && tries > 1 { sure(0.3) } else { sharp(5_000.0)(rate, 0) }
        };
        let (_, found) = search(&RULES, None, subject);
        let (low, high) = ends(&found);
        assert!(low.unwrap() < 4968.0 && low.unwrap() > 4_700.0, "{found:?}");
        assert!(found.low.unwrap().confirmed && found.high.unwrap().confirmed);
        assert!(high.unwrap() <= 5188.0);
    }

    #[test]
    fn ignores_rates_above_a_failing_rate() {
        // The server fails between 2,500 and 3,500 and holds again up to 9,000, as if one of its timers interfered.
        let subject =
            |rate: f64, _: usize| sure(if (2_500.0..3_500.0).contains(&rate) || rate > 9_000.0 { 0.5 } else { -0.5 });
        let rules = Rules { from_per_s: Some(3_000.0), ..RULES };
        assert_eq!(ends(&search(&rules, None, subject).1), (None, Some(3_000.0)), "the lowest rate fails");
        let mut trials = Vec::new();
        for rate_per_s in [1_000.0, 2_000.0, 4_000.0, 8_000.0, 16_000.0, 2_828.0] {
            trials.push(Trial::Step { rate_per_s, purpose: Purpose::Bracket, outcome: subject(rate_per_s, 0) });
        }
        // The only rate that fails below rates that hold is tried again before its failure counts.
        for _ in 0..2 {
            assert_eq!(
                next(&RULES, &trials, false),
                Next::Trial(Step { purpose: Purpose::Repeat, rate_per_s: Some(2_828.0) })
            );
            trials.push(Trial::Step { rate_per_s: 2_828.0, purpose: Purpose::Repeat, outcome: sure(0.5) });
        }
        let Next::Done(found) = next(&Rules { trials_max: 8, ..RULES }, &trials, false) else {
            panic!("eight are all")
        };
        assert_eq!((ends(&found), found.ended), ((Some(2_000.0), Some(2_828.0)), Ended::Trials));
        assert_eq!(found.contradictions_per_s, [4_000.0, 8_000.0]);
        assert!(!found.low.unwrap().confirmed && found.high.unwrap().confirmed);
    }

    #[test]
    fn keeps_an_undecided_rate_inside_the_range() {
        let subject = |rate: f64, place: usize| {
            let doubtful = (1_900.0..2_100.0).contains(&rate);
            if doubtful { sure([0.02, -0.02][place % 2]) } else { sharp(5_000.0)(rate, 0) }
        };
        let (trials, found) = search(&RULES, None, subject);
        let (low, high) = ends(&found);
        assert!(low.unwrap() < 1_900.0 && low.unwrap() * 1.16 > 1_900.0, "{found:?}");
        assert_eq!((high, found.ended), (Some(5188.0), Ended::Noise), "{}", steps(&trials));
        assert!(found.undecided_per_s.contains(&2_000.0), "{found:?}");
        // A search that continued above the undecided rate gives the same result.
        let mut above = Vec::new();
        for rate_per_s in [1_000.0, 4_000.0, 8_000.0].into_iter().chain([2_000.0; MOST_TRIALS]) {
            let outcome = subject(rate_per_s, above.len());
            above.push(Trial::Step { rate_per_s, purpose: Purpose::Bracket, outcome });
        }
        let Next::Done(found) = next(&RULES, &above, true) else { panic!("no time") };
        assert_eq!((ends(&found), found.undecided_per_s.as_slice()), ((Some(1_000.0), Some(8_000.0)), &[2_000.0][..]));
    }

    #[test]
    fn attributes_the_result_to_server_or_measurement() {
        let bound = |subject: &mut dyn FnMut(f64, usize) -> Outcome| search(&RULES, None, subject).1.bound();
        assert_eq!(bound(&mut sharp(5_000.0)), Bound::Found);
        assert_eq!(bound(&mut sharp(1e9)), Bound::Found, "up to the highest rate asked");
        assert_eq!(bound(&mut sharp(10.0)), Bound::Subject);
        assert_eq!(bound(&mut |_, _| Outcome::Broke), Bound::Subject);
        assert_eq!(bound(&mut |_, _| Outcome::Generator), Bound::Measuring);
        assert_eq!(bound(&mut |_, _| Outcome::TooFew), Bound::Measuring);
        assert_eq!(bound(&mut |_, _| Outcome::Failed), Bound::Measuring);
        assert_eq!(bound(&mut |_, _| sure(0.0)), Bound::Measuring);
        assert_eq!(
            bound(&mut |rate, _| if rate > 6_000.0 { Outcome::Generator } else { sure(-1.0) }),
            Bound::Measuring,
            "how much more it can take is not known"
        );
        assert_eq!(
            bound(&mut |rate, _| if rate < 3_000.0 { Outcome::TooFew } else { sure(1.0) }),
            Bound::Measuring,
            "below there are too few responses"
        );
    }

    #[test]
    fn ends_on_budgets_and_breakdowns() {
        let few = Rules { trials_max: 5, ..RULES };
        let (_, found) = search(&few, None, sharp(5_000.0));
        assert_eq!((found.ended, ends(&found)), (Ended::Trials, (Some(4_000.0), Some(5_657.0))));
        assert!(!found.low.unwrap().confirmed);
        let Next::Done(found) = next(&RULES, &[], true) else { panic!("no time") };
        assert_eq!((found.ended, found.low, found.high), (Ended::Time, Err(Missing::Ended), Err(Missing::Ended)));
        let (trials, found) = search(&RULES, None, |rate, _| if rate < 2_000.0 { sure(-1.0) } else { Outcome::Failed });
        assert_eq!(steps(&trials), "bracket 1000, bracket 2000, bracket 2000, bracket 2000");
        assert_eq!((found.ended, ends(&found)), (Ended::Broken, (Some(1_000.0), None)));
        let (trials, found) = search(&RULES, None, |_, _| Outcome::Broke);
        assert_eq!((steps(&trials).as_str(), found.ended), ("bracket 1000, repeat 1000, repeat 1000", Ended::Broken));
        let (_, found) =
            search(&RULES, None, |rate, place| if place == 1 { Outcome::Failed } else { sharp(5_000.0)(rate, 0) });
        assert_eq!(ends(&found), (Some(4968.0), Some(5188.0)));
    }

    #[test]
    fn order_of_trials_is_irrelevant() {
        let (mut trials, found) =
            search(&RULES, None, |rate, place| sure((rate / 5_000.0).ln() * 2.0 + [0.1, -0.1][place % 2]));
        for _ in 0..trials.len() {
            trials.rotate_left(1);
            assert_eq!(next(&RULES, &trials, false), Next::Done(found.clone()));
        }
    }

    #[test]
    fn agreement_by_chance_stays_undecided() {
        let judged = |excesses: &[f64], width: f64| {
            let step = |excess: &f64| {
                let outcome = Outcome::Judged { excess: *excess, interval: Some((excess - width, excess + width)) };
                (5_000.0, Purpose::Repeat, outcome)
            };
            rate(&RULES, &excesses.iter().map(step).collect::<Vec<_>>())
        };
        assert_eq!(judged(&[-0.1, -0.1, -0.1], 0.01).verdict, Verdict::Holds);
        assert_eq!(judged(&[-0.1, -0.1, -0.1], 0.2).verdict, Verdict::Undecided);
        assert_eq!(judged(&[0.1, 0.1, 0.1], 0.01).verdict, Verdict::Fails);
        // scipy 1.17: t.interval(.95, 2, numpy.mean([.1, .2, .3]), scipy.stats.sem([.1, .2, .3])) is (-0.0484, 0.4484)
        let found = judged(&[0.1, 0.2, 0.3], 0.0);
        let estimate = found.excess.unwrap();
        assert_eq!((found.verdict, found.trials, found.kept), (Verdict::Undecided, 3, 0));
        assert!(
            (estimate.low + 0.048_413_771_175_033).abs() < 1e-9 && (estimate.point - 0.2).abs() < 1e-12,
            "{estimate:?}"
        );
        // Excesses are clamped so that one trial cannot outweigh the others.
        assert_eq!(judged(&[9.0, -0.1, -0.1, -0.1], 0.0).verdict, Verdict::Undecided);
        assert!(judged(&[9.0, 9.0, 9.0], 0.0).excess.unwrap().point <= LIMIT);
    }

    #[test]
    fn rounds_rates_to_four_digits() {
        for (rate, even_rate) in
            [(41_234.56, 41_230.0), (1_000.0, 1_000.0), (0.123_45, 0.1235), (999_950.0, 1e6), (7.0, 7.0)]
        {
            assert_eq!(even(rate), even_rate);
        }
        assert!(even(f64::INFINITY).is_infinite());
    }

    proptest! {
        /// A search ends within the maximum number of trials, tries only allowed rates, and orders the ends.
        #[test]
        fn every_search_ends(
            outcomes in prop::collection::vec((0..12u8, -3.0..3.0f64, 0.0..1.0f64), 1..80),
            pilot in prop::option::of(-1.0..1e7f64), from in prop::option::of(1.0..1e5f64), span in 1.0..1e4f64, resolution in 0.005..0.5f64,
        ) {
            let to_per_s = from.map(|from| from * span);
            let rules = Rules { from_per_s: from, to_per_s, resolution, confirm: 3, trials_max: 70 };
            let subject = |rate: f64, place: usize| {
                assert!(rate >= rules.floor() && rate <= rules.top() && rate.is_finite(), "{rate}");
                match outcomes[place % outcomes.len()] {
                    (0, ..) => Outcome::Generator,
                    (1, ..) => Outcome::TooFew,
                    (2, ..) => Outcome::Failed,
                    (3, ..) => Outcome::Broke,
                    (4, excess, _) => Outcome::Judged { excess, interval: None },
                    (5, ..) => Outcome::Judged { excess: f64::NAN, interval: Some((f64::NAN, 1.0)) },
                    (_, excess, width) => Outcome::Judged { excess, interval: Some((excess - width, excess + width)) },
                }
            };
            let (trials, found) = search(&rules, pilot, subject);
            prop_assert_eq!(found.trials, trials.len());
            if let (Ok(low), Ok(high)) = (found.low, found.high) {
                prop_assert!(low.rate_per_s < high.rate_per_s);
            }
            // Undecided rates are inside the range or above its upper end.
            let high = match found.high {
                Ok(high) => high.rate_per_s,
                Err(Missing::Generator(wall)) => wall,
                Err(_) => f64::INFINITY,
            };
            for rate in rates(&rules, &trials).iter().filter(|rate| rate.verdict == Verdict::Undecided) {
                prop_assert!(found.low.ok().is_none_or(|low| low.rate_per_s < rate.rate_per_s));
                let listed = found.undecided_per_s.contains(&rate.rate_per_s);
                prop_assert_eq!(listed, rate.rate_per_s < high, "{:?}", rate);
            }
        }
    }
}
