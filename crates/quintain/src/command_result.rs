//! Result of a command: an exit code, or an error with a hint.

use std::fmt::Display;
use std::path::Path;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exit {
    Fine = 0,
    Findings = 1,
    Usage = 2,
    Subject = 3,
    Machine = 4,
    /// No result: the caller should skip this revision, as `git bisect run` does on this code.
    Skip = 125,
    /// Interrupted by a signal; shells report SIGINT with this code.
    Interrupted = 130,
}

#[derive(Debug)]
pub(crate) struct Problem {
    pub(crate) exit: Exit,
    pub(crate) error: anyhow::Error,
    pub(crate) hint: Option<String>,
    /// Whether `error` consists of errors that are already rendered with their locations.
    pub(crate) rendered: bool,
}

pub(crate) type Result<T, E = Problem> = std::result::Result<T, E>;
pub(crate) type Done = Result<Exit>;

impl Problem {
    pub(crate) fn new(exit: Exit, error: impl Into<anyhow::Error>) -> Self {
        Self { exit, error: error.into(), hint: None, rendered: false }
    }

    pub(crate) fn text(exit: Exit, text: impl Display) -> Self {
        Self::new(exit, anyhow::anyhow!("{text}"))
    }

    /// Creates a problem whose text is already rendered and needs no `error:` prefix.
    pub(crate) fn rendered(exit: Exit, text: String) -> Self {
        Self { exit, error: anyhow::Error::msg(text), hint: None, rendered: true }
    }

    pub(crate) fn resumable(self, resume: &str) -> Self {
        self.hint(format!("the trials so far are stored; once the cause is removed, continue with `{resume}`"))
    }

    pub(crate) fn hint_if(self, hint: Option<impl Display>) -> Self {
        Self { hint: hint.map(|hint| hint.to_string()).or(self.hint), ..self }
    }

    pub(crate) fn hint(self, hint: impl Display) -> Self {
        self.hint_if(Some(hint))
    }

    pub(crate) fn shown(&self) -> String {
        let error = if self.rendered { "" } else { "error: " };
        let hint = self.hint.iter().map(|hint| format!("\n  = help: {hint}")).collect::<String>();
        format!("{error}{self}{hint}")
    }
}

/// Returns a function that turns an error into a problem with `what` as its context.
pub(crate) fn because<E: Into<anyhow::Error>>(exit: Exit, what: impl Display) -> impl Fn(E) -> Problem {
    move |error| Problem::new(exit, error.into().context(what.to_string()))
}

/// Returns a function that turns an I/O error into a problem such as `cannot read \`FILE\``.
pub(crate) fn cannot(exit: Exit, doing: &str, path: &Path) -> impl Fn(std::io::Error) -> Problem {
    because(exit, format!("cannot {doing} `{}`", path.display()))
}

impl Display for Problem {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let causes = self.error.chain().map(ToString::to_string);
        let text = causes.reduce(|text, cause| if text.contains(&cause) { text } else { format!("{text}: {cause}") });
        f.write_str(&text.unwrap_or_default())
    }
}

impl From<String> for Problem {
    fn from(text: String) -> Self {
        usage(text)
    }
}

impl From<config::Invalid> for Problem {
    fn from(invalid: config::Invalid) -> Self {
        usage(invalid.message).hint_if(invalid.hint)
    }
}

impl From<store::StoreError> for Problem {
    fn from(error: store::StoreError) -> Self {
        let hint = match error {
            store::StoreError::Full(_) => return machine(error).hint("free some space, then repeat the command"),
            store::StoreError::Missing(_) => Some("`quintain run STUDY` makes one; `--store FILE` names another"),
            _ => None,
        };
        Problem::new(Exit::Usage, error).hint_if(hint)
    }
}

pub(crate) fn exe() -> Result<std::path::PathBuf> {
    std::env::current_exe().map_err(because(Exit::Machine, "cannot locate the quintain executable"))
}

pub(crate) fn usage(text: impl Display) -> Problem {
    Problem::text(Exit::Usage, text)
}

pub(crate) fn machine(error: impl Into<anyhow::Error>) -> Problem {
    Problem::new(Exit::Machine, error)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repeated_causes_are_left_out() {
        let cause = std::io::Error::other("database or disk is full");
        let error =
            anyhow::Error::new(cause).context("`a.db`: database or disk is full").context("cannot store trial 3");
        let problem = Problem::new(Exit::Machine, error).resumable("quintain run a --resume r");
        assert_eq!(problem.to_string(), "cannot store trial 3: `a.db`: database or disk is full");
        assert!(problem.hint.unwrap().ends_with("`quintain run a --resume r`"));
    }
}
