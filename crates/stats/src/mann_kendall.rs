//! Mann-Kendall test for a trend in a series.

use crate::special_functions;

/// Result of the trend test.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Trend {
    /// Two-sided p-value of the trend.
    pub p_value: f64,
    /// Median change from one value to the next (Sen 1968), in the unit of the values.
    pub slope: f64,
}

/// Tests for a monotone trend (Mann-Kendall), corrected for ties and continuity. `None` for fewer than 8 values (too
/// few for the normal approximation), or if a value is not finite. Assumes independent values, such as one per trial.
/// Source: Mann 1945; Kendall 1975; Gilbert 1987, Statistical Methods for Environmental Pollution Monitoring, 16.4.
pub fn mann_kendall(values: &[f64]) -> Option<Trend> {
    if values.len() < 8 || !values.iter().all(|value| value.is_finite()) {
        return None;
    }
    // Number of pairs whose later value is larger, minus the number of pairs whose later value is smaller.
    let mut s = 0i64;
    let mut slopes = Vec::with_capacity(values.len() * (values.len() - 1) / 2);
    for (i, earlier) in values.iter().enumerate() {
        for (distance, later) in (1u32..).zip(&values[i + 1..]) {
            s += i64::from(later > earlier) - i64::from(later < earlier);
            slopes.push((later - earlier) / f64::from(distance));
        }
    }
    slopes.sort_by(f64::total_cmp);
    let slope = crate::order_statistics::quantile(&slopes, 0.5)?;

    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let ties = sorted.chunk_by(|a, b| a == b).map(|equal| equal.len() as f64);
    let spread = |n: f64| n * (n - 1.0) * (2.0 * n + 5.0) / 18.0;
    let n = values.len() as f64;
    let variance = spread(n) - ties.map(spread).sum::<f64>();
    if variance <= 0.0 {
        return Some(Trend { p_value: 1.0, slope });
    }
    let z = (s.abs() - 1).max(0) as f64 / variance.sqrt();
    Some(Trend { p_value: (2.0 * special_functions::normal_cdf(-z)).min(1.0), slope })
}

#[cfg(test)]
mod tests {
    use super::*;

    // pymannkendall 1.4.3: pymannkendall.original_test([...]) gives p and slope.
    #[test]
    fn matches_pymannkendall() {
        let table: [(&[f64], f64, f64); 2] = [
            (&[10.1, 10.4, 9.9, 10.8, 11.0, 10.7, 11.2, 11.5, 11.1, 11.9], 0.004207551285491773, 0.1875),
            (&[5.0, 5.0, 4.0, 6.0, 5.0, 7.0, 7.0, 5.0, 8.0, 4.0, 6.0, 5.0], 0.5647148161450188, 0.0),
        ];
        for (values, p, slope) in table {
            let found = mann_kendall(values).unwrap();
            assert!((found.p_value - p).abs() < 1e-12, "{found:?}");
            assert!((found.slope - slope).abs() < 1e-12, "{found:?}");
        }
    }

    #[test]
    fn equal_values_have_no_trend() {
        let found = mann_kendall(&[3.0; 10]).unwrap();
        assert_eq!((found.p_value, found.slope), (1.0, 0.0));
    }

    #[test]
    fn rejects_too_few_or_non_finite_values() {
        assert_eq!(mann_kendall(&[1.0; 7]), None);
        assert_eq!(mann_kendall(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, f64::NAN]), None);
    }

    #[test]
    fn false_alarms_are_as_rare_as_claimed() {
        let mut rng = crate::Rng::new(11);
        let alarms = (0..2_000)
            .filter(|_| {
                let values = (0..12).map(|_| rng.normal()).collect::<Vec<_>>();
                mann_kendall(&values).unwrap().p_value < 0.05
            })
            .count();
        assert!((50..140).contains(&alarms), "{alarms} of 2,000 at 5 %");
    }
}
