//! Formats numbers for sentences, with three or four digits, a unit of suitable size and `±`.

pub use config::render_keys::grouped;

use crate::findings::Estimate;

/// Returns the divisor and the name of the unit that suits the size of `value`, given in a [`study::Metric::unit`].
pub fn scale(unit: &str, value: f64) -> (f64, &'static str) {
    let steps: &[(f64, &str)] = match unit {
        "ns" => &[(1e9, "s"), (1e6, "ms"), (1e3, "µs"), (1.0, "ns")],
        "1/s" => &[(1e6, "M/s"), (1e3, "k/s"), (1.0, "/s")],
        "bytes/s" => &[(1_073_741_824.0, "GiB/s"), (1_048_576.0, "MiB/s"), (1024.0, "KiB/s"), (1.0, "B/s")],
        "bytes" => &[(1_073_741_824.0, "GiB"), (1_048_576.0, "MiB"), (1024.0, "KiB"), (1.0, "B")],
        _ => &[(1.0, "")],
    };
    // A value that would round up to 1000 uses the next unit.
    let size = value.abs() * 1.0005;
    steps.iter().copied().find(|(divisor, _)| size >= *divisor).unwrap_or(steps[steps.len() - 1])
}

/// Number of decimals that gives four significant digits for values that start with 1, and three for others.
fn decimals(value: f64) -> usize {
    if value == 0.0 || !value.is_finite() {
        return 0;
    }
    let exponent = value.abs().log10().floor();
    let digits = if value.abs() / 10f64.powf(exponent) < 2.0 { 3.0 } else { 2.0 };
    (digits - exponent).clamp(0.0, 6.0) as usize
}

fn with_unit(number: String, name: &str) -> String {
    if name.is_empty() { number } else { format!("{number} {name}") }
}

/// Formats a value with its unit: `12.3 µs`.
pub fn quantity(value: f64, unit: &str) -> String {
    let (divisor, name) = scale(unit, value);
    let scaled = value / divisor;
    let decimals = if unit == "1" && scaled.fract() == 0.0 { 0 } else { decimals(scaled) };
    with_unit(format!("{scaled:.decimals$}"), name)
}

/// Formats a lower bound: `≥ 1.2 s`.
pub fn at_least(value: f64, unit: &str) -> String {
    format!("≥ {}", quantity(value, unit))
}

/// Formats an estimate with the half-width of its interval: `105.3 ±0.7 k/s`.
pub fn estimate(estimate: &Estimate, unit: &str) -> String {
    let (divisor, name) = scale(unit, estimate.point);
    let (point, half) = (estimate.point / divisor, estimate.half_width() / divisor);
    // The result has enough decimals for one digit of the half-width, but at most two more than the point needs.
    let own = if half == 0.0 && point.fract() == 0.0 { 0 } else { decimals(point) };
    let wanted = if half > 0.0 { (-half.log10().floor()).clamp(0.0, 9.0) as usize } else { 0 };
    let decimals = own.max(wanted.min(own + 2));
    let text = format!("{half:.decimals$}");
    let is_hidden = half > 0.0 && text.trim_matches(['0', '.']).is_empty();
    let half = if is_hidden { format!("<{}", 10f64.powi(-(decimals as i32))) } else { text };
    with_unit(format!("{point:.decimals$} ±{half}"), name)
}

/// Formats a ratio as a relation: `11 % [9, 13] below`, `×3.40 [3.10, 3.70] that of`.
pub(crate) fn relation(ratio: &Estimate) -> String {
    let is_percent = ratio.low > 0.5 && ratio.high < 2.0;
    let (word, numbers) = match (is_percent, ratio.point < 1.0) {
        (true, true) => (" % below", [ratio.point, ratio.high, ratio.low].map(|ratio| (1.0 - ratio) * 100.0)),
        (true, false) => (" % above", [ratio.point, ratio.low, ratio.high].map(|ratio| (ratio - 1.0) * 100.0)),
        (false, _) => (" that of", [ratio.point, ratio.low, ratio.high]),
    };
    let [point, low, high] = digits(numbers, if is_percent { 1.0 } else { 0.01 });
    let (times, unit, word) = if is_percent { ("", " %", &word[2..]) } else { ("×", "", word) };
    format!("{times}{point}{unit} [{low}, {high}]{word}")
}

/// Whether a ratio is the end of an interval that waiting requests make unbounded. Measured ratios are below 1e9.
pub(crate) fn is_unbounded(ratio: f64) -> bool {
    ratio > 1e9
}

fn digits(numbers: [f64; 3], finest: f64) -> [String; 3] {
    let half = (numbers[2] - numbers[1]).abs() / 2.0;
    // A half-width due only to rounding does not determine the digits.
    let wanted = if half > 1e-9 * numbers[0].abs() { (-half.log10().floor()).clamp(0.0, 4.0) as usize } else { 1 };
    let decimals = wanted.max(if finest < 1.0 { 2 } else { 0 });
    numbers.map(|number| {
        let text = if is_unbounded(number) { "∞".to_owned() } else { format!("{number:.decimals$}") };
        if text.trim_matches(['-', '0', '.']).is_empty() { text.trim_start_matches('-').to_owned() } else { text }
    })
}

/// Formats a fraction in percent with two significant digits, or with more if more precede the decimal point: `2.1 %`.
pub fn percent(fraction: f64) -> String {
    let value = fraction * 100.0;
    let decimals = [10.0, 1.0, 0.1].iter().filter(|step| value != 0.0 && value.abs() < **step).count();
    format!("{value:.decimals$} %")
}

/// Returns the ratio of a part to a whole; `None` unless the whole is above zero.
pub fn ratio(part: f64, whole: f64) -> Option<f64> {
    (whole > 0.0).then(|| part / whole)
}

/// Sums counts with saturation, so that forged counts in a file cannot cause a panic.
pub fn total(counts: impl IntoIterator<Item = u64>) -> u64 {
    counts.into_iter().fold(0, u64::saturating_add)
}

/// Formats a count with its noun: `1 trial`, `8 trials`.
pub fn count(n: u64, noun: &str) -> String {
    match (n, noun.strip_suffix('y')) {
        (1, _) => format!("1 {noun}"),
        (n, Some(stem)) => format!("{n} {stem}ies"),
        (n, None) if noun.ends_with("ch") => format!("{n} {noun}es"),
        (n, None) => format!("{n} {noun}s"),
    }
}

/// Formats a p-value for tables: `0.035`, `< 0.001`.
pub fn p_value(p: f64) -> String {
    if p < 0.001 { "< 0.001".to_owned() } else { format!("{p:.3}") }
}

/// Whether a chart can draw the value, so that axis arithmetic neither overflows nor underflows.
pub fn drawable(value: f64) -> bool {
    value == 0.0 || (1e-150..=1e150).contains(&value.abs())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_are_grouped() {
        assert_eq!(
            [0, 999, 1_000, 18_254, u64::MAX].map(grouped),
            ["0", "999", "1,000", "18,254", "18,446,744,073,709,551,615"]
        );
    }

    #[test]
    fn nouns_are_counted() {
        let counted = [(1, "search"), (2, "search"), (0, "capacity"), (3, "block")].map(|(n, noun)| count(n, noun));
        assert_eq!(counted, ["1 search", "2 searches", "0 capacities", "3 blocks"]);
    }

    #[test]
    fn quantities() {
        for (value, unit, text) in [
            (0.0, "ns", "0 ns"),
            (850.0, "ns", "850 ns"),
            (12_345.0, "ns", "12.35 µs"),
            (23_456.0, "ns", "23.5 µs"),
            (999_999.0, "ns", "1.000 ms"),
            (4.2e9, "ns", "4.20 s"),
            (123_456.0, "1/s", "123.5 k/s"),
            (812.0, "1/s", "812 /s"),
            (2.5e6, "1/s", "2.50 M/s"),
            (5_242_880.0, "bytes", "5.00 MiB"),
            (5_242_880.0, "bytes/s", "5.00 MiB/s"),
            (40.0, "1", "40"),
            (1.5, "1", "1.500"),
            (1e-12, "1", "0.000000"),
            (f64::NAN, "ns", "NaN ns"),
        ] {
            assert_eq!(quantity(value, unit), text, "{value} {unit}");
        }
    }

    #[test]
    fn relations() {
        for (point, low, high, text) in [
            (0.89, 0.87, 0.91, "11 % [9, 13] below"),
            (3.4, 3.1, 3.7, "×3.40 [3.10, 3.70] that of"),
            (2.66, 2.56, 1e217, "×2.66 [2.56, ∞] that of"),
            (2.66, 2.56, f64::INFINITY, "×2.66 [2.56, ∞] that of"),
        ] {
            assert_eq!(relation(&Estimate { point, low, high, level: 0.95, n: 8 }), text);
        }
    }

    #[test]
    fn estimates() {
        for (point, half, unit, text) in [
            (105_300.0, 700.0, "1/s", "105.3 ±0.7 k/s"),
            (105_300.0, 20.0, "1/s", "105.30 ±0.02 k/s"),
            (23_456.0, 1_234.0, "ns", "23.5 ±1.2 µs"),
            (23_456.0, 0.001, "ns", "23.456 ±<0.001 µs"),
            (900_000.0, 300_000.0, "ns", "900 ±300 µs"),
            (0.0, 0.0, "1", "0 ±0"),
            (0.25, 0.4, "1", "0.250 ±0.400"),
        ] {
            let value = Estimate { point, low: point - half, high: point + half, level: 0.95, n: 8 };
            assert_eq!(estimate(&value, unit), text);
        }
    }

    #[test]
    fn shares_and_counts() {
        let shares =
            [(0.0, "0 %"), (0.0213, "2.1 %"), (0.123, "12 %"), (1.5, "150 %"), (0.0042, "0.42 %"), (0.0001, "0.010 %")];
        for (value, text) in shares {
            assert_eq!(percent(value), text);
        }
        assert_eq!([count(1, "trial"), count(0, "trial"), count(2, "latency")], ["1 trial", "0 trials", "2 latencies"]);
    }
}
