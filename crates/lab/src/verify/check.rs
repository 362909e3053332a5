//! A check: a name, a promise, and what looks whether it is kept, against a fresh process of the server.

use std::time::Duration;

use study::cases::Case;

use super::conversation;
use super::server::Server;
use super::trouble::Trouble;

/// A server must end within this after it was told to.
pub(super) const END: Duration = Duration::from_secs(1);

/// What looks whether a server keeps a promise.
pub(super) type Run = Box<dyn Fn(&mut Server<'_>) -> Result<(), Trouble>>;

/// What a server must do, as a name and a check.
pub(super) struct Check {
    /// As the table and `--case` call it.
    pub(super) name: String,
    /// What is promised.
    pub(super) promise: String,
    /// Whether the server has ended when the check has passed.
    pub(super) ends: bool,
    /// Whether it looks at the process of the server.
    pub(super) needs_process: bool,
    pub(super) run: Run,
}

impl Check {
    /// One that is code.
    pub(super) fn code(name: &str, promise: &str, run: fn(&mut Server<'_>) -> Result<(), Trouble>) -> Check {
        let (name, promise) = (name.to_owned(), promise.to_owned());
        Check { name, promise, ends: false, needs_process: false, run: Box::new(run) }
    }

    /// One that is data.
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
