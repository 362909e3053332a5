//! Axes: the scale that maps values to positions, round numbers for ticks, and labels.

use analysis::number;

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
        let mut ticks = linear_ticks(low, high, TARGET);
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
        let (major, minor) = log_ticks(low, high, target);
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
        Axis { scale: Scale::Nines { nines: nines as f64 }, major, minor: Vec::new(), label: label.to_owned() }
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

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Scale {
    Linear { low: f64, high: f64 },
    Log { low: f64, high: f64 }, // both ends are positive
    Nines { nines: f64 },        // quantiles in `[0, 1)` by their number of nines; an axis of 3 nines ends at p99.9
    Slots { count: usize },      // for words, the first at the start; the value is the slot's index
}

impl Scale {
    /// Returns the position of a value: 0 at the start of the axis, 1 at its end, below 0 or above 1 outside it. `None`
    /// if the value is not finite, or not positive on a log axis.
    pub(crate) fn place(&self, value: f64) -> Option<f64> {
        let place = match *self {
            Scale::Linear { low, high } => (value - low) / (high - low),
            Scale::Log { low, high } => (value / low).ln() / (high / low).ln(),
            Scale::Nines { nines } => -(1.0 - value).log10() / nines,
            Scale::Slots { count } => (value + 0.5) / count as f64,
        };
        place.is_finite().then_some(place)
    }

    /// Returns the scale that best separates two or more ascending `levels`: log for 1, 2, 4; linear for 1, 2, 3.
    pub(crate) fn for_levels(levels: &[f64]) -> Scale {
        let (low, high) = (levels[0], levels[levels.len() - 1]);
        let (linear, log) = (Scale::Linear { low, high }, Scale::Log { low, high });
        let is_log_better = low > 0.0 && closest(&log, levels) > closest(&linear, levels) + 1e-9;
        if is_log_better { log } else { linear }
    }

    /// Returns the scale with `margin` of its length added on both sides, so that nothing is drawn on the frame.
    pub(crate) fn padded(self, margin: f64) -> Scale {
        match self {
            Scale::Linear { low, high } => {
                let extra = (high - low) * margin;
                Scale::Linear { low: low - extra, high: high + extra }
            }
            Scale::Log { low, high } => {
                let factor = (high / low).powf(margin);
                Scale::Log { low: low / factor, high: high * factor }
            }
            other => other,
        }
    }
}

/// Smallest distance between two levels, as a fraction of the axis.
pub(crate) fn closest(scale: &Scale, levels: &[f64]) -> f64 {
    let places: Vec<f64> = levels.iter().filter_map(|level| scale.place(*level)).collect();
    places.windows(2).map(|pair| pair[1] - pair[0]).fold(1.0, f64::min)
}

/// Returns about `target` round numbers that cover `[low, high]`, with a step of 1, 2 or 5 times a power of ten.
/// Source: Heckbert, "Nice numbers for graph labels", Graphics Gems 1990.
fn linear_ticks(low: f64, high: f64, target: usize) -> Vec<f64> {
    assert!(low.is_finite() && high.is_finite() && low <= high, "[{low}, {high}]");
    // A single value gets space around it in proportion to its size.
    let (low, high) = if high - low <= high.abs().max(low.abs()) * 1e-9 {
        let room = if high == 0.0 { 1.0 } else { high.abs() * 0.1 };
        (low - room, high + room)
    } else {
        (low, high)
    };
    let least = (high - low) / target.max(1) as f64;
    let power = 10f64.powf(least.log10().floor());
    let step = power * [1.0, 2.0, 5.0].into_iter().find(|m| m * power >= least * (1.0 - 1e-9)).unwrap_or(10.0);
    // Whole multiples avoid accumulated errors and keep 0 exact. The tolerance accepts inexact multiples as bounds.
    let first = (low / step + 1e-6).floor();
    let last = (high / step - 1e-6).ceil();
    (0..=(last - first) as usize).map(|index| (first + index as f64) * step).collect()
}

/// Returns the marks inside `[low, high]` on a log axis: powers of ten, or every second, third and so on if there are
/// many. If there are few, adds twice and five times these numbers. The second list has marks without labels: whole
/// multiples between powers of ten, if they fit.
fn log_ticks(low: f64, high: f64, target: usize) -> (Vec<f64>, Vec<f64>) {
    assert!(low > 0.0 && high > low && high.is_finite(), "[{low}, {high}]");
    let decades = (high / low).log10();
    let from = low.log10().floor() as i32;
    let to = high.log10().ceil() as i32;
    let inside = |value: &f64| *value >= low * (1.0 - 1e-9) && *value <= high * (1.0 + 1e-9);
    // Division by a power of ten is exact where multiplication by its inverse is not.
    let scaled = |m: f64, power: i32| if power < 0 { m / 10f64.powi(-power) } else { m * 10f64.powi(power) };
    let multiples = |mantissas: &[f64], stride: usize| -> Vec<f64> {
        let powers = (from..=to).step_by(stride);
        powers.flat_map(|power| mantissas.iter().map(move |m| scaled(*m, power))).filter(inside).collect()
    };
    let whole: Vec<f64> = (1..10).map(f64::from).collect();
    let sets: [&[f64]; 4] = [&whole, &[1.0, 2.0, 3.0, 5.0], &[1.0, 2.0, 5.0], &[1.0]];
    let fitting = sets.into_iter().map(|set| multiples(set, 1)).find(|ticks| ticks.len() <= target.max(2));
    let major = fitting.unwrap_or_else(|| multiples(&[1.0], (decades / target.max(2) as f64).ceil().max(1.0) as usize));
    if major.len() < 2 {
        // A range below a factor of two is nearly linear.
        return (linear_ticks(low, high, target).into_iter().filter(inside).collect(), Vec::new());
    }
    let minor = if decades <= 5.0 { multiples(&whole, 1) } else { Vec::new() };
    let minor = minor.into_iter().filter(|value| !major.contains(value)).collect();
    (major, minor)
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

    #[test]
    fn places() {
        let linear = Scale::Linear { low: 10.0, high: 20.0 };
        let log = Scale::Log { low: 1.0, high: 1000.0 };
        let nines = Scale::Nines { nines: 4.0 };
        let slots = Scale::Slots { count: 4 };
        let table = [
            (&linear, 10.0, Some(0.0)),
            (&linear, 15.0, Some(0.5)),
            (&linear, 30.0, Some(2.0)),
            (&linear, f64::NAN, None),
            (&log, 1.0, Some(0.0)),
            (&log, 10.0, Some(1.0 / 3.0)),
            (&log, 0.0, None),
            (&log, -1.0, None),
            (&nines, 0.0, Some(0.0)),
            (&nines, 0.99, Some(0.5)),
            (&nines, 0.9999, Some(1.0)),
            (&nines, 1.0, None),
            (&slots, 0.0, Some(0.125)),
            (&slots, 3.0, Some(0.875)),
        ];
        for (scale, value, expected) in table {
            let place = scale.place(value);
            let same = match (place, expected) {
                (Some(a), Some(b)) => (a - b).abs() < 1e-9,
                (a, b) => a == b,
            };
            assert!(same, "{scale:?} {value}: {place:?}, not {expected:?}");
        }
    }

    #[test]
    fn levels_choose_the_scale_that_spreads_them() {
        let table: [(&[f64], bool); 6] = [
            (&[1.0, 2.0, 4.0, 8.0], true),
            (&[40.0, 80.0, 200.0], true),
            (&[1.0, 2.0, 3.0, 4.0], false),
            (&[0.0, 1.0, 10.0, 100.0], false),
            (&[1.0, 2.0], false),
            (&[10.0, 100.0, 1000.0, 10000.0], true),
        ];
        for (levels, log) in table {
            assert_eq!(matches!(Scale::for_levels(levels), Scale::Log { .. }), log, "{levels:?}");
        }
    }

    #[test]
    fn linear_is_round_and_covers() {
        let table: [(f64, f64, &[f64]); 8] = [
            (0.0, 10.0, &[0.0, 2.0, 4.0, 6.0, 8.0, 10.0]),
            (0.0, 97.0, &[0.0, 20.0, 40.0, 60.0, 80.0, 100.0]),
            (3.2, 4.9, &[3.0, 3.5, 4.0, 4.5, 5.0]),
            (-7.0, 12.0, &[-10.0, -5.0, 0.0, 5.0, 10.0, 15.0]),
            (0.0, 0.03, &[0.0, 0.01, 0.02, 0.03]),
            (0.0, 0.0, &[-1.0, -0.5, 0.0, 0.5, 1.0]),
            (50.0, 50.0, &[44.0, 46.0, 48.0, 50.0, 52.0, 54.0, 56.0]),
            (0.0, 123_456.0, &[0.0, 50_000.0, 100_000.0, 150_000.0]),
        ];
        for (low, high, expected) in table {
            let ticks = linear_ticks(low, high, 5);
            assert_eq!(ticks.len(), expected.len(), "[{low}, {high}]: {ticks:?}");
            for (tick, expected) in ticks.iter().zip(expected) {
                assert!((tick - expected).abs() < 1e-9, "[{low}, {high}]: {ticks:?}");
            }
        }
    }

    #[test]
    fn linear_copes_with_any_size() {
        for (low, high) in [(1e-300, 2e-300), (0.0, 1e300), (-1e15, 1e15), (1e15, 1e15 + 1.0), (-3.0, -3.0)] {
            let ticks = linear_ticks(low, high, 5);
            assert!((2..=12).contains(&ticks.len()), "[{low}, {high}]: {ticks:?}");
            assert!(ticks.windows(2).all(|pair| pair[0] < pair[1]), "[{low}, {high}]: {ticks:?}");
        }
    }

    #[test]
    fn ticks_of_a_log_axis() {
        let table: [(f64, f64, &[f64]); 6] = [
            (1.0, 1000.0, &[1.0, 10.0, 100.0, 1000.0]),
            (10.0, 100.0, &[10.0, 20.0, 30.0, 50.0, 100.0]),
            (8.0, 130.0, &[10.0, 20.0, 30.0, 50.0, 100.0]),
            (0.02, 0.7, &[0.02, 0.05, 0.1, 0.2, 0.5]),
            (1.0, 1e12, &[1.0, 1e3, 1e6, 1e9, 1e12]),
            (102.0, 118.0, &[105.0, 110.0, 115.0]),
        ];
        for (low, high, expected) in table {
            assert_eq!(log_ticks(low, high, 5).0, expected, "[{low}, {high}]");
        }
        assert_eq!(log_ticks(10.0, 100.0, 5).1, [40.0, 60.0, 70.0, 80.0, 90.0]);
    }
}
