//! Colors on a terminal, and wrapping of lines to its width.

/// Style of rendered text, which depends on whether it goes to a terminal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Style {
    /// Whether text contains color codes.
    pub colour: bool,
    /// Maximum number of columns; 0 means no limit.
    pub width: usize,
}

impl Style {
    /// Style of files and pipes, without colors or a maximum width.
    pub const PLAIN: Style = Style { colour: false, width: 0 };

    fn painted(&self, code: &str, text: &str) -> String {
        if self.colour { format!("\x1b[{code}m{text}\x1b[0m") } else { text.to_owned() }
    }

    pub(crate) fn bold(&self, text: &str) -> String {
        self.painted("1", text)
    }

    pub(crate) fn dim(&self, text: &str) -> String {
        self.painted("2", text)
    }

    pub(crate) fn warn(&self, text: &str) -> String {
        self.painted("33", text)
    }

    pub(crate) fn bad(&self, text: &str) -> String {
        self.painted("31", text)
    }
}

/// All color codes of this crate, without the escape character that precedes them.
pub const COLOUR_CODES: [&str; 5] = ["[0m", "[1m", "[2m", "[31m", "[33m"];

/// Lines that start with a name.
pub(crate) struct Lines<'a> {
    pub(crate) text: String,
    style: &'a Style,
}

impl Lines<'_> {
    pub(crate) fn new(style: &Style) -> Lines<'_> {
        Lines { text: String::new(), style }
    }

    /// Adds a line for each text. Only the first one has the name.
    pub(crate) fn add(&mut self, name: &str, texts: impl IntoIterator<Item = String>) {
        for (at, text) in texts.into_iter().enumerate() {
            let name = format!("{:<11}", if at == 0 { name } else { "" });
            self.text += &format!("  {}  {text}\n", self.style.dim(&name));
        }
    }
}

pub(crate) fn columns(text: &str) -> usize {
    let (first, coded) = text.split_once('\x1b').unwrap_or((text, ""));
    let shown = coded.split('\x1b').filter_map(|part| part.split_once('m')).map(|(_, shown)| shown.chars().count());
    first.chars().count() + shown.sum::<usize>()
}

/// Wraps lines at spaces, with indented continuations. Words that are too long stay whole.
pub(crate) fn wrap(text: &str, width: usize, indent: usize) -> String {
    if width == 0 {
        return text.to_owned();
    }
    let mut out = String::new();
    for line in text.split_inclusive('\n') {
        let mut used = 0;
        for word in line.split_inclusive(' ') {
            let bare = columns(word.trim_end());
            if used + bare > width && used > indent {
                out.truncate(out.trim_end_matches(' ').len());
                out.push('\n');
                out.push_str(&" ".repeat(indent));
                used = indent;
            }
            out.push_str(word);
            used += columns(word.trim_end_matches('\n'));
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_break_at_spaces() {
        for (text, width, expected) in [
            ("one two three", 8, "one two\n  three"),
            ("one two three", 0, "one two three"),
            ("\x1b[1mone\x1b[0m two", 7, "\x1b[1mone\x1b[0m two"),
            ("extraordinary word", 5, "extraordinary\n  word"),
        ] {
            assert_eq!(wrap(text, width, 2), expected);
        }
    }
}
