//! Why a check did not succeed: it failed, it could not be carried out, or the server did not start.

use std::time::Duration;

use study::verification::Miss;

use crate::trial_end_reason::End;

pub(super) const END: Duration = Duration::from_secs(1);

pub(super) enum Trouble {
    Failed(Miss),
    NotChecked(String),
    NotStarted(End),
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

impl From<End> for Trouble {
    fn from(end: End) -> Trouble {
        Trouble::NotStarted(end)
    }
}

pub(super) fn excerpt(bytes: &[u8]) -> String {
    let shown = &bytes[..bytes.len().min(80)];
    format!("{}{}", shown.escape_ascii(), if shown.len() < bytes.len() { "..." } else { "" })
}
