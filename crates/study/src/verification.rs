//! What `quintain verify` found: case by case, whether a server keeps its contract.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What is checked without a case file, by what is spoken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Suite {
    /// Words plus one.
    Pingpong,
    /// HTTP/1.1.
    Http,
    /// The protocols of caches.
    Cache,
}

/// The suites by their names.
pub const SUITES: [(&str, Suite); 3] = [("pingpong", Suite::Pingpong), ("http", Suite::Http), ("cache", Suite::Cache)];

impl Suite {
    /// The suite of a protocol; `None`: it has none.
    pub fn of(protocol: crate::spec::Protocol) -> Option<Suite> {
        use crate::spec::Protocol;
        match protocol {
            Protocol::Pingpong => Some(Suite::Pingpong),
            Protocol::Http => Some(Suite::Http),
            Protocol::Cache(_) => Some(Suite::Cache),
            Protocol::Https | Protocol::Journey => None,
        }
    }

    /// Its name.
    pub fn name(self) -> &'static str {
        SUITES.iter().find(|(_, suite)| *suite == self).expect("each has a name").0
    }

    /// Its cases that are data, as a case file.
    pub fn text(self) -> &'static str {
        match self {
            Suite::Pingpong => include_str!("cases/pingpong.toml"),
            Suite::Http => include_str!("cases/http.toml"),
            Suite::Cache => "",
        }
    }

    /// Its cases that are data.
    pub fn cases(self) -> Vec<crate::cases::Case> {
        match self.text() {
            "" => Vec::new(),
            text => crate::cases::parse(text).expect("every suite is covered by a test"),
        }
    }
}

/// What came of one server.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Verification {
    /// Its command, or its address.
    pub server: String,
    /// The seed that values were drawn from.
    pub seed: u64,
    /// Whether all cases hold that were checked; none: none was.
    pub holds: Option<bool>,
    /// Why the server could not be started; no case was checked then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_started: Option<String>,
    /// The cases, in the order in which they were checked.
    pub cases: Vec<CaseResult>,
}

/// What came of one case.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CaseResult {
    /// Its name.
    pub name: String,
    /// What is promised.
    pub promise: String,
    /// What came of it.
    #[serde(flatten)]
    pub outcome: CaseOutcome,
    /// Wall time, ns.
    pub elapsed_ns: u64,
}

/// What came of a case.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "outcome", rename_all = "kebab-case")]
pub enum CaseOutcome {
    /// It holds.
    Ok,
    /// It does not.
    Failed(Miss),
    /// It was not checked.
    Skipped {
        /// Why.
        reason: String,
    },
}

/// How a case failed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Miss {
    /// What is wrong, and where: one line.
    pub message: String,
    /// The begin of what was expected, bytes that are not printable escaped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expected: Option<String>,
    /// The begin of what came.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub received: Option<String>,
    /// The first byte in which they differ, from 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub differs_at: Option<u64>,
    /// The begin of what had been sent.
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
    /// Cases that hold, that fail, and that were not checked.
    pub fn counts(&self) -> (usize, usize, usize) {
        let count = |of: fn(&CaseOutcome) -> bool| self.cases.iter().filter(|case| of(&case.outcome)).count();
        (
            count(|outcome| matches!(outcome, CaseOutcome::Ok)),
            count(|outcome| matches!(outcome, CaseOutcome::Failed(_))),
            count(|outcome| matches!(outcome, CaseOutcome::Skipped { .. })),
        )
    }

    /// The first case that failed, and how.
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
    fn suites_are_without_mistakes() {
        for (_, suite) in SUITES {
            let text = suite.text();
            if !text.is_empty() {
                let found = crate::cases::parse(text)
                    .map_err(|all| all.iter().map(|one| one.in_file("suite")).collect::<Vec<_>>());
                assert_eq!(found.map(|cases| cases.len() > 4), Ok(true), "{}", suite.name());
            }
        }
    }

    #[test]
    fn a_miss_in_one_line() {
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
