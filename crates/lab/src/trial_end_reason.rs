//! Reasons for the end of a trial, or of a verification, without a result.

use study::record::{Failure, FailureKind};

/// Prefix of the line in which a build or server reports that this machine cannot run it.
const UNRUNNABLE: &str = "cannot run here:";

/// Why a trial or a verification has no result.
#[derive(Debug, thiserror::Error)]
pub enum End {
    /// A process failed. With [`FailureKind::Unrunnable`], it reported that this machine cannot run it.
    #[error("{}", .0.message)]
    Failed(Failure),
    /// The caller interrupted the lab. The trial leaves no record.
    #[error("interrupted")]
    Interrupted,
    /// A machine of the cluster was lost, for this reason. There is no record, and no trial follows.
    #[error("{0}")]
    Lost(String),
}

pub(crate) fn failed(kind: FailureKind, message: impl Into<String>) -> End {
    End::Failed(Failure { kind, message: message.into() })
}

pub(crate) fn saying(text: &str) -> String {
    let line = text.lines().rev().find(|line| !line.trim().is_empty()).filter(|line| !line.starts_with("ready "));
    line.map_or_else(String::new, |line| format!("; last output: {}", line.trim()))
}

pub(crate) fn unrunnable(last_words: &str) -> Option<String> {
    Some(last_words.lines().find_map(|line| line.trim_start().strip_prefix(UNRUNNABLE))?.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotes_the_last_line_of_output() {
        assert_eq!(saying("ready 7000\npanic: no memory\n\n"), "; last output: panic: no memory");
        assert_eq!(saying("ready 7000\n"), "");
        assert_eq!(saying(""), "");
    }

    #[test]
    fn finds_the_line_that_reports_an_unrunnable_server() {
        assert_eq!(
            unrunnable("ready\n  cannot run here: no io_uring \nmake: Error 69").as_deref(),
            Some("no io_uring")
        );
        assert_eq!(unrunnable("error: cannot run here: x"), None);
        assert_eq!(unrunnable(""), None);
    }
}
