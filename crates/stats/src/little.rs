//! Little's law: a check that counts, rate and latency tell one story.

/// Requests in flight as counted, over what rate and mean latency imply: `L / (λ·W)`.
///
/// 1 where all three were measured over one span in steady state. Source: Little 1961. Away from 1,
/// one of the three is not what it claims to be: latencies miss part of the wait (coordinated
/// omission), or answers are counted that were not waited for.
///
/// `None` when a factor is not a positive number: there is nothing to compare.
pub fn ratio(in_flight_mean: f64, rate_per_s: f64, latency_mean_ns: f64) -> Option<f64> {
    let implied = rate_per_s * latency_mean_ns / 1e9;
    let ratio = in_flight_mean / implied;
    (implied > 0.0 && in_flight_mean >= 0.0 && ratio.is_finite()).then_some(ratio)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_when_all_agree() {
        assert_eq!(ratio(8.0, 80_000.0, 100_000.0), Some(1.0));
    }

    #[test]
    fn hidden_waits_show() {
        // 40 clients, each always waiting; an engine that hid half of the wait would show twice the ratio.
        assert_eq!(ratio(40.0, 1_000.0, 20_000_000.0), Some(2.0));
    }

    #[test]
    fn nothing_to_compare() {
        for (in_flight, rate, latency) in
            [(1.0, 0.0, 5.0), (1.0, 5.0, 0.0), (f64::NAN, 1.0, 1.0), (1.0, f64::NAN, 1.0), (-1.0, 1.0, 1.0)]
        {
            assert_eq!(ratio(in_flight, rate, latency), None);
        }
    }
}
