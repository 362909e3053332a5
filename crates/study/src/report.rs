//! Collects mistakes, so that all of them come in one go.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};

use crate::diagnostic::Diagnostic;
use crate::place::Place;

/// The mistakes found so far, and the texts that they are in.
pub(crate) struct Report<'a> {
    text: &'a str,
    sets: &'a [String],
    found: RefCell<BTreeMap<(Place, String), Option<String>>>,
    /// Lines with a syntax error, from 1. What else seems wrong there is most likely its consequence.
    broken: RefCell<BTreeSet<usize>>,
}

impl<'a> Report<'a> {
    /// Nothing wrong so far in `text` and the `KEY=VALUE`s.
    pub(crate) fn new(text: &'a str, sets: &'a [String]) -> Self {
        Report { text, sets, found: RefCell::default(), broken: RefCell::default() }
    }

    /// Something is wrong at `place`. One mistake a place: what is found there next, say by another design point, is
    /// most likely the same one in other words.
    pub(crate) fn mistake(&self, place: Place, message: impl Into<String>, hint: impl Into<Option<String>>) {
        let broken = self.broken.borrow();
        if place.set.is_none() && !broken.is_empty() && broken.contains(&line_and_column(self.text, place.start).0) {
            return;
        }
        let mut found = self.found.borrow_mut();
        if found.range((place, String::new())..).next().is_none_or(|((other, _), _)| *other != place) {
            found.insert((place, message.into()), hint.into());
        }
    }

    /// Something is missing at `place`; not reported where a syntax error may have swallowed it.
    pub(crate) fn missing(&self, place: Place, message: impl Into<String>, hint: impl Into<Option<String>>) {
        if self.broken.borrow().is_empty() {
            self.found.borrow_mut().insert((place, message.into()), hint.into());
        }
    }

    /// Whether anything was found wrong so far.
    pub(crate) fn any(&self) -> bool {
        !self.found.borrow().is_empty()
    }

    /// The text is not TOML at `place`.
    pub(crate) fn syntax(&self, place: Place, message: &str) {
        self.found.borrow_mut().insert((place, message.to_owned()), None);
        self.broken.borrow_mut().insert(line_and_column(self.text, place.start).0);
    }

    /// Whether a syntax error stands in a line that begins with `word`, so that `word` may have been lost with it.
    pub(crate) fn lost(&self, word: &str) -> bool {
        let broken = self.broken.borrow();
        let lines = self.text.lines().enumerate().filter(|(index, _)| broken.contains(&(index + 1)));
        lines.map(|(_, line)| line.trim_start().trim_start_matches('[')).any(|line| line.starts_with(word))
    }

    /// The text at `place`.
    pub(crate) fn source(&self, place: Place) -> &'a str {
        self.text_of(place).get(place.start..place.end).unwrap_or_default()
    }

    fn text_of(&self, place: Place) -> &'a str {
        place.set.map_or(self.text, |index| self.sets[index].as_str())
    }

    /// `Ok` if nothing was wrong, else all mistakes, those of the file first, each in the order of its text.
    pub(crate) fn finish(&self) -> Result<(), Vec<Diagnostic>> {
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

/// Line and column of a byte, from 1, the column in characters.
fn line_and_column(text: &str, at: usize) -> (usize, usize) {
    let before = &text.as_bytes()[..at.min(text.len())];
    let line_start = before.iter().rposition(|&byte| byte == b'\n').map_or(0, |newline| newline + 1);
    let continuation = |byte: &&u8| (**byte & 0xc0) != 0x80;
    (
        before.iter().filter(|&&byte| byte == b'\n').count() + 1,
        before[line_start..].iter().filter(continuation).count() + 1,
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_characters() {
        assert_eq!(line_and_column("", 0), (1, 1));
        assert_eq!(line_and_column("a\nbc", 3), (2, 2));
        assert_eq!(line_and_column("éé x", 5), (1, 4));
        assert_eq!(line_and_column("a\n", 9), (2, 1));
    }
}
