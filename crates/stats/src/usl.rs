//! How does throughput scale? The Universal Scalability Law, fitted.

use crate::interval::{self, Estimate};
use crate::random::Rng;

/// Throughput at one number of cores, threads or clients.
#[derive(Clone, Debug, PartialEq)]
pub struct Point {
    /// The number, at least 1.
    pub n: f64,
    /// Throughput of each trial, positive, in one unit for all points.
    pub throughputs: Vec<f64>,
}

/// `X(N) = λN / (1 + σ(N-1) + κN(N-1))`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Law {
    /// λ: throughput of one, in the unit of the points.
    pub lambda: f64,
    /// σ: contention, the share that is done by one at a time; 0 to 1.
    pub sigma: f64,
    /// κ: coherency, what each pair costs; not negative.
    pub kappa: f64,
}

/// A fitted law with its intervals.
#[derive(Clone, Debug, PartialEq)]
pub struct Fit {
    /// The law of least squares.
    pub law: Law,
    /// R² of the mean throughputs, weighted as the fit is.
    pub r_squared: f64,
    /// Largest N that was measured.
    pub n_max: f64,
    /// Intervals; `None` when no point has two trials to resample.
    pub intervals: Option<Intervals>,
}

/// Percentile bootstrap intervals, resampling the trials of each point.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Intervals {
    /// Of λ.
    pub lambda: Estimate,
    /// Of σ.
    pub sigma: Estimate,
    /// Of κ.
    pub kappa: Estimate,
    /// Of the N of highest throughput; infinite where κ is 0.
    pub peak: Estimate,
}

/// Why nothing was fitted.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum NotFitted {
    /// Three parameters need more points than three.
    TooFewPoints {
        /// Distinct N there are.
        distinct: usize,
    },
    /// An N below 1, or a throughput that is not positive and finite.
    NotPositive,
}

impl std::fmt::Display for NotFitted {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            NotFitted::TooFewPoints { distinct } => write!(f, "not enough points to fit: {distinct} of {FEWEST}"),
            NotFitted::NotPositive => write!(f, "not fitted: a number below 1 or a throughput that is not positive"),
        }
    }
}

impl std::error::Error for NotFitted {}

/// Distinct N needed.
const FEWEST: usize = 4;
/// Bootstrap samples.
const RESAMPLES: usize = 500;

impl Law {
    /// Throughput at N.
    pub fn throughput(&self, n: f64) -> f64 {
        self.lambda * n / (1.0 + self.sigma * (n - 1.0) + self.kappa * n * (n - 1.0))
    }

    /// N of the highest throughput, `√((1-σ)/κ)` and at least 1; infinite where κ is 0.
    pub fn peak(&self) -> f64 {
        if self.kappa > 0.0 { ((1.0 - self.sigma) / self.kappa).sqrt().max(1.0) } else { f64::INFINITY }
    }
}

impl Fit {
    /// What the fit says in words, where `resource` names N in the plural: `cores`.
    ///
    /// Nothing is foretold: a peak beyond what was measured is called that.
    pub fn sentence(&self, resource: &str) -> String {
        let peak = self.law.peak();
        if peak < self.n_max {
            let sure = match &self.intervals {
                Some(found) if found.peak.high < self.n_max => "",
                _ => " (not sure)",
            };
            return format!("throughput falls beyond ~{peak:.0} {resource}: coherency cost{sure}");
        }
        if peak.is_finite() {
            return format!(
                "throughput still rises at {:.0} {resource}; a peak near {peak:.0} would lie beyond what was measured",
                self.n_max
            );
        }
        if self.law.sigma > 0.0 {
            let most = 1.0 / self.law.sigma;
            return format!("throughput rises towards {most:.1} times that of one: contention");
        }
        format!("throughput rises in proportion to {resource}")
    }
}

/// Fits the law by least squares with bounds (Levenberg 1944, Marquardt 1963), and bootstraps its intervals.
///
/// Each point counts by its trials, and errors count relative to the throughput: it is that which
/// scatters alike at few and at many. Source of the law: Gunther 2007, Guerrilla Capacity Planning.
/// Points of one N are put together. The same seed gives the same intervals.
///
/// # Errors
/// [`NotFitted`].
///
/// # Panics
/// When `level` is not strictly between 0 and 1.
pub fn fit(points: &[Point], level: f64, seed: u64) -> Result<Fit, NotFitted> {
    assert!(level > 0.0 && level < 1.0, "`level` is a fraction, not a percentage: {level}");
    let points = gather(points)?;
    if points.len() < FEWEST {
        return Err(NotFitted::TooFewPoints { distinct: points.len() });
    }
    let data = points.iter().map(Datum::of_all).collect::<Vec<_>>();
    let law = best_of_starts(&data);
    Ok(Fit {
        law,
        r_squared: r_squared(&law, &data),
        n_max: points.last().expect("four at least").n,
        intervals: bootstrap(&points, &law, level, seed),
    })
}

/// Points by ascending N, each N once.
fn gather(points: &[Point]) -> Result<Vec<Point>, NotFitted> {
    let mut points = points.iter().filter(|point| !point.throughputs.is_empty()).cloned().collect::<Vec<_>>();
    let fine = |point: &Point| {
        point.n >= 1.0 && point.n.is_finite() && point.throughputs.iter().all(|x| *x > 0.0 && x.is_finite())
    };
    if !points.iter().all(fine) {
        return Err(NotFitted::NotPositive);
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

/// One point as the fit sees it.
#[derive(Clone, Copy)]
struct Datum {
    n: f64,
    mean: f64,
    weight: f64,
}

impl Datum {
    fn of_all(point: &Point) -> Datum {
        let mean = interval::average(&point.throughputs).expect("gathered points have trials");
        Datum { n: point.n, mean, weight: point.throughputs.len() as f64 / (mean * mean) }
    }
}

fn squares(law: &Law, data: &[Datum]) -> f64 {
    data.iter().map(|datum| datum.weight * (datum.mean - law.throughput(datum.n)).powi(2)).sum()
}

/// One minus residual over total sum of squares, about the weighted mean.
fn r_squared(law: &Law, data: &[Datum]) -> f64 {
    let weights = data.iter().map(|datum| datum.weight).sum::<f64>();
    let mean = data.iter().map(|datum| datum.weight * datum.mean).sum::<f64>() / weights;
    let total = data.iter().map(|datum| datum.weight * (datum.mean - mean).powi(2)).sum::<f64>();
    if total > 0.0 { 1.0 - squares(law, data) / total } else { 0.0 }
}

/// The surface has valleys where a bound holds a parameter; the best end of several starts is taken.
fn best_of_starts(data: &[Datum]) -> Law {
    let n_max = data.iter().map(|datum| datum.n).fold(1.0, f64::max);
    let mut best: Option<(f64, Law)> = None;
    for sigma in [0.0, 0.02, 0.2, 0.8] {
        for scaled in [0.0, 0.1, 1.0] {
            // λ is linear once the others are chosen.
            let shape = Law { lambda: 1.0, sigma, kappa: scaled / (n_max * n_max) };
            let (mut above, mut below) = (0.0, 0.0);
            for datum in data {
                let unit = shape.throughput(datum.n);
                above += datum.weight * datum.mean * unit;
                below += datum.weight * unit * unit;
            }
            let law = descend(Law { lambda: above / below, ..shape }, data);
            let error = squares(&law, data);
            if best.is_none_or(|(least, _)| error < least) {
                best = Some((error, law));
            }
        }
    }
    best.expect("there are twelve starts").1
}

/// Levenberg-Marquardt; a parameter at its bound stays there while the slope pushes it outwards.
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
        let held = [
            false,
            law.sigma <= 0.0 && slope[1] < 0.0 || law.sigma >= 1.0 && slope[1] > 0.0,
            law.kappa <= 0.0 && slope[2] < 0.0,
        ];
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
            let tried = Law {
                lambda: law.lambda + step[0],
                sigma: (law.sigma + step[1]).clamp(0.0, 1.0),
                kappa: (law.kappa + step[2]).max(0.0),
            };
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

/// Solves three equations by elimination with pivots; a singular system gives no step.
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

fn bootstrap(points: &[Point], law: &Law, level: f64, seed: u64) -> Option<Intervals> {
    if points.iter().all(|point| point.throughputs.len() < 2) {
        return None;
    }
    let mut rng = Rng::stream(seed, 0x05e1);
    let mut columns: [Vec<f64>; 4] = Default::default();
    for _ in 0..RESAMPLES {
        let data = points.iter().map(|point| resample(point, &mut rng)).collect::<Vec<_>>();
        let found = descend(*law, &data);
        for (column, value) in columns.iter_mut().zip([found.lambda, found.sigma, found.kappa, found.peak()]) {
            column.push(value);
        }
    }
    let trials = points.iter().map(|point| point.throughputs.len() as u64).sum();
    let [lambda, sigma, kappa, peak] = columns.map(|mut column| {
        column.sort_by(f64::total_cmp);
        let side = (1.0 - level) / 2.0;
        // An observed value and never one between two: the peaks may be infinite.
        let at = |q: f64| column[(q * (column.len() - 1) as f64).round() as usize];
        (at(side), at(1.0 - side))
    });
    let estimate = |point: f64, (low, high): (f64, f64)| Estimate { point, low, high, level, n: trials };
    Some(Intervals {
        lambda: estimate(law.lambda, lambda),
        sigma: estimate(law.sigma, sigma),
        kappa: estimate(law.kappa, kappa),
        peak: estimate(law.peak(), peak),
    })
}

/// As many trials of a point as it has, drawn with replacement. Deviations are scaled by √(n/(n-1)): samples drawn from so few
/// vary too little otherwise (Davison & Hinkley 1997, section 2.4).
fn resample(point: &Point, rng: &mut Rng) -> Datum {
    let all = Datum::of_all(point);
    let n = point.throughputs.len();
    if n < 2 {
        return all;
    }
    let drawn = (0..n).map(|_| point.throughputs[rng.below(n as u64) as usize]).sum::<f64>() / n as f64;
    let scale = (n as f64 / (n as f64 - 1.0)).sqrt();
    Datum { mean: all.mean + (drawn - all.mean) * scale, ..all }
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
    // scipy.optimize.curve_fit(f, n, x, p0=[900, .02, 1e-4], sigma=x, bounds=([0, 0, 0], [numpy.inf, 1, numpy.inf]), xtol=1e-15, ftol=1e-15, gtol=1e-15)[0]
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

    // The same with x = [100, 199, 396, 790] at n = [1, 2, 4, 8], where κ ends at its bound.
    #[test]
    fn matches_scipy_at_a_bound() {
        let found =
            fit(&points(&[(1.0, &[100.0]), (2.0, &[199.0]), (4.0, &[396.0]), (8.0, &[790.0])]), 0.95, 1).unwrap();
        assert_eq!(found.law.kappa, 0.0);
        assert!((found.law.lambda / 99.761332 - 1.0).abs() < 1e-6, "{found:?}");
        assert!((found.law.sigma / 0.0016533863 - 1.0).abs() < 1e-4, "{found:?}");
        assert_eq!(found.law.peak(), f64::INFINITY);
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
    fn intervals_hold_the_truth_about_as_often_as_claimed() {
        let law = Law { lambda: 1000.0, sigma: 0.05, kappa: 0.01 };
        let (mut rng, studies, mut held) = (Rng::new(13), 150, 0);
        for seed in 0..studies {
            let points = [1.0, 2.0, 4.0, 8.0, 16.0, 24.0].map(|n| Point {
                n,
                throughputs: (0..8).map(|_| law.throughput(n) * (1.0 + 0.03 * rng.normal())).collect(),
            });
            let peak = fit(&points, 0.95, seed).unwrap().intervals.unwrap().peak;
            held += u32::from(peak.low <= law.peak() && law.peak() <= peak.high);
        }
        assert!((132..=150).contains(&held), "{held} of {studies}");
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
        let sentence = |law: Law| fit(&exact(law, &[1.0, 2.0, 4.0, 8.0, 16.0]), 0.95, 1).unwrap().sentence("cores");
        assert_eq!(
            sentence(Law { lambda: 10.0, sigma: 0.1, kappa: 0.036 }),
            "throughput falls beyond ~5 cores: coherency cost (not sure)"
        );
        assert_eq!(
            sentence(Law { lambda: 10.0, sigma: 0.0, kappa: 0.0004 }),
            "throughput still rises at 16 cores; a peak near 50 would lie beyond what was measured"
        );
        let sure = Fit {
            law: Law { lambda: 10.0, sigma: 0.1, kappa: 0.036 },
            r_squared: 1.0,
            n_max: 16.0,
            intervals: {
                let at = |point: f64| Estimate { point, low: point, high: point, level: 0.95, n: 20 };
                Some(Intervals { lambda: at(10.0), sigma: at(0.1), kappa: at(0.036), peak: at(5.0) })
            },
        };
        assert_eq!(sure.sentence("cores"), "throughput falls beyond ~5 cores: coherency cost");
    }

    #[test]
    fn too_few_or_impossible_points() {
        let three = exact(Law { lambda: 1.0, sigma: 0.0, kappa: 0.0 }, &[1.0, 2.0, 3.0, 3.0]);
        assert_eq!(fit(&three, 0.95, 1).unwrap_err().to_string(), "not enough points to fit: 3 of 4");
        assert_eq!(fit(&[], 0.95, 1), Err(NotFitted::TooFewPoints { distinct: 0 }));
        assert_eq!(fit(&points(&[(1.0, &[0.0])]), 0.95, 1), Err(NotFitted::NotPositive));
        assert_eq!(fit(&points(&[(0.0, &[1.0])]), 0.95, 1), Err(NotFitted::NotPositive));
    }
}
