//! How a verb ends: what the user is told, and the exit code.

use std::fmt::Display;
use std::path::Path;
use std::process::ExitCode;

/// What the exit code of the process says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exit {
    /// 0.
    Fine,
    /// 1: what was asked for was found, as with `--strict`, or a gate failed.
    Findings,
    /// 2: a mistake in what was asked.
    Usage,
    /// 3: the subject failed.
    Subject,
    /// 4: this machine cannot do it.
    Machine,
    /// 125: there is no answer, and whoever asked is to go on without, as `git bisect run` does.
    Skip,
    /// 130: interrupted, as a shell has it.
    Interrupted,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(match exit {
            Exit::Fine => 0,
            Exit::Findings => 1,
            Exit::Usage => 2,
            Exit::Subject => 3,
            Exit::Machine => 4,
            Exit::Skip => 125,
            Exit::Interrupted => 130,
        })
    }
}

/// Why a verb could not do its work: an error, perhaps a hint, and the exit code.
#[derive(Debug)]
pub(crate) struct Problem {
    pub(crate) exit: Exit,
    pub(crate) error: anyhow::Error,
    pub(crate) hint: Option<String>,
    /// The text stands by itself: several mistakes, rendered with their places.
    pub(crate) rendered: bool,
}

/// What every verb returns.
pub(crate) type Done = Result<Exit, Problem>;

impl Problem {
    pub(crate) fn new(exit: Exit, error: impl Into<anyhow::Error>) -> Self {
        Self { exit, error: error.into(), hint: None, rendered: false }
    }

    /// A problem of which there is only a sentence.
    pub(crate) fn text(exit: Exit, text: impl Display) -> Self {
        Self::new(exit, anyhow::anyhow!("{text}"))
    }

    /// Text that was rendered elsewhere and needs no `error:` before it.
    pub(crate) fn rendered(exit: Exit, text: String) -> Self {
        Self { exit, error: anyhow::Error::msg(text), hint: None, rendered: true }
    }

    /// The problem of a run that can continue with the command line `resume`.
    pub(crate) fn resumable(self, resume: &str) -> Self {
        self.hint(format!("the trials so far are stored; once the cause is removed, continue with `{resume}`"))
    }

    /// The same with a hint, if there is one.
    pub(crate) fn hint_if(self, hint: Option<impl Display>) -> Self {
        Self { hint: hint.map(|hint| hint.to_string()).or(self.hint), ..self }
    }

    pub(crate) fn hint(mut self, hint: impl Display) -> Self {
        self.hint = Some(hint.to_string());
        self
    }
}

/// The error alone, without its hint.
/// Says that a file or directory could not be dealt with: `cannot read \`FILE\``.
pub(crate) fn cannot<'a>(exit: Exit, doing: &'a str, path: &'a Path) -> impl Fn(std::io::Error) -> Problem + 'a {
    move |error| {
        let text = format!("cannot {doing} `{}`", path.display());
        Problem::new(exit, anyhow::Error::new(error).context(text))
    }
}

impl Display for Problem {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&chain(&self.error))
    }
}

/// An error and its causes. A cause that the text before it has already told is left out.
fn chain(error: &anyhow::Error) -> String {
    let mut text = String::new();
    for cause in error.chain().map(ToString::to_string) {
        if text.is_empty() {
            text = cause;
        } else if !text.contains(&cause) {
            text = format!("{text}: {cause}");
        }
    }
    text
}

impl From<store::StoreError> for Problem {
    fn from(error: store::StoreError) -> Self {
        let (exit, hint) = match error {
            store::StoreError::Missing { .. } => {
                (Exit::Usage, Some("`quintain run STUDY` makes one; `--store FILE` names another"))
            }
            store::StoreError::Full { .. } => (Exit::Machine, Some("free some space, then repeat the command")),
            _ => (Exit::Usage, None),
        };
        Self { hint: hint.map(str::to_owned), ..Problem::new(exit, error) }
    }
}

/// This binary, which is also the generator.
pub(crate) fn exe() -> Result<std::path::PathBuf, Problem> {
    std::env::current_exe().map_err(|error| {
        Problem::new(Exit::Machine, anyhow::Error::new(error).context("cannot locate the quintain executable"))
    })
}

pub(crate) fn machine(error: impl Into<anyhow::Error>) -> Problem {
    Problem::new(Exit::Machine, error)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn causes_already_told_are_left_out() {
        let cause = std::io::Error::other("database or disk is full");
        let error =
            anyhow::Error::new(cause).context("`a.db`: database or disk is full").context("cannot store trial 3");
        let problem = Problem::new(Exit::Machine, error).resumable("quintain run a --resume r");
        assert_eq!(problem.to_string(), "cannot store trial 3: `a.db`: database or disk is full");
        assert!(problem.hint.unwrap().ends_with("`quintain run a --resume r`"));
    }
}
