//! Errors in messages, IDL files, WSDL files and path templates. All errors of a file are reported at once.

/// Maximum number of errors reported per file. Further errors mostly follow from the first ones.
pub const MISTAKES_MAX: usize = 50;

/// Reads an included or imported file by its path as written. Returns the text, or an error. Called once per path.
pub type ReadFile<'r> = &'r mut dyn FnMut(&str) -> Result<String, String>;

/// An error in a file, with its location and a hint.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{file}:{line}:{column}: {text}{}", .hint.as_ref().map_or(String::new(), |hint| format!("\n  = help: {hint}")))]
pub struct Mistake {
    /// Name of the file, as passed to the parser.
    pub file: String,
    /// Line, from 1.
    pub line: usize,
    /// Column in characters, from 1.
    pub column: usize,
    /// The error message, without its location.
    pub text: String,
    /// How to fix the error, or `None` if unknown.
    pub hint: Option<String>,
}

impl Mistake {
    pub(crate) fn new(file: &str, all: &str, at: usize, text: impl Into<String>, hint: Option<String>) -> Mistake {
        let (line, column) = config::place::line_and_column(all, at);
        Mistake { file: file.to_owned(), line, column, text: text.into(), hint }
    }
}

/// The reason why bytes are not a message, with its position.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("at byte {at}: {what}")]
pub struct DecodeError {
    /// Byte offset of the error, or of a byte shortly after it. The frame length of a Thrift message does not count.
    pub at: usize,
    /// The error message, without its position.
    pub what: String,
    /// Whether a limit was exceeded, or the version is not supported. The message may then be well-formed.
    pub is_limit: bool,
}

impl DecodeError {
    pub(crate) fn malformed(at: usize, what: impl Into<String>) -> DecodeError {
        DecodeError { at, what: what.into(), is_limit: false }
    }

    pub(crate) fn over(at: usize, what: String) -> DecodeError {
        DecodeError { at, what, is_limit: true }
    }
}

/// All errors of a file and its includes, in file and line order. Never empty.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}", .0.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"))]
pub struct Mistakes(pub Vec<Mistake>);

impl Mistakes {
    /// Returns `result` if `all` is empty. Otherwise fails with `all`, in the order of `sources` and positions.
    pub(crate) fn or<T>(mut all: Vec<Mistake>, sources: &[&str], result: T) -> Result<T, Mistakes> {
        if all.is_empty() {
            return Ok(result);
        }
        let file = |mistake: &Mistake| sources.iter().position(|source| *source == mistake.file);
        all.sort_by_cached_key(|mistake| (file(mistake), mistake.line, mistake.column));
        all.dedup();
        all.truncate(MISTAKES_MAX);
        Err(Mistakes(all))
    }
}
