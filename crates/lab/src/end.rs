//! How a trial ends without a measurement.

use study::record::{Failure, FailureKind};

/// How a build, or a subject at its start, says in a line of its own that this machine cannot run it.
const UNRUNNABLE: &str = "cannot run here:";

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

/// Why this machine cannot run a subject, if its last words say that it cannot.
pub(crate) fn unrunnable(last_words: &str) -> Option<String> {
    let reason = last_words.lines().find_map(|line| line.trim_start().strip_prefix(UNRUNNABLE))?;
    Some(reason.trim().to_owned())
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

    #[test]
    fn a_line_of_its_own_says_that_it_cannot_run() {
        assert_eq!(
            unrunnable("ready\n  cannot run here: no io_uring \nmake: Error 69").as_deref(),
            Some("no io_uring")
        );
        assert_eq!(unrunnable("error: cannot run here: x"), None);
        assert_eq!(unrunnable(""), None);
    }
}
