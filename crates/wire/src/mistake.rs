//! Mistakes in what people write for this crate: IDL files, WSDL files, path templates. All of a file are told at once.

use std::fmt;

/// Most mistakes that are told of one file: beyond so many, the first ones explain the rest.
pub const MISTAKES_MAX: usize = 50;

/// One mistake, where it is and what helps.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mistake {
    /// The file, as its reader was told its name.
    pub source: String,
    /// Line, from 1.
    pub line: u32,
    /// Column in characters, from 1.
    pub column: u32,
    /// What is wrong: the thing, the value, the limit.
    pub text: String,
    /// What would be right, where that is known.
    pub hint: Option<String>,
}

impl fmt::Display for Mistake {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}:{}:{}: {}", self.source, self.line, self.column, self.text)?;
        match &self.hint {
            Some(hint) => write!(out, "\n  hint: {hint}"),
            None => Ok(()),
        }
    }
}

/// All mistakes of a file and of what it includes, in the order of the files and of their lines; never empty.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mistakes(pub Vec<Mistake>);

impl fmt::Display for Mistakes {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, mistake) in self.0.iter().enumerate() {
            if index > 0 {
                out.write_str("\n")?;
            }
            mistake.fmt(out)?;
        }
        Ok(())
    }
}

impl std::error::Error for Mistakes {}

/// Line and column of a byte of a text, both from 1, the column in characters. A place behind the end is the end.
pub(crate) fn line_and_column(text: &str, at: usize) -> (u32, u32) {
    let mut at = at.min(text.len());
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    let before = &text[..at];
    let line = before.bytes().filter(|byte| *byte == b'\n').count() + 1;
    let column = before.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
    (u32::try_from(line).unwrap_or(u32::MAX), u32::try_from(column).unwrap_or(u32::MAX))
}

/// `did you mean ...` where one of `known` is near to `word`.
pub(crate) fn did_you_mean<'k>(word: &str, known: impl IntoIterator<Item = &'k str>) -> Option<String> {
    let near = known.into_iter().map(|other| (strsim::jaro_winkler(word, other), other));
    let (likeness, best) = near.max_by(|left, right| left.0.total_cmp(&right.0))?;
    (likeness > 0.82).then(|| format!("did you mean `{best}`?"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_counted_in_characters_from_one() {
        for (at, place) in [(0, (1, 1)), (1, (1, 2)), (3, (1, 3)), (4, (2, 1)), (99, (2, 2))] {
            assert_eq!(line_and_column("aé\nb", at), place, "byte {at}");
        }
        assert_eq!(line_and_column("aé", 2), (1, 2), "within a character");
    }

    #[test]
    fn a_near_name_is_proposed_and_a_far_one_is_not() {
        assert_eq!(did_you_mean("Nots", ["Note", "User"]), Some("did you mean `Note`?".to_owned()));
        assert_eq!(did_you_mean("xyz", ["Note", "User"]), None);
        assert_eq!(did_you_mean("xyz", []), None);
    }
}
