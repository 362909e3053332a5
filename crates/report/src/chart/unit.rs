use analysis::number;

/// A round number with its unit, as short as possible: `10 µs`.
pub(crate) fn short(value: f64, unit: &str) -> String {
    let (divisor, name) = number::scale(unit, value);
    let text = format!("{:.3}", value / divisor);
    let text = text.trim_end_matches('0').trim_end_matches('.');
    if name.is_empty() { text.to_owned() } else { format!("{text} {name}") }
}

pub(crate) fn decimals(step: f64) -> usize {
    if step > 0.0 && step.is_finite() { (-(step.log10() + 1e-9).floor()).clamp(0.0, 9.0) as usize } else { 0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels() {
        for (value, unit, text) in [
            (10_000.0, "ns", "10 µs"),
            (1_500_000.0, "ns", "1.5 ms"),
            (200_000.0, "1/s", "200 k/s"),
            (0.02, "1", "0.02"),
            (5.0, "", "5"),
        ] {
            assert_eq!(short(value, unit), text);
        }
    }

    #[test]
    fn steps() {
        for (step, expected) in [(1.0, 0), (0.5, 1), (0.1, 1), (0.02, 2), (250.0, 0), (0.0, 0), (f64::NAN, 0)] {
            assert_eq!(decimals(step), expected, "{step}");
        }
    }
}
