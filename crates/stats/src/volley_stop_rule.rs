//! The stop rule of volley (<https://github.com/jonhoo/volley>, `client/main.c`), to reproduce its results. It treats
//! correlated requests as independent, so its interval is far too narrow. Report it only along with a valid interval.

/// Number, mean and sum of squared deviations of one client's latencies in one round.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Moments {
    /// Number of recorded latencies.
    pub count: u64,
    /// Mean of the latencies, ns.
    pub mean: f64,
    /// Sum of squared deviations from the mean, ns².
    pub m2: f64,
}

impl Moments {
    /// Adds one latency in ns. Source: Welford 1962.
    pub fn record(&mut self, ns: f64) {
        self.count += 1;
        let before = ns - self.mean;
        self.mean += before / self.count as f64;
        self.m2 += before * (ns - self.mean);
    }
}

/// Next action of the load engine under the rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// Starts a further round.
    Round {
        /// Number of requests that each client sends.
        requests_per_client: u64,
    },
    /// The measurement has ended, for this reason.
    Done(&'static str),
}

/// Volley's rule as a state machine. Starts with [`VolleyRule::first`] and continues with [`VolleyRule::finish_round`].
#[derive(Clone, Debug, PartialEq)]
pub struct VolleyRule {
    clients: u32,
    round_requests: u64,
    half_width_ns: f64,
    max_ns: u64,
    /// Mean of all latencies so far, ns.
    pub mean_ns: f64,
    /// Volley's pooled standard deviation, ns.
    pub stddev_ns: f64,
    /// Number of latencies so far, including the priming round.
    pub samples: u64,
    rounds: u32,
}

/// Volley's rounded normal quantile for 95 %.
const Z: f64 = 1.96;
/// Largest number of requests per client that is too small for a round.
const TOO_FEW: u64 = 10;

const MET: &str = "volley's rule: target met";
const TOO_LONG: &str = "volley's rule: time limit reached before the target was met";
const TOO_MANY_CLIENTS: &str = "volley's rule: too many clients for a round";

impl VolleyRule {
    /// Creates the rule. Volley uses 1,000,000 requests, 5 us and 180 s. Panics if `clients` or `half_width_ns` is 0.
    pub fn new(clients: u32, round_requests: u64, half_width_ns: u64, max_ns: u64) -> Self {
        assert!(clients > 0, "a rule without clients");
        assert!(half_width_ns > 0, "no interval has half-width 0");
        let half_width_ns = half_width_ns as f64;
        Self { clients, round_requests, half_width_ns, max_ns, mean_ns: 0.0, stddev_ns: 0.0, samples: 0, rounds: 0 }
    }

    /// Returns the priming round, whose latencies count, or ends if it would be too short.
    pub fn first(&self) -> Next {
        match self.round_requests / u64::from(self.clients) {
            0..=TOO_FEW => Next::Done(TOO_MANY_CLIENTS),
            requests_per_client => Next::Round { requests_per_client },
        }
    }

    /// Adds each client's latencies in the finished round; `elapsed_ns` counts from the start of the priming round.
    /// Like volley, pools squared deviations within clients and divides by n. Differences between clients add nothing.
    pub fn finish_round(&mut self, clients: &[Moments], elapsed_ns: u64) -> Next {
        self.rounds += 1;
        let mut pooled = self.stddev_ns.powi(2) * self.samples as f64;
        for client in clients.iter().filter(|client| client.count > 0) {
            let (before, new) = (self.samples as f64, client.count as f64);
            self.mean_ns = (before * self.mean_ns + new * client.mean) / (before + new);
            self.samples += client.count;
            pooled += client.m2;
        }
        if self.samples > 0 {
            self.stddev_ns = (pooled / self.samples as f64).sqrt();
        }
        let needed = (Z * self.stddev_ns / self.half_width_ns).powi(2);
        // The cast turns negative numbers into 0.
        let missing = ((needed - self.samples as f64) / f64::from(self.clients)).ceil() as u64;
        let requests_per_client = missing.min(self.round_requests / u64::from(self.clients));
        if requests_per_client <= TOO_FEW {
            return Next::Done(MET);
        }
        if elapsed_ns > self.max_ns {
            return Next::Done(TOO_LONG);
        }
        Next::Round { requests_per_client }
    }

    /// Number of rounds so far, excluding the priming round.
    pub fn rounds(&self) -> u32 {
        self.rounds.saturating_sub(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MAX_NS: u64 = 180_000_000_000;

    fn volley(clients: u32) -> VolleyRule {
        VolleyRule::new(clients, 1_000_000, 5_000, MAX_NS)
    }

    fn client(count: u64, mean: f64, stddev: f64) -> Moments {
        Moments { count, mean, m2: stddev * stddev * count as f64 }
    }

    #[test]
    fn primes_with_a_million_over_the_clients() {
        assert_eq!(volley(1).first(), Next::Round { requests_per_client: 1_000_000 });
        assert_eq!(volley(80).first(), Next::Round { requests_per_client: 12_500 });
        assert_eq!(volley(3).first(), Next::Round { requests_per_client: 333_333 });
        assert_eq!(volley(100_000).first(), Next::Done(TOO_MANY_CLIENTS));
    }

    #[test]
    fn narrow_after_the_priming_round() {
        let mut rule = volley(2);
        assert_eq!(rule.finish_round(&[client(500_000, 9_000.0, 1_250.0); 2], 9_000_000_000), Next::Done(MET));
        assert_eq!(rule.rounds(), 0);
    }

    #[test]
    fn requests_missing_samples_up_to_a_full_round() {
        // Needed: (1.96 * 3 ms / 5 us)^2 = 1,382,976. The missing 382,976 are 95,744 for each of 4 clients.
        let mut rule = volley(4);
        let wide = [client(250_000, 1e6, 3e6); 4];
        assert_eq!(rule.finish_round(&wide, 1), Next::Round { requests_per_client: 95_744 });
        // Needed: (1.96 * 30 ms / 5 us)^2, or 138 million, so the next round is a full one.
        let mut rule = volley(4);
        let wider = [client(250_000, 1e6, 3e7); 4];
        assert_eq!(rule.finish_round(&wider, 1), Next::Round { requests_per_client: 250_000 });
        assert_eq!(rule.finish_round(&wider, MAX_NS), Next::Round { requests_per_client: 250_000 });
        assert_eq!(rule.rounds(), 1);
        assert_eq!(rule.finish_round(&wider, MAX_NS + 1), Next::Done(TOO_LONG));
        assert_eq!(rule.samples, 3_000_000);
    }

    #[test]
    fn ends_if_a_round_would_be_too_small() {
        // Needed: (1.96 * s / 5 us)^2 = 1,000,010.4. One client must send the missing 11.
        let stddev = 1_000_010.4_f64.sqrt() * 5_000.0 / 1.96;
        assert_eq!(
            volley(1).finish_round(&[client(1_000_000, 0.0, stddev)], 1),
            Next::Round { requests_per_client: 11 }
        );
        let stddev = 1_000_009.6_f64.sqrt() * 5_000.0 / 1.96;
        assert_eq!(volley(1).finish_round(&[client(1_000_000, 0.0, stddev)], 1), Next::Done(MET));
    }

    #[test]
    fn differences_between_clients_do_not_widen() {
        let mut rule = volley(2);
        rule.finish_round(&[client(500_000, 10_000.0, 1_000.0), client(500_000, 90_000.0, 1_000.0)], 1);
    }

    #[test]
    fn a_client_without_a_sample_changes_nothing() {
        let mut rule = volley(2);
        rule.finish_round(&[Moments::default(); 2], 1);
    }

    // numpy 2: a = [55800, 53500, 57600, 75800, 76300, 1000000]; a.mean(), a.var()*len(a)
    #[test]
    fn moments_match_numpy() {
        let mut moments = Moments::default();
        for ns in [55_800.0, 53_500.0, 57_600.0, 75_800.0, 76_300.0, 1_000_000.0] {
            moments.record(ns);
        }
        assert!((moments.mean - 219_833.333_333_333_34).abs() < 1e-9);
        assert!((moments.m2 / 730_900_813_333.333_4 - 1.0).abs() < 1e-14, "{moments:?}");
    }
}
