//! Adjustment of p-values for multiple tests.

/// Adjusts the p-values of simultaneous tests (Holm 1979). The result keeps their order.
pub fn holm(p_values: &[f64]) -> Vec<f64> {
    let mut order = (0..p_values.len()).collect::<Vec<_>>();
    order.sort_by(|&a, &b| p_values[a].total_cmp(&p_values[b]));
    let mut adjusted = vec![0.0; p_values.len()];
    let mut largest = 0.0f64;
    for (place, index) in order.into_iter().enumerate() {
        largest = largest.max(p_values[index] * (p_values.len() - place) as f64).min(1.0);
        adjusted[index] = largest;
    }
    adjusted
}

/// Applies [`holm`] to the p-values that exist; a missing one stays `None` and does not count as a test.
pub fn holm_of_some(p_values: impl Iterator<Item = Option<f64>> + Clone) -> impl Iterator<Item = Option<f64>> {
    let mut adjusted = holm(&p_values.clone().flatten().collect::<Vec<_>>()).into_iter();
    p_values.map(move |p| p.and_then(|_| adjusted.next()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn close(found: f64, expected: f64) {
        assert!((found / expected - 1.0).abs() < 1e-9, "{found:?}, expected {expected:?}");
    }

    // statsmodels 0.15: statsmodels.stats.multitest.multipletests([.01, .04, .03, .005, .2], method='holm')[1]
    #[test]
    fn holm_matches_statsmodels() {
        let found = holm(&[0.01, 0.04, 0.03, 0.005, 0.2]);
        for (found, expected) in found.into_iter().zip([0.04, 0.09, 0.09, 0.025, 0.2]) {
            close(found, expected);
        }
        assert_eq!(holm(&[]), Vec::<f64>::new());
        assert_eq!(holm(&[0.9, 0.8]), [1.0, 1.0]);
    }
}
