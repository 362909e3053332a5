//! A check: a name, a promise and a function that tests it on a fresh server process.

use super::server_under_test::Server;
use super::unsuccessful_check_reason::Trouble;

type Run = Box<dyn Fn(&mut Server<'_>) -> Result<(), Trouble>>;

pub(super) struct Check {
    pub(super) name: String,
    pub(super) promise: String,
    /// Whether a successful check ends the server.
    pub(super) ends: bool,
    pub(super) needs_process: bool,
    pub(super) run: Run,
}

pub(super) fn code(name: &str, promise: &str, run: impl Fn(&mut Server<'_>) -> Result<(), Trouble> + 'static) -> Check {
    let (name, promise) = (name.to_owned(), promise.to_owned());
    Check { name, promise, ends: false, needs_process: false, run: Box::new(run) }
}

impl Check {
    pub(super) fn of_process(self) -> Check {
        Check { needs_process: true, ..self }
    }

    pub(super) fn ending(self) -> Check {
        Check { ends: true, ..self.of_process() }
    }
}
