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
    pub line: usize,
    /// Column in characters, from 1.
    pub column: usize,
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
