//! Coverage of the intervals that reports compute, in simulated studies with a known truth.

use stats::batch_means;
use stats::distribution::Distribution;
use stats::effects::{self, Scale};
use stats::histogram::Histogram;
use stats::interval::normal_cdf;
use stats::interval::{self, Estimate};
use stats::random::Rng;
use stats::search::{self, Next, Rules, Step, Trial};
use stats::usl::{self, Law, Point};

use super::Promise;

pub const LEVEL: f64 = 0.95;

#[derive(Clone, Copy, Debug, PartialEq)]
enum Metric {
    Mean,
    Quantile(f64),
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Kind {
    /// Mean over a fixed number of trials, by Student's t.
    Trials { subject: Subject, trials: usize, metric: Metric },
    /// Mean of one AR(1) series by batch means.
    BatchMean { rho: f64, windows: usize },
    /// A series that grows until its interval is narrow, checked at looks or, if `often`, after every ten windows.
    Growing { rho: f64, often: bool },
    /// The series of `BatchMean`, wrongly treated as independent.
    Naive { rho: f64, windows: usize },
    /// Mean latency of one trial from windows of unequal counts.
    BatchRatio { subject: Subject },
    /// Quantile of one trial from the histograms of its windows.
    BatchQuantile { subject: Subject, q: f64 },
    /// Quantile of independent requests by order statistics.
    Order { requests: u64, q: f64 },
    /// Saturation search or, if `blind`, bisection, on servers whose starts differ in capacity by `between`.
    Search { between: f64, blind: bool },
    /// The law of scalability fitted to seven points that scatter alike (`even`) or eight times as much after the peak.
    Scalability { trials: usize, even: bool, of: Scaling },
    /// Main effect in a 3×2 factorial in blocks that differ by 10 %. `is_lossy` removes one trial in six.
    Factorial { trials: usize, is_lossy: bool },
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Scaling {
    Contention,
    Coherency,
    Peak,
    /// Throughput at this number of clients, N.
    At(f64),
}

#[derive(Clone, Debug, PartialEq)]
pub struct Case {
    pub name: String,
    pub(super) promise: Promise,
    kind: Kind,
}

/// Latencies follow `law` times a factor per trial and one per window (AR(1)), whose logarithms are normal with mean 0.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Subject {
    law: Distribution,
    between: f64,
    within: f64,
    rho: f64,
    windows: usize,
    requests: usize,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    pub studies: u32,
    /// Number of studies with an interval.
    pub answered: u32,
    pub covered: u32,
    /// Mean relative half-width of the intervals.
    pub width: f64,
}

impl Outcome {
    /// Share of the intervals that contain the truth; `None` without intervals.
    pub fn coverage(&self) -> Option<f64> {
        (self.answered > 0).then(|| f64::from(self.covered) / f64::from(self.answered))
    }

    pub fn declined(&self) -> f64 {
        1.0 - f64::from(self.answered) / f64::from(self.studies)
    }

    /// Whether the promise is kept within `slack`: 0 for a full simulation, more for few studies.
    pub(super) fn keeps(&self, promise: Promise, slack: f64) -> bool {
        let coverage = self.coverage();
        let within = |low: f64, high: f64| coverage.is_some_and(|share| low - slack <= share && share <= high + slack);
        match promise {
            Promise::Between(low, high) => self.answered == self.studies && within(low, high),
            Promise::AtLeast(low) => self.answered == self.studies && within(low, 1.0),
            Promise::BetweenOrDeclined(low, high) if self.declined() <= 0.5 => within(low, high),
            Promise::BetweenOrDeclined(..) => {
                f64::from(self.answered - self.covered) / f64::from(self.studies) < 0.05 + slack
            }
            Promise::AtMost(high) => self.answered == self.studies && within(0.0, high),
            Promise::Nothing(_) => true,
        }
    }
}

const LOGNORMAL: Distribution = Distribution::Lognormal { median: 100_000.0, sigma: 0.5 };
const BIMODAL: Distribution = Distribution::Bimodal { low: 50_000.0, high: 500_000.0, high_share: 0.05 };

pub fn cases() -> Vec<Case> {
    let subject = |law| Subject { law, between: 0.05, within: 0.1, rho: 0.5, windows: 50, requests: 100 };
    let mut cases = Vec::new();
    let mut add = |name: String, promise, kind| cases.push(Case { name, promise, kind });
    for (law_name, law) in [("lognormal", LOGNORMAL), ("bimodal", BIMODAL)] {
        for trials in [5, 10, 30] {
            let kind = Kind::Trials { subject: subject(law), trials, metric: Metric::Mean };
            add(format!("mean of {trials} trials, {law_name} latency"), Promise::Between(0.93, 0.97), kind);
        }
        let kind = Kind::Trials { subject: subject(law), trials: 10, metric: Metric::Quantile(0.99) };
        add(format!("p99 of 10 trials, {law_name} latency"), Promise::Between(0.92, 0.98), kind);
    }
    for rho in [0.0, 0.5, 0.9] {
        for windows in [50, 100, 200, 600, 1800] {
            let kind = Kind::BatchMean { rho, windows };
            let name = format!("one trial, {windows} windows, correlation {rho}");
            add(name, Promise::BetweenOrDeclined(0.93, 0.97), kind);
        }
    }
    for (often, name, promise) in
        [(false, "seldom", Promise::AtLeast(0.92)), (true, "every 10 windows", Promise::Nothing(""))]
    {
        let kind = Kind::Growing { rho: 0.5, often };
        add(format!("one trial until ±1 %, correlation 0.5, checked {name}"), promise, kind);
    }
    let kind = Kind::Naive { rho: 0.5, windows: 600 };
    add("the same 600 windows, 0.5, treated as independent".to_owned(), Promise::Nothing(""), kind);
    let long = Subject { between: 0.0, windows: 300, requests: 30, ..subject(LOGNORMAL) };
    let name = "one trial, mean latency, 300 windows of unequal counts".to_owned();
    add(name, Promise::BetweenOrDeclined(0.93, 0.97), Kind::BatchRatio { subject: long });
    for (q, name) in [(0.5, "p50"), (0.99, "p99")] {
        let kind = Kind::BatchQuantile { subject: long, q };
        add(format!("one trial, {name} of 300 windows"), Promise::BetweenOrDeclined(0.92, 0.98), kind);
    }
    let order = Kind::Order { requests: 2_000, q: 0.99 };
    add("p99 of 2,000 independent requests".to_owned(), Promise::Between(0.94, 0.99), order);
    for (between, starts) in [(0.0, "starts alike"), (0.03, "starts 3 % apart"), (0.06, "starts 6 % apart")] {
        let kind = |blind| Kind::Search { between, blind };
        add(format!("saturation search, {starts}"), Promise::AtLeast(0.95), kind(false));
        add(format!("bisection by one trial a rate, {starts}"), Promise::Nothing(""), kind(true));
    }
    for (trials, even, of, name) in [
        (5, true, Scaling::Contention, "contention σ"),
        (5, true, Scaling::Peak, "peak N*"),
        (5, false, Scaling::Peak, "peak N*"),
        (8, false, Scaling::Coherency, "coherency κ"),
        (5, false, Scaling::At(6.0), "throughput at N = 6"),
    ] {
        let scatter = if even { "that scatter alike" } else { "that scatter unlike" };
        let kind = Kind::Scalability { trials, even, of };
        let name = format!("{name} of the scalability law, 7 points of {trials} trials {scatter}");
        add(name, Promise::Between(0.92, 0.98), kind);
    }
    for (trials, is_lossy, name) in [
        (2, false, "main effect in a factorial, 6 points of 2 trials"),
        (8, false, "main effect in a factorial, 6 points of 8 trials"),
        (8, true, "main effect, one trial in six lost"),
    ] {
        add(name.to_owned(), Promise::Between(0.93, 0.97), Kind::Factorial { trials, is_lossy });
    }
    cases
}

pub fn run(case: &Case, studies: u32, seed: u64) -> Outcome {
    // The random stream depends on the case's name, so that a new case changes no other case.
    let of_case = case.name.bytes().fold(seed, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3));
    let truth = case.kind.truth();
    let mut outcome = Outcome { studies, answered: 0, covered: 0, width: 0.0 };
    for study in 0..studies {
        let mut rng = Rng::stream(of_case, u64::from(study));
        let Some(found) = case.kind.simulate(&mut rng) else { continue };
        outcome.answered += 1;
        outcome.covered += u32::from(found.low <= truth && truth <= found.high);
        outcome.width += found.relative_half_width();
    }
    outcome.width /= f64::from(outcome.answered.max(1));
    outcome
}

impl Kind {
    fn truth(&self) -> f64 {
        match self {
            Kind::Trials { subject, metric, .. } => subject.truth(*metric),
            Kind::BatchRatio { subject } => subject.truth(Metric::Mean),
            Kind::BatchQuantile { subject, q } => subject.truth(Metric::Quantile(*q)),
            Kind::BatchMean { .. } | Kind::Growing { .. } | Kind::Naive { .. } => SERIES_MEAN,
            Kind::Order { q, .. } => LOGNORMAL.quantile(*q),
            // Rates are relative to the server's own capacity, which differs from study to study.
            Kind::Search { .. } => 1.0,
            Kind::Factorial { .. } => FACTORIAL[2][0].midpoint(FACTORIAL[2][1]).exp(),
            Kind::Scalability { of, .. } => match of {
                Scaling::Contention => LAW.sigma,
                Scaling::Coherency => LAW.kappa,
                Scaling::Peak => LAW.peak(),
                Scaling::At(n) => LAW.throughput(*n),
            },
        }
    }

    /// Simulates one study; `None` if the statistics decline to give an interval.
    fn simulate(&self, rng: &mut Rng) -> Option<Estimate> {
        match *self {
            Kind::Trials { subject, trials, metric } => {
                let values = (0..trials).map(|_| subject.trial(metric, rng)).collect::<Vec<_>>();
                interval::mean(&values, LEVEL)
            }
            Kind::BatchMean { rho, windows } => {
                batch_means::mean(&series(rng, rho, windows), LEVEL).ok().map(|found| found.estimate)
            }
            Kind::Growing { rho, often } => growing(rng, rho, often),
            Kind::Naive { rho, windows } => interval::mean(&series(rng, rho, windows), LEVEL),
            Kind::BatchRatio { subject } => {
                let mut windows = Vec::new();
                subject.unequal_windows(rng, |latencies| {
                    windows.push((latencies.iter().sum::<f64>(), latencies.len() as f64));
                });
                batch_means::ratio(&windows, LEVEL).ok().map(|found| found.estimate)
            }
            Kind::BatchQuantile { subject, q } => {
                let mut whole = Histogram::new();
                let mut windows = Vec::new();
                subject.unequal_windows(rng, |latencies| {
                    let mut window = Histogram::with_precision(Histogram::WINDOW_PRECISION);
                    for &latency in latencies {
                        window.record(latency as u64);
                        whole.record(latency as u64);
                    }
                    windows.push(window);
                });
                batch_means::quantile(&windows, &whole, q, LEVEL).ok().map(|found| found.estimate)
            }
            Kind::Order { requests, q } => {
                let mut histogram = Histogram::new();
                for _ in 0..requests {
                    histogram.record(LOGNORMAL.sample(rng) as u64);
                }
                histogram.quantile_interval(q, LEVEL, requests).ok()
            }
            Kind::Search { between, blind } => Knee::draw(between, rng).range(blind, rng),
            Kind::Scalability { trials, even, of } => scaling(rng, trials, even, of),
            Kind::Factorial { trials, is_lossy } => effect(rng, trials, is_lossy),
        }
    }
}

/// Logarithms of the means in the factorial, relative to the first level of the first factor.
const FACTORIAL: [[f64; 2]; 3] = [[0.0, 0.0], [0.1, 0.12], [0.3, 0.5]];

fn effect(rng: &mut Rng, trials: usize, is_lossy: bool) -> Option<Estimate> {
    let mut values = Vec::new();
    for block in 0..trials as u32 {
        let slow = 0.1 * rng.normal();
        for (a, means) in FACTORIAL.iter().enumerate() {
            for (b, mean) in means.iter().enumerate() {
                let value = 1000.0 * (mean + slow + 0.2 * b as f64 + 0.02 * rng.normal()).exp();
                if is_lossy && rng.below(6) == 0 {
                    continue;
                }
                values.push(effects::Trial { levels: vec![a, b], block, value });
            }
        }
    }
    let found = effects::factorial(&[3, 2], &values, Scale::Ratio).ok()?;
    Some(found.change(0, 0, 2, None).ratio(LEVEL))
}

/// The simulated law of scalability; its peak is at 9.7 clients.
const LAW: Law = Law { lambda: 1000.0, sigma: 0.05, kappa: 0.01 };

fn scaling(rng: &mut Rng, trials: usize, even: bool, of: Scaling) -> Option<Estimate> {
    let point = |n: f64| {
        let spread = match even {
            true => 0.03,
            false if n > LAW.peak() => 0.08,
            false => 0.01,
        };
        let throughputs = (0..trials).map(|_| LAW.throughput(n) * (1.0 + spread * rng.normal())).collect();
        Point { n, throughputs }
    };
    let points = [1.0, 2.0, 4.0, 6.0, 8.0, 12.0, 16.0].map(point);
    let found = usl::fit(&points, LEVEL, rng.next_u64()).ok()?;
    let intervals = found.intervals?;
    match of {
        Scaling::Contention => Some(intervals.sigma),
        Scaling::Coherency => Some(intervals.kappa),
        Scaling::Peak => Some(intervals.peak),
        Scaling::At(n) => found.band(n),
    }
}

const SERIES_MEAN: f64 = 100.0;
struct Ar1 {
    rho: f64,
    value: f64,
}

impl Ar1 {
    fn start(rho: f64, rng: &mut Rng) -> Ar1 {
        Ar1 { rho, value: rng.normal() }
    }

    fn next(&mut self, rng: &mut Rng) -> f64 {
        let value = self.value;
        self.value = self.rho * value + (1.0 - self.rho * self.rho).sqrt() * rng.normal();
        value
    }
}

fn series(rng: &mut Rng, rho: f64, windows: usize) -> Vec<f64> {
    let mut process = Ar1::start(rho, rng);
    (0..windows).map(|_| SERIES_MEAN + 10.0 * process.next(rng)).collect()
}

fn growing(rng: &mut Rng, rho: f64, often: bool) -> Option<Estimate> {
    let series = series(rng, rho, 10_000);
    let mut windows = 0;
    loop {
        windows = if often { windows + 10 } else { batch_means::next_look(windows) };
        let found = batch_means::mean(&series[..windows.min(series.len())], LEVEL).ok().map(|found| found.estimate);
        if windows >= series.len() || found.is_some_and(|found| found.relative_half_width() <= 0.01) {
            return found;
        }
    }
}

/// An M/M/1 server whose starts differ in capacity. In a long trial, p99 is `floor + ln 100 / (capacity - rate)`.
struct Knee {
    /// Median capacity of the starts, per second.
    capacity_per_s: f64,
    /// Standard deviation of the logarithm of the starts' capacities.
    between: f64,
    /// The part of the latency that does not depend on the load, s.
    floor_s: f64,
    /// The objective: p99 below this, s.
    bound_s: f64,
    /// The rate that a start of median capacity sustains, per second.
    truth_per_s: f64,
}

const TRIAL_S: f64 = 5.0;

impl Knee {
    /// Draws a capacity within two powers of ten and an objective that allows 50 to 97 % of it.
    fn draw(between: f64, rng: &mut Rng) -> Knee {
        let capacity_per_s = 2_000.0 * 100f64.powf(rng.unit_f64());
        let share = 0.5 + 0.47 * rng.unit_f64();
        let wait_s = 100f64.ln() / (capacity_per_s * (1.0 - share));
        let floor_s = wait_s * (0.05 + rng.unit_f64());
        Knee { capacity_per_s, between, floor_s, bound_s: wait_s + floor_s, truth_per_s: share * capacity_per_s }
    }

    fn trial(&self, rate_per_s: f64, rng: &mut Rng) -> search::Outcome {
        let capacity = self.capacity_per_s * (self.between * rng.normal()).exp();
        // A queue needs time to grow: near the capacity, a trial does not show the full latency.
        let spare = (capacity - rate_per_s).max((capacity / TRIAL_S).sqrt());
        let backlog_s = (rate_per_s / capacity - 1.0).max(0.0) * TRIAL_S;
        let p99_s = self.floor_s + 100f64.ln() / spare + backlog_s;
        // A trial near the capacity also contains few independent busy periods.
        let noise = (0.02 + 1.0 / (TRIAL_S * spare * spare / capacity).sqrt()).min(0.5);
        let latency = (p99_s / self.bound_s).ln() + noise * rng.normal();
        let missed = (1.0 - capacity / rate_per_s).max(0.0);
        let allowed = (3.0 / (rate_per_s * TRIAL_S).sqrt()).max(0.01);
        let missed = (missed / allowed).ln().max(-search::LIMIT);
        let interval = [latency - 1.96 * noise, latency + 1.96 * noise].map(|end| end.max(missed));
        // Batch means sometimes give no interval.
        let interval = (rng.unit_f64() > 0.2).then_some((interval[0], interval[1]));
        search::Outcome::Judged { excess: latency.max(missed), interval }
    }

    fn range(&self, blind: bool, rng: &mut Rng) -> Option<Estimate> {
        let (low, high) = if blind { self.bisected(rng) } else { self.searched(rng)? };
        let [low, high] = [low, high].map(|rate| rate / self.truth_per_s);
        Some(Estimate { point: (low * high).sqrt(), low, high, level: LEVEL, n: 1 })
    }

    fn searched(&self, rng: &mut Rng) -> Option<(f64, f64)> {
        let rules = Rules { from_per_s: None, to_per_s: None, resolution: 0.05, confirm: 3, trials_max: 100 };
        let mut trials = Vec::new();
        loop {
            match search::next(&rules, &trials, false) {
                // Many clients keep the server busy all the time, so this trial measures the capacity.
                Next::Trial(Step { rate_per_s: None, .. }) => {
                    trials.push(Trial::Pilot(Some(self.capacity_per_s * (self.between * rng.normal()).exp())))
                }
                Next::Trial(Step { rate_per_s: Some(rate_per_s), purpose }) => {
                    trials.push(Trial::Step { rate_per_s, purpose, outcome: self.trial(rate_per_s, rng) });
                }
                Next::Done(found) => {
                    let confirmed =
                        |end: Option<search::End>| end.filter(|end| end.confirmed).map(|end| end.rate_per_s);
                    return Some((confirmed(found.low.ok())?, confirmed(found.high.ok())?));
                }
            }
        }
    }

    fn bisected(&self, rng: &mut Rng) -> (f64, f64) {
        let mut holds =
            |rate: f64| matches!(self.trial(rate, rng), search::Outcome::Judged { excess, .. } if excess < 0.0);
        let mut high = self.capacity_per_s / 2.0;
        while holds(high) {
            high *= 2.0;
        }
        let mut low = high / 2.0;
        while high / low > 1.05 {
            let midpoint = (low * high).sqrt();
            if holds(midpoint) { low = midpoint } else { high = midpoint }
        }
        (low, high)
    }
}

impl Subject {
    fn truth(&self, metric: Metric) -> f64 {
        let of_levels = (self.between * self.between / 2.0).exp();
        of_levels
            * match metric {
                Metric::Mean => self.mean_of_law() * (self.within * self.within / 2.0).exp(),
                Metric::Quantile(q) => self.quantile_in_a_trial(q),
            }
    }

    fn mean_of_law(&self) -> f64 {
        match self.law {
            Distribution::Lognormal { median, sigma } => median * (sigma * sigma / 2.0).exp(),
            Distribution::Bimodal { low, high, high_share } => low + (high - low) * high_share,
            _ => unreachable!("no subject has another law"),
        }
    }

    fn quantile_in_a_trial(&self, q: f64) -> f64 {
        let below = |x: f64| match self.law {
            Distribution::Lognormal { median, sigma } => normal_cdf((x / median).ln() / sigma.hypot(self.within)),
            Distribution::Bimodal { low, high, high_share } => {
                let mode = |value: f64| normal_cdf((x / value).ln() / self.within);
                (1.0 - high_share) * mode(low) + high_share * mode(high)
            }
            _ => {
                unreachable!("no case simulates {:?}", self.law)
            }
        };
        let (mut low, mut high) = (1.0f64, 1e12f64);
        while high / low > 1.0 + 1e-12 {
            let midpoint = (low * high).sqrt();
            if below(midpoint) < q {
                low = midpoint;
            } else {
                high = midpoint;
            }
        }
        low
    }

    fn trial(&self, metric: Metric, rng: &mut Rng) -> f64 {
        let level = (self.between * rng.normal()).exp();
        let mut process = Ar1::start(self.rho, rng);
        let mut histogram = match metric {
            Metric::Mean => None,
            Metric::Quantile(_) => Some(Histogram::new()),
        };
        let mut sum = 0.0;
        for _ in 0..self.windows {
            let factor = level * (self.within * process.next(rng)).exp();
            for _ in 0..self.requests {
                let latency = factor * self.law.sample(rng);
                sum += latency;
                if let Some(histogram) = &mut histogram {
                    histogram.record(latency as u64);
                }
            }
        }
        match (metric, histogram) {
            (Metric::Quantile(q), Some(histogram)) => histogram.quantile(q).expect("a trial has requests"),
            _ => sum / (self.windows * self.requests) as f64,
        }
    }

    /// Simulates windows with a third to five thirds of the usual number of requests.
    fn unequal_windows(&self, rng: &mut Rng, mut take: impl FnMut(&[f64])) {
        let mut process = Ar1::start(self.rho, rng);
        let mut latencies = Vec::new();
        for _ in 0..self.windows {
            let factor = (self.within * process.next(rng)).exp();
            let least = self.requests / 3;
            let count = least + rng.below((4 * least + 1) as u64) as usize;
            latencies.clear();
            latencies.extend((0..count).map(|_| factor * self.law.sample(rng)));
            take(&latencies);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Three standard errors of a share of 95 %, for this number of studies.
    fn slack(studies: u32) -> f64 {
        3.0 * (0.95f64 * 0.05 / f64::from(studies)).sqrt()
    }

    fn check(rest: usize) {
        let studies = 200;
        let mut broken = Vec::new();
        let promised = cases().into_iter().filter(|case| !matches!(case.promise, Promise::Nothing(_)));
        for (_, case) in promised.enumerate().filter(|(place, _)| place % 3 == rest) {
            let outcome = run(&case, studies, 1);
            if !outcome.keeps(case.promise, slack(studies)) {
                broken.push(format!("{}: {outcome:?}", case.name));
            }
        }
        assert!(broken.is_empty(), "{broken:#?}");
    }

    // A small version of `experiments coverage`, in three tests that run in parallel.
    #[test]
    fn promises_are_kept_by_a_third_of_the_cases() {
        check(0);
    }

    #[test]
    fn promises_are_kept_by_another_third() {
        check(1);
    }

    #[test]
    fn promises_are_kept_by_the_rest() {
        check(2);
    }

    #[test]
    fn detects_a_wrong_interval() {
        let naive =
            Case { name: String::new(), promise: Promise::Nothing(""), kind: Kind::Naive { rho: 0.5, windows: 600 } };
        let outcome = run(&naive, 150, 1);
        assert!(!outcome.keeps(Promise::Between(0.93, 0.97), slack(150)), "{outcome:?}");
        assert!(!outcome.keeps(Promise::BetweenOrDeclined(0.93, 0.97), slack(150)), "{outcome:?}");
    }

    #[test]
    fn searches_cover_the_truth_but_bisections_do_not() {
        for between in [0.0, 0.03, 0.06] {
            let case = |blind| Case {
                name: String::new(),
                promise: Promise::AtLeast(0.95),
                kind: Kind::Search { between, blind },
            };
            let found = run(&case(false), 1_000, 1);
            assert!(found.keeps(Promise::AtLeast(0.95), 0.0), "{between}: {found:?}");
            let blind = run(&case(true), 1_000, 1).coverage().unwrap();
            let most = if between > 0.0 { 0.7 } else { 0.9 };
            assert!(blind < most, "{between}: {blind}");
        }
    }

    #[test]
    fn detects_wrong_intervals_if_most_studies_decline() {
        let outcome = Outcome { studies: 1000, answered: 300, covered: 240, width: 0.1 };
        assert!(!outcome.keeps(Promise::BetweenOrDeclined(0.93, 0.97), 0.0));
        let outcome = Outcome { covered: 255, ..outcome };
        assert!(outcome.keeps(Promise::BetweenOrDeclined(0.93, 0.97), 0.0));
        assert!(!outcome.keeps(Promise::Between(0.5, 1.0), 0.0), "an interval was promised to all");
    }

    #[test]
    fn long_trials_approach_the_truth() {
        let subject = Subject { law: BIMODAL, between: 0.0, within: 0.1, rho: 0.5, windows: 10_000, requests: 20 };
        for metric in [Metric::Mean, Metric::Quantile(0.99), Metric::Quantile(0.9)] {
            let found = subject.trial(metric, &mut Rng::new(3));
            assert!(
                (found / subject.truth(metric) - 1.0).abs() < 0.01,
                "{metric:?}: {found} {}",
                subject.truth(metric)
            );
        }
    }

    #[test]
    fn same_seed_same_outcome() {
        let case = &cases()[0];
        assert_eq!(run(case, 5, 7), run(case, 5, 7));
        assert_ne!(run(case, 5, 7), run(case, 5, 8));
    }
}
