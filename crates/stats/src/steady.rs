//! Where does the transient end? What came before is cut from a trial.

/// How much of a series to cut from its front.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Truncation {
    /// Values to drop.
    pub dropped: usize,
    /// Values there were.
    pub total: usize,
    /// Whether a steady state was reached: false when the best cut is beyond half of the series, or
    /// when the series is too short to tell ([`Truncation::judged`]). Then nothing should be cut and
    /// the trial be flagged.
    pub reached: bool,
}

impl Truncation {
    /// Whether the series was long enough to look for a steady state.
    pub fn judged(&self) -> bool {
        self.total >= FEWEST
    }
}

impl std::fmt::Display for Truncation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Truncation { dropped, total, reached } = self;
        match (self.judged(), reached, dropped) {
            (false, ..) => write!(f, "steady state not checked: {total} windows, {FEWEST} needed"),
            (true, false, _) => write!(f, "no steady state was reached: the best cut is {dropped} of {total} windows"),
            (true, true, 0) => write!(f, "steady from the start"),
            (true, true, _) => write!(f, "steady after {dropped} of {total} windows"),
        }
    }
}

/// Values in a batch, where there are enough.
const BATCH: usize = 5;
/// Batches to have before they are made of several values.
const BATCHES: usize = 20;
/// Values without which there is no telling.
const FEWEST: usize = BATCHES;
/// The last batches are not offered as a rest: so few are alike by chance too often.
const REST: usize = 5;
/// A cut beyond half of the series must lower the squared error at least to this share of what a cut
/// before does. In simulated white noise of 20 to 200 windows a cut beyond half comes out in 6 to 11 % of
/// the series, and in 2 to 6 % with this demand.
const CLEARLY: f64 = 0.7;

/// MSER-5: cuts where the standard error of the mean of what is left, over batches of five values, is least.
///
/// A cut beyond half of the series means that no steady state was reached, unless it is hardly better
/// than the best cut before, which is then taken. Below 100 values the batches are shorter, so that
/// there are 20 of them at least. Source: White 1997, An Effective Truncation Heuristic for Bias
/// Reduction in Simulation Output; White, Cobb & Spratt 2000, A Comparison of Five Steady-State
/// Truncation Heuristics for Simulation.
///
/// Values beyond the last whole batch are not looked at, and never cut. A value that is no finite
/// number makes the series one that has no steady state.
pub fn mser5(series: &[f64]) -> Truncation {
    let total = series.len();
    if total < FEWEST || !series.iter().all(|value| value.is_finite()) {
        return Truncation { dropped: 0, total, reached: false };
    }
    let length = (total / BATCHES).clamp(1, BATCH);
    let batches = series.chunks_exact(length).map(|batch| batch.iter().sum::<f64>() / length as f64);
    let errors = errors_of_cuts(&batches.collect::<Vec<_>>());
    // `min_by` keeps the first of equals, the cut that keeps the most.
    let best = |cuts: std::ops::Range<usize>| cuts.min_by(|&a, &b| errors[a].total_cmp(&errors[b]));
    let half = (errors.len() - 1 + REST) / 2;
    let early = best(0..half + 1).expect("there are 20 batches at least");
    let late = best(0..errors.len()).expect("as above");
    let reached = late <= half || errors[late] > CLEARLY * errors[early];
    Truncation { dropped: length * if reached { early } else { late }, total, reached }
}

/// Squared standard error of the mean of what each cut leaves, up to a constant: `Σ(z - z̄)² / k²`.
fn errors_of_cuts(batches: &[f64]) -> Vec<f64> {
    // From the back, with Welford's update: each cut costs one step.
    let (mut count, mut mean, mut squares) = (0.0, 0.0, 0.0);
    let mut errors = Vec::with_capacity(batches.len());
    for value in batches.iter().rev() {
        count += 1.0;
        let before = value - mean;
        mean += before / count;
        squares += before * (value - mean);
        errors.push(squares / (count * count));
    }
    errors.drain(..REST - 1);
    errors.reverse();
    errors
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Rng;

    // Python 3 with numpy 2, straight from the definition:
    // z = numpy.array([20/(1+i) + 10 + (-1)**(i//3) * (i*7 % 11)/10 for i in range(100)]).reshape(-1, 5).mean(1)
    // e = [((z[d:] - z[d:].mean())**2).sum()/(len(z)-d)**2 for d in range(len(z)-4)]; 5*int(numpy.argmin(e))
    #[test]
    fn matches_the_definition() {
        let series = (0..100)
            .map(|i| {
                let sign = if i / 3 % 2 == 0 { 1.0 } else { -1.0 };
                20.0 / f64::from(1 + i) + 10.0 + sign * f64::from(i * 7 % 11) / 10.0
            })
            .collect::<Vec<_>>();
        assert_eq!(mser5(&series), Truncation { dropped: 45, total: 100, reached: true });
    }

    #[test]
    fn a_slow_start_is_cut() {
        let mut rng = Rng::new(5);
        let series = (0..200).map(|i| if i < 30 { 200.0 } else { 100.0 } + rng.normal()).collect::<Vec<_>>();
        let found = mser5(&series);
        assert!((30..=60).contains(&found.dropped) && found.reached, "{found:?}");
        assert_eq!(found.to_string(), format!("steady after {} of 200 windows", found.dropped));
    }

    #[test]
    fn an_even_series_is_kept_whole() {
        assert_eq!(mser5(&[7.0; 60]), Truncation { dropped: 0, total: 60, reached: true });
    }

    #[test]
    fn a_ramp_never_gets_steady() {
        let series = (0..100).map(f64::from).collect::<Vec<_>>();
        let found = mser5(&series);
        assert!(!found.reached && found.judged(), "{found:?}");
        assert!(found.to_string().starts_with("no steady state was reached"));
    }

    #[test]
    fn noise_is_seldom_called_unsteady() {
        for (windows, most) in [(20, 75), (100, 75), (600, 12)] {
            let mut rng = Rng::new(6);
            let alarms =
                (0..1_000).filter(|_| !mser5(&(0..windows).map(|_| rng.normal()).collect::<Vec<_>>()).reached).count();
            assert!(alarms <= most, "{alarms} of 1,000 with {windows} windows");
        }
    }

    #[test]
    fn a_short_series_is_not_judged() {
        let found = mser5(&[1.0; 19]);
        assert!(!found.reached && !found.judged());
        assert_eq!(found.to_string(), "steady state not checked: 19 windows, 20 needed");
        assert!(!mser5(&[f64::NAN; 80]).reached);
    }
}
