//! Special functions for intervals: gamma, beta and the distributions based on them.

use std::f64::consts::PI;

/// Replaces zeros in continued fractions.
const TINY: f64 = 1e-300;

/// Difference between ln(x!) and Stirling's formula, for `x > 0`. Source: Loader 2000, Fast and Accurate Computation of
/// Binomial Probabilities; series: Abramowitz & Stegun 6.1.41.
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

/// Logarithm of the gamma function for `x > 0`, by Stirling's series. A small `x` is first raised by Γ(x+1) = x·Γ(x).
pub(crate) fn ln_gamma(x: f64) -> f64 {
    let (mut x, mut product) = (x, 1.0);
    while x < 16.0 {
        product *= x;
        x += 1.0;
    }
    (x - 0.5) * x.ln() - x + 0.5 * (2.0 * PI).ln() + stirling_series(x) - product.ln()
}

/// Returns `x·ln(x/m) + m - x` without cancellation for `x` near `m`. Source: Loader 2000.
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

/// Regularized incomplete beta function I_x(a, b), for `x` and `y = 1 - x`, so that neither tail loses digits.
/// Continued fraction: DLMF 8.17.22, evaluated by Lentz's method.
pub(crate) fn incomplete_beta(a: f64, b: f64, x: f64, y: f64) -> f64 {
    match (x, y) {
        (..=0.0, _) => 0.0,
        (_, ..=0.0) => 1.0,
        _ if x > (a + 1.0) / (a + b + 2.0) => 1.0 - incomplete_beta_below(b, a, y, x),
        _ => incomplete_beta_below(a, b, x, y),
    }
}

/// Returns [`incomplete_beta`] for `x` below the mean. The fraction converges in about √(the larger parameter) steps.
fn incomplete_beta_below(a: f64, b: f64, x: f64, y: f64) -> f64 {
    let n = a + b;
    let exponent = stirling_error(n) - stirling_error(a) - stirling_error(b) - deviance(a, n * x) - deviance(b, n * y);
    // `front` is x^a·y^b / (a·B(a, b)).
    let front = (b / (2.0 * PI * a * n)).sqrt() * exponent.exp();
    // `d` starts as 1 - n·x / (a + 1), without cancellation for x near 1.
    let d = (1.0 - b + n * y) / (a + 1.0);
    let fraction = continued_fraction(1.0, d, |m| {
        let even = m * (b - m) * x / ((a + 2.0 * m - 1.0) * (a + 2.0 * m));
        let odd = -(a + m) * (n + m) * x / ((a + 2.0 * m) * (a + 2.0 * m + 1.0));
        [(even, 1.0), (odd, 1.0)]
    });
    (front * fraction).min(1.0)
}

/// Evaluates a continued fraction by Lentz's method (Lentz 1976; Thompson & Barnett 1986). `c` and `d` are its state
/// after the first denominator. `terms` returns the next numerators with their denominators, for 1, 2 and so on.
fn continued_fraction<const N: usize>(c: f64, d: f64, mut terms: impl FnMut(f64) -> [(f64, f64); N]) -> f64 {
    let nonzero = |value: f64| if value.abs() < TINY { TINY } else { value };
    let (mut c, mut d) = (c, nonzero(d).recip());
    let mut fraction = d;
    for index in 1..1_000_000 {
        let mut last = 1.0_f64;
        for (numerator, denominator) in terms(f64::from(index)) {
            d = nonzero(denominator + numerator * d).recip();
            c = nonzero(denominator + numerator / c);
            last = c * d;
            fraction *= last;
        }
        if (last - 1.0).abs() < f64::EPSILON {
            break;
        }
    }
    fraction
}

pub(crate) fn binomial_cdf(k: u64, n: u64, q: f64) -> f64 {
    if k >= n { 1.0 } else { incomplete_beta((n - k) as f64, (k + 1) as f64, 1.0 - q, q) }
}

/// Probability P(X ≥ k) for X binomial(n, q), precise for small results.
pub(crate) fn binomial_upper(k: u64, n: u64, q: f64) -> f64 {
    match k {
        0 => 1.0,
        _ if k > n => 0.0,
        _ => incomplete_beta(k as f64, (n - k + 1) as f64, q, 1.0 - q),
    }
}

/// Probability P(X ≤ x) for X standard normal.
pub fn normal_cdf(x: f64) -> f64 {
    let upper = normal_upper(x.abs());
    if x > 0.0 { 1.0 - upper } else { upper }
}

/// Probability P(X > x) for X standard normal and `x >= 0`, precise for small results.
fn normal_upper(x: f64) -> f64 {
    let density = (-0.5 * x * x).exp() / (2.0 * PI).sqrt();
    if x < 3.0 {
        // Marsaglia 2004, Evaluating the Normal Distribution: φ(x)·(x + x³/3 + x⁵/(3·5) + ...).
        let (mut term, mut sum, mut k) = (x, x, 1.0);
        while term > sum * f64::EPSILON * 0.5 {
            k += 2.0;
            term *= x * x / k;
            sum += term;
        }
        return 0.5 - density * sum;
    }
    // Laplace's continued fraction (Abramowitz & Stegun 26.2.14), from the far end: 200 terms are exact for x >= 3.
    density / (1..=200).rev().fold(x, |rest, k| x + f64::from(k) / rest)
}

pub(crate) fn normal_quantile(p: f64) -> f64 {
    symmetric_quantile(p, normal_distance)
}

/// Quantile of a distribution symmetric about 0; `distance(p)` is its upper quantile for a tail probability p < 0.5.
fn symmetric_quantile(p: f64, distance: impl Fn(f64) -> f64) -> f64 {
    let size = match p.min(1.0 - p) {
        tail if tail <= 0.0 => f64::INFINITY,
        0.5 => 0.0,
        tail => distance(tail),
    };
    if p < 0.5 { -size } else { size }
}

fn normal_distance(p: f64) -> f64 {
    // Abramowitz & Stegun 26.2.23 is accurate to 4.5e-4; each step of Halley's method triples the digits.
    let t = (-2.0 * p.ln()).sqrt();
    let mut x =
        t - (2.515_517 + t * (0.802_853 + t * 0.010_328)) / (1.0 + t * (1.432_788 + t * (0.189_269 + t * 0.001_308)));
    for _ in 0..3 {
        let density = (-0.5 * x * x).exp() / (2.0 * PI).sqrt();
        // `x` is minus the quantile, so that the upper tail at x is p.
        let step = (normal_cdf(-x) - p) / density;
        x += step / (1.0 - 0.5 * x * step);
    }
    x
}

/// Probability P(X > f) for Fisher's F with `above` and `below` degrees of freedom, precise for small results.
pub(crate) fn f_upper(f: f64, above: f64, below: f64) -> f64 {
    // The arguments are below / (below + above·f) and its complement, each without cancellation.
    let scaled = above * f / below;
    incomplete_beta(0.5 * below, 0.5 * above, 1.0 / (1.0 + scaled), scaled / (1.0 + scaled))
}

/// Probability P(X > t) for Student's t with `df` degrees of freedom and `t >= 0`, precise for small results.
fn t_upper(t: f64, df: f64) -> f64 {
    0.5 * f_upper(t * t, 1.0, df)
}

/// Probability P(X ≤ t) for Student's t with `df` degrees of freedom.
pub(crate) fn t_cdf(t: f64, df: f64) -> f64 {
    let upper = t_upper(t.abs(), df);
    if t > 0.0 { 1.0 - upper } else { upper }
}

/// Probability that a Student's t estimate with this standard `error` exceeds its mean by `distance`. With an error of 0,
/// only the sign of the distance counts.
pub(crate) fn t_tail(distance: f64, error: f64, df: f64) -> f64 {
    match error > 0.0 {
        true => t_cdf(-distance / error, df),
        false if distance > 0.0 => 0.0,
        // If all values are zero, they show no difference and are as flat as possible.
        false if distance == 0.0 => 0.5,
        false => 1.0,
    }
}

pub(crate) fn t_quantile(p: f64, df: f64) -> f64 {
    symmetric_quantile(p, |tail| t_distance(tail, df))
}

fn t_distance(p: f64, df: f64) -> f64 {
    // Newton's method on ln(upper tail) over ln(t), nearly a line, with bisection if a step leaves the bracket.
    let (mut low, mut high) = (0.0_f64, f64::INFINITY);
    let mut t = -normal_quantile(p);
    let log_scale = ln_gamma(0.5 * (df + 1.0)) - ln_gamma(0.5 * df) - 0.5 * (df * PI).ln();
    for _ in 0..200 {
        let upper = t_upper(t, df);
        if upper > p {
            low = t
        } else {
            high = t
        }
        let density = (log_scale - 0.5 * (df + 1.0) * (t * t / df).ln_1p()).exp();
        let mut next = t * ((upper / p).ln() * upper / (t * density)).exp();
        if !(next > low && next < high) {
            next = if high.is_finite() { 0.5 * (low + high) } else { 2.0 * t };
        }
        if (next - t).abs() <= 2.0 * f64::EPSILON * t {
            break;
        }
        t = next;
    }
    t
}

/// Returns `x^a·e^-x / Γ(a + 1)` for `a > 0` and `x > 0`, without cancellation for large values. Source: Loader 2000.
fn poisson_term(a: f64, x: f64) -> f64 {
    (-stirling_error(a) - deviance(a, x)).exp() / (2.0 * PI * a).sqrt()
}

/// Regularized incomplete gamma functions P(a, x) and Q(a, x) = 1 - P for `a > 0`, each precise for small results.
/// Source: DLMF 8.11.4 (series) below the mean, and 8.9.2 (continued fraction, by Lentz's method) above it.
pub(crate) fn incomplete_gamma(a: f64, x: f64) -> (f64, f64) {
    if x <= 0.0 {
        return (0.0, 1.0);
    }
    if x.is_infinite() {
        return (1.0, 0.0);
    }
    let term = poisson_term(a, x);
    if x < a + 1.0 {
        let (mut sum, mut part, mut k) = (1.0, 1.0, a);
        while part > sum * f64::EPSILON * 0.25 {
            k += 1.0;
            part *= x / k;
            sum += part;
        }
        let lower = (term * sum).min(1.0);
        return (lower, 1.0 - lower);
    }
    let mut b = x + 1.0 - a;
    let fraction = continued_fraction(1.0 / TINY, b, |i| {
        b += 2.0;
        [(-i * (i - a), b)]
    });
    let upper = (term * a * fraction).min(1.0);
    (1.0 - upper, upper)
}

/// Quantile `p` of the gamma distribution with shape `a` and scale 1.
pub(crate) fn gamma_quantile(a: f64, p: f64) -> f64 {
    if p <= 0.0 {
        return 0.0;
    }
    if p >= 1.0 {
        return f64::INFINITY;
    }
    // The first guess is from Wilson & Hilferty 1931 in the middle and from the first term of the series near zero.
    let wide = 1.0 / (9.0 * a);
    let cube = 1.0 - wide + normal_quantile(p) * wide.sqrt();
    let near_zero = (p.ln() + ln_gamma(a + 1.0)) / a;
    let mut log_x = if cube > 0.3 && a > 0.5 { (a * cube * cube * cube).ln() } else { near_zero };
    // Newton's method on the logarithm of the smaller tail over ln x, with bisection if a step leaves the bracket.
    let (mut low, mut high) = (f64::NEG_INFINITY, f64::INFINITY);
    for _ in 0..200 {
        let x = log_x.exp();
        if x <= 0.0 {
            return 0.0;
        }
        let (lower, upper) = incomplete_gamma(a, x);
        if lower > p {
            high = log_x
        } else {
            low = log_x
        }
        let slope = a * poisson_term(a, x);
        let step = if p <= 0.5 { (lower / p).ln() * lower / slope } else { -(upper / (1.0 - p)).ln() * upper / slope };
        let mut next = log_x - step;
        if !(next > low && next < high) {
            next = match (low.is_finite(), high.is_finite()) {
                (true, true) => 0.5 * (low + high),
                (true, false) => low + 1.0,
                _ => high - 1.0,
            };
        }
        if (next - log_x).abs() <= 2.0 * f64::EPSILON * log_x.abs().max(1.0) {
            return next.exp();
        }
        log_x = next;
    }
    log_x.exp()
}

/// Probability P(X > x) for X chi-square with `df` degrees of freedom, precise for small results.
pub(crate) fn chi_square_upper(x: f64, df: f64) -> f64 {
    incomplete_gamma(0.5 * df, 0.5 * x).1
}

#[cfg(test)]
mod tests {
    use super::*;

    fn close(found: f64, expected: f64, allowed: f64, what: &str) {
        let error = if expected == 0.0 { found.abs() } else { (found / expected - 1.0).abs() };
        assert!(error <= allowed, "{what}: {found:?}, expected {expected:?}");
    }

    // scipy 1.17: scipy.stats.norm.cdf(x), scipy.stats.norm.ppf(p)
    #[test]
    fn normal_matches_scipy() {
        let table = [
            (-10.0, 7.619_853_024_160_47e-24),
            (-5.0, 2.866_515_718_791_933e-7),
            (-1.5, 0.066_807_201_268_858_07),
            (0.0, 0.5),
            (0.3, 0.617_911_422_188_952_6),
            (2.0, 0.977_249_868_051_820_8),
            (6.0, 0.999_999_999_013_412_3),
        ];
        for (x, expected) in table {
            close(normal_cdf(x), expected, 1e-13, &format!("cdf({x})"));
        }
        let table = [
            (1e-300, -37.047_096_299_361_2),
            (1e-12, -7.034_483_825_301_131),
            (0.001, -3.090_232_306_167_813),
            (0.025, -1.959_963_984_540_054_5),
            (0.5, 0.0),
            (0.8, 0.841_621_233_572_914_3),
            (0.975, 1.959_963_984_540_054),
            (0.9999, 3.719_016_485_455_709),
        ];
        for (p, expected) in table {
            close(normal_quantile(p), expected, 1e-13, &format!("quantile({p})"));
        }
    }

    // scipy 1.17: scipy.stats.t.ppf(p, df), scipy.stats.t.cdf(x, df)
    #[test]
    fn student_matches_scipy() {
        let table = [
            (0.975, 1.0, 12.706_204_736_174_694),
            (0.975, 2.0, 4.302_652_729_749_462),
            (0.975, 2.5, 3.574_654_842_003_681_7),
            (0.9, 7.0, 1.414_923_927_650_508_6),
            (0.975, 9.0, 2.262_157_162_798_205),
            (0.995, 9.0, 3.249_835_541_592_126),
            (0.975, 29.0, 2.045_229_642_132_703),
            (0.975, 1e6, 1.959_966_356_814_107),
            (0.025, 9.0, -2.262_157_162_798_205_3),
            (0.9995, 3.0, 12.923_978_636_687_961),
            (0.6, 0.7, 0.356_031_365_234_680_15),
        ];
        for (p, df, expected) in table {
            close(t_quantile(p, df), expected, 1e-11, &format!("quantile({p}, {df})"));
        }
        let table = [
            (2.0, 1.0, 0.852_416_382_349_566_7),
            (-2.0, 5.0, 0.050_969_739_414_929_174),
            (3.5, 12.3, 0.997_884_732_382_982_9),
            (-40.0, 4.0, 1.167_008_161_300_633_9e-6),
            (0.0, 3.0, 0.5),
        ];
        for (x, df, expected) in table {
            close(t_cdf(x, df), expected, 1e-12, &format!("cdf({x}, {df})"));
        }
    }

    // scipy 1.17: scipy.special.gammainc(a, x), gammaincc(a, x)
    #[test]
    fn incomplete_gamma_matches_scipy() {
        let table = [
            (4.0, 0.001, 4.163_334_721_825_486e-14, 0.999_999_999_999_958_4),
            (4.0, 4.0, 0.566_529_879_633_291, 0.433_470_120_366_709),
            (4.0, 30.0, 0.999_999_999_533_896_8, 4.661_032_000_779_303e-10),
            (0.5, 0.1, 0.345_279_153_981_423_17, 0.654_720_846_018_576_8),
            (0.01, 1e-5, 0.896_336_798_267_196_9, 0.103_663_201_732_802_81),
            (1e4, 1e4, 0.501_329_808_339_955_2, 0.498_670_191_660_044_8),
            (1e4, 9.5e3, 1.862_454_651_795_158_3e-7, 0.999_999_813_754_534_8),
            (1e4, 1.06e4, 0.999_999_998_037_807_5, 1.962_192_482_133_041e-9),
            (300.0, 200.0, 2.711_468_443_343_099e-11, 0.999_999_999_972_885_4),
        ];
        for (a, x, lower, upper) in table {
            let found = incomplete_gamma(a, x);
            close(found.0, lower, 2e-12, &format!("P({a}, {x})"));
            close(found.1, upper, 2e-12, &format!("Q({a}, {x})"));
        }
        assert_eq!((incomplete_gamma(3.0, 0.0), incomplete_gamma(3.0, f64::INFINITY)), ((0.0, 1.0), (1.0, 0.0)));
    }

    // scipy 1.17: scipy.special.gammaincinv(a, p)
    #[test]
    fn gamma_quantile_matches_scipy() {
        let table = [
            (4.0, 0.5, 3.672_060_748_850_897),
            (4.0, 1e-10, 0.007_009_088_457_179_529),
            (0.1, 0.3, 3.586_086_018_410_967_4e-6),
            (1000.0, 0.999, 1_100.578_098_293_314_5),
            (0.01, 0.5, 4.465_535_018_910_562e-31),
            (4.0, 0.999_999, 21.350_456_963_238_944),
        ];
        for (a, p, expected) in table {
            close(gamma_quantile(a, p), expected, 1e-10, &format!("quantile({p}) of shape {a}"));
        }
    }

    // scipy 1.17: scipy.stats.chi2.sf(x, df)
    #[test]
    fn chi_square_matches_scipy() {
        let table = [
            (3.84, 1.0, 0.050_043_521_248_705_19),
            (20.0, 10.0, 0.029_252_688_076_961_124),
            (120.0, 100.0, 0.084_406_681_093_691_77),
            (1e3, 999.0, 0.485_131_489_274_901_46),
        ];
        for (x, df, expected) in table {
            close(chi_square_upper(x, df), expected, 1e-12, &format!("upper({x}, {df})"));
        }
    }
}
