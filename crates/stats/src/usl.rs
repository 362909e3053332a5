//! Fits the Universal Scalability Law to throughput as a function of cores, threads or clients.

use crate::interval::{self, Estimate};
use crate::random::Rng;
use crate::special_functions;

/// Throughputs at one number of cores, threads or clients.
#[derive(Clone, Debug, PartialEq)]
pub struct Point {
    /// Number of cores, threads or clients, at least 1.
    pub n: f64,
    /// Throughput of each trial, positive, in the same unit for all points.
    pub throughputs: Vec<f64>,
}

/// The law `X(N) = λN / (1 + σ(N-1) + κN(N-1))` with its parameters (Gunther 2007, Guerrilla Capacity Planning).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Law {
    /// Throughput λ at N = 1, in the unit of the points.
    pub lambda: f64,
    /// Contention σ, the serial share of the work, from 0 to 1.
    pub sigma: f64,
    /// Coherency κ, the cost of coordinating each pair of the N; not negative.
    pub kappa: f64,
}

/// A fitted law with its intervals.
#[derive(Clone, Debug, PartialEq)]
pub struct Fit {
    /// The law with the least weighted squares.
    pub law: Law,
    /// R² of the mean throughputs, with the weights of the fit.
    pub r_squared: f64,
    /// Largest measured N of the fit.
    pub n_max: f64,
    /// The point farthest from the law, if its deviation is both significant and large; otherwise `None`.
    pub miss: Option<Miss>,
    /// Intervals of the parameters; `None` if no point has two trials to resample.
    pub intervals: Option<Intervals>,
    /// Law fitted to each resampling; empty if there are no intervals.
    resampled: Vec<Law>,
}

/// A point that the law does not describe.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Miss {
    /// Number of cores, threads or clients, N.
    pub n: f64,
    /// Measured mean throughput divided by the law's throughput, minus one; negative if the law is higher.
    pub relative: f64,
}

/// Percentile bootstrap intervals, from resampling the trials of each point.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Intervals {
    /// Interval of λ, in the unit of the points.
    pub lambda: Estimate,
    /// Interval of σ, the serial share of the work, from 0 to 1.
    pub sigma: Estimate,
    /// Interval of κ, the cost of coordinating each pair of the N.
    pub kappa: Estimate,
    /// Interval of the N with the highest throughput; infinite if κ is 0.
    pub peak: Estimate,
}

const FEWEST: usize = 4;
const MISS: f64 = 0.1;
/// Minimum deviation of a missed point, in standard errors of its mean.
const MISS_ERRORS: f64 = 3.0;
/// Weight, in trials, of the pooled variance in the variance of each point, which few trials estimate poorly.
/// This is Smyth's moderated variance (2004); there are too few points to estimate its prior.
const PRIOR_TRIALS: f64 = 4.0;
const RESAMPLES: usize = 500;

impl Law {
    /// Throughput of the law at N, in the unit of the points.
    pub fn throughput(&self, n: f64) -> f64 {
        self.lambda * n / (1.0 + self.sigma * (n - 1.0) + self.kappa * n * (n - 1.0))
    }

    /// N with the highest throughput, `√((1-σ)/κ)` and at least 1; infinite if κ is 0.
    pub fn peak(&self) -> f64 {
        if self.kappa > 0.0 { ((1.0 - self.sigma) / self.kappa).sqrt().max(1.0) } else { f64::INFINITY }
    }
}

impl Fit {
    /// Throughput at N with the interval for the mean of many trials; `None` if the fit has no intervals.
    pub fn band(&self, n: f64) -> Option<Estimate> {
        let Intervals { lambda: Estimate { level, n: trials, .. }, .. } = self.intervals?;
        let mut values = self.resampled.iter().map(|law| law.throughput(n)).collect::<Vec<_>>();
        let (low, high) = central(&mut values, level);
        let point = self.law.throughput(n);
        // If a parameter is at its bound, the law may be outside most resampled laws, so the interval is widened.
        Some(Estimate { point, low: low.min(point), high: high.max(point), level, n: trials })
    }

    /// Whether the resampled laws support a statement at the fit's level, adjusted for `among` fits.
    fn holds(&self, holds: impl Fn(&Law) -> bool, among: usize) -> bool {
        let Some(level) = self.intervals.map(|found| found.peak.level) else { return false };
        let against = self.resampled.iter().filter(|law| !holds(law)).count();
        let p = 2.0 * (against + 1) as f64 / (self.resampled.len() + 1) as f64;
        among <= 1 || p * among as f64 <= 1.0 - level
    }

    /// Describes the fit in words; `resource` names N in the plural, for example `cores`. A statement without
    /// "(uncertain)" holds for `among` fits in one report together (Bonferroni), up to 12 with 500 resamplings. A peak
    /// beyond the largest measured N is reported as such; no peak is reported if its interval is unbounded.
    pub fn sentence(&self, resource: &str, among: usize) -> String {
        let Law { sigma, kappa, .. } = self.law;
        let n_max = self.n_max;
        let peak = self.law.peak();
        let sure = self.intervals.as_ref();
        let peak_end = sure.map_or(peak, |found| found.peak.high);
        let falls = || format!("throughput falls beyond ~{peak:.0} {resource}: coherency cost");
        let rises = format!(
            "throughput still rises at {n_max:.0} {resource}; a peak near {peak:.0} is outside the measured range"
        );
        let words = match sure {
            Some(_) if peak_end < n_max && self.holds(|law| law.peak() < n_max, among) => falls(),
            _ if peak_end.is_finite() && peak < n_max => falls() + " (uncertain)",
            Some(_) if peak_end.is_finite() => rises,
            None if peak.is_finite() => rises + " (uncertain)",
            _ => {
                let contention = match sure.map_or(sigma, |found| found.sigma.low) {
                    low if low > 0.0 && self.holds(|law| law.sigma > 0.0, among) => {
                        format!("contention keeps it below {:.1} times the throughput at 1", 1.0 / sigma)
                    }
                    _ if sigma > 0.0 => "contention is not significant".to_owned(),
                    _ => format!("it scales linearly with {resource}"),
                };
                format!("no peak seen up to {n_max:.0} {resource}; {contention}")
            }
        };
        let bounds = |pick: fn(&Intervals) -> Estimate| {
            sure.map_or(String::new(), |found| {
                let found = pick(found);
                format!(" [{}, {}]", short(found.low), short(found.high))
            })
        };
        let mut facts = format!("σ {}{}", short(sigma), bounds(|found| found.sigma));
        facts += &format!(", κ {}{}", short(kappa), bounds(|found| found.kappa));
        if peak.is_finite() {
            facts += &format!(", N* {}{}", short(peak), bounds(|found| found.peak));
        }
        let miss = self.miss.map_or(String::new(), |miss| {
            let side = if miss.relative < 0.0 { "below" } else { "above" };
            let percent = miss.relative.abs() * 100.0;
            format!("; the law does not describe {resource} {}: measured {percent:.0} % {side} it", short(miss.n))
        });
        format!("{words} ({facts}){miss}")
    }
}

/// Formats a value with two significant digits, or with all digits before the point.
fn short(value: f64) -> String {
    match value.abs() {
        _ if value.is_infinite() => "∞".to_owned(),
        0.0 => "0".to_owned(),
        size if size >= 100.0 => format!("{value:.0}"),
        size if size >= 10.0 => format!("{value:.1}").trim_end_matches(".0").to_owned(),
        size if size >= 1.0 => format!("{value:.2}").trim_end_matches('0').trim_end_matches('.').to_owned(),
        size if size >= 1e-4 => format!("{value:.*}", (1.0 - size.log10().floor()) as usize),
        _ => format!("{value:.1e}"),
    }
}

/// Fits the law by bounded least squares (Levenberg 1944, Marquardt 1963) and bootstraps its intervals. The weight of a
/// point is one over the variance of its mean. The relative variance is similar at all N, so it is moderated by the
/// variance of all points. Points with equal N are merged. Equal seeds give equal intervals. Fails with the reason.
pub fn fit(points: &[Point], level: f64, seed: u64) -> Result<Fit, String> {
    assert!(level > 0.0 && level < 1.0, "`level` is a fraction, not a percentage: {level}");
    let points = gather(points)?;
    if points.len() < FEWEST {
        return Err(format!("not enough points to fit: {} of {FEWEST}", points.len()));
    }
    let data = data(&points);
    let law = best_of_starts(&data);
    let resampled = resample_all(&points, &law, level, seed);
    Ok(Fit {
        law,
        r_squared: r_squared(&law, &data),
        n_max: points.last().expect("at least four").n,
        miss: miss(&law, &data),
        intervals: intervals(&points, &law, &resampled, level),
        resampled,
    })
}

fn gather(points: &[Point]) -> Result<Vec<Point>, String> {
    let mut points = points.iter().filter(|point| !point.throughputs.is_empty()).cloned().collect::<Vec<_>>();
    let fine = |point: &Point| {
        point.n >= 1.0 && point.n.is_finite() && point.throughputs.iter().all(|x| *x > 0.0 && x.is_finite())
    };
    if !points.iter().all(fine) {
        return Err("not fitted: a number below 1 or a throughput that is not positive".to_owned());
    }
    points.sort_by(|a, b| a.n.total_cmp(&b.n));
    points.dedup_by(|later, earlier| {
        let same = later.n == earlier.n;
        if same {
            earlier.throughputs.append(&mut later.throughputs);
        }
        same
    });
    Ok(points)
}

#[derive(Clone, Copy, Debug)]
struct Datum {
    n: f64,
    mean: f64,
    /// One over the variance of the mean, or over the squared mean if no variance is known.
    weight: f64,
    /// Standard error of the mean; `None` if no variance is known.
    error: Option<f64>,
}

fn data(points: &[Point]) -> Vec<Datum> {
    let relative = |point: &Point| {
        let mean = interval::average(&point.throughputs).expect("gathered points have trials");
        let freedom = (point.throughputs.len() - 1) as f64;
        (mean, freedom, interval::variance(&point.throughputs).unwrap_or(0.0) / (mean * mean))
    };
    let parts = points.iter().map(relative).collect::<Vec<_>>();
    let freedom = parts.iter().map(|(_, freedom, _)| freedom).sum::<f64>();
    let pooled = parts.iter().map(|(_, freedom, variance)| freedom * variance).sum::<f64>() / freedom;
    let known = pooled > 0.0 && pooled.is_finite();
    let datum = |(point, (mean, freedom, variance)): (&Point, &(f64, f64, f64))| {
        let moderated = (PRIOR_TRIALS * pooled + freedom * variance) / (PRIOR_TRIALS + freedom);
        let relative = if known { moderated } else { 1.0 };
        let squared = mean * mean * relative / point.throughputs.len() as f64;
        Datum { n: point.n, mean: *mean, weight: 1.0 / squared, error: known.then(|| squared.sqrt()) }
    };
    points.iter().zip(&parts).map(datum).collect()
}

/// Missed point that is farthest from the law; `None` if the law describes all points.
fn miss(law: &Law, data: &[Datum]) -> Option<Miss> {
    let far = data.iter().filter_map(|datum| {
        let found = law.throughput(datum.n);
        let is_chance = (datum.mean - found).abs() <= MISS_ERRORS * datum.error.unwrap_or(0.0);
        let relative = datum.mean / found - 1.0;
        (relative.abs() > MISS && !is_chance).then_some(Miss { n: datum.n, relative })
    });
    far.max_by(|a, b| a.relative.abs().total_cmp(&b.relative.abs()))
}

fn squares(law: &Law, data: &[Datum]) -> f64 {
    data.iter().map(|datum| datum.weight * (datum.mean - law.throughput(datum.n)).powi(2)).sum()
}

/// One minus the ratio of residual to total sum of squares, about the weighted mean.
fn r_squared(law: &Law, data: &[Datum]) -> f64 {
    let weights = data.iter().map(|datum| datum.weight).sum::<f64>();
    let mean = data.iter().map(|datum| datum.weight * datum.mean).sum::<f64>() / weights;
    let total = data.iter().map(|datum| datum.weight * (datum.mean - mean).powi(2)).sum::<f64>();
    if total > 0.0 { 1.0 - squares(law, data) / total } else { 0.0 }
}

/// Descends from several starts, because bounds create local minima, and keeps the best law.
fn best_of_starts(data: &[Datum]) -> Law {
    let n_max = data.iter().map(|datum| datum.n).fold(1.0, f64::max);
    let from_start = |(sigma, scaled): (f64, f64)| {
        // λ is linear once σ and κ are fixed.
        let shape = Law { lambda: 1.0, sigma, kappa: scaled / (n_max * n_max) };
        let (mut above, mut below) = (0.0, 0.0);
        for datum in data {
            let unit = shape.throughput(datum.n);
            above += datum.weight * datum.mean * unit;
            below += datum.weight * unit * unit;
        }
        descend(Law { lambda: above / below, ..shape }, data)
    };
    let starts = [0.0, 0.02, 0.2, 0.8].into_iter().flat_map(|sigma| [0.0, 0.1, 1.0].map(|scaled| (sigma, scaled)));
    let best = starts.map(from_start).min_by(|a, b| squares(a, data).total_cmp(&squares(b, data)));
    best.expect("there are twelve starts")
}

/// Descends by Levenberg-Marquardt. A parameter stays at its bound while the slope pushes it outwards.
fn descend(start: Law, data: &[Datum]) -> Law {
    let mut law = start;
    let mut error = squares(&law, data);
    let mut damping = 1e-3;
    for _ in 0..200 {
        let (mut curvature, mut slope) = ([[0.0; 3]; 3], [0.0; 3]);
        for datum in data {
            let below = 1.0 + law.sigma * (datum.n - 1.0) + law.kappa * datum.n * (datum.n - 1.0);
            let found = law.lambda * datum.n / below;
            let gradient =
                [datum.n / below, -found * (datum.n - 1.0) / below, -found * datum.n * (datum.n - 1.0) / below];
            for i in 0..3 {
                slope[i] += datum.weight * gradient[i] * (datum.mean - found);
                for j in 0..3 {
                    curvature[i][j] += datum.weight * gradient[i] * gradient[j];
                }
            }
        }
        let is_sigma_held = law.sigma <= 0.0 && slope[1] < 0.0 || law.sigma >= 1.0 && slope[1] > 0.0;
        let held = [false, is_sigma_held, law.kappa <= 0.0 && slope[2] < 0.0];
        for i in (0..3).filter(|&i| held[i]) {
            curvature[i] = [0.0; 3];
            curvature.iter_mut().for_each(|row| row[i] = 0.0);
            (curvature[i][i], slope[i]) = (1.0, 0.0);
        }
        let mut improved = false;
        while damping < 1e12 {
            let mut damped = curvature;
            for (i, row) in damped.iter_mut().enumerate() {
                row[i] *= 1.0 + damping;
            }
            let step = solve(damped, slope);
            let [lambda, sigma, kappa] = [law.lambda + step[0], law.sigma + step[1], law.kappa + step[2]];
            let tried = Law { lambda, sigma: sigma.clamp(0.0, 1.0), kappa: kappa.max(0.0) };
            let now = squares(&tried, data);
            if tried.lambda > 0.0 && now < error {
                improved = error - now > 1e-14 * error;
                (law, error, damping) = (tried, now, damping / 10.0);
                break;
            }
            damping *= 10.0;
        }
        if !improved {
            break;
        }
    }
    law
}

/// Solves three linear equations by elimination with pivoting. A singular system gives a zero step.
fn solve(mut matrix: [[f64; 3]; 3], mut right: [f64; 3]) -> [f64; 3] {
    for column in 0..3 {
        let pivot = (column..3).max_by(|&a, &b| matrix[a][column].abs().total_cmp(&matrix[b][column].abs()));
        let pivot = pivot.expect("the range is not empty");
        if matrix[pivot][column] == 0.0 || !matrix[pivot][column].is_finite() {
            return [0.0; 3];
        }
        matrix.swap(column, pivot);
        right.swap(column, pivot);
        for row in column + 1..3 {
            let factor = matrix[row][column] / matrix[column][column];
            let above = matrix[column];
            matrix[row].iter_mut().zip(above).for_each(|(cell, above)| *cell -= factor * above);
            right[row] -= factor * right[column];
        }
    }
    for row in (0..3).rev() {
        let known = (row + 1..3).map(|k| matrix[row][k] * right[k]).sum::<f64>();
        right[row] = (right[row] - known) / matrix[row][row];
    }
    right
}

/// Laws fitted to the bootstrap samples, with new weights; empty if no point has two trials.
fn resample_all(points: &[Point], law: &Law, level: f64, seed: u64) -> Vec<Law> {
    if points.iter().all(|point| point.throughputs.len() < 2) {
        return Vec::new();
    }
    let mut rng = Rng::stream(seed, 0x05e1);
    let mut again = || {
        let drawn = points.iter().map(|point| resample(point, level, &mut rng)).collect::<Vec<_>>();
        descend(*law, &data(&drawn))
    };
    (0..RESAMPLES).map(|_| again()).collect()
}

fn intervals(points: &[Point], law: &Law, resampled: &[Law], level: f64) -> Option<Intervals> {
    if resampled.is_empty() {
        return None;
    }
    let trials = points.iter().map(|point| point.throughputs.len() as u64).sum();
    let of = |value: fn(&Law) -> f64| {
        let (low, high) = central(&mut resampled.iter().map(value).collect::<Vec<_>>(), level);
        Estimate { point: value(law), low, high, level, n: trials }
    };
    let (lambda, sigma, kappa) = (of(|law| law.lambda), of(|law| law.sigma), of(|law| law.kappa));
    Some(Intervals { lambda, sigma, kappa, peak: of(Law::peak) })
}

/// Ends of the central share `level` of the values, without interpolation, because peaks may be infinite.
fn central(values: &mut [f64], level: f64) -> (f64, f64) {
    values.sort_by(f64::total_cmp);
    let side = (1.0 - level) / 2.0;
    let at = |q: f64| values[(q * (values.len() - 1) as f64).round() as usize];
    (at(side), at(1.0 - side))
}

/// Resamples the trials of a point, with replacement. Samples from few trials vary too little, so deviations are scaled
/// by √(n/(n-1)) (Davison & Hinkley 1997, section 2.4) and by the ratio of Student's t, with the moderated variance's
/// degrees of freedom, to the normal quantile. Without that ratio, 95 % intervals of 5 trials cover 90 to 93 %.
fn resample(point: &Point, level: f64, rng: &mut Rng) -> Point {
    let n = point.throughputs.len();
    let mean = interval::average(&point.throughputs).expect("gathered points have trials");
    if n < 2 {
        return point.clone();
    }
    let freedom = n as f64 - 1.0;
    let wider =
        interval::t_two_sided(level, freedom + PRIOR_TRIALS) / special_functions::normal_quantile((1.0 + level) / 2.0);
    let scale = (n as f64 / freedom).sqrt() * wider;
    // A throughput stays positive, as the law requires.
    let mut draw = || {
        let drawn = point.throughputs[rng.below(n as u64) as usize];
        (mean + (drawn - mean) * scale).max(mean * 1e-3)
    };
    Point { n: point.n, throughputs: (0..n).map(|_| draw()).collect() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn points(rows: &[(f64, &[f64])]) -> Vec<Point> {
        rows.iter().map(|(n, throughputs)| Point { n: *n, throughputs: throughputs.to_vec() }).collect()
    }

    fn exact(law: Law, at: &[f64]) -> Vec<Point> {
        at.iter().map(|&n| Point { n, throughputs: vec![law.throughput(n)] }).collect()
    }

    // scipy 1.17: n = [1, 2, 4, 8, 16, 32]; x = [955.16, 1878.91, 3548.68, 6531.08, 9897.24, 11950.3]
    // f = lambda n, l, s, k: l*n/(1 + s*(n-1) + k*n*(n-1))
    // scipy.optimize.curve_fit(f, n, x, p0=[900, .02, 1e-4], sigma=x, bounds=([0, 0, 0], [numpy.inf, 1, numpy.inf]),
    // xtol=1e-15, ftol=1e-15, gtol=1e-15)[0]
    #[test]
    fn matches_scipy() {
        let found = fit(
            &points(&[
                (1.0, &[955.16]),
                (2.0, &[1878.91]),
                (4.0, &[3548.68]),
                (8.0, &[6531.08]),
                (16.0, &[9897.24]),
                (32.0, &[11950.3]),
            ]),
            0.95,
            1,
        )
        .unwrap();
        for (value, expected) in [
            (found.law.lambda, 957.81806),
            (found.law.sigma, 0.020010559),
            (found.law.kappa, 0.00095979858),
            (found.r_squared, 0.99981517),
        ] {
            assert!((value / expected - 1.0).abs() < 1e-5, "{found:?}");
        }
        assert_eq!(found.intervals, None);
    }

    // scipy as above with x = [100, 199, 396, 790] at n = [1, 2, 4, 8], where κ ends at its bound.
    #[test]
    fn matches_scipy_at_a_bound() {
        let found =
            fit(&points(&[(1.0, &[100.0]), (2.0, &[199.0]), (4.0, &[396.0]), (8.0, &[790.0])]), 0.95, 1).unwrap();
        assert_eq!(found.law.kappa, 0.0);
        assert!((found.law.lambda / 99.761332 - 1.0).abs() < 1e-6, "{found:?}");
        assert!((found.law.sigma / 0.0016533863 - 1.0).abs() < 1e-4, "{found:?}");
        assert_eq!(found.law.peak(), f64::INFINITY);
    }

    fn unweighted(rows: &[(f64, f64)]) -> Law {
        let data = rows.iter().map(|&(n, mean)| Datum { n, mean, weight: 1.0, error: None }).collect::<Vec<_>>();
        best_of_starts(&data)
    }

    fn close(found: Law, expected: [f64; 3], within: f64) {
        for (value, expected) in [found.lambda, found.sigma, found.kappa].into_iter().zip(expected) {
            assert!((value - expected).abs() <= within * expected.max(1e-3), "{found:?}, not {expected}");
        }
    }

    /// SPEC SDM91 on a SPARCcenter 2000: scripts, scripts per hour (Gunther 2007, 4.5; `specsdm91` of R's usl 3.0.3).
    const SPECSDM91: [(f64, f64); 7] =
        [(1.0, 64.9), (18.0, 995.9), (36.0, 1652.4), (72.0, 1853.2), (108.0, 1828.9), (144.0, 1775.0), (216.0, 1702.2)];

    /// Throughputs of a ray tracer on NUMA CPUs (Gunther 2007, table 5.1; data set `raytracer` of usl 3.0.3).
    const RAYTRACER: [(f64, f64); 11] = [
        (1.0, 20.0),
        (4.0, 78.0),
        (8.0, 130.0),
        (12.0, 170.0),
        (16.0, 190.0),
        (20.0, 200.0),
        (24.0, 210.0),
        (28.0, 230.0),
        (32.0, 260.0),
        (48.0, 280.0),
        (64.0, 310.0),
    ];

    // R 4.2.2, the call that usl 3.0.3 makes (R/usl.R, `usl.solve.nls`), for the data above:
    // nls(y ~ gamma*x/(1 + alpha*(x-1) + beta*x*(x-1)), algorithm = "port", lower = c(0, 0, 0), upper = c(Inf, 1, 1),
    // ...) gives 89.99522677, 0.02772846999, 0.0001043655007; 21.84884277, 0.05777078033, 0; and for the first six rows
    // of the ray tracer 20.85604501, 0.02444403819, 0.001626809372.
    #[test]
    fn matches_r_without_weights() {
        close(unweighted(&SPECSDM91), [89.99522677, 0.02772846999, 0.0001043655007], 1e-6);
        close(unweighted(&RAYTRACER), [21.84884277, 0.05777078033, 0.0], 1e-6);
        close(unweighted(&RAYTRACER[..6]), [20.85604501, 0.02444403819, 0.001626809372], 1e-6);
    }

    // Expected values of the tests in R's package usl 3.0.3, to the printed digits: summary.Rout.save (alpha 2.773e-02,
    // beta 1.044e-04, gamma 9.000e+01, peak 1884 at 96.52), peak-scalability.R (96.51956), predict.Rout.save,
    // efficiency.Rout.save; coef.Rout.save has 0.02, 0.02, 1 for its own example.
    #[test]
    fn matches_published_results_of_usl_package() {
        let law = unweighted(&SPECSDM91);
        close(law, [90.0, 2.773e-2, 1.044e-4], 5e-4);
        assert!((law.peak() - 96.51956).abs() < 1e-4, "{law:?}");
        assert!((law.throughput(law.peak()) - 1884.0).abs() < 0.5, "{law:?}");
        let predicted = SPECSDM91.map(|(n, _)| law.throughput(n).round());
        assert_eq!(predicted, [90.0, 1078.0, 1541.0, 1850.0, 1879.0, 1822.0, 1646.0]);
        // The package divides the measured throughput, not the law's, by N times gamma.
        let efficiency = SPECSDM91.map(|(n, x)| (x / (n * law.lambda) * 1e3).round() / 1e3);
        assert_eq!(efficiency, [0.721, 0.615, 0.510, 0.286, 0.188, 0.137, 0.088]);
        let example = [(1.0, 1.0), (2.0, 1.8868), (4.0, 3.0769), (6.0, 3.5294), (8.0, 3.5398), (10.0, 3.3557)];
        close(unweighted(&example), [1.0, 0.02, 0.02], 5e-4);
    }

    // R 4.2.2: n <- c(1, 2, 4, 8, 12); x <- list(...) as below; m <- sapply(x, mean); k <- sapply(x, length)
    // f <- k - 1; v <- sapply(x, var) / m^2; w <- k / (m^2 * (4 * (sum(f * v) / sum(f)) + f * v) / (4 + f))
    // fit <- nls(m ~ l*n/(1 + s*(n-1) + p*n*(n-1)), weights = w, start = list(l = 100, s = .03, p = .001),
    // algorithm = "port", ...); 1 - sum(w * (m - fitted(fit))^2) / sum(w * (m - weighted.mean(m, w))^2)
    #[test]
    fn matches_r_with_moderated_weights() {
        let found = fit(
            &points(&[
                (1.0, &[100.0, 103.0, 98.0]),
                (2.0, &[190.0, 188.0, 195.0]),
                (4.0, &[340.0, 352.0, 345.0, 331.0]),
                (8.0, &[520.0, 560.0, 515.0]),
                (12.0, &[540.0, 470.0, 580.0]),
            ]),
            0.95,
            1,
        )
        .unwrap();
        close(found.law, [99.19933655, 0.01887363026, 0.00735649450], 1e-6);
        assert!((found.r_squared - 0.9987782666).abs() < 1e-8, "{found:?}");
    }

    #[test]
    fn recovers_the_law_that_made_the_points() {
        for law in [
            Law { lambda: 1000.0, sigma: 0.05, kappa: 0.002 },
            Law { lambda: 0.3, sigma: 0.9, kappa: 0.1 },
            Law { lambda: 5e6, sigma: 0.0, kappa: 0.0 },
            Law { lambda: 7.0, sigma: 0.3, kappa: 0.0 },
            Law { lambda: 7.0, sigma: 0.0, kappa: 1e-4 },
        ] {
            let found = fit(&exact(law, &[1.0, 2.0, 3.0, 5.0, 8.0, 16.0, 40.0]), 0.95, 1).unwrap();
            assert!((found.law.lambda / law.lambda - 1.0).abs() < 1e-5, "{law:?} {found:?}");
            assert!((found.law.sigma - law.sigma).abs() < 1e-5, "{law:?} {found:?}");
            assert!((found.law.kappa - law.kappa).abs() < 1e-6, "{law:?} {found:?}");
            assert!(found.r_squared > 0.999_999, "{law:?} {found:?}");
        }
    }

    #[test]
    fn gives_noisy_points_less_weight() {
        let law = Law { lambda: 100.0, sigma: 0.1, kappa: 0.0 };
        let around = |n: f64, spread: f64, off: f64| {
            let steps = [-1.4, -1.0, -0.6, -0.2, 0.2, 0.6, 1.0, 1.4];
            Point { n, throughputs: steps.map(|step| law.throughput(n) * (off + spread * step)).to_vec() }
        };
        let mut points = [1.0, 2.0, 4.0, 8.0, 12.0, 16.0].map(|n| around(n, 0.001, 1.0));
        points[3] = around(8.0, 0.3, 0.8);
        let found = fit(&points, 0.95, 1).unwrap().law;
        let alike = data(&points).into_iter().map(|datum| Datum { weight: datum.mean.powi(-2), ..datum });
        let alike = best_of_starts(&alike.collect::<Vec<_>>());
        let off = |found: &Law| (found.throughput(16.0) / law.throughput(16.0) - 1.0).abs();
        assert!(off(&found) < off(&alike) / 2.0, "{found:?} {alike:?}");
    }

    #[test]
    fn band_contains_the_law_and_widens_with_uncertainty() {
        let law = Law { lambda: 10.0, sigma: 0.1, kappa: 0.01 };
        let of = |n: f64| Point { n, throughputs: [0.97, 1.0, 1.03].map(|f| f * law.throughput(n)).to_vec() };
        let found = fit(&[1.0, 2.0, 4.0, 8.0].map(of), 0.95, 5).unwrap();
        let width = |n: f64| {
            let band = found.band(n).unwrap();
            assert!(band.low <= band.point && band.point <= band.high, "{band:?}");
            assert_eq!(band.point, found.law.throughput(n));
            band.relative_half_width()
        };
        assert!(width(32.0) > 2.0 * width(4.0), "{} {}", width(32.0), width(4.0));
        assert_eq!(fit(&exact(law, &[1.0, 2.0, 4.0, 8.0]), 0.95, 5).unwrap().band(4.0), None);
    }

    #[test]
    fn same_seed_same_intervals() {
        let law = Law { lambda: 10.0, sigma: 0.1, kappa: 0.01 };
        let points =
            [1.0, 2.0, 4.0, 8.0].map(|n| Point { n, throughputs: vec![law.throughput(n), 1.1 * law.throughput(n)] });
        assert_eq!(fit(&points, 0.95, 5), fit(&points, 0.95, 5));
    }

    #[test]
    fn words() {
        let check = |law: Law, found: Option<Intervals>, miss: Option<Miss>, expected: &str| {
            let fit = Fit { law, r_squared: 1.0, n_max: 16.0, miss, intervals: found, resampled: Vec::new() };
            assert_eq!(fit.sentence("cores", 1), expected);
        };
        let between = |point: f64, low: f64, high: f64| Estimate { point, low, high, level: 0.95, n: 20 };
        let found = |sigma: (f64, f64), kappa: (f64, f64), peak: (f64, f64), law: Law| {
            Some(Intervals {
                lambda: between(law.lambda, law.lambda, law.lambda),
                sigma: between(law.sigma, sigma.0, sigma.1),
                kappa: between(law.kappa, kappa.0, kappa.1),
                peak: between(law.peak(), peak.0, peak.1),
            })
        };
        let five = Law { lambda: 10.0, sigma: 0.1, kappa: 0.036 };
        check(
            five,
            found((0.08, 0.12), (0.034, 0.039), (4.8, 5.2), five),
            None,
            "throughput falls beyond ~5 cores: coherency cost (σ 0.10 [0.080, 0.12], κ 0.036 [0.034, 0.039], N* 5 [4.8, 5.2])",
        );
        check(
            five,
            found((0.0, 0.2), (0.001, 0.1), (2.9, 31.0), five),
            None,
            "throughput falls beyond ~5 cores: coherency cost (uncertain) (σ 0.10 [0, 0.20], κ 0.036 [0.0010, 0.10], N* 5 [2.9, 31])",
        );
        check(five, None, None, "throughput falls beyond ~5 cores: coherency cost (uncertain) (σ 0.10, κ 0.036, N* 5)");
        let fifty = Law { lambda: 10.0, sigma: 0.0, kappa: 0.0004 };
        check(
            fifty,
            found((0.0, 0.0), (0.0003, 0.0005), (44.7, 57.7), fifty),
            None,
            "throughput still rises at 16 cores; a peak near 50 is outside the measured range \
             (σ 0 [0, 0], κ 0.00040 [0.00030, 0.00050], N* 50 [44.7, 57.7])",
        );
        let open = f64::INFINITY;
        check(
            five,
            found((0.05, 0.2), (0.0, 0.1), (2.9, open), five),
            None,
            "no peak seen up to 16 cores; contention keeps it below 10.0 times the throughput at 1 \
             (σ 0.10 [0.050, 0.20], κ 0.036 [0, 0.10], N* 5 [2.9, ∞])",
        );
        let none = Law { lambda: 10.0, sigma: 0.001, kappa: 0.0 };
        check(
            none,
            found((0.0, 0.002), (0.0, 0.00002), (170.0, open), none),
            None,
            "no peak seen up to 16 cores; contention is not significant (σ 0.0010 [0, 0.0020], κ 0 [0, 2.0e-5])",
        );
        let line = Law { lambda: 10.0, sigma: 0.0, kappa: 0.0 };
        check(
            line,
            None,
            Some(Miss { n: 4.0, relative: -0.234 }),
            "no peak seen up to 16 cores; it scales linearly with cores (σ 0, κ 0); the law does not describe cores 4: measured 23 % below it",
        );
    }

    #[test]
    fn a_peak_among_many_fits_must_be_clearer() {
        let law = Law { lambda: 10.0, sigma: 0.05, kappa: 0.02 };
        let line = Law { lambda: 10.0, sigma: 0.0, kappa: 0.0 };
        let mut found = fit(
            &[1.0, 2.0, 4.0, 8.0, 16.0]
                .map(|n| Point { n, throughputs: [0.99, 1.01].map(|f| f * law.throughput(n)).to_vec() }),
            0.95,
            1,
        )
        .unwrap();
        let is_sure = |found: &Fit, among| !found.sentence("cores", among).contains("(uncertain)");
        assert_eq!([1, 12, 13].map(|among| is_sure(&found, among)), [true, true, false], "{found:?}");
        // If three of 500 laws have no peak, the p-value is 2·4/501, or 0.016.
        found.resampled[..3].fill(line);
        assert_eq!([1, 3, 4].map(|among| is_sure(&found, among)), [true, true, false], "{found:?}");
    }

    #[test]
    fn reports_the_point_that_the_law_misses() {
        // An immediate plateau, as for a server on one CPU with more and more threads.
        let plateau = [1.0, 2.0, 3.0, 4.0, 6.0].map(|n| Point {
            n,
            throughputs: [0.99, 1.0, 1.01].map(|f| f * if n < 2.0 { 50.0 } else { 100.0 }).to_vec(),
        });
        let miss = fit(&plateau, 0.95, 1).unwrap().miss.unwrap();
        assert!(miss.relative.abs() > 0.1, "{miss:?}");
        let law = Law { lambda: 10.0, sigma: 0.1, kappa: 0.01 };
        assert_eq!(fit(&exact(law, &[1.0, 2.0, 4.0, 8.0]), 0.95, 1).unwrap().miss, None);
        // These points are about as far from the law as the plateau, but only by chance: their trials scatter more.
        let mut rng = Rng::new(3);
        let wild = [1.0, 2.0, 4.0, 8.0, 16.0].map(|n| Point {
            n,
            throughputs: (0..3).map(|_| law.throughput(n) * (0.3 * rng.normal()).exp()).collect(),
        });
        assert_eq!(fit(&wild, 0.95, 1).unwrap().miss, None);
    }

    #[test]
    fn rejects_too_few_or_invalid_points() {
        let three = exact(Law { lambda: 1.0, sigma: 0.0, kappa: 0.0 }, &[1.0, 2.0, 3.0, 3.0]);
        assert_eq!(fit(&three, 0.95, 1).unwrap_err().to_string(), "not enough points to fit: 3 of 4");
        assert_eq!(fit(&[], 0.95, 1), Err("not enough points to fit: 0 of 4".to_owned()));
        let refused = |rows: &[(f64, &[f64])]| fit(&points(rows), 0.95, 1).unwrap_err();
        assert!(refused(&[(1.0, &[0.0])]).starts_with("not fitted"));
        assert!(refused(&[(0.0, &[1.0])]).starts_with("not fitted"));
    }
}
