//! What a check comes to where a promise is not kept.

use study::verification::Miss;

/// A server that could not be started, so that nothing was checked.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotStarted {
    /// It says that this machine cannot run it.
    #[error("cannot run here: {0}")]
    Unrunnable(String),
    /// Anything else.
    #[error("{0}")]
    Failed(String),
    /// We were asked to end.
    #[error("interrupted")]
    Interrupted,
}

/// Why a check did not pass.
pub(super) enum Trouble {
    /// The server broke its promise.
    Failed(Miss),
    /// It could not be looked at here.
    NotChecked(String),
    /// The server did not start.
    NotStarted(NotStarted),
}

impl From<String> for Trouble {
    fn from(why: String) -> Trouble {
        Trouble::Failed(why.into())
    }
}

impl From<Miss> for Trouble {
    fn from(miss: Miss) -> Trouble {
        Trouble::Failed(miss)
    }
}

impl From<NotStarted> for Trouble {
    fn from(error: NotStarted) -> Trouble {
        Trouble::NotStarted(error)
    }
}

/// The begin of bytes, for a message, not without an end that is cut off.
pub(super) fn excerpt(bytes: &[u8]) -> String {
    let shown = &bytes[..bytes.len().min(80)];
    format!("{}{}", shown.escape_ascii(), if shown.len() < bytes.len() { "..." } else { "" })
}
