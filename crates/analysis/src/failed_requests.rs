//! Sentences about failed requests, with their number, share, and kind or HTTP status.

use std::collections::BTreeMap;

use study::record::Measurement;

use crate::findings::Row;
use crate::number::{grouped, percent, total};

/// Numbers of valid and failed requests of a load, a trial or a design point.
#[derive(Clone, Copy, Debug)]
pub struct FailedRequests<'a> {
    pub(crate) valid: u64,
    pub(crate) errors: &'a BTreeMap<String, u64>,
    pub(crate) statuses: &'a BTreeMap<u16, u64>,
    pub(crate) examples: &'a BTreeMap<String, String>,
}

impl<'a> From<&'a Measurement> for FailedRequests<'a> {
    fn from(of: &'a Measurement) -> Self {
        Self { valid: of.requests, errors: &of.errors, statuses: &of.statuses, examples: &of.error_examples }
    }
}

impl<'a> From<&'a Row> for FailedRequests<'a> {
    fn from(of: &'a Row) -> Self {
        Self { valid: of.requests, errors: &of.errors, statuses: &of.statuses, examples: &of.error_examples }
    }
}

impl<'a> FailedRequests<'a> {
    /// Number of failed requests of all kinds.
    pub fn count(&self) -> u64 {
        total(self.errors.values().copied())
    }

    /// Whether requests were made and all of them failed.
    pub fn is_all(&self) -> bool {
        self.valid == 0 && self.count() > 0
    }

    /// Describes failures: `15 of 18,056 requests failed (0.083 %): 12 status 503, 3 timeout`. `None` without failures.
    pub fn sentence(&self) -> Option<String> {
        self.share().map(|share| format!("{share}: {}", self.kinds().join(", ")))
    }

    /// Describes failures without their kinds: `15 of 18,056 requests failed (0.083 %)`. `None` without failures.
    pub fn share(&self) -> Option<String> {
        let failed = self.count();
        match failed {
            0 => None,
            1 if self.is_all() => Some("the only request failed".to_owned()),
            _ if self.is_all() => Some(format!("all {} requests failed", grouped(failed))),
            _ => {
                let all = self.valid.saturating_add(failed);
                let share = percent(failed as f64 / all as f64);
                Some(format!("{} of {} requests failed ({share})", grouped(failed), grouped(all)))
            }
        }
    }

    /// Returns the HTTP status that all failed requests have in common; `None` if there is none.
    pub fn only_status(&self) -> Option<u16> {
        let by_status = self.errors.get("status").copied().filter(|count| *count == self.count())?;
        let statuses = self.failed_statuses("status", by_status);
        (statuses.len() == 1).then(|| statuses[0].0)
    }

    /// Returns the most frequent failure, such as `status 503` or `timeout`; `None` without failures.
    pub fn most_frequent(&self) -> Option<String> {
        let (kind, count) = self.errors.iter().filter(|(_, count)| **count > 0).max_by_key(|(_, count)| **count)?;
        let status = self.failed_statuses(kind, *count).into_iter().max_by_key(|(_, count)| *count);
        Some(status.map_or_else(|| kind.clone(), |(status, _)| format!("status {status}")))
    }

    fn kinds(&self) -> Vec<String> {
        let kinds = self.errors.iter().filter(|(_, count)| **count > 0).collect::<Vec<_>>();
        let alone = kinds.len() == 1;
        let words = |(kind, count): (&String, &u64)| match self.failed_statuses(kind, *count).as_slice() {
            [] | [_] if alone && self.is_all() => {
                let explained = self.examples.get(kind).map_or(explanation(kind), String::as_str);
                vec![if explained.is_empty() { kind.clone() } else { explained.to_owned() }]
            }
            [] => vec![format!("{} {kind}", grouped(*count))],
            all => all.iter().map(|(status, count)| format!("{} status {status}", grouped(*count))).collect(),
        };
        kinds.into_iter().flat_map(words).collect()
    }

    /// Failed responses by status; empty for other kinds of errors, and unless all requests failed or exactly `failed`
    /// responses were outside 2xx.
    fn failed_statuses(&self, kind: &str, failed: u64) -> Vec<(u16, u64)> {
        let all = || self.statuses.iter().map(|(status, count)| (*status, *count));
        let unusual = || all().filter(|(status, _)| !(200..300).contains(status));
        match failed {
            _ if kind != "status" || failed == 0 => Vec::new(),
            _ if self.valid == 0 && total(all().map(|(_, count)| count)) == failed => all().collect(),
            _ if total(unusual().map(|(_, count)| count)) == failed => unusual().collect(),
            _ => Vec::new(),
        }
    }
}

/// Formats the number of failed requests and their share of all requests for a table: `0`, `5657 (20 %)`.
pub fn count_and_share(failed: u64, valid: u64) -> String {
    let share = failed as f64 / valid.saturating_add(failed) as f64;
    if failed == 0 { "0".to_owned() } else { format!("{failed} ({})", percent(share)) }
}

/// Explains a kind of error for which records keep no example; empty for kinds without an explanation.
pub fn explanation(kind: &str) -> &'static str {
    match kind {
        "closed" => "the server closed a connection with a request pending",
        "closed-between" => "the server closed a reused connection before sending any part of the response",
        "truncated" => "the server closed a connection in the middle of a response",
        "reset" => "the server reset a connection with a request pending",
        "timeout" => "no response in time",
        "refused" => "connection refused on reconnect",
        "connect-timeout" => "connect timeout",
        _ => "",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sentence(
        valid: u64,
        errors: &[(&str, u64)],
        statuses: &[(u16, u64)],
        example: Option<&str>,
    ) -> (Option<String>, Option<u16>) {
        let errors = errors.iter().map(|(kind, count)| ((*kind).to_owned(), *count)).collect();
        let examples = example.iter().map(|example| ("status".to_owned(), (*example).to_owned())).collect();
        let statuses = statuses.iter().copied().collect();
        let of = FailedRequests { valid, errors: &errors, statuses: &statuses, examples: &examples };
        (of.sentence(), of.only_status())
    }

    #[test]
    fn sentence_has_count_share_and_status() {
        let status = Some("status 401 (expected 2xx)");
        for (valid, errors, statuses, example, expected, only_status) in [
            (7, &[][..], &[(200, 7)][..], None, None, None),
            (
                0,
                &[("status", 18_254)],
                &[(401, 18_254)],
                status,
                Some("all 18,254 requests failed: status 401 (expected 2xx)"),
                Some(401),
            ),
            (
                0,
                &[("status", 1)],
                &[(401, 1)],
                status,
                Some("the only request failed: status 401 (expected 2xx)"),
                Some(401),
            ),
            (
                0,
                &[("status", 1_000)],
                &[(200, 900), (503, 100)],
                Some("status 200 (expected 404)"),
                Some("all 1,000 requests failed: 900 status 200, 100 status 503"),
                None,
            ),
            (0, &[("refused", 40)], &[], None, Some("all 40 requests failed: connection refused on reconnect"), None),
            (0, &[("odd", 40)], &[], None, Some("all 40 requests failed: odd"), None),
            (
                18_041,
                &[("status", 12), ("timeout", 3)],
                &[(200, 18_041), (503, 12)],
                status,
                Some("15 of 18,056 requests failed (0.083 %): 12 status 503, 3 timeout"),
                None,
            ),
            // Status 200 was a failure here and 404 was expected, so the statuses do not show which requests failed.
            (
                50,
                &[("status", 50)],
                &[(200, 50), (404, 49)],
                status,
                Some("50 of 100 requests failed (50 %): 50 status"),
                None,
            ),
        ] {
            let found = sentence(valid, errors, statuses, example);
            assert_eq!((found.0.as_deref(), found.1), (expected, only_status), "{errors:?} {statuses:?}");
        }
    }

    #[test]
    fn cells_have_the_share() {
        assert_eq!([count_and_share(0, 0), count_and_share(5_657, 22_628)], ["0", "5657 (20 %)"]);
        assert_eq!(count_and_share(u64::MAX, u64::MAX).split(' ').count(), 3);
    }
}
