//! Maps values to positions on an axis.

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
        let linear = Scale::Linear { low, high };
        if low <= 0.0 {
            return linear;
        }
        let log = Scale::Log { low, high };
        if closest(&log, levels) > closest(&linear, levels) + 1e-9 { log } else { linear }
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

#[cfg(test)]
mod tests {
    use super::*;

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
}
