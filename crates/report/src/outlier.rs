//! Values unlike the others: to be looked at, never to be removed.

/// Beyond so many (robust) standard deviations from the median. Source: Iglewicz & Hoaglin 1993, How to Detect and Handle
/// Outliers: modified z-score 3.5.
const LIMIT: f64 = 3.5;
/// Median absolute deviation of a standard normal law.
const MAD_OF_NORMAL: f64 = 0.674_489_750_196_081_7;
/// Below this many values the median absolute deviation is a guess.
const FEWEST: usize = 5;

/// Indices of the outliers among the values that are there. Values of which most are equal have none.
pub(crate) fn outliers(values: &[Option<f64>]) -> Vec<usize> {
    let present = values.iter().flatten().copied().collect::<Vec<_>>();
    let Some(median) = median(present.clone()).filter(|_| present.len() >= FEWEST) else { return Vec::new() };
    let Some(mad) = self::median(present.iter().map(|value| (value - median).abs()).collect()) else {
        return Vec::new();
    };
    let is_outlier = |value: f64| mad > 0.0 && MAD_OF_NORMAL * (value - median).abs() / mad > LIMIT;
    values.iter().enumerate().filter(|(_, value)| value.is_some_and(is_outlier)).map(|(index, _)| index).collect()
}

fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    stats::quantile(&values, 0.5)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn outliers_by_modified_z_score() {
        // Python 3: m = statistics.median(v); d = statistics.median([abs(x-m) for x in v]); [.6745*(x-m)/d for x in v]
        // gives 26.98 for the first row's 50, 3.37 for 14.0 and 3.55 for 14.2.
        let table: [(&[f64], &[usize]); 5] = [
            (&[10.0, 11.0, 9.0, 10.0, 50.0], &[4]),
            (&[9.0, 9.5, 10.0, 10.5, 11.0, 14.0], &[]),
            (&[9.0, 9.5, 10.0, 10.5, 11.0, 14.2], &[5]),
            (&[10.0, 10.0, 10.0, 10.0, 11.0], &[]),
            (&[1.0, 2.0, 3.0, 1000.0], &[]),
        ];
        for (values, expected) in table {
            let values = values.iter().copied().map(Some).collect::<Vec<_>>();
            assert_eq!(outliers(&values), expected, "{values:?}");
        }
    }

    #[test]
    fn a_missing_value_keeps_its_place() {
        let values = [Some(10.0), None, Some(11.0), Some(9.0), Some(10.0), Some(50.0)];
        assert_eq!(outliers(&values), [5]);
    }
}
