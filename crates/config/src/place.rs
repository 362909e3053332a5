//! Where something stands in the texts that a configuration is made of.

use std::ops::Range;

/// Where something stands: in the text of the file, or in the text of a `--set`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Place {
    /// Index of the `--set`; `None`: the file's text.
    pub set: Option<usize>,
    /// First byte.
    pub start: usize,
    /// The byte after the last.
    pub end: usize,
}

impl Place {
    /// The part `span` of what stands here.
    pub fn part(self, span: Range<usize>) -> Place {
        Place { set: self.set, start: self.start + span.start, end: self.start + span.end }
    }
}

/// Line and column of the character that byte `at` belongs to, both from 1, the column in characters. Behind the end is the end.
pub fn line_and_column(text: &str, at: usize) -> (usize, usize) {
    let mut at = at.min(text.len());
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    let before = &text[..at];
    let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
    (before.bytes().filter(|&byte| byte == b'\n').count() + 1, before[line_start..].chars().count() + 1)
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
            ("aé", 2, (1, 2)), // within a character
            ("a\n", 1, (1, 2)),
            ("a\n", 9, (2, 1)),
        ];
        for (text, at, place) in table {
            assert_eq!(line_and_column(text, at), place, "byte {at} of {text:?}");
        }
    }
}
