//! Little's law as a check that counts, rate and latency agree.

/// Ratio of the mean number of requests in flight to the number that rate and mean latency imply: `L / (λ·W)`. It is 1
/// if all three values cover the same steady state (Little 1961). Otherwise a value is wrong: latencies may miss part
/// of the wait (coordinated omission), or unsolicited responses may count. `None` if rate or latency is not positive.
pub fn ratio(in_flight_mean: f64, rate_per_s: f64, latency_mean_ns: f64) -> Option<f64> {
    let implied = rate_per_s * latency_mean_ns / 1e9;
    let ratio = in_flight_mean / implied;
    (implied > 0.0 && in_flight_mean >= 0.0 && ratio.is_finite()).then_some(ratio)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ratio_is_one_if_all_agree() {
        assert_eq!(ratio(8.0, 80_000.0, 100_000.0), Some(1.0));
    }

    #[test]
    fn hidden_waits_raise_the_ratio() {
        // Each of 40 clients always waits. An engine that hides half of the wait doubles the ratio.
        assert_eq!(ratio(40.0, 1_000.0, 20_000_000.0), Some(2.0));
    }

    #[test]
    fn no_ratio_without_positive_factors() {
        for (in_flight, rate, latency) in
            [(1.0, 0.0, 5.0), (1.0, 5.0, 0.0), (f64::NAN, 1.0, 1.0), (1.0, f64::NAN, 1.0), (-1.0, 1.0, 1.0)]
        {
            assert_eq!(ratio(in_flight, rate, latency), None);
        }
    }
}
