//! Chooses the scale of an axis, its ticks and their labels.

use analysis::number;

use super::scale::Scale;
use super::ticks;

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Axis {
    pub(crate) scale: Scale,
    pub(crate) major: Vec<(f64, String)>,
    pub(crate) minor: Vec<f64>,
    pub(crate) label: String,
}

const TARGET: usize = 6;

/// Space beyond the outermost values, as a fraction of the range.
const ROOM: f64 = 0.05;

/// Minimum ratio of the largest to the smallest value for a log axis.
const LOG_FROM: f64 = 25.0;

impl Axis {
    /// Creates a log or linear axis for values (see [`LOG_FROM`]). A linear axis that starts above zero says so.
    pub(crate) fn of_values(values: impl Iterator<Item = f64>, unit: &str, label: &str) -> Axis {
        let (low, high) = values
            .filter(|value| number::drawable(*value))
            .fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), value| (low.min(value), high.max(value)));
        match (low, high) {
            _ if low > high || (low == 0.0 && high == 0.0) => Axis::linear(0.0, 1.0, unit, label),
            _ if low > 0.0 && high / low >= LOG_FROM => Axis::log(low, high, unit, label, TARGET + 1),
            _ if low >= 0.0 && low < 0.6 * high => Axis::linear(0.0, high, unit, label),
            _ if low > 0.0 => Axis::linear(low, high, unit, &format!("{label} (not from 0)")),
            _ => Axis::linear(low, high, unit, label),
        }
    }

    pub(crate) fn linear(low: f64, high: f64, unit: &str, label: &str) -> Axis {
        let (divisor, name) = number::scale(unit, low.abs().max(high.abs()));
        let (low, high) = (low / divisor, high / divisor);
        let mut ticks = ticks::linear(low, high, TARGET);
        // The axis ends before the outermost ticks if they are far beyond the values.
        let (mut start, mut end) = (ticks[0], ticks[ticks.len() - 1]);
        let room = (high - low) * ROOM;
        if ticks.len() > 3 && end > high + room {
            ticks.pop();
            end = (high + room).max(ticks[ticks.len() - 1]);
        }
        if ticks.len() > 3 && start < low - room {
            ticks.remove(0);
            start = (low - room).min(ticks[0]);
        }
        let decimals = decimals(ticks[1] - ticks[0]);
        let major = ticks.iter().map(|tick| (tick * divisor, format!("{tick:.decimals$}"))).collect();
        let scale = Scale::Linear { low: start * divisor, high: end * divisor };
        let label = if name.is_empty() { label.to_owned() } else { format!("{label}, {name}") };
        Axis { scale, major, minor: Vec::new(), label }
    }

    pub(crate) fn log(low: f64, high: f64, unit: &str, label: &str, target: usize) -> Axis {
        let scale = Scale::Log { low, high: if high > low { high } else { low * 2.0 } }.padded(0.04);
        let Scale::Log { low, high } = scale else { unreachable!("padding keeps the kind") };
        let (major, minor) = ticks::log(low, high, target);
        let major = major.into_iter().map(|tick| (tick, short(tick, unit))).collect();
        Axis { scale, major, minor, label: format!("{label} (log)") }
    }

    /// Creates an axis for at least two ascending levels of a factor, with `margin` of the length free on both sides.
    pub(crate) fn levels(levels: &[(f64, String)], label: &str, margin: f64) -> Axis {
        let values: Vec<f64> = levels.iter().map(|level| level.0).collect();
        let scale = Scale::for_levels(&values);
        let label = if matches!(scale, Scale::Log { .. }) { format!("{label} (log)") } else { label.to_owned() };
        Axis { scale: scale.padded(margin), major: levels.to_vec(), minor: Vec::new(), label }
    }

    pub(crate) fn ends(&self) -> (f64, f64) {
        match self.scale {
            Scale::Linear { low, high } | Scale::Log { low, high } => (low, high),
            Scale::Nines { .. } => (0.0, 1.0),
            Scale::Slots { count } => (0.0, count as f64 - 1.0),
        }
    }

    pub(crate) fn slots(names: &[String], label: &str) -> Axis {
        let major = names.iter().enumerate().map(|(index, name)| (index as f64, name.clone())).collect();
        Axis { scale: Scale::Slots { count: names.len().max(1) }, major, minor: Vec::new(), label: label.to_owned() }
    }

    pub(crate) fn nines(nines: usize, label: &str) -> Axis {
        let all =
            [(0.5, "p50"), (0.9, "p90"), (0.99, "p99"), (0.999, "p99.9"), (0.9999, "p99.99"), (0.99999, "p99.999")];
        let major = all.iter().take(nines + 1).map(|(q, name)| (*q, (*name).to_owned())).collect();
        let scale = Scale::Nines { nines: nines as f64 };
        Axis { scale, major, minor: Vec::new(), label: label.to_owned() }
    }
}

/// Formats a round number with its unit, as short as possible: `10 µs`.
pub(crate) fn short(value: f64, unit: &str) -> String {
    let (divisor, name) = number::scale(unit, value);
    let rounded = (value / divisor * 1e3).round() / 1e3;
    if name.is_empty() { rounded.to_string() } else { format!("{rounded} {name}") }
}

pub(crate) fn decimals(step: f64) -> usize {
    if step > 0.0 && step.is_finite() { (-(step.log10() + 1e-9).floor()).clamp(0.0, 9.0) as usize } else { 0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(values: &[f64], unit: &str) -> String {
        let axis = Axis::of_values(values.iter().copied(), unit, "y");
        let labels: Vec<String> = axis.major.iter().map(|(_, label)| label.clone()).collect();
        format!("{}: {}", axis.label, labels.join(" | "))
    }

    #[test]
    fn values_choose_scale_and_unit() {
        let table: [(&[f64], &str, &str); 9] = [
            (&[12_000.0, 48_000.0], "ns", "y, µs: 0 | 10 | 20 | 30 | 40 | 50"),
            (&[120_000.0, 190_000.0], "1/s", "y (not from 0), k/s: 120 | 140 | 160 | 180"),
            (&[5_000.0, 9e6], "ns", "y (log): 10 µs | 100 µs | 1 ms | 10 ms"),
            (&[f64::NAN, f64::INFINITY, 1.0, 3.0], "1", "y: 0.0 | 0.5 | 1.0 | 1.5 | 2.0 | 2.5 | 3.0"),
            (&[], "bytes", "y, B: 0.0 | 0.2 | 0.4 | 0.6 | 0.8 | 1.0"),
            (&[0.0, 0.0], "1", "y: 0.0 | 0.2 | 0.4 | 0.6 | 0.8 | 1.0"),
            (&[-4.0, 5.0], "1", "y: -4 | -2 | 0 | 2 | 4"),
            (&[3e6, 5.2e6], "bytes", "y, MiB: 0 | 1 | 2 | 3 | 4 | 5"),
            (&[7.0], "1", "y (not from 0): 6.5 | 7.0 | 7.5"),
        ];
        for (values, unit, text) in table {
            assert_eq!(shown(values, unit), text, "{values:?}");
        }
    }

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
