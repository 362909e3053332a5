//! Errors in a command line and in files with their locations, collected so that all are reported
//! at once.

use std::path::Path;

use annotate_snippets::{AnnotationKind, Level, Renderer, Snippet};
use study::Diagnostic;

use crate::cli::Given;
use crate::message::{Exit, Problem};

/// Errors of one command line, in the order in which they were found.
#[derive(Debug, Default)]
pub(crate) struct Mistakes {
    found: Vec<Mistake>,
}

#[derive(Debug)]
enum Mistake {
    Plain { text: String, hint: Option<String> },
    InFile { count: usize, text: String },
}

impl Mistakes {
    pub(crate) fn add(&mut self, text: impl Into<String>, hint: Option<String>) {
        self.found.push(Mistake::Plain { text: text.into(), hint });
    }

    /// The value of a flag. An invalid one adds an error and returns a default, which
    /// [`Mistakes::end`] keeps from being used.
    pub(crate) fn flag<T: Clone + Default>(&mut self, flag: &str, given: &Given<T>) -> T {
        match &given.0 {
            Ok(value) => value.clone(),
            Err(error) => {
                self.add(format!("`{flag}`: {error}"), None);
                T::default()
            }
        }
    }

    pub(crate) fn some<T: Clone + Default>(&mut self, flag: &str, given: Option<&Given<T>>) -> Option<T> {
        given.map(|given| self.flag(flag, given))
    }

    pub(crate) fn in_file(&mut self, path: &Path, text: &str, mistakes: &[Diagnostic]) {
        self.found.push(Mistake::InFile { count: mistakes.len(), text: rendered(path, text, mistakes) });
    }

    pub(crate) fn end(self) -> Result<(), Problem> {
        let mut out = String::new();
        let mut all = 0;
        match <[Mistake; 1]>::try_from(self.found) {
            Ok([Mistake::Plain { text, hint }]) => {
                let problem = Problem::text(Exit::Usage, text);
                return Err(match hint {
                    Some(hint) => problem.hint(hint),
                    None => problem,
                });
            }
            Ok([Mistake::InFile { count, text }]) => {
                (out, all) = (text, count);
            }
            Err(found) if found.is_empty() => return Ok(()),
            Err(found) => {
                for mistake in found {
                    match mistake {
                        Mistake::Plain { text, hint } => {
                            out += &format!("error: {text}\n");
                            if let Some(hint) = hint {
                                out += &format!("  = help: {hint}\n");
                            }
                            out.push('\n');
                            all += 1;
                        }
                        Mistake::InFile { count, text } => {
                            out += &text;
                            all += count;
                        }
                    }
                }
            }
        }
        out += &format!("{all} error{}", if all == 1 { "" } else { "s" });
        Err(Problem::rendered(Exit::Usage, out))
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
