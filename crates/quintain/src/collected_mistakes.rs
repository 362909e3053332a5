//! Errors in a command line and in its files, collected so that the user sees all of them at once.

use std::cell::RefCell;
use std::ffi::OsStr;
use std::path::Path;

use annotate_snippets::{AnnotationKind, Level, Renderer, Snippet};
use clap::builder::TypedValueParser;
use clap::parser::ValueSource;
use clap::{Arg, ArgMatches, Args, Command, Id};
use config::Invalid;
use study::Diagnostic;

use crate::command_result::{Exit, Problem, Result, usage};

thread_local! {
    /// Errors in the values of flags that clap has parsed on this thread.
    static INVALID_FLAGS: RefCell<Vec<Problem>> = const { RefCell::new(Vec::new()) };
}

/// Value parser for clap that never fails, so that an invalid flag does not hide errors in others. It keeps the error
/// for [`Mistakes::of_flags`] and returns a default, which no command uses because [`Mistakes::end`] fails.
#[derive(Clone)]
pub(crate) struct Collected<F>(pub(crate) F);

impl<F, T, E> TypedValueParser for Collected<F>
where
    F: Fn(&str) -> Result<T, E> + Clone + Send + Sync + 'static,
    T: Clone + Default + Send + Sync + 'static,
    E: Into<Problem>,
{
    type Value = T;

    fn parse_ref(&self, command: &Command, flag: Option<&Arg>, value: &OsStr) -> Result<T, clap::Error> {
        let invalid = || clap::Error::new(clap::error::ErrorKind::InvalidUtf8).with_cmd(command);
        Ok((self.0)(value.to_str().ok_or_else(invalid)?).unwrap_or_else(|error| {
            let Problem { error, hint, .. } = error.into();
            let flag = flag.and_then(Arg::get_long).map(|flag| format!("`--{flag}`: ")).unwrap_or_default();
            let problem = usage(format!("{flag}{error}")).hint_if(hint);
            INVALID_FLAGS.with_borrow_mut(|problems| problems.push(problem));
            T::default()
        }))
    }
}

#[derive(Debug, Default)]
pub(crate) struct Mistakes {
    problems: Vec<Problem>,
    /// Flags on the command line.
    given: Vec<Id>,
}

impl Mistakes {
    pub(crate) fn of_flags(flags: &ArgMatches) -> Self {
        let is_given = |id: &&Id| flags.value_source(id.as_str()) == Some(ValueSource::CommandLine);
        Self { problems: INVALID_FLAGS.take(), given: flags.ids().filter(is_given).cloned().collect() }
    }

    pub(crate) fn add(&mut self, problem: impl Into<Problem>) {
        self.problems.push(problem.into());
    }

    /// Returns the value of `result`, or adds its error and returns `None`.
    pub(crate) fn ok<T, E: Into<Problem>>(&mut self, result: Result<T, E>) -> Option<T> {
        result.map_err(|error| self.add(error)).ok()
    }

    /// Returns the value of `result`, or adds each of its errors under `flag` and returns `None`.
    pub(crate) fn all_ok<T>(&mut self, flag: &str, result: Result<T, Vec<Invalid>>) -> Option<T> {
        result.map_err(|errors| errors.into_iter().for_each(|error| self.add(error.of(flag)))).ok()
    }

    /// Adds an error for each of `flags` that is on the command line, with `why` after its name.
    pub(crate) fn refuse(&mut self, flags: &[&str], why: &str, hint: &str) {
        for flag in flags {
            if self.given.iter().any(|id| *id == flag[2..].replace('-', "_")) {
                self.add(usage(format!("`{flag}` {why}")).hint(hint));
            }
        }
    }

    /// Adds an error for each flag of `A` that is on the command line and `is_foreign`, in the order of help.
    pub(crate) fn refuse_of<A: Args>(&mut self, is_foreign: impl Fn(&str, &Arg) -> bool, why: &str, hint: &str) {
        for arg in A::augment_args(Command::new("quintain")).get_arguments() {
            let flag = format!("--{}", arg.get_long().unwrap_or_default());
            if self.given.contains(arg.get_id()) && flag != "--" && is_foreign(&flag, arg) {
                self.add(usage(format!("`{flag}` {why}")).hint(hint));
            }
        }
    }

    pub(crate) fn in_file(&mut self, path: &Path, text: &str, mistakes: &[Diagnostic]) {
        let problem = |mistake| Problem::rendered(Exit::Usage, rendered(path, text, std::slice::from_ref(mistake)));
        self.problems.extend(mistakes.iter().map(problem));
    }

    pub(crate) fn end(mut self) -> Result<()> {
        let count = self.problems.len();
        if count == 0 {
            return Ok(());
        }
        if let Some(problem) = self.problems.pop_if(|problem| count == 1 && !problem.rendered) {
            return Err(problem);
        }
        let shown = |problem: &Problem| problem.shown() + if problem.rendered { "" } else { "\n\n" };
        let out = self.problems.iter().map(shown).collect::<String>();
        let s = if count == 1 { "" } else { "s" };
        Err(Problem::rendered(Exit::Usage, format!("{out}{count} error{s}")))
    }
}

pub(crate) fn rendered(path: &Path, text: &str, mistakes: &[Diagnostic]) -> String {
    let renderer = Renderer::plain();
    let path = path.display().to_string();
    let mut out = String::new();
    for mistake in mistakes {
        let (source, origin) = match &mistake.set {
            Some(set) => (set.as_str(), "--set"),
            None => (text, path.as_str()),
        };
        let span = mistake.span.start.min(source.len())..mistake.span.end.min(source.len());
        let snippet = Snippet::source(source).path(origin).annotation(AnnotationKind::Primary.span(span));
        let mut group = Level::ERROR.primary_title(mistake.message.as_str()).element(snippet);
        if let Some(hint) = &mistake.hint {
            group = group.element(Level::HELP.message(hint.as_str()));
        }
        out.push_str(&renderer.render(&[group]));
        out.push_str("\n\n");
    }
    out
}
