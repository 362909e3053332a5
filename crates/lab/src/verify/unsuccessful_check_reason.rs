//! Why a check did not succeed: it failed, it could not be carried out, or the server did not start.

use std::time::Duration;

use study::verification::Miss;

pub(super) const END: Duration = Duration::from_secs(1);

/// Why a server could not be started, so that nothing was checked.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotStarted {
    /// The server reported that this machine cannot run it.
    #[error("cannot run here: {0}")]
    Unrunnable(String),
    /// The server failed to start for this reason, which is not a limitation of the machine.
    #[error("{0}")]
    Failed(String),
    /// The caller interrupted the start.
    #[error("interrupted")]
    Interrupted,
}

pub(super) enum Trouble {
    Failed(Miss),
    NotChecked(String),
    NotStarted(NotStarted),
}

impl Trouble {
    pub(super) fn at(self, place: &str) -> Trouble {
        match self {
            Trouble::Failed(miss) => Trouble::Failed(Miss { message: format!("{place}{}", miss.message), ..miss }),
            other => other,
        }
    }
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

pub(super) fn excerpt(bytes: &[u8]) -> String {
    let shown = &bytes[..bytes.len().min(80)];
    format!("{}{}", shown.escape_ascii(), if shown.len() < bytes.len() { "..." } else { "" })
}
