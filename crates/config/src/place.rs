//! Places of values in a file and in `--set` options.

use std::ops::Range;

/// A range of bytes in the file or in one `--set`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Place {
    /// Index of the `--set`; `None` for a place in the file.
    pub set: Option<usize>,
    /// Offset of the first byte.
    pub start: usize,
    /// Offset of the first byte after the place.
    pub end: usize,
}

impl Place {
    /// Narrows this place to `span`, whose offsets are relative to this place's start.
    pub fn part(self, span: Range<usize>) -> Place {
        Place { set: self.set, start: self.start + span.start, end: self.start + span.end }
    }
}

/// Maps byte offsets of a string to lines and columns.
#[derive(Debug)]
pub struct Lines<'t> {
    text: &'t str,
    starts: Vec<usize>,
}

impl<'t> Lines<'t> {
    /// Finds the starts of all lines.
    pub fn new(text: &'t str) -> Self {
        let starts = std::iter::once(0).chain(text.match_indices('\n').map(|(at, _)| at + 1)).collect();
        Self { text, starts }
    }

    /// Line and column (in characters) of the character at `byte`, both from 1. Bytes past the end map to the end.
    pub fn place_of(&self, byte: usize) -> (usize, usize) {
        let mut at = byte.min(self.text.len());
        while !self.text.is_char_boundary(at) {
            at -= 1;
        }
        let line = self.starts.partition_point(|&start| start <= at);
        (line, 1 + self.text[self.starts[line - 1]..at].chars().count())
    }
}

/// Byte range of `part`, a slice of `text`.
pub fn span_of(part: &str, text: &str) -> Range<usize> {
    let start = part.as_ptr() as usize - text.as_ptr() as usize;
    start..start + part.len()
}

/// Line and column of the character at `byte`, like [`Lines::place_of`], which is faster for repeated look-ups.
pub fn line_and_column(text: &str, byte: usize) -> (usize, usize) {
    Lines::new(text).place_of(byte)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_characters() {
        let table = [
            ("", 0, (1, 1)),
            ("a\nbc", 3, (2, 2)),
            ("éé x", 5, (1, 4)),
            ("aé", 2, (1, 2)), // inside a character
            ("a\n", 1, (1, 2)),
            ("a\n", 9, (2, 1)),
            ("a\näöx\n", 6, (2, 3)), // after two characters of two bytes
            ("a\näöx\n", 8, (3, 1)),
        ];
        for (text, at, place) in table {
            assert_eq!(line_and_column(text, at), place, "byte {at} of {text:?}");
        }
    }
}
