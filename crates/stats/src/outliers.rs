//! Detection of outliers, which should be inspected but never removed.

use crate::{interval, special_functions};

const FEWEST: usize = 5;

/// Finds the outliers of each group, such as a metric of one row, and returns their indices, ascending. Ignores `None`.
///
/// The generalized extreme Studentized deviate test (Rosner 1983, Percentage Points for a Generalized ESD Many-Outlier
/// Procedure) removes the value farthest from the mean, then the next, up to a quarter of all. All values up to the
/// last one beyond its t bound are outliers, so outliers cannot mask each other. Every step in every group has its part
/// of `error` (Bonferroni): at most `error` of reports contain a false outlier, for normal or, if all are positive,
/// lognormal values. Groups with fewer than 5 values, or with mostly equal values, have no outliers.
pub fn outliers(groups: &[Vec<Option<f64>>], error: f64) -> Vec<Vec<usize>> {
    let judged = groups.iter().filter(|values| values.iter().flatten().count() >= FEWEST).count();
    let error = error / judged.max(1) as f64;
    groups.iter().map(|values| group_outliers(values, error)).collect()
}

fn group_outliers(values: &[Option<f64>], error: f64) -> Vec<usize> {
    let mut rest = values.iter().enumerate().filter_map(|(index, value)| Some((index, (*value)?))).collect::<Vec<_>>();
    if rest.len() < FEWEST || rest.iter().any(|(_, value)| !value.is_finite()) || most_are_equal(&rest) {
        return Vec::new();
    }
    if rest.iter().all(|(_, value)| *value > 0.0) {
        rest.iter_mut().for_each(|(_, value)| *value = value.ln());
    }
    let (mut taken, mut found) = (Vec::new(), 0);
    let looks = (rest.len() / 4).max(1);
    for _ in 0..looks {
        let Some((place, p)) = farthest(&rest) else { break };
        taken.push(rest.swap_remove(place).0);
        if p <= error / looks as f64 {
            found = taken.len();
        }
    }
    taken.truncate(found);
    taken.sort_unstable();
    taken
}

/// Position of the value farthest from the mean, and its p-value; `None` if all values are equal.
fn farthest(values: &[(usize, f64)]) -> Option<(usize, f64)> {
    let all = values.iter().map(|(_, value)| *value).collect::<Vec<_>>();
    let (mean, sd) = (interval::average(&all)?, interval::variance(&all)?.sqrt());
    let place = (0..all.len()).max_by(|&a, &b| (all[a] - mean).abs().total_cmp(&(all[b] - mean).abs()))?;
    if sd == 0.0 {
        return None;
    }
    let n = all.len() as f64;
    // The deviation from the mean of the other values, over its standard error, follows Student's t (Grubbs 1950).
    let square = ((all[place] - mean) / sd).powi(2);
    let room = (n - 1.0).powi(2) - n * square;
    let t = if room > 0.0 { ((n - 2.0) * n * square / room).sqrt() } else { f64::INFINITY };
    Some((place, 2.0 * n * special_functions::t_cdf(-t, n - 2.0)))
}

fn most_are_equal(values: &[(usize, f64)]) -> bool {
    values.iter().any(|(_, value)| 2 * values.iter().filter(|(_, other)| other == value).count() > values.len())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Rng;

    fn check(values: &[f64], expected: &[usize]) {
        let values = values.iter().copied().map(Some).collect::<Vec<_>>();
        assert_eq!(outliers(std::slice::from_ref(&values), 0.05), [expected], "{values:?}");
    }

    // Rosner 1983, Vitamin E: three of 54 values mask each other in Grubbs' test. The example has 13 steps at 5 % each.
    #[test]
    fn matches_example_of_rosner() {
        let data = [
            -0.25, 0.68, 0.94, 1.15, 1.20, 1.26, 1.26, 1.34, 1.38, 1.43, 1.49, 1.49, 1.55, 1.56, 1.58, 1.65, 1.69,
            1.70, 1.76, 1.77, 1.81, 1.91, 1.94, 1.96, 1.99, 2.06, 2.09, 2.10, 2.14, 2.15, 2.23, 2.24, 2.26, 2.35, 2.37,
            2.40, 2.47, 2.54, 2.62, 2.64, 2.90, 2.92, 2.92, 2.93, 3.21, 3.26, 3.30, 3.59, 3.68, 4.30, 4.64, 5.34, 5.42,
            6.01,
        ];
        assert_eq!(outliers(&[data.map(Some).to_vec()], 0.05 * 13.0), [[51, 52, 53]]);
    }

    #[test]
    fn values_of_trials() {
        check(&[10.0, 11.0, 9.0, 10.0, 50.0], &[4]);
        check(&[9.0, 9.5, 10.0, 10.5, 11.0, 14.0], &[]);
        check(&[100.0, 101.0, 99.0, 100.5, 300.0, 98.5, 99.5, 310.0, 100.2, 101.5, 98.0, 99.9], &[4, 7]);
        // Groups with too few values, with all values or all but one equal, with no values, and with an infinite value.
        check(&[1.0, 2.0, 3.0, 1000.0], &[]);
        check(&[10.0, 10.0, 10.0, 10.0, 11.0], &[]);
        check(&[7.0; 8], &[]);
        check(&[], &[]);
        check(&[1.0, 1.1, 1.2, 0.9, f64::INFINITY, 1.0], &[]);
    }

    #[test]
    fn missing_values_keep_their_index() {
        let values = vec![Some(10.0), None, Some(11.0), Some(9.0), Some(10.0), Some(50.0)];
        assert_eq!(outliers(&[values], 0.05), [[5]]);
    }

    #[test]
    fn more_groups_need_larger_deviations() {
        let values = [10.0, 11.0, 9.0, 10.5, 10.2, 9.5, 9.9, 14.6].map(Some).to_vec();
        assert_eq!(outliers(std::slice::from_ref(&values), 0.05), [[7]]);
        assert!(outliers(&vec![values; 100], 0.05).iter().all(Vec::is_empty));
    }

    #[test]
    fn homogeneous_values_seldom_have_outliers() {
        let mut rng = Rng::new(4);
        let mut group = |trials: usize| (0..trials).map(|_| Some((0.1 * rng.normal()).exp())).collect::<Vec<_>>();
        for trials in [5, 8, 12, 30] {
            let alarms = (0..400).filter(|_| {
                let groups = (0..12).map(|_| group(trials)).collect::<Vec<_>>();
                outliers(&groups, 0.05).iter().any(|found| !found.is_empty())
            });
            let alarms = alarms.count();
            assert!(alarms <= 34, "{alarms} of 400 with {trials} trials at 5 %");
        }
    }
}
