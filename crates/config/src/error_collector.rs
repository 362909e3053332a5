//! Collects errors so that they can be reported at once.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::RangeInclusive;

use crate::diagnostic::{Diagnostic, Invalid};
use crate::place::{Place, line_and_column};

/// The errors found so far in a file and its `--set`s.
#[derive(Debug)]
pub struct Report<'a> {
    /// Name of the file with its article, such as `the study`.
    pub(crate) whole: &'a str,
    text: &'a str,
    sets: &'a [String],
    found: RefCell<BTreeMap<(Place, String), Option<String>>>,
    /// Numbers of lines with a syntax error, from 1. Other errors on these lines are most likely consequences.
    broken: RefCell<BTreeSet<usize>>,
}

impl<'a> Report<'a> {
    /// Creates an empty report for a file and its `KEY=VALUE`s. `whole` names the file, such as "the study".
    pub fn new(whole: &'a str, text: &'a str, sets: &'a [String]) -> Self {
        Report { whole, text, sets, found: RefCell::default(), broken: RefCell::default() }
    }

    /// Adds an error if the file has more than `max` bytes. Fails with all errors so far if there are any.
    pub fn check_length(&self, what: &str, max: usize) -> Result<(), Vec<Diagnostic>> {
        let message = format!("{what} is limited to {max} bytes, this one has {}", self.text.len());
        self.rule(self.text.len() > max, Place::default(), message, None);
        self.finish()
    }

    /// Adds an error. Keeps only the first error at a place, because later ones, as at other design points, repeat it.
    pub fn mistake(&self, place: Place, message: impl Into<String>, hint: impl Into<Option<String>>) {
        let broken = self.broken.borrow();
        if place.set.is_none() && !broken.is_empty() && broken.contains(&line_and_column(self.text, place.start).0) {
            return;
        }
        let mut found = self.found.borrow_mut();
        if found.range((place, String::new())..).next().is_none_or(|((other, _), _)| *other != place) {
            found.insert((place, message.into()), hint.into());
        }
    }

    /// Adds an error if a rule is broken.
    pub fn rule(&self, broken: bool, place: Place, message: impl Into<String>, hint: impl Into<Option<&'static str>>) {
        if broken {
            self.mistake(place, message, hint.into().map(str::to_owned));
        }
    }

    /// Adds the error of an invalid value at `place`.
    pub fn invalid(&self, place: Place, error: Invalid) {
        let place = error.span_in(self.source(place)).map_or(place, |span| place.part(span));
        self.mistake(place, error.message, error.hint);
    }

    /// Returns a valid value. `None` after adding the error of an invalid one at `place`.
    pub fn valid<T>(&self, place: Place, value: Result<T, Invalid>) -> Option<T> {
        value.map_err(|error| self.invalid(place, error)).ok()
    }

    /// Adds an error about a missing key, unless a syntax error may have hidden the key.
    pub fn missing(&self, place: Place, message: impl Into<String>, hint: impl Into<Option<String>>) {
        if !self.is_partial() {
            self.found.borrow_mut().insert((place, message.into()), hint.into());
        }
    }

    /// Number of errors so far.
    pub fn count(&self) -> usize {
        self.found.borrow().len()
    }

    /// Whether the file has syntax errors, so that any key may be missing.
    pub fn is_partial(&self) -> bool {
        !self.broken.borrow().is_empty()
    }

    /// Adds a syntax error and the lines that it breaks, from 1.
    pub fn syntax(&self, place: Place, message: &str, broken: RangeInclusive<usize>) {
        self.found.borrow_mut().insert((place, message.to_owned()), None);
        self.broken.borrow_mut().extend(broken);
    }

    /// Whether a broken line begins with `word`, so that a key or table of this name may be lost.
    pub fn lost(&self, word: &str) -> bool {
        let broken = self.broken.borrow();
        let lines = self.text.lines().enumerate().filter(|(index, _)| broken.contains(&(index + 1)));
        lines.map(|(_, line)| line.trim_start().trim_start_matches('[')).any(|line| line.starts_with(word))
    }

    /// The characters at `place` in the file or in its `--set`.
    pub fn source(&self, place: Place) -> &'a str {
        self.text_of(place).get(place.start..place.end).unwrap_or_default()
    }

    fn text_of(&self, place: Place) -> &'a str {
        place.set.map_or(self.text, |index| self.sets[index].as_str())
    }

    /// Fails if there are errors. Errors in the file come first, in its order, followed by the errors in `--set`s.
    pub fn finish(&self) -> Result<(), Vec<Diagnostic>> {
        let found = self.found.take();
        let diagnostics = found.into_iter().map(|((place, message), hint)| {
            let (line, column) = line_and_column(self.text_of(place), place.start);
            let set = place.set.map(|index| self.sets[index].clone());
            Diagnostic { message, line, column, span: place.start..place.end, hint, set }
        });
        let diagnostics = diagnostics.collect::<Vec<_>>();
        if diagnostics.is_empty() { Ok(()) } else { Err(diagnostics) }
    }
}
