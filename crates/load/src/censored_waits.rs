//! Collects the requests that had no response when measuring ended, and how long each had waited.

use net::Nanos;
use stats::Histogram;
use study::record::{self, Censored};

#[derive(Debug, Default)]
pub(crate) struct Waits {
    until: Nanos,
    timeout_ns: Nanos,
    /// Intended and actual send time of each written request.
    in_flight: Vec<(Nanos, Nanos)>,
    /// Send time of the oldest request in flight on each waiting connection.
    connections: Vec<Nanos>,
    /// Waits, in ns, of requests that were due but not sent, in a histogram because there may be millions.
    unsent: Option<Box<Histogram>>,
    unsent_overdue: u64,
    stalls: Vec<(Nanos, Nanos)>,
}

impl Waits {
    pub(crate) fn new(until: Nanos, timeout_ns: Nanos) -> Self {
        Self { until, timeout_ns, ..Self::default() }
    }

    pub(crate) fn stalled(&mut self, stalls: &Stalls, from: Nanos) {
        let within = stalls.0.iter().map(|&(begin, end)| (begin.max(from), end.min(self.until)));
        self.stalls.extend(within.filter(|(begin, end)| begin < end));
    }

    pub(crate) fn stalled_since(&self, since: Nanos) -> Nanos {
        self.stalls.iter().map(|&(begin, end)| end.saturating_sub(begin.max(since))).sum()
    }

    pub(crate) fn request(&mut self, intended: Nanos, sent_at: Nanos) {
        if sent_at < self.until {
            self.in_flight.push((intended, sent_at));
        } else if intended < self.until {
            self.unsent(intended);
        }
    }

    pub(crate) fn connection(&mut self, sent_at: Nanos) {
        if sent_at < self.until {
            self.connections.push(sent_at);
        }
    }

    pub(crate) fn unsent(&mut self, intended: Nanos) {
        let waited_ns = self.until.saturating_sub(intended);
        self.unsent.get_or_insert_default().record(waited_ns);
        self.unsent_overdue += u64::from(waited_ns > self.timeout_ns);
    }
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Stalls(Vec<(Nanos, Nanos)>);

impl Stalls {
    /// Minimum delay that counts as a stall, ns. A shorter one may be a slow turn or a scheduler slice.
    const SHORTEST_NS: Nanos = 50_000_000;
    /// Maximum number of stalls kept, which only a load of several hours can exceed.
    const MOST: usize = 10_000;

    pub(crate) fn record_wake(&mut self, wake: Nanos, now: Nanos) {
        if now.saturating_sub(wake) >= Self::SHORTEST_NS && self.0.len() < Self::MOST {
            self.0.push((wake, now));
        }
    }
}

pub(crate) fn merged<'a>(workers: impl Iterator<Item = &'a Waits>, last_sign_of_life: Option<Nanos>) -> Censored {
    let [mut in_flight, mut connections, mut unsent] = [(); 3].map(|()| Histogram::new());
    let mut found = Censored::default();
    for waits in workers {
        let until = waits.until;
        waits.in_flight.iter().for_each(|(intended, _)| in_flight.record(until.saturating_sub(*intended)));
        waits.connections.iter().for_each(|sent_at| connections.record(until.saturating_sub(*sent_at)));
        waits.unsent.iter().for_each(|part| unsent.merge(part));
        found.unsent_overdue += waits.unsent_overdue;
        let written =
            waits.connections.iter().copied().filter(|sent_at| last_sign_of_life.is_none_or(|at| *sent_at >= at));
        // Ignore the time in which the worker was stalled and read no responses.
        let silent_ns = written.min().map_or(0, |since| until.saturating_sub(since + waits.stalled_since(since)));
        found.silent_ns = found.silent_ns.max(silent_ns);
    }
    found.in_flight = record::Histogram::from(&in_flight);
    found.connections = record::Histogram::from(&connections);
    found.unsent = record::Histogram::from(&unsent);
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn silence_starts_with_first_request_after_last_response() {
        let check = |sent: &[Nanos], last_sign_of_life, silent_ns| {
            let mut waits = Waits::new(1_000, 50);
            sent.iter().for_each(|sent_at| waits.connection(*sent_at));
            assert_eq!(
                merged([&waits].into_iter(), last_sign_of_life).silent_ns,
                silent_ns,
                "{sent:?} {last_sign_of_life:?}"
            );
        };
        check(&[100, 400, 700], Some(300), 600);
        check(&[100], Some(300), 0); // Other connections got their responses and have sent nothing since.
        check(&[100, 300], Some(300), 700);
        check(&[100, 300], None, 900);
        check(&[], Some(300), 0);
    }

    #[test]
    fn silence_excludes_worker_stalls() {
        const MS: Nanos = 1_000_000;
        let mut stalls = Stalls::default();
        for (wake, now) in [(10, 59), (50, 250), (700, 1_300)] {
            stalls.record_wake(wake * MS, now * MS);
        }
        let mut waits = Waits::new(1_000 * MS, 50 * MS);
        waits.stalled(&stalls, 100 * MS);
        assert_eq!(waits.stalled_since(0), (150 + 300) * MS, "time outside the measurement does not count");
        waits.connection(600 * MS);
        assert_eq!(merged([&waits].into_iter(), Some(500 * MS)).silent_ns, 100 * MS);
    }

    #[test]
    fn separates_sent_from_unsent_requests_before_end() {
        let mut first = Waits::new(1_000, 50);
        first.request(100, 100);
        first.request(300, 900);
        first.request(930, 1_000); // Sent before the worker noticed the end.
        first.request(1_000, 1_000);
        first.connection(1_000);
        let mut second = Waits::new(1_000, 50);
        second.unsent(960);
        second.connection(100);
        let found = merged([&first, &second].into_iter(), Some(950));
        assert_eq!((found.in_flight.count, found.in_flight.min, found.in_flight.max), (2, Some(700), Some(900)));
        assert_eq!((found.unsent.count, found.unsent.min, found.unsent.max), (2, Some(40), Some(70)));
        assert_eq!((found.unsent_overdue, found.connections.count, found.silent_ns), (1, 1, 0));
    }
}
