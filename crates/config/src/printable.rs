//! Text from other parties, made safe for logs and terminals: it stays on one line and commands nothing.

use std::borrow::Cow;
use std::fmt::Write as _;

/// Whether a character shows as itself on one line. Control characters, line separators, text direction
/// overrides and other invisible characters do not.
fn is_printable(character: char) -> bool {
    if character.is_ascii() {
        return character == ' ' || character.is_ascii_graphic();
    }
    // Behind a letter, `escape_debug` leaves combining marks as they are.
    let mut pair = String::with_capacity(5);
    pair.extend(['a', character]);
    pair.escape_debug().nth(1) == Some(character)
}

/// `text` with everything that is not printable as an escape: `\n`, `\u{1b}`, `\u{202e}`.
///
/// ```
/// assert_eq!(config::printable::line("bob\n[Whip] forged\u{1b}[2J"), "bob\\n[Whip] forged\\u{1b}[2J");
/// ```
pub fn line(text: &str) -> Cow<'_, str> {
    escaped(text, is_printable, |out, character| out.extend(character.escape_debug()))
}

/// JSON with everything that is not printable as an escape of JSON, so that its values stay the same.
pub fn json(text: &str) -> Cow<'_, str> {
    // Strings of JSON have no line breaks, so these are between its values.
    let is_fine = |character| character == '\n' || is_printable(character);
    escaped(text, is_fine, |out, character| {
        for unit in character.encode_utf16(&mut [0; 2]) {
            write!(out, "\\u{unit:04x}").expect("writing to a string cannot fail");
        }
    })
}

fn escaped(text: &str, is_fine: impl Fn(char) -> bool, escape: impl Fn(&mut String, char)) -> Cow<'_, str> {
    if text.chars().all(&is_fine) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 16);
    for character in text.chars() {
        if is_fine(character) { out.push(character) } else { escape(&mut out, character) }
    }
    Cow::Owned(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_what_forges_lines_or_commands_terminals() {
        for (text, expected) in [
            (
                "plain 'quoted' \"text\" \\ é 日本 हिन्दी e\u{301} 🦀",
                "plain 'quoted' \"text\" \\ é 日本 हिन्दी e\u{301} 🦀",
            ),
            ("a\r\nb\tc\0", "a\\r\\nb\\tc\\0"),
            ("\u{1b}[2J\u{9b}2J\u{7f}\u{85}", "\\u{1b}[2J\\u{9b}2J\\u{7f}\\u{85}"),
            ("a\u{202e}b\u{2028}c\u{2066}\u{feff}\u{200b}", "a\\u{202e}b\\u{2028}c\\u{2066}\\u{feff}\\u{200b}"),
        ] {
            assert_eq!(line(text), expected);
        }
        assert!(matches!(line("plain é"), Cow::Borrowed(_)));
    }

    #[test]
    fn json_keeps_its_values() {
        for text in ["plain", "\u{9b}2J\u{7f}", "a\u{202e}b\u{2028}", "\u{e0001}"] {
            let escaped = json(text).into_owned();
            assert!(escaped.chars().all(is_printable), "{escaped}");
            assert_eq!(escaped.contains("\\u"), text != "plain", "{escaped}");
        }
        assert_eq!(json("\"\u{e0001}\u{7f}\""), "\"\\udb40\\udc01\\u007f\"");
    }
}
