//! Confidence intervals of one trial from the batch means of its windows, which are correlated.
//!
//! The textbook method doubles the batch length until the von Neumann ratio of the batch means is not significant. With
//! few batches, this test rarely detects correlation, and stopping at the first length that passes favors lucky ones.
//! In simulated AR(1) series, nominal 95 % intervals then cover 77 to 92 % when data is scarce. This module therefore
//! derives the batch length from the autocorrelation time τ, the number of windows worth one independent window.
//! `docs/method/trial.md` lists the steps, and `docs/results/coverage.md` has the simulated coverage. Sources: von
//! Neumann 1941; Law & Carson 1979; Geyer 1992, Practical Markov Chain Monte Carlo; Steiger et al. 2005 (ASAP3) for
//! correcting the correlation that remains between batches.

use crate::histogram::Histogram;
use crate::interval::{self, Estimate};
use crate::special_functions;

/// Minimum number of batches for an interval.
pub const FEWEST_BATCHES: usize = 10;
/// Maximum number of batches. Fewer and longer batches are less correlated.
pub const MOST_BATCHES: usize = 20;
/// Minimum effective number of independent windows in a series for an interval.
pub const FEWEST_EFFECTIVE: f64 = 20.0;
/// Minimum ratio of the batch length to the autocorrelation time.
const LENGTHS: f64 = 2.5;
/// One-sided 5 % bound of the von Neumann test: the normal 95 % quantile.
const NEIGHBOURS_BOUND: f64 = 1.644_853_626_951_472_2;
const NO_RESPONSE: &str = "a whole window has no response";
/// Share of the uncertainty of τ that is added to the variance, chosen by simulation.
const ALLOWANCE: f64 = 0.4;

/// Interval for the mean of a correlated series.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Batches {
    /// Mean with its interval; `n` is the number of batches.
    pub estimate: Estimate,
    /// Number of batches on which the interval is based.
    pub batches: usize,
    /// Minimum number of windows per batch; some batches have one more.
    pub batch_len: usize,
}

fn declined(why: impl std::fmt::Display) -> String {
    format!("not enough data for an interval: {why}")
}

/// Returns the interval for the mean of window values, such as throughput. Fails if the series supports none.
pub fn mean(series: &[f64], level: f64) -> Result<Batches, String> {
    let windows = series.len();
    if !series.iter().all(|value| value.is_finite()) {
        return Err(declined("a window has no finite value"));
    }
    if (windows as f64) < FEWEST_EFFECTIVE {
        return Err(declined(format_args!("{windows} windows, {FEWEST_EFFECTIVE:.0} needed")));
    }
    let n = windows as f64;
    let point = interval::average(series).expect("not empty");
    let tau = autocorrelation_time(series);
    // Approximate relative standard error of τ, which sums about 2.5 τ lags (Sokal 1997, with a window of 2.5 τ).
    let doubt = ALLOWANCE * (10.0 * tau / n).sqrt();
    let cautious = n / (tau * if tau > 1.0 { 1.0 + doubt } else { 1.0 });
    if cautious < FEWEST_EFFECTIVE {
        return Err(declined(format_args!(
            "autocorrelated windows: effective sample size {cautious:.0} of {windows}, {FEWEST_EFFECTIVE:.0} needed"
        )));
    }
    let shortest = if tau > 1.3 { (LENGTHS * tau).ceil() as usize } else { 1 };
    let mut batch_len = shortest.max(windows.div_ceil(MOST_BATCHES));
    let (means, lengths) = loop {
        let batches = windows / batch_len;
        if batches < FEWEST_BATCHES {
            return Err(declined(format_args!(
                "even {FEWEST_BATCHES} batches of {windows} windows are still correlated; the series may drift"
            )));
        }
        let (means, lengths) = batch_means(series, batches);
        if !neighbours_alike(&means) {
            break (means, lengths);
        }
        batch_len = (batch_len * 3).div_ceil(2);
    };
    let batches = means.len();
    let short = shortfall(tau, batch_len);
    let unsure = 1.0 + doubt * (1.0 - 1.0 / tau);
    // Squares are weighted by length, since the variance of a batch mean is inversely proportional to its length.
    let squares = means.iter().zip(&lengths).map(|(mean, length)| length * (mean - point).powi(2)).sum::<f64>();
    let variance = squares / (batches - 1) as f64 / n / short * unsure;
    let half_width = interval::t_two_sided(level, (batches - 1) as f64) * variance.sqrt();
    let estimate = Estimate::around(point, half_width, level, batches as u64);
    Ok(Batches { estimate, batches, batch_len })
}

/// Returns the interval for a mean over requests, such as mean latency, from `(sum, count)` per window. The estimate is
/// the total sum over the total count, with the interval of the linearized ratio (Cochran 1977, Sampling Techniques,
/// section 6.4). Windows without requests count too. Fails with a message if the series supports no interval.
pub fn ratio(series: &[(f64, f64)], level: f64) -> Result<Batches, String> {
    let (sum, count) = series.iter().fold((0.0, 0.0), |(sum, count), window| (sum + window.0, count + window.1));
    if !sum.is_finite() || !count.is_finite() {
        return Err(declined("a window has no finite value"));
    }
    if count <= 0.0 {
        return Err(declined(NO_RESPONSE));
    }
    let ratio = sum / count;
    let count_mean = count / series.len() as f64;
    let linear = series.iter().map(|(sum, count)| ratio + (sum - ratio * count) / count_mean).collect::<Vec<_>>();
    let mut found = mean(&linear, level)?;
    found.estimate.point = ratio;
    Ok(found)
}

/// Returns the interval for quantile `q` over the requests of one trial, from the histograms of its `windows` in order
/// and of the `whole` trial, which may be finer. The variance between windows of the share below the quantile gives the
/// number of independent requests and thus the binomial interval. Source: the effective sample of Korn & Graubard 1998,
/// Confidence Intervals for Proportions with Small Expected Number of Positive Counts, inverted to a quantile as in
/// Woodruff 1952. Fails with a message if the series supports no interval or if too few requests remain.
pub fn quantile(windows: &[Histogram], whole: &Histogram, q: f64, level: f64) -> Result<Batches, String> {
    let point = whole.quantile(q).ok_or_else(|| declined(NO_RESPONSE))?;
    let share = |window: &Histogram| (window.count_at_or_below(point as u64) as f64, window.len() as f64);
    let share = ratio(&windows.iter().map(share).collect::<Vec<_>>(), level)?;
    let standard_error = share.estimate.half_width() / -special_functions::normal_quantile((1.0 - level) / 2.0);
    let worth = q * (1.0 - q) / standard_error.powi(2);
    // The cast saturates: if the shares do not vary, all requests count as independent.
    let estimate = whole.quantile_interval(q, level, worth as u64).map_err(declined)?;
    Ok(Batches { estimate, ..share })
}

fn batch_means(series: &[f64], count: usize) -> (Vec<f64>, Vec<f64>) {
    let bound = |nth: usize| nth * series.len() / count;
    let batches = (0..count).map(|nth| &series[bound(nth)..bound(nth + 1)]);
    batches.map(|batch| (batch.iter().sum::<f64>() / batch.len() as f64, batch.len() as f64)).unzip()
}

/// Whether von Neumann's ratio test finds no correlation of neighbors. For independent normal values and the ratio η of
/// mean square successive difference to variance, `1 - η/2` has mean 0 and variance `(m-2)/(m²-1)`.
fn neighbours_alike(values: &[f64]) -> bool {
    let m = values.len() as f64;
    let mean = values.iter().sum::<f64>() / m;
    let squares = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>();
    let steps = values.windows(2).map(|pair| (pair[1] - pair[0]).powi(2)).sum::<f64>();
    // Equal values are not correlated, but their ratio would be 0/0.
    squares > 0.0 && 1.0 - steps / (2.0 * squares) > NEIGHBOURS_BOUND * ((m - 2.0) / (m * m - 1.0)).sqrt()
}

/// Share of the long-run variance that batch means show, if batches have `batch_len` windows and the windows are an
/// AR(1) process with autocorrelation time `tau`: `1 - 2ρ/((1 - ρ²)·length)`, at least one half.
pub(crate) fn shortfall(tau: f64, batch_len: usize) -> f64 {
    1.0 - ((tau - 1.0 / tau) / (2.0 * batch_len as f64)).min(0.5)
}

/// Number of values that are worth one independent value, at least 1.
pub(crate) fn autocorrelation_time(series: &[f64]) -> f64 {
    let n = series.len();
    let mean = series.iter().sum::<f64>() / n as f64;
    let centred = series.iter().map(|value| value - mean).collect::<Vec<_>>();
    let covariance = |lag: usize| centred.iter().zip(&centred[lag..]).map(|(a, b)| a * b).sum::<f64>() / n as f64;
    let variance = covariance(0);
    if variance <= 0.0 {
        return 1.0;
    }
    let (mut sum, mut smallest, mut lags) = (0.0, f64::INFINITY, 0);
    while lags + 1 < n / 2 {
        let pair = covariance(lags) + covariance(lags + 1);
        if pair <= 0.0 {
            break;
        }
        smallest = pair.min(smallest);
        sum += smallest;
        lags += 2;
    }
    let time = (2.0 * sum - variance) / variance;
    // Using the estimated mean lowers each of the 2·lags - 1 covariances by σ²τ/n.
    let lost = (2 * lags).saturating_sub(1) as f64 / n as f64;
    (time / (1.0 - lost.min(0.8))).max(1.0)
}

/// Minimum number of windows of a single trial before it may stop early.
const FIRST_LOOK: usize = 50;

/// Number of windows at the next look: 50, then half as many again each time. With more looks, more trials would stop
/// only because the interval happens to be narrow (simulations are in `docs/results/coverage.md`).
pub fn next_look(windows: usize) -> usize {
    if windows < FIRST_LOOK { FIRST_LOOK } else { windows.saturating_mul(3) / 2 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Rng;

    // Python 3 with numpy 2: i = numpy.arange(60); x = 10 + (i**3*7 % 31)/10; m = x.reshape(20, 3).mean(1);
    // 1 - (numpy.diff(m)**2).sum()/(2*((m-m.mean())**2).sum()). The autocorrelation time is 1, so the half-width is
    // scipy.stats.t.ppf(.975, 19)*m.std(ddof=1)/20**.5
    #[test]
    fn uncorrelated_windows_match_plain_batch_means() {
        let series = (0..60).map(|i| 10.0 + f64::from(i * i * i * 7 % 31) / 10.0).collect::<Vec<_>>();
        assert_eq!(autocorrelation_time(&series), 1.0);
        let found = mean(&series, 0.95).unwrap();
        assert_eq!((found.batches, found.batch_len), (20, 3));
        assert!((found.estimate.point - 11.500000000000002).abs() < 1e-12, "{found:?}");
        assert!((found.estimate.half_width() - 0.2318901938696233).abs() < 1e-9, "{found:?}");
    }

    fn ar1(rng: &mut Rng, n: usize, rho: f64) -> Vec<f64> {
        let mut value = rng.normal();
        let innovation = (1.0 - rho * rho).sqrt();
        std::iter::repeat_with(|| {
            value = rho * value + innovation * rng.normal();
            100.0 + value
        })
        .take(n)
        .collect()
    }

    #[test]
    fn autocorrelation_time_matches_the_process() {
        // τ is (1 + ρ) / (1 - ρ). The relative standard error of its estimate at this length is below a tenth.
        for (rho, tau) in [(0.0, 1.0), (0.5, 3.0), (0.9, 19.0)] {
            let found = autocorrelation_time(&ar1(&mut Rng::new(8), 40_000, rho));
            assert!((found / tau - 1.0).abs() < 0.15, "ρ = {rho}: {found}");
        }
    }

    #[test]
    fn short_or_drifting_series_are_declined_in_words() {
        let words = |series: &[f64]| mean(series, 0.95).unwrap_err().to_string();
        assert_eq!(words(&[1.0; 19]), "not enough data for an interval: 19 windows, 20 needed");
        assert!(words(&(0..100).map(f64::from).collect::<Vec<_>>()).contains("autocorrelated windows"));
        assert!(words(&ar1(&mut Rng::new(9), 100, 0.95)).contains("autocorrelated windows"));
        assert_eq!(words(&[f64::NAN; 50]), "not enough data for an interval: a window has no finite value");
    }

    #[test]
    fn every_window_counts() {
        // The interval has a positive width and contains the mean for any position of the deviating window.
        let mut intervals = 0;
        for windows in [37, 39, 50, 99, 101, 199] {
            for odd in [0, windows / 2, windows - 1] {
                let mut series = vec![250.0; windows];
                series[odd] = 150.0;
                let Ok(found) = mean(&series, 0.95) else { continue };
                intervals += 1;
                let half_width = found.estimate.half_width();
                assert!((found.estimate.point - (250.0 - 100.0 / windows as f64)).abs() < 1e-9);
                assert!(half_width > 100.0 / windows as f64, "{windows} {odd}: {half_width}");
            }
        }
        assert!(intervals >= 9, "{intervals}");
    }

    // The estimated variance of the mean stays unbiased if some batches have 2 windows and others 3.
    #[test]
    fn unequal_batches_estimate_the_variance() {
        let (mut rng, rounds) = (Rng::new(12), 4_000);
        let squares = (0..rounds).map(|_| {
            let series = (0..39).map(|_| rng.normal()).collect::<Vec<_>>();
            let (means, lengths) = batch_means(&series, 17);
            assert_eq!((lengths.iter().sum::<f64>(), lengths[0]), (39.0, 2.0));
            let mean = series.iter().sum::<f64>() / 39.0;
            means.iter().zip(&lengths).map(|(batch, length)| length * (batch - mean).powi(2)).sum::<f64>() / 16.0
        });
        let variance = squares.sum::<f64>() / f64::from(rounds);
        assert!((variance - 1.0).abs() < 0.03, "{variance}");
    }

    #[test]
    fn equal_windows_have_no_width() {
        let found = mean(&[7.0; 40], 0.95).unwrap();
        assert_eq!((found.estimate.low, found.estimate.high), (7.0, 7.0));
    }

    #[test]
    fn ratio_of_equal_counts_is_the_mean() {
        let series = ar1(&mut Rng::new(10), 300, 0.3);
        let plain = mean(&series, 0.95).unwrap();
        let windows = series.iter().map(|value| (value * 40.0, 40.0)).collect::<Vec<_>>();
        let found = ratio(&windows, 0.95).unwrap();
        assert_eq!(found.batches, plain.batches);
        assert!((found.estimate.low - plain.estimate.low).abs() < 1e-9);
        assert!((found.estimate.high - plain.estimate.high).abs() < 1e-9);
    }

    #[test]
    fn ratio_weighs_requests_and_not_windows() {
        let windows = (0..40).map(|i| if i % 2 == 0 { (900.0, 90.0) } else { (200.0, 10.0) }).collect::<Vec<_>>();
        assert_eq!(ratio(&windows, 0.95).unwrap().estimate.point, 11.0);
        assert_eq!(ratio(&[(0.0, 0.0); 40], 0.95), Err(declined(NO_RESPONSE)));
        assert_eq!(ratio(&[], 0.95), Err(declined(NO_RESPONSE)));
    }

    fn latency_windows(seed: u64, rho: f64, wander: f64) -> (Vec<Histogram>, Histogram) {
        let mut rng = Rng::new(seed);
        let mut whole = Histogram::new();
        let levels = ar1(&mut rng, 200, rho);
        let windows = levels.iter().map(|level| {
            let mut window = Histogram::with_precision(Histogram::WINDOW_PRECISION);
            for _ in 0..200 {
                let ns = 1e6 * (wander * (level - 100.0) + 0.5 * rng.normal()).exp();
                window.record(ns as u64);
                whole.record(ns as u64);
            }
            window
        });
        (windows.collect(), whole)
    }

    #[test]
    fn quantile_of_independent_requests_is_as_wide_as_the_binomial() {
        let (windows, whole) = latency_windows(1, 0.0, 0.0);
        let found = quantile(&windows, &whole, 0.99, 0.95).unwrap().estimate;
        let binomial = whole.quantile_interval(0.99, 0.95, whole.len()).unwrap();
        assert!((0.7..1.5).contains(&(found.half_width() / binomial.half_width())), "{found:?} {binomial:?}");
        assert_eq!(found.point, binomial.point);
    }

    #[test]
    fn quantile_of_wandering_requests_is_wider() {
        let (windows, whole) = latency_windows(2, 0.7, 0.5);
        let found = quantile(&windows, &whole, 0.5, 0.95).unwrap().estimate;
        let binomial = whole.quantile_interval(0.5, 0.95, whole.len()).unwrap();
        assert!(found.half_width() > 5.0 * binomial.half_width(), "{found:?} {binomial:?}");
        assert!(found.n < 1_000, "{found:?}");
    }

    #[test]
    fn quantile_without_enough_samples_is_declined() {
        let (windows, whole) = latency_windows(3, 0.0, 0.0);
        let words = quantile(&windows, &whole, 0.99999, 0.95).unwrap_err().to_string();
        assert!(words.starts_with("not enough data for an interval: not enough samples: "), "{words}");
        assert_eq!(quantile(&[], &Histogram::new(), 0.5, 0.95), Err(declined(NO_RESPONSE)));
    }

    #[test]
    fn looks_get_rarer() {
        let looks = std::iter::successors(Some(0), |&windows| Some(next_look(windows))).take(5).collect::<Vec<_>>();
        assert_eq!(looks, [0, 50, 75, 112, 168]);
    }
}
