//! A check: a name, a promise and a function that tests it on a fresh server process.

use std::time::Duration;

use study::cases::Case;
use study::verification::Miss;

use super::conversation;
use super::server::Server;

pub(super) const END: Duration = Duration::from_secs(1);

pub(super) type Run = Box<dyn Fn(&mut Server<'_>) -> Result<(), Trouble>>;

pub(super) struct Check {
    /// Name in the table and for `--case`.
    pub(super) name: String,
    pub(super) promise: String,
    /// Whether the server has ended after a successful check.
    pub(super) ends: bool,
    pub(super) needs_process: bool,
    pub(super) run: Run,
}

impl Check {
    pub(super) fn code(name: &str, promise: &str, run: fn(&mut Server<'_>) -> Result<(), Trouble>) -> Check {
        let (name, promise) = (name.to_owned(), promise.to_owned());
        Check { name, promise, ends: false, needs_process: false, run: Box::new(run) }
    }

    pub(super) fn data(case: Case, seed: u64) -> Check {
        let (name, promise) = (case.name.clone(), case.promise.clone());
        let run: Run = Box::new(move |server| conversation::check(server, &case, seed));
        Check { name, promise, ends: false, needs_process: false, run }
    }

    pub(super) fn of_process(self) -> Check {
        Check { needs_process: true, ..self }
    }

    pub(super) fn ending(self) -> Check {
        Check { ends: true, ..self.of_process() }
    }
}

/// A server that could not be started, so nothing was checked.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotStarted {
    /// It reported that this machine cannot run it.
    #[error("cannot run here: {0}")]
    Unrunnable(String),
    /// Any other reason.
    #[error("{0}")]
    Failed(String),
    /// The caller interrupted it.
    #[error("interrupted")]
    Interrupted,
}

/// Why a check did not pass.
pub(super) enum Trouble {
    Failed(Miss),
    NotChecked(String),
    NotStarted(NotStarted),
}

impl Trouble {
    /// Puts the place of a failure before its message.
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

/// The first bytes, escaped; `...` marks a truncation.
pub(super) fn excerpt(bytes: &[u8]) -> String {
    let shown = &bytes[..bytes.len().min(80)];
    format!("{}{}", shown.escape_ascii(), if shown.len() < bytes.len() { "..." } else { "" })
}
