//! Splits variation into differences between trials and variation within them, to choose the best length of a trial.

use crate::{batch_means, interval};

const BATCHES: usize = 10;

/// Sources of variation of a metric, as standard deviations in the unit of the metric.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Components {
    /// Deviation s_B between the true means of trials; 0 if the variation within trials explains all differences.
    pub between: f64,
    /// Deviation s_W of one window within a trial.
    pub within: f64,
    /// Deviation s_1 of the mean over one second of a trial; includes the correlation between windows, unlike `within`.
    pub second: f64,
}

/// Splits the variation of a metric. `trials` has the window values of each trial; windows last `window_s` seconds. The
/// variance of a trial's mean comes from ten batch means (corrected as in [`batch_means::mean`]), pooled over trials.
/// s_B² is the excess of the variance between trials. With independent windows, this is the one-way analysis of
/// variance with random effects (Searle, Casella & McCulloch 1992, Variance Components, section 3.6). `None` for fewer
/// than two trials or ten windows per trial, or if a value is not finite. Panics if `window_s` is not positive.
pub fn components(trials: &[Vec<f64>], window_s: f64) -> Option<Components> {
    assert!(window_s > 0.0, "a window has a length: {window_s}");
    if trials.iter().any(|trial| trial.len() < BATCHES || !trial.iter().all(|value| value.is_finite())) {
        return None;
    }
    let means = trials.iter().filter_map(|trial| interval::average(trial)).collect::<Vec<_>>();
    let of_means = interval::variance(&means)?;
    let n = trials.len() as f64;
    let (mut of_a_mean, mut of_a_second, mut squares, mut freedom) = (0.0, 0.0, 0.0, 0.0);
    for trial in trials {
        let length = trial.len() / BATCHES;
        let from = trial.len() - length * BATCHES;
        let batches = trial[from..].chunks_exact(length).filter_map(interval::average).collect::<Vec<_>>();
        let short = batch_means::shortfall(batch_means::autocorrelation_time(trial), length);
        let of_a_window_alone = interval::variance(&batches)? * length as f64 / short;
        of_a_mean += of_a_window_alone / trial.len() as f64 / n;
        of_a_second += of_a_window_alone * window_s / n;
        squares += interval::variance(trial)? * (trial.len() - 1) as f64;
        freedom += (trial.len() - 1) as f64;
    }
    let between = (of_means - of_a_mean).max(0.0).sqrt();
    Some(Components { between, within: (squares / freedom).sqrt(), second: of_a_second.sqrt() })
}

impl Components {
    /// Length of a trial, in s, that gives the narrowest interval for a fixed total time if each trial takes
    /// `restart_s` more: `sqrt(restart_s · s_1² / s_B²)`. `None` if trials do not differ, so that one long trial is
    /// best. Source: Cochran 1977, Sampling Techniques, section 10.6, two-stage sampling.
    pub fn best_seconds_per_trial(&self, restart_s: f64) -> Option<f64> {
        (self.between > 0.0).then(|| (restart_s * self.second.powi(2) / self.between.powi(2)).sqrt())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Rng;

    // Python 3 with statsmodels 0.15: y = [[10 + j + (i*7 % 5)/2 for i in range(10)] for j in (0, 1.5, 0.7, 2.2)]
    // One-way random effects by restricted maximum likelihood equal the analysis of variance for balanced data:
    // m = statsmodels.api.MixedLM(numpy.ravel(y), numpy.ones(40), groups=numpy.repeat(range(4), 10)).fit(reml=True)
    // m.cov_re[0, 0]**.5, m.scale**.5
    #[test]
    fn independent_windows_match_statsmodels() {
        let trials = [0.0, 1.5, 0.7, 2.2]
            .map(|level| (0..10).map(|i| 10.0 + level + f64::from(i * 7 % 5) / 2.0).collect::<Vec<_>>());
        let found = components(&trials, 0.1).unwrap();
        assert!((found.between - 0.92615464).abs() < 1e-5, "{found:?}");
        assert!((found.within - 0.74535651).abs() < 1e-5, "{found:?}");
        assert!((found.second - found.within / 10f64.sqrt()).abs() < 1e-12, "{found:?}");
    }

    #[test]
    fn correlated_windows_are_not_differences_between_trials() {
        let mut rng = Rng::new(4);
        let trials = (0..60)
            .map(|_| {
                let level = 0.5 * rng.normal();
                let mut wander = 0.0;
                (0..200)
                    .map(|_| {
                        wander = 0.8 * wander + 0.6 * rng.normal();
                        level + wander
                    })
                    .collect()
            })
            .collect::<Vec<Vec<f64>>>();
        let found = components(&trials, 0.1).unwrap();
        // By construction, s_B is 0.5 and s_W is 1; s_1² is 9 times s_W² over ten windows.
        assert!((0.38..0.62).contains(&found.between), "{found:?}");
        assert!((0.95..1.05).contains(&found.within), "{found:?}");
        assert!((0.85..1.05).contains(&found.second), "{found:?}");
    }

    #[test]
    fn best_length_balances_restarts_and_noise() {
        let found = Components { between: 0.02, within: 1.0, second: 0.1 };
        // The length is sqrt(4 · 0.01 / 0.0004) = 10.
        assert!((found.best_seconds_per_trial(4.0).unwrap() - 10.0).abs() < 1e-12);
        assert_eq!(Components { between: 0.0, ..found }.best_seconds_per_trial(4.0), None);
    }

    #[test]
    fn needs_enough_trials_and_windows() {
        assert_eq!(components(&[], 0.1), None);
        assert_eq!(components(&[vec![1.0; 50]], 0.1), None);
        assert_eq!(components(&[vec![1.0; 50], vec![1.0; 9]], 0.1), None);
        assert_eq!(components(&[vec![1.0; 50], vec![f64::NAN; 50]], 0.1), None);
    }
}
