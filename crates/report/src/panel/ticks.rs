//! Round numbers for the ticks of an axis.

/// Returns about `target` round numbers that cover `[low, high]`, with a step of 1, 2 or 5 times a power of ten.
/// Source: Heckbert, "Nice numbers for graph labels", Graphics Gems 1990.
pub(crate) fn linear(low: f64, high: f64, target: usize) -> Vec<f64> {
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
pub(crate) fn log(low: f64, high: f64, target: usize) -> (Vec<f64>, Vec<f64>) {
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
        return (linear(low, high, target).into_iter().filter(inside).collect(), Vec::new());
    }
    let minor = if decades <= 5.0 { multiples(&whole, 1) } else { Vec::new() };
    let minor = minor.into_iter().filter(|value| !major.contains(value)).collect();
    (major, minor)
}

#[cfg(test)]
mod tests {
    use super::*;

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
            let ticks = linear(low, high, 5);
            assert_eq!(ticks.len(), expected.len(), "[{low}, {high}]: {ticks:?}");
            for (tick, expected) in ticks.iter().zip(expected) {
                assert!((tick - expected).abs() < 1e-9, "[{low}, {high}]: {ticks:?}");
            }
        }
    }

    #[test]
    fn linear_copes_with_any_size() {
        for (low, high) in [(1e-300, 2e-300), (0.0, 1e300), (-1e15, 1e15), (1e15, 1e15 + 1.0), (-3.0, -3.0)] {
            let ticks = linear(low, high, 5);
            assert!((2..=12).contains(&ticks.len()), "[{low}, {high}]: {ticks:?}");
            assert!(ticks.windows(2).all(|pair| pair[0] < pair[1]), "[{low}, {high}]: {ticks:?}");
        }
    }

    #[test]
    fn log_ticks() {
        let table: [(f64, f64, &[f64]); 6] = [
            (1.0, 1000.0, &[1.0, 10.0, 100.0, 1000.0]),
            (10.0, 100.0, &[10.0, 20.0, 30.0, 50.0, 100.0]),
            (8.0, 130.0, &[10.0, 20.0, 30.0, 50.0, 100.0]),
            (0.02, 0.7, &[0.02, 0.05, 0.1, 0.2, 0.5]),
            (1.0, 1e12, &[1.0, 1e3, 1e6, 1e9, 1e12]),
            (102.0, 118.0, &[105.0, 110.0, 115.0]),
        ];
        for (low, high, expected) in table {
            assert_eq!(log(low, high, 5).0, expected, "[{low}, {high}]");
        }
        assert_eq!(log(10.0, 100.0, 5).1, [40.0, 60.0, 70.0, 80.0, 90.0]);
    }
}
