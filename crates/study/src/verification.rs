//! Results of `quintain verify`: whether a server meets its contract, case by case.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Suites of built-in cases, one per kind of protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Suite {
    /// Volley's ping-pong, in which the server returns each word plus one.
    Pingpong,
    /// HTTP/1.1 servers.
    Http,
    /// HTTP/2 servers without TLS.
    Http2,
    /// Caches of any protocol.
    Cache,
}

/// The suites with their names on the command line.
pub const SUITES: [(&str, Suite); 4] =
    [("pingpong", Suite::Pingpong), ("http", Suite::Http), ("http2", Suite::Http2), ("cache", Suite::Cache)];

impl Suite {
    /// The suite for a protocol; `None` if it has none.
    pub fn of(protocol: crate::spec::Protocol) -> Option<Suite> {
        use crate::spec::Protocol;
        match protocol {
            Protocol::Pingpong => Some(Suite::Pingpong),
            Protocol::Http => Some(Suite::Http),
            Protocol::Cache(_) => Some(Suite::Cache),
            Protocol::Https | Protocol::Journey => None,
        }
    }

    /// The suite for a load; `None` if it has none.
    pub fn of_load(load: &crate::plan::LoadPlan) -> Option<Suite> {
        let suite = Suite::of(load.protocol)?;
        match &load.http {
            Some(http) if http.expect.grpc => None,
            Some(http) if http.http2 => Some(Suite::Http2),
            _ => Some(suite),
        }
    }

    /// The suite's declarative cases.
    pub fn cases(self) -> Vec<crate::cases::Case> {
        let text = match self {
            Suite::Pingpong => include_str!("cases/pingpong.toml"),
            Suite::Http => include_str!("cases/http.toml"),
            Suite::Http2 | Suite::Cache => return Vec::new(),
        };
        crate::cases::parse(text).expect("every suite is covered by a test")
    }
}

/// Results of verifying one server.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Verification {
    /// Command line or address of the server.
    pub server: String,
    /// Seed of the random values in the cases.
    pub seed: u64,
    /// Whether all checked cases hold; `None` if no case was checked.
    pub holds: Option<bool>,
    /// Why the server could not be started, in which case nothing was checked; `None` if it was started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_started: Option<String>,
    /// Results of the cases, in the order in which they were checked.
    pub cases: Vec<CaseResult>,
}

/// Result of one case.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CaseResult {
    /// Name of the case.
    pub name: String,
    /// Promise that the case checks, in one line.
    pub promise: String,
    /// Whether the promise holds, or why it was not checked.
    #[serde(flatten)]
    pub outcome: CaseOutcome,
    /// Wall time of the case, ns.
    pub elapsed_ns: u64,
}

/// Outcome of checking a case.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "outcome", rename_all = "kebab-case")]
pub enum CaseOutcome {
    /// The promise holds.
    Ok,
    /// The promise does not hold.
    Failed(Miss),
    /// The promise was not checked.
    Skipped {
        /// Reason why the promise was not checked.
        reason: String,
    },
}

/// How a case failed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Miss {
    /// The error and its location, in one line.
    pub message: String,
    /// Start of the expected response, with escapes for unprintable bytes; `None` if there is none to show.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expected: Option<String>,
    /// Start of the received response, with escapes for unprintable bytes; `None` if there is none to show.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub received: Option<String>,
    /// Offset of the first byte in which the responses differ, from 0; `None` if bytes were not compared.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub differs_at: Option<u64>,
    /// Start of the bytes sent, with escapes for unprintable bytes; `None` if there is nothing to show.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sent: Option<String>,
}

impl From<String> for Miss {
    fn from(message: String) -> Self {
        Self { message, ..Self::default() }
    }
}

impl fmt::Display for Miss {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)?;
        match (&self.expected, &self.received) {
            (Some(expected), Some(received)) => write!(f, ": expected `{expected}`, received `{received}`")?,
            (Some(expected), None) => write!(f, ": expected `{expected}`")?,
            (None, Some(received)) => write!(f, ": received `{received}`")?,
            (None, None) => {}
        }
        self.differs_at.map_or(Ok(()), |at| write!(f, ", first difference at byte {at}"))
    }
}

impl Verification {
    /// Numbers of cases that held, failed and were skipped, in this order.
    pub fn counts(&self) -> (usize, usize, usize) {
        self.cases.iter().fold((0, 0, 0), |(hold, fail, skipped), case| match case.outcome {
            CaseOutcome::Ok => (hold + 1, fail, skipped),
            CaseOutcome::Failed(_) => (hold, fail + 1, skipped),
            CaseOutcome::Skipped { .. } => (hold, fail, skipped + 1),
        })
    }

    /// Name of the first failed case and how it failed; `None` if no case failed.
    pub fn first_miss(&self) -> Option<(&str, &Miss)> {
        self.cases.iter().find_map(|case| match &case.outcome {
            CaseOutcome::Failed(miss) => Some((case.name.as_str(), miss)),
            _ => None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn suites_have_no_errors() {
        let counts = SUITES.map(|(name, suite)| (name, suite.cases().len() > 4));
        assert_eq!(counts, [("pingpong", true), ("http", true), ("http2", false), ("cache", false)]);
    }

    #[test]
    fn formats_a_miss_on_one_line() {
        let miss = Miss {
            message: "request 2: body".to_owned(),
            expected: Some("test".to_owned()),
            received: Some("tset".to_owned()),
            differs_at: Some(1),
            sent: None,
        };
        let text = "request 2: body: expected `test`, received `tset`, first difference at byte 1";
        assert_eq!(miss.to_string(), text);
    }
}
