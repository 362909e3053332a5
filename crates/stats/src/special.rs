//! Special functions behind the intervals: gamma, beta, and the distributions made of them.

use std::f64::consts::PI;

/// ln(x!) minus Stirling's formula for it, for `x > 0`. Source: Loader 2000, Fast and Accurate
/// Computation of Binomial Probabilities; series: Abramowitz & Stegun 6.1.41.
fn stirling_error(x: f64) -> f64 {
    if x < 16.0 {
        return ln_gamma(x + 1.0) - (0.5 * (2.0 * PI * x).ln() + x * x.ln() - x);
    }
    stirling_series(x)
}

fn stirling_series(x: f64) -> f64 {
    const TERMS: [f64; 7] =
        [1.0 / 12.0, -1.0 / 360.0, 1.0 / 1260.0, -1.0 / 1680.0, 1.0 / 1188.0, -691.0 / 360_360.0, 1.0 / 156.0];
    let square = 1.0 / (x * x);
    TERMS.iter().rev().fold(0.0, |sum, term| sum * square + term) / x
}

/// Natural logarithm of the gamma function for `x > 0`: Stirling's series, after moving small
/// arguments up by Γ(x+1) = x·Γ(x).
pub(crate) fn ln_gamma(x: f64) -> f64 {
    let (mut x, mut product) = (x, 1.0);
    while x < 16.0 {
        product *= x;
        x += 1.0;
    }
    (x - 0.5) * x.ln() - x + 0.5 * (2.0 * PI).ln() + stirling_series(x) - product.ln()
}

/// `x·ln(x/m) + m - x` without cancellation where `x` is near `m`. Source: Loader 2000.
fn deviance(x: f64, m: f64) -> f64 {
    if (x - m).abs() >= 0.1 * (x + m) {
        return x * (x / m).ln() + m - x;
    }
    let v = (x - m) / (x + m);
    let mut sum = (x - m) * v;
    let mut power = 2.0 * x * v;
    for j in 1..1000 {
        power *= v * v;
        let next = sum + power / f64::from(2 * j + 1);
        if next == sum {
            break;
        }
        sum = next;
    }
    sum
}

/// Regularised incomplete beta function I_x(a, b), given both `x` and `y = 1 - x` so that neither
/// tail loses digits. Continued fraction: DLMF 8.17.22, evaluated by Lentz's method.
pub(crate) fn incomplete_beta(a: f64, b: f64, x: f64, y: f64) -> f64 {
    if x <= 0.0 {
        return 0.0;
    }
    if y <= 0.0 {
        return 1.0;
    }
    if x > (a + 1.0) / (a + b + 2.0) {
        return 1.0 - incomplete_beta_below(b, a, y, x);
    }
    incomplete_beta_below(a, b, x, y)
}

/// [`incomplete_beta`] where `x` is below the mean, so that the fraction converges fast: in about
/// the square root of the larger parameter.
fn incomplete_beta_below(a: f64, b: f64, x: f64, y: f64) -> f64 {
    const TINY: f64 = 1e-300;
    let n = a + b;
    let exponent = stirling_error(n) - stirling_error(a) - stirling_error(b) - deviance(a, n * x) - deviance(b, n * y);
    // x^a·y^b / (a·B(a, b))
    let front = (b / (2.0 * PI * a * n)).sqrt() * exponent.exp();
    let (mut c, mut d) = (1.0, 1.0 - n * x / (a + 1.0));
    d = if d.abs() < TINY { TINY } else { d }.recip();
    let mut fraction = d;
    for m in 1..1_000_000 {
        let m = f64::from(m);
        let even = m * (b - m) * x / ((a + 2.0 * m - 1.0) * (a + 2.0 * m));
        let odd = -(a + m) * (n + m) * x / ((a + 2.0 * m) * (a + 2.0 * m + 1.0));
        let mut last = 1.0;
        for step in [even, odd] {
            d = 1.0 + step * d;
            d = if d.abs() < TINY { TINY } else { d }.recip();
            c = 1.0 + step / c;
            c = if c.abs() < TINY { TINY } else { c };
            last = c * d;
            fraction *= last;
        }
        if (last - 1.0_f64).abs() < f64::EPSILON {
            break;
        }
    }
    (front * fraction).min(1.0)
}

/// P(X ≤ k) for X binomial(n, q).
pub(crate) fn binomial_cdf(k: u64, n: u64, q: f64) -> f64 {
    if k >= n {
        return 1.0;
    }
    incomplete_beta((n - k) as f64, (k + 1) as f64, 1.0 - q, q)
}

/// P(X ≥ k) for X binomial(n, q), precise where it is small.
pub(crate) fn binomial_upper(k: u64, n: u64, q: f64) -> f64 {
    if k == 0 {
        return 1.0;
    }
    if k > n {
        return 0.0;
    }
    incomplete_beta(k as f64, (n - k + 1) as f64, q, 1.0 - q)
}
