//! Estimated widths of text, since the reader's font is unknown.

/// Estimated width of `text` at `size`, in the unit of `size`; seldom too small for browsers' sans-serif fonts.
pub(crate) fn width(text: &str, size: f64) -> f64 {
    text.chars().map(em).sum::<f64>() * size
}

/// Breaks `text` into lines at most `room` wide, at spaces or within words that are longer than a line.
pub(crate) fn wrap(text: &str, room: f64, size: f64) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace().flat_map(|word| pieces(word, room, size)) {
        match lines.last_mut() {
            Some(line) if width(line, size) + width(word, size) + em(' ') * size <= room => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}

/// Divides a word into pieces at most `room` wide, each with at least one letter.
pub(crate) fn pieces(word: &str, room: f64, size: f64) -> Vec<&str> {
    let (mut pieces, mut start, mut taken) = (Vec::new(), 0, 0.0);
    for (at, letter) in word.char_indices() {
        let wide = em(letter) * size;
        if at > start && taken + wide > room {
            pieces.push(&word[start..at]);
            (start, taken) = (at, 0.0);
        }
        taken += wide;
    }
    pieces.push(&word[start..]);
    pieces
}

/// Width of a letter relative to the font size, in DejaVu Sans, the widest font of the style sheet.
fn em(c: char) -> f64 {
    match c {
        'i' | 'j' | 'l' | 'I' | '.' | ',' | ':' | ';' | '\'' | '|' => 0.34,
        'f' | 'r' | 't' | '(' | ')' | '/' | '-' | '!' | ' ' | '\u{a0}' => 0.41,
        'm' | 'M' | 'W' | '@' | '%' | '…' => 1.0,
        'w' | '+' | '<' | '=' | '>' | '~' | '#' | '^' | '±' | '×' => 0.84,
        'D' | 'G' | 'H' | 'N' | 'O' | 'Q' | '&' => 0.79,
        'A'..='Z' => 0.73,
        // This range contains East Asian and other wide scripts.
        '\u{1100}'.. => 1.0,
        _ => 0.64,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_break_at_spaces() {
        assert_eq!(wrap("one two three", 50.0, 11.0), ["one two", "three"]);
        assert_eq!(wrap("", 50.0, 11.0), Vec::<String>::new());
        assert_eq!(wrap("see abcdefghijkl ok", 30.0, 11.0), ["see", "abcd", "efghi", "jkl", "ok"]);
        assert_eq!(wrap("né日", 1.0, 11.0), ["n", "é", "日"]);
    }
}
