//! Escapes untrusted strings for logs, pages and terminals, so that they neither send commands nor reorder text.

use std::borrow::Cow;

/// Whether a character may reach a terminal or page unchanged. Excluded are control characters except LF and tab, and
/// invisible or reordering characters (Unicode TR 36, section 2.10).
fn is_printable(c: char) -> bool {
    match c {
        '\n' | '\t' => true,
        '\u{61c}' | '\u{200b}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' => false,
        '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}' => false,
        c => !c.is_control(),
    }
}

/// Escapes unprintable characters, as in `\x1b` or `\u202e`. LF and tab remain, and CR LF becomes LF. JSON keeps its
/// meaning, because escapes from U+007F on are valid in JSON.
pub fn text(text: &str) -> Cow<'_, str> {
    if text.chars().all(is_printable) {
        return Cow::Borrowed(text);
    }
    let escape = |c: char| match c {
        c if is_printable(c) => c.to_string(),
        '\r' => "\\r".to_owned(),
        c if u32::from(c) < 0x20 => format!("\\x{:02x}", u32::from(c)),
        c => c.encode_utf16(&mut [0; 2]).iter().map(|unit| format!("\\u{unit:04x}")).collect(),
    };
    Cow::Owned(text.replace("\r\n", "\n").chars().map(escape).collect())
}

/// Escapes a string like [`text`], and also LF and tab, so that the result is one line.
///
/// ```
/// assert_eq!(config::printable::line("bob\n[Whip] forged\u{1b}[2J"), "bob\\n[Whip] forged\\x1b[2J");
/// ```
pub fn line(text: &str) -> Cow<'_, str> {
    let shown = self::text(text);
    if shown.contains(['\n', '\t']) { Cow::Owned(shown.replace('\n', "\\n").replace('\t', "\\t")) } else { shown }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_terminal_commands_and_reordering_characters() {
        for (plain, shown) in [
            ("plain, é, 日本 'quoted' \\\n\tindented", "plain, é, 日本 'quoted' \\\n\tindented"),
            ("\x1b[31mred\x1b[0m", "\\x1b[31mred\\x1b[0m"),
            ("bell\x07 nul\0 del\x7f c1\u{9b}", "bell\\x07 nul\\x00 del\\u007f c1\\u009b"),
            ("a\u{202e}b\u{2066}c\u{e0041}", "a\\u202eb\\u2066c\\udb40\\udc41"),
            ("می\u{200c}خواهم 👩\u{200d}💻", "می\u{200c}خواهم 👩\u{200d}💻"),
            ("10 %\r100 %\r\ndone", "10 %\\r100 %\ndone"),
        ] {
            assert_eq!(text(plain), shown);
            assert_eq!(line(plain), shown.replace('\n', "\\n").replace('\t', "\\t"));
        }
        assert!(matches!(line("plain é"), Cow::Borrowed(_)) && matches!(text("plain\n"), Cow::Borrowed(_)));
        let json = serde_json::to_string("\u{7f}\u{9b}\u{202e}\u{e0041}").unwrap();
        assert_eq!(serde_json::from_str::<serde_json::Value>(&text(&json)).unwrap(), "\u{7f}\u{9b}\u{202e}\u{e0041}");
    }
}
