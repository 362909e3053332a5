//! Effects of factors and their interactions, from a factorial experiment with replications.
//!
//! The model is `y = mean of the design point + block + error`. A replication is a trial with a fresh server. A block
//! is a round of the plan with one trial per point; its common effect on all points does not count as error. Main
//! effects, interactions and changes are contrasts of the point means, estimated by least squares. With equal numbers
//! of trials, they match Jain 1991, The Art of Computer Systems Performance Analysis, chapters 17, 18 and 22. If trials
//! are lost, levels still count equally (type III; Searle 1987, Linear Models for Unbalanced Data, chapter 4).

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;

use crate::interval::{self, Estimate};
use crate::special_functions::{self, f_upper};

/// Maximum number of design points. The time for the analysis grows with the cube of this number.
pub const POINTS_MAX: usize = 256;

/// Statistical power of [`Contrast::detectable`] in reports.
pub const POWER: f64 = 0.8;

/// One trial with its factor levels, block and value.
#[derive(Clone, Debug, PartialEq)]
pub struct Trial {
    /// Index of the level of each factor, from 0.
    pub levels: Vec<usize>,
    /// Number of the trial's round; equal for all trials if there were no rounds.
    pub block: u32,
    /// Measured value in the unit of the metric.
    pub value: f64,
}

/// Scale on which effects are expressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(rename = "EffectScale")]
pub enum Scale {
    /// Effects multiply: the analysis is of logarithms, and every effect is a ratio of geometric means.
    Ratio,
    /// Effects add: every effect is a difference of means in the metric's own unit.
    Difference,
}

/// Source of variation in an experiment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(rename = "SourceKind", description = "Kinds of [`EffectSource`].")]
pub enum Source {
    /// Main effect of one factor.
    Main,
    /// Interaction of two factors.
    Interaction,
    /// Interactions of three or more factors, pooled.
    Higher,
    /// Design points of a one-at-a-time design, pooled.
    Points,
    /// Effect of blocks on all points.
    Blocks,
    /// Variation between trials of one point.
    Error,
}

/// A row of the analysis of variance.
#[derive(Clone, Debug, PartialEq)]
pub struct Term {
    /// Source of the variation in this row.
    pub source: Source,
    /// Indices of the factors of a main effect or an interaction; empty for other sources.
    pub factors: Vec<usize>,
    /// Sum of squares, type III; of logarithms with [`Scale::Ratio`].
    pub squares: f64,
    /// Degrees of freedom of the source.
    pub df: usize,
    /// Share of this source in the sum of `squares` over all terms. Exceeds 0 even without an effect; see `p_value`.
    pub share: f64,
    /// Mean square divided by the mean square of the error; `None` for the error.
    pub f: Option<f64>,
    /// Probability of an `f` at least this large if there is no effect; `None` for the error.
    pub p_value: Option<f64>,
}

/// Difference between means of design points.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Contrast {
    /// The difference in the unit of the metric; the logarithm of a ratio with [`Scale::Ratio`].
    pub point: f64,
    /// Standard error of the difference, from the error pooled over all points.
    pub standard_error: f64,
    /// Degrees of freedom of the standard error.
    pub df: f64,
    /// Number of trials in the analysis.
    pub n: u64,
}

impl Contrast {
    /// Returns the difference with its t interval. Panics if `level` is not strictly between 0 and 1.
    pub fn interval(&self, level: f64) -> Estimate {
        let half_width = interval::t_two_sided(level, self.df) * self.standard_error;
        Estimate::around(self.point, half_width, level, self.n)
    }

    /// Returns `exp` of [`Contrast::interval`], which is a ratio with [`Scale::Ratio`].
    pub fn ratio(&self, level: f64) -> Estimate {
        self.interval(level).exp()
    }

    /// Returns the two-sided p-value of the difference.
    pub fn p_value(&self) -> f64 {
        (2.0 * special_functions::t_tail(self.point.abs(), self.standard_error, self.df)).min(1.0)
    }

    /// Smallest difference that these trials would show at confidence `level` with probability `power`.
    pub fn detectable(&self, level: f64, power: f64) -> f64 {
        (interval::t_two_sided(level, self.df) + special_functions::t_quantile(power, self.df)) * self.standard_error
    }
}

/// Analysis of a factorial experiment.
#[derive(Clone, Debug, PartialEq)]
pub struct Factorial {
    levels: Vec<usize>,
    /// Means of the points without block effects; the last factor changes fastest.
    means: Vec<f64>,
    /// Covariance matrix of `means` divided by the error variance, up to a constant that cancels in contrasts.
    covariance: Vec<Vec<f64>>,
    /// Rows of the analysis of variance: main effects in factor order, two-way interactions, [`Source::Higher`] for
    /// three or more factors, [`Source::Blocks`] for several blocks, [`Source::Error`]. Their shares sum to 1.
    pub terms: Vec<Term>,
    /// Standard deviation between trials of one point, pooled over all points; of logarithms with [`Scale::Ratio`].
    pub error: f64,
    /// Degrees of freedom of `error`.
    pub error_df: usize,
    /// Number of trials in the analysis.
    pub trials: usize,
    /// Number of blocks separated from the error; 1 if there are none or if trials are too few.
    pub blocks: usize,
    /// Whether all points have the same number of trials. Sums of squares then match the textbook's.
    pub is_equal: bool,
    /// Standard deviation and trial count per point; the last factor changes fastest. Pooling assumes equal deviations.
    pub spreads: Vec<(f64, usize)>,
}

struct Datum {
    point: usize,
    block: u32,
    value: f64,
}

/// Analyzes the trials of a full factorial; `levels` has each factor's number of levels. Fails with the reason if points
/// lack trials or exceed [`POINTS_MAX`], or if the values have no logarithm or no error. Panics for an unknown level.
pub fn factorial(levels: &[usize], trials: &[Trial], scale: Scale) -> Result<Factorial, String> {
    let bad_value = || "a value is not a finite number, or has no logarithm".to_owned();
    let points = levels.iter().try_fold(1usize, |product, &count| product.checked_mul(count)).unwrap_or(usize::MAX);
    if points > POINTS_MAX {
        return Err(format!("{points} design points; the limit is {POINTS_MAX}"));
    }
    let mut data = Vec::with_capacity(trials.len());
    for trial in trials {
        assert_eq!(trial.levels.len(), levels.len(), "a trial has a level of each factor");
        let point = trial.levels.iter().zip(levels).fold(0, |point, (&level, &count)| {
            assert!(level < count, "level {level} of {count}");
            point * count + level
        });
        let value = match scale {
            Scale::Difference => trial.value,
            Scale::Ratio if trial.value > 0.0 => trial.value.ln(),
            Scale::Ratio => f64::NAN,
        };
        if !value.is_finite() {
            return Err(bad_value());
        }
        data.push(Datum { point, block: trial.block, value });
    }
    let mut counts = vec![0usize; points];
    data.iter().for_each(|datum| counts[datum.point] += 1);
    let missing = counts.iter().filter(|&&count| count == 0).count();
    if missing > 0 {
        let has = if missing == 1 { "has" } else { "have" };
        return Err(format!("{missing} of {points} design points {has} no trial: the factors are not fully crossed"));
    }
    // Centering keeps the precision of large values.
    let middle = data.iter().map(|datum| datum.value / data.len() as f64).sum::<f64>();
    data.iter_mut().for_each(|datum| datum.value -= middle);
    let total = data.iter().map(|datum| datum.value * datum.value).sum::<f64>();
    let largest = data.iter().map(|datum| datum.value.abs()).fold(0.0, f64::max);
    if !total.is_finite() {
        return Err(bad_value());
    }
    if largest <= middle.abs() * 1e-12 {
        return Err("every trial has the same value".to_owned());
    }

    let plain = fit(&data, points, false);
    let blocks = data.iter().map(|datum| datum.block).collect::<std::collections::BTreeSet<_>>().len();
    // A block that shares no point with the other blocks cannot be separated from the points.
    let blocked = (blocks > 1 && connected(&data, points)).then(|| fit(&data, points, true));
    let blocked = blocked.filter(|fit| data.len() > points + fit.blocks - 1);
    let fitted = blocked.as_ref().unwrap_or(&plain);
    let df = data.len().saturating_sub(points + fitted.blocks - 1);
    if df == 0 {
        return Err("the error is unknown: each design point needs at least two trials, in the same blocks".to_owned());
    }
    let tiny = total * 1e-24;
    let residual = if fitted.residual > tiny { fitted.residual } else { 0.0 };
    let variance = residual / df as f64;

    let mut terms = Vec::new();
    let mut add = |source, factors, squares: f64, df: usize| {
        let squares = if squares > tiny { squares } else { 0.0 };
        let f = squares / df as f64 / variance;
        let p_value = match (squares > 0.0, variance > 0.0) {
            (false, _) => 1.0,
            (true, false) => 0.0,
            (true, true) => f_upper(f, df as f64, (data.len() - points - fitted.blocks + 1) as f64),
        };
        let f = if squares > 0.0 { f } else { 0.0 };
        terms.push(Term { source, factors, squares, df, share: 0.0, f: Some(f), p_value: Some(p_value) });
    };
    for (source, factors) in sources(levels) {
        let rows = hypothesis(levels, source, &factors);
        add(source, factors, squares(&rows, &fitted.means, &fitted.covariance), rows.len());
    }
    if blocked.is_some() {
        add(Source::Blocks, Vec::new(), plain.residual - fitted.residual, fitted.blocks - 1);
    }
    let (source, factors) = (Source::Error, Vec::new());
    terms.push(Term { source, factors, squares: residual, df, share: 0.0, f: None, p_value: None });
    let sum = terms.iter().map(|term| term.squares).sum::<f64>();
    terms.iter_mut().for_each(|term| term.share = term.squares / sum);

    let spread = |point| {
        let values = data.iter().filter(|datum| datum.point == point).map(|datum| datum.value).collect::<Vec<_>>();
        (interval::variance(&values).unwrap_or(0.0).sqrt(), values.len())
    };
    let shift =
        middle + data.iter().map(|datum| datum.value - fitted.means[datum.point]).sum::<f64>() / data.len() as f64;
    Ok(Factorial {
        levels: levels.to_vec(),
        means: fitted.means.iter().map(|mean| mean + shift).collect(),
        covariance: fitted.covariance.clone(),
        terms,
        error: variance.sqrt(),
        error_df: df,
        trials: data.len(),
        blocks: fitted.blocks,
        is_equal: counts.windows(2).all(|two| two[0] == two[1]),
        spreads: (0..points).map(spread).collect(),
    })
}

/// Least-squares fit of points and, if `blocked`, of blocks, by normal equations from which blocks are eliminated.
struct Fitted {
    means: Vec<f64>,
    covariance: Vec<Vec<f64>>,
    residual: f64,
    blocks: usize,
}

fn fit(data: &[Datum], points: usize, blocked: bool) -> Fitted {
    let mut members = BTreeMap::<u32, Vec<&Datum>>::new();
    let mut normal = vec![vec![0.0; points]; points];
    let mut right = vec![0.0; points];
    for datum in data {
        members.entry(if blocked { datum.block } else { 0 }).or_default().push(datum);
        normal[datum.point][datum.point] += 1.0;
        right[datum.point] += datum.value;
    }
    for members in members.values() {
        let size = members.len() as f64;
        let sum = members.iter().map(|datum| datum.value).sum::<f64>();
        for a in members {
            right[a.point] -= sum / size;
            for b in members {
                normal[a.point][b.point] -= 1.0 / size;
            }
        }
    }
    // The sum of all means is undetermined and cancels in contrasts, so it is set to zero.
    let weight = data.len() as f64 / (points * points) as f64;
    normal.iter_mut().flatten().for_each(|cell| *cell += weight);
    let covariance = inverse(normal).expect("points and blocks are connected");
    let means = covariance.iter().map(|row| dot(row, &right)).collect::<Vec<_>>();
    let mut residual = 0.0;
    for members in members.values() {
        let rests = members.iter().map(|datum| datum.value - means[datum.point]).collect::<Vec<_>>();
        let middle = rests.iter().sum::<f64>() / rests.len() as f64;
        residual += rests.iter().map(|rest| (rest - middle).powi(2)).sum::<f64>();
    }
    Fitted { means, covariance, residual, blocks: members.len() }
}

fn connected(data: &[Datum], points: usize) -> bool {
    let mut reached = vec![false; points];
    let mut blocks = std::collections::BTreeSet::new();
    reached[data[0].point] = true;
    loop {
        let before = blocks.len();
        blocks.extend(data.iter().filter(|datum| reached[datum.point]).map(|datum| datum.block));
        data.iter().filter(|datum| blocks.contains(&datum.block)).for_each(|datum| reached[datum.point] = true);
        if blocks.len() == before {
            return reached.into_iter().all(|point| point);
        }
    }
}

fn sources(levels: &[usize]) -> Vec<(Source, Vec<usize>)> {
    let varied = (0..levels.len()).filter(|&factor| levels[factor] > 1).collect::<Vec<_>>();
    let mut sources = varied.iter().map(|&factor| (Source::Main, vec![factor])).collect::<Vec<_>>();
    for (place, &a) in varied.iter().enumerate() {
        sources.extend(varied[place + 1..].iter().map(|&b| (Source::Interaction, vec![a, b])));
    }
    if varied.len() > 2 {
        sources.push((Source::Higher, Vec::new()));
    }
    sources
}

fn hypothesis(levels: &[usize], source: Source, factors: &[usize]) -> Vec<Vec<f64>> {
    let of = |set: &dyn Fn(usize) -> bool| {
        let mut rows = vec![vec![1.0]];
        for (factor, &count) in levels.iter().enumerate() {
            let parts = if set(factor) { helmert(count) } else { vec![vec![1.0 / count as f64; count]] };
            let product = |row: &Vec<f64>, part: &Vec<f64>| {
                row.iter().flat_map(|a| part.iter().map(move |b| a * b)).collect::<Vec<_>>()
            };
            rows =
                rows.iter().flat_map(|row| parts.iter().map(|part| product(row, part)).collect::<Vec<_>>()).collect();
        }
        rows
    };
    match source {
        Source::Main | Source::Interaction => of(&|factor| factors.contains(&factor)),
        Source::Higher => {
            let sets = (0u32..1 << levels.len()).filter(|set| set.count_ones() > 2);
            sets.flat_map(|set| of(&|factor| set >> factor & 1 == 1)).collect()
        }
        Source::Points | Source::Blocks | Source::Error => Vec::new(),
    }
}

/// Orthonormal contrasts between `count` levels, one fewer than there are levels.
fn helmert(count: usize) -> Vec<Vec<f64>> {
    let row = |k: usize| {
        let norm = ((k * (k + 1)) as f64).sqrt();
        (0..count).map(move |level| match level.cmp(&k) {
            std::cmp::Ordering::Less => 1.0 / norm,
            std::cmp::Ordering::Equal => -(k as f64) / norm,
            std::cmp::Ordering::Greater => 0.0,
        })
    };
    (1..count).map(|k| row(k).collect()).collect()
}

/// Sum of squares of the hypothesis that `Cm = 0`: `(Cm)' (C V C')^-1 (Cm)`.
fn squares(rows: &[Vec<f64>], means: &[f64], covariance: &[Vec<f64>]) -> f64 {
    let points = means.len();
    let found = rows.iter().map(|row| dot(row, means)).collect::<Vec<_>>();
    let spread = rows.iter().map(|row| {
        (0..points).map(|column| (0..points).map(|k| row[k] * covariance[k][column]).sum()).collect::<Vec<f64>>()
    });
    let matrix = spread.map(|spread| rows.iter().map(|row| dot(&spread, row)).collect()).collect();
    let inverse = inverse(matrix).expect("contrasts are independent");
    quadratic_form(&found, &inverse)
}

/// The product of the vector, the matrix and the vector again.
fn quadratic_form(vector: &[f64], matrix: &[Vec<f64>]) -> f64 {
    let rows = vector.iter().zip(matrix).filter(|(weight, _)| **weight != 0.0);
    rows.map(|(one, cells)| vector.iter().zip(cells).map(|(other, cell)| one * other * cell).sum::<f64>()).sum()
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

/// Inverts a matrix by Gauss-Jordan elimination with diagonal pivots; `None` if it is not positive definite.
fn inverse(mut matrix: Vec<Vec<f64>>) -> Option<Vec<Vec<f64>>> {
    let size = matrix.len();
    let scale = (0..size).map(|i| matrix[i][i]).fold(0.0, f64::max);
    for k in 0..size {
        let pivot = matrix[k][k];
        if pivot.partial_cmp(&(scale * 1e-13)) != Some(std::cmp::Ordering::Greater) {
            return None;
        }
        let mut row = matrix[k].iter().map(|cell| cell / pivot).collect::<Vec<_>>();
        for (_, cells) in matrix.iter_mut().enumerate().filter(|(i, _)| *i != k) {
            let factor = cells[k];
            if factor != 0.0 {
                cells.iter_mut().zip(&row).for_each(|(cell, of_pivot)| *cell -= factor * of_pivot);
            }
            cells[k] = -factor / pivot;
        }
        row[k] = 1.0 / pivot;
        matrix[k] = row;
    }
    Some(matrix)
}

impl Factorial {
    /// Ratio of the largest to the smallest variance of a point, and an upper bound on the p-value of equal variances.
    /// Assumes normal values and, for every point, the smallest number of trials of any point (Hartley 1950, by
    /// Bonferroni's bound). `None` if a point has fewer than two trials or no variance.
    pub fn uneven(&self) -> Option<(f64, f64)> {
        let fewest = self.spreads.iter().map(|spread| spread.1).min()?;
        let variances = self.spreads.iter().map(|spread| spread.0 * spread.0);
        let (low, high) = variances.fold((f64::INFINITY, 0.0), |(low, high): (f64, f64), v| (low.min(v), high.max(v)));
        if fewest < 2 || low <= 0.0 || self.spreads.len() < 2 {
            return None;
        }
        let df = (fewest - 1) as f64;
        let pairs = (self.spreads.len() * (self.spreads.len() - 1)) as f64;
        Some((high / low, (pairs * f_upper(high / low, df, df)).min(1.0)))
    }

    /// Difference between weighted means. Panics unless there is one weight per point and the weights sum to zero.
    fn contrast(&self, weights: &[f64]) -> Contrast {
        assert_eq!(weights.len(), self.means.len(), "a weight for each point");
        let size = weights.iter().map(|weight| weight.abs()).sum::<f64>();
        assert!(weights.iter().sum::<f64>().abs() <= 1e-9 * size, "the weights of a difference sum to zero");
        let square = quadratic_form(weights, &self.covariance);
        let (point, standard_error) = (dot(weights, &self.means), square.max(0.0).sqrt() * self.error);
        Contrast { point, standard_error, df: self.error_df as f64, n: self.trials as u64 }
    }

    /// Weight of each point: the product of `of(factor, level)` over all factors. `None` counts as 1/(level count).
    fn weights(&self, of: impl Fn(usize, usize) -> Option<f64>) -> Vec<f64> {
        let weight = |mut point: usize| {
            let mut product = 1.0;
            for (factor, &count) in self.levels.iter().enumerate().rev() {
                product *= of(factor, point % count).unwrap_or(1.0 / count as f64);
                point /= count;
            }
            product
        };
        (0..self.means.len()).map(weight).collect()
    }

    /// Main effect of a level: its mean over all levels of the other factors, minus the mean of all points.
    pub fn main(&self, factor: usize, level: usize) -> Contrast {
        self.deviations(&[(factor, level)])
    }

    /// Interaction of levels of two different factors: their mean, minus the mean of all points and both main effects.
    pub fn interaction(&self, (a, of_a): (usize, usize), (b, of_b): (usize, usize)) -> Contrast {
        assert_ne!(a, b, "a factor does not interact with itself");
        self.deviations(&[(a, of_a), (b, of_b)])
    }

    fn deviations(&self, of: &[(usize, usize)]) -> Contrast {
        of.iter().for_each(|&(factor, level)| self.check(factor, level));
        self.contrast(&self.weights(|factor, at| {
            let (_, level) = of.iter().find(|(of, _)| *of == factor)?;
            Some(one_if(at == *level) - 1.0 / self.levels[factor] as f64)
        }))
    }

    /// Change between levels of a factor, on average or at a level of a second factor. Panics if the factors are equal.
    pub fn change(&self, factor: usize, from: usize, to: usize, at: Option<(usize, usize)>) -> Contrast {
        assert!(at.is_none_or(|(other, _)| other != factor), "a factor has one level");
        at.into_iter().chain([(factor, from.max(to))]).for_each(|(factor, level)| self.check(factor, level));
        self.contrast(&self.weights(|of, place| match at {
            _ if of == factor => Some(one_if(place == to) - one_if(place == from)),
            Some((other, level)) if of == other => Some(one_if(place == level)),
            _ => None,
        }))
    }

    fn check(&self, factor: usize, level: usize) {
        assert!(level < self.levels[factor], "level {level} of {}", self.levels[factor]);
    }
}

fn one_if(holds: bool) -> f64 {
    f64::from(u8::from(holds))
}

#[cfg(test)]
mod tests {
    use super::*;

    const NO_ERROR: &str = "the error is unknown: each design point needs at least two trials, in the same blocks";
    const BAD_VALUE: &str = "a value is not a finite number, or has no logarithm";
    use crate::Rng;
    use proptest::prelude::*;

    fn close(found: f64, expected: f64) {
        assert!((found - expected).abs() <= 1e-8 * expected.abs().max(1e-3), "{found:?}, expected {expected:?}");
    }

    fn trials(points: &[(&[usize], &[f64])]) -> Vec<Trial> {
        let of = |&(levels, values): &(&[usize], &[f64])| {
            let of = |&value: &f64| Trial { levels: levels.to_vec(), block: 0, value };
            values.iter().map(of).collect::<Vec<_>>()
        };
        points.iter().flat_map(of).collect()
    }

    fn workstation() -> Vec<Trial> {
        trials(&[
            (&[0, 0], &[15.0, 18.0, 12.0]),
            (&[1, 0], &[45.0, 48.0, 51.0]),
            (&[0, 1], &[25.0, 28.0, 19.0]),
            (&[1, 1], &[75.0, 75.0, 81.0]),
        ])
    }

    // Jain 1991, section 18.1: effects 41, 21.5, 9.5, 5; 78.88 %, 15.4 %, 4.27 %, error 1.45 %; 90 % intervals ±1.92.
    // R 4.2.2: y <- c(15,18,12, 45,48,51, 25,28,19, 75,75,81); memory <- gl(2,3,12); cache <- gl(2,6);
    // summary(aov(y ~ memory*cache)); options(contrasts=c("contr.sum","contr.poly"));
    // confint(lm(y ~ memory*cache), level=.9)
    #[test]
    fn matches_workstation_example_of_jain() {
        let found = factorial(&[2, 2], &workstation(), Scale::Difference).unwrap();
        let [memory, cache, both, error] = &found.terms[..] else { panic!("{:?}", found.terms) };
        assert_eq!((&*memory.factors, &*cache.factors), (&[0][..], &[1][..]));
        assert_eq!((both.source, error.source), (Source::Interaction, Source::Error));
        for (term, squares, f, p) in [
            (memory, 5547.0, 435.05882352941, 2.9277e-08),
            (cache, 1083.0, 84.941176470588, 1.5557e-05),
            (both, 300.0, 23.529411764706, 0.0012707),
        ] {
            close(term.squares, squares);
            close(term.f.unwrap(), f);
            assert!((term.p_value.unwrap() / p - 1.0).abs() < 1e-4, "{term:?}");
        }
        close(error.squares, 102.0);
        close(found.error, 12.75f64.sqrt());
        assert_eq!((found.error_df, found.trials, found.blocks, found.is_equal), (8, 12, 1, true));
        let shares = found.terms.iter().map(|term| format!("{:.2}", term.share * 100.0)).collect::<Vec<_>>();
        assert_eq!(shares, ["78.88", "15.40", "4.27", "1.45"]);
        close(found.main(0, 1).point, 21.5);
        close(found.main(1, 1).point, 9.5);
        close(found.interaction((0, 1), (1, 1)).point, 5.0);
        close(found.main(0, 1).interval(0.9).low, 19.58322175634);
        close(found.interaction((0, 1), (1, 1)).interval(0.9).high, 6.91677824366);
        close(found.means[3], 77.0);
    }

    // Jain 1991, section 17.1: single trials 15, 45, 25, 75 give 40 + 20 memory + 10 cache + 5 both; 76 %, 19 %, 5 %.
    #[test]
    fn matches_unreplicated_example_of_jain() {
        let once = [(&[0, 0][..], &[15.0][..]), (&[1, 0], &[45.0]), (&[0, 1], &[25.0]), (&[1, 1], &[75.0])];
        assert_eq!(factorial(&[2, 2], &trials(&once), Scale::Difference), Err(NO_ERROR.to_owned()));
        let twice = [trials(&once), trials(&once)].concat();
        let found = factorial(&[2, 2], &twice, Scale::Difference).unwrap();
        for (found, effect) in
            [(found.main(0, 1), 20.0), (found.main(1, 1), 10.0), (found.interaction((0, 1), (1, 1)), 5.0)]
        {
            close(found.point, effect);
            assert_eq!((found.standard_error, found.p_value()), (0.0, 0.0));
        }
        let shares = found.terms.iter().map(|term| format!("{:.0}", term.share * 100.0)).collect::<Vec<_>>();
        assert_eq!(shares, ["76", "19", "5", "0"]);
    }

    /// Trials of a design of three by two levels in three blocks; some trials are lost.
    fn lost() -> Vec<Trial> {
        let a = [1, 1, 1, 2, 2, 3, 3, 3, 1, 1, 2, 2, 2, 3, 3, 3];
        let block = [1, 2, 3, 1, 3, 1, 2, 3, 1, 3, 1, 2, 3, 1, 2, 3];
        let value = [10.2, 11.1, 9.7, 14.8, 15.9, 20.4, 22.0, 19.9, 12.1, 13.0, 16.2, 17.5, 15.8, 30.3, 31.9, 29.5];
        (0..16).map(|i| Trial { levels: vec![a[i] - 1, i / 8], block: block[i], value: value[i] }).collect()
    }

    // R 4.2.2, with contr.sum and a, b, blk, v as above, all factors except v: drop1(lm(v ~ a*b), .~., test="F")
    #[test]
    fn unequal_replication_matches_r() {
        let mut trials = lost();
        trials.iter_mut().for_each(|trial| trial.block = 7);
        let found = factorial(&[3, 2], &trials, Scale::Difference).unwrap();
        assert!(!found.is_equal);
        let expected = [(578.457076923, 2), (74.297619048, 1), (61.495230769, 2), (8.99, 10)];
        for (term, (squares, df)) in found.terms.iter().zip(expected) {
            close(term.squares, squares);
            assert_eq!(term.df, df);
        }
        close(found.terms[0].f.unwrap(), 321.72251);
        close(found.error, 0.948156105291);
        close(found.terms.iter().map(|term| term.share).sum(), 1.0);
    }

    // R as above: g <- lm(v ~ blk + a*b); drop1(g, .~., test="F"); summary(g)$sigma^2; coef(g); confint(g)
    #[test]
    fn blocks_match_r() {
        let found = factorial(&[3, 2], &lost(), Scale::Difference).unwrap();
        let expected = [536.001222222, 74.297619048, 63.333927739, 7.045, 1.945];
        for (term, squares) in found.terms.iter().zip(expected) {
            close(term.squares, squares);
        }
        assert_eq!(found.terms[3].source, Source::Blocks);
        assert!((found.terms[3].p_value.unwrap() / 0.002191 - 1.0).abs() < 1e-3);
        close(found.error.powi(2), 0.243125);
        let of = |found: Contrast, point: f64, low: f64, high: f64| {
            let interval = found.interval(0.95);
            close(interval.point, point);
            close(interval.low, low);
            close(interval.high, high);
        };
        of(found.main(0, 0), -6.145833333333, -6.564251903177, -5.727414763490);
        of(found.main(1, 0), -2.194444444444, -2.483920091487, -1.904968797401);
        of(found.interaction((0, 1), (1, 0)), 1.890277777778, 1.457790808964, 2.322764746592);
        // coef(lm(v ~ blk + a*b, contrasts=list(a="contr.treatment"))) has this change, the difference a2 - a1.
        close(found.change(0, 0, 1, None).point, -1.6625 + 6.145833333333);
    }

    // R as above: l <- lm(log(v) ~ blk + a*b); drop1(l, .~., test="F"); confint(l)
    #[test]
    fn logarithms_match_r() {
        let found = factorial(&[3, 2], &lost(), Scale::Ratio).unwrap();
        for (term, squares) in found.terms.iter().zip([1.602302705921, 0.183385911636, 0.077320233764]) {
            close(term.squares, squares);
        }
        let effect = found.main(0, 0).interval(0.95);
        close(effect.low, -0.3984863181299);
        close(effect.high, -0.34469901773924);
        let ratio = found.main(0, 0).ratio(0.95);
        close(ratio.low, (-0.3984863181299f64).exp());
    }

    // R 4.2.2: d <- expand.grid(k=0:1, j=0:2, i=0:1, blk=0:2)
    // d$v <- with(d, 100 + 7*i + 5*j*j + 3*k + 2*i*j - i*j*k + ((i*13+j*7+k*5+blk*11) %% 9)/4), without (i 1, j 2, k 0,
    // blk 1) and (i 0, j 0, k 1, blk 2); all factors except v, contr.sum; drop1(lm(v ~ blk + i*j*k, d), .~., test="F")
    #[test]
    fn three_factors_match_r() {
        let mut trials = Vec::new();
        for n in 0..36 {
            let (k, j, i, block) = (n % 2, n / 2 % 3, n / 6 % 2, n / 12);
            if (i, j, k, block) == (1, 2, 0, 1) || (i, j, k, block) == (0, 0, 1, 2) {
                continue;
            }
            let noise = ((i * 13 + j * 7 + k * 5 + block * 11) % 9) as f64 / 4.0;
            let value = (100 + 7 * i + 5 * j * j + 3 * k + 2 * i * j) as f64 - (i * j * k) as f64 + noise;
            trials.push(Trial { levels: vec![i, j, k], block: block as u32, value });
        }
        let found = factorial(&[2, 3, 2], &trials, Scale::Difference).unwrap();
        let expected = [
            ((Source::Main, vec![0]), 581.299204193),
            ((Source::Main, vec![1]), 2572.467569229),
            ((Source::Main, vec![2]), 55.092682453),
            ((Source::Interaction, vec![0, 1]), 11.181639013),
            ((Source::Interaction, vec![0, 2]), 5.875679348),
            ((Source::Interaction, vec![1, 2]), 1.085485167),
            ((Source::Higher, vec![]), 0.207152562),
            ((Source::Blocks, vec![]), 0.230590062),
            ((Source::Error, vec![]), 9.894409938),
        ];
        assert_eq!(found.error_df, 20);
        for (source, squares) in expected {
            close(
                found.terms.iter().find(|term| (term.source, term.factors.clone()) == source).unwrap().squares,
                squares,
            );
        }
    }

    #[test]
    fn changes_are_differences_of_means() {
        let found = factorial(&[2, 2], &workstation(), Scale::Difference).unwrap();
        close(found.change(0, 0, 1, None).point, 43.0);
        close(found.change(0, 1, 0, None).point, -43.0);
        close(found.change(0, 0, 1, Some((1, 0))).point, 33.0);
        close(found.change(0, 0, 1, Some((1, 1))).point, 53.0);
        // Standard error of the difference between two groups of 6 trials: sqrt(12.75 * (1/6 + 1/6)).
        close(found.change(0, 0, 1, None).standard_error, (12.75f64 / 3.0).sqrt());
        close(found.change(0, 0, 1, Some((1, 1))).standard_error, (12.75f64 * 2.0 / 3.0).sqrt());
        // Expected: (t(.975, 8) + t(.8, 8)) * se; scipy 1.17 gives 2.306004135204166 and 0.8888895176660304.
        close(
            found.change(0, 0, 1, None).detectable(0.95, 0.8),
            (2.306004135204166 + 0.8888895176660304) * 4.25f64.sqrt(),
        );
    }

    #[test]
    fn refuses_data_that_cannot_be_analyzed() {
        let said =
            |levels: &[usize], trials: &[Trial], scale| factorial(levels, trials, scale).unwrap_err().to_string();
        let some = workstation();
        let table = [
            (
                said(&[2, 2], &some[..9], Scale::Difference),
                "1 of 4 design points has no trial: the factors are not fully crossed",
            ),
            (
                said(&[2, 2], &[], Scale::Difference),
                "4 of 4 design points have no trial: the factors are not fully crossed",
            ),
            (said(&[30, 30], &[], Scale::Difference), "900 design points; the limit is 256"),
            (
                said(&[usize::MAX, 3], &[], Scale::Difference),
                &format!("{} design points; the limit is 256", usize::MAX),
            ),
        ];
        for (found, expected) in table {
            assert_eq!(found, expected);
        }
        let with = |value: f64| {
            let mut trials = workstation();
            trials[3].value = value;
            trials
        };
        for value in [f64::NAN, f64::INFINITY, 1e300] {
            assert_eq!(factorial(&[2, 2], &with(value), Scale::Difference), Err(BAD_VALUE.to_owned()), "{value}");
        }
        assert_eq!(factorial(&[2, 2], &with(0.0), Scale::Ratio), Err(BAD_VALUE.to_owned()));
        let same = workstation().into_iter().map(|trial| Trial { value: 1e9 + 1e-7, ..trial }).collect::<Vec<_>>();
        assert_eq!(factorial(&[2, 2], &same, Scale::Difference), Err("every trial has the same value".to_owned()));
    }

    #[test]
    fn does_not_separate_blocks_without_common_points() {
        let mut trials = workstation();
        trials.iter_mut().for_each(|trial| trial.block = trial.levels[0] as u32);
        let found = factorial(&[2, 2], &trials, Scale::Difference).unwrap();
        assert_eq!((found.blocks, found.error_df), (1, 8));
        close(found.terms[0].squares, 5547.0);
    }

    #[test]
    fn detects_uneven_scatter_between_points() {
        let mut rng = Rng::new(5);
        let mut uneven = |spread: f64| {
            let value = |point: usize, rng: &mut Rng| rng.normal() * if point == 3 { spread } else { 1.0 };
            let trials = (0..32).map(|i| {
                let point = i % 4;
                Trial { levels: vec![point / 2, point % 2], block: 0, value: value(point, &mut rng) }
            });
            factorial(&[2, 2], &trials.collect::<Vec<_>>(), Scale::Difference).unwrap().uneven().unwrap()
        };
        let (ratio, p) = uneven(10.0);
        assert!(ratio > 20.0 && p < 0.01, "{ratio} {p}");
        let alarms = (0..200).filter(|_| uneven(1.0).1 < 0.05).count();
        assert!(alarms <= 16, "{alarms} of 200");
        let once = factorial(&[2, 2], &workstation()[..10], Scale::Difference).unwrap();
        assert_eq!(once.uneven(), None, "one trial of a point has no spread");
    }

    #[test]
    #[should_panic(expected = "sum to zero")]
    fn rejects_weights_that_do_not_sum_to_zero() {
        factorial(&[2, 2], &workstation(), Scale::Difference).unwrap().contrast(&[1.0, 0.0, 0.0, 0.0]);
    }

    /// Designs of up to four factors. Some designs have lost random trials.
    fn designs() -> impl Strategy<Value = (Vec<usize>, Vec<Trial>)> {
        let sizes = prop::collection::vec(1usize..4, 1..5);
        (sizes, 2u32..4, any::<u64>(), any::<bool>()).prop_map(|(levels, blocks, seed, lossy)| {
            let mut rng = Rng::new(seed);
            let points = levels.iter().product::<usize>();
            let mut trials = Vec::new();
            for block in 0..blocks {
                for point in 0..points {
                    if lossy && block > 0 && rng.below(6) == 0 {
                        continue;
                    }
                    let mut rest = point;
                    let mut at = levels.iter().rev().map(|&count| {
                        let level = rest % count;
                        rest /= count;
                        level
                    });
                    let mut at = at.by_ref().collect::<Vec<_>>();
                    at.reverse();
                    trials.push(Trial { levels: at, block, value: 50.0 + 10.0 * rng.normal() });
                }
            }
            (levels, trials)
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn shares_sum_to_one_and_equal_numbers_to_the_total((levels, trials) in designs()) {
            let Ok(found) = factorial(&levels, &trials, Scale::Difference) else { return Ok(()) };
            prop_assert!((found.terms.iter().map(|term| term.share).sum::<f64>() - 1.0).abs() < 1e-9);
            prop_assert!(found.terms.iter().all(|term| term.share >= 0.0));
            let df = found.terms.iter().map(|term| term.df).sum::<usize>();
            prop_assert_eq!(df, trials.len() - 1);
            // The textbook's sums add up if every block has every point, or if blocks are not separated. Equal numbers
            // of trials are not enough: each of three points may lack a different one of three blocks.
            let points = levels.iter().product::<usize>();
            if found.is_equal && (found.blocks == 1 || found.blocks * points == trials.len()) {
                let values = trials.iter().map(|trial| trial.value).collect::<Vec<_>>();
                let total = interval::variance(&values).unwrap() * (values.len() - 1) as f64;
                let sum = found.terms.iter().map(|term| term.squares).sum::<f64>();
                prop_assert!((sum / total - 1.0).abs() < 1e-9, "{} {}", sum, total);
            }
        }

        #[test]
        fn unit_and_offset_do_not_matter((levels, trials) in designs(), factor in 0.001f64..1000.0, shift in -1e3f64..1e3) {
            let moved = trials.iter().map(|trial| Trial { value: trial.value * factor + shift, ..trial.clone() });
            match (factorial(&levels, &trials, Scale::Difference), factorial(&levels, &moved.collect::<Vec<_>>(), Scale::Difference)) {
                (Ok(before), Ok(after)) => {
                    for (before, after) in before.terms.iter().zip(&after.terms) {
                        prop_assert!((before.share - after.share).abs() < 1e-6, "{:?} {:?}", before, after);
                    }
                }
                (before, after) => prop_assert_eq!(before.err(), after.err()),
            }
        }

        #[test]
        fn block_effects_do_not_change_factor_effects((levels, trials) in designs(), slow in -40.0f64..40.0) {
            let Ok(before) = factorial(&levels, &trials, Scale::Difference) else { return Ok(()) };
            if before.blocks == 1 {
                return Ok(());
            }
            let drifted = trials.iter().map(|t| Trial { value: t.value + slow * f64::from(t.block), ..t.clone() });
            let after = factorial(&levels, &drifted.collect::<Vec<_>>(), Scale::Difference).unwrap();
            prop_assert!((before.error / after.error - 1.0).abs() < 1e-6);
            for (factor, &count) in levels.iter().enumerate() {
                for level in 0..count {
                    prop_assert!((before.main(factor, level).point - after.main(factor, level).point).abs() < 1e-7);
                }
            }
        }

        #[test]
        fn main_effects_of_a_factor_cancel((levels, trials) in designs()) {
            let Ok(found) = factorial(&levels, &trials, Scale::Difference) else { return Ok(()) };
            for (factor, &count) in levels.iter().enumerate() {
                let sum = (0..count).map(|level| found.main(factor, level).point).sum::<f64>();
                prop_assert!(sum.abs() < 1e-7, "{sum}");
            }
        }
    }
}
