//! How a trial ends without a measurement.

use study::record::{Failure, FailureKind};

/// Why a trial has no measurement.
#[derive(Debug)]
pub(crate) enum End {
    /// For the record.
    Failed(Failure),
    /// We were asked to end: no record.
    Interrupted,
    /// A machine of the cluster is lost: no record, and no further trial.
    Lost(String),
}

pub(crate) fn failed(kind: FailureKind, message: impl Into<String>) -> End {
    End::Failed(Failure { kind, message: message.into() })
}

/// `; last output: ...` with the last line of `text`, if there is one that says more than that it was ready.
pub(crate) fn saying(text: &str) -> String {
    let line = text.lines().rev().find(|line| !line.trim().is_empty()).filter(|line| !line.starts_with("ready "));
    line.map_or_else(String::new, |line| format!("; last output: {}", line.trim()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn last_words_that_say_something() {
        assert_eq!(saying("ready 7000\npanic: no memory\n\n"), "; last output: panic: no memory");
        assert_eq!(saying("ready 7000\n"), "");
        assert_eq!(saying(""), "");
    }
}
