//! Splits IDL files into tokens.

#[derive(Debug, Clone, PartialEq)]
pub(super) enum Word<'t> {
    /// A name or a keyword. Names may contain dots.
    Name(&'t str),
    /// An integer; `None` if it is wider than 64 bits.
    Integer(Option<i64>),
    Double(f64),
    Text(String),
    Sign(char),
    End,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) struct Token<'t> {
    pub(super) word: Word<'t>,
    /// The token as written. A name or sign is never equal to the source of another token.
    pub(super) source: &'t str,
    pub(super) at: usize,
    /// Whether the token is the first on its line.
    pub(super) is_first: bool,
}

pub(super) const SIGNS: &str = "{}()<>[],;:=&*";

pub(super) fn tokenize<'t>(text: &'t str, mut mistake: impl FnMut(usize, String)) -> Vec<Token<'t>> {
    let bytes = text.as_bytes();
    let mut tokens = Vec::new();
    let (mut at, mut is_first) = (0, true);
    while at < bytes.len() {
        let rest = &text[at..];
        let start = at;
        let is_digit_or_dot = |byte: &u8| byte.is_ascii_digit() || *byte == b'.';
        let word = match bytes[at] {
            byte if byte.is_ascii_whitespace() => {
                is_first |= byte == b'\n';
                at += 1;
                continue;
            }
            byte if byte == b'#' || rest.starts_with("//") => {
                at += rest.find('\n').unwrap_or(rest.len());
                continue;
            }
            b'/' if rest.starts_with("/*") => {
                let Some(end) = rest[2..].find("*/") else {
                    mistake(at, "unterminated comment".to_owned());
                    break;
                };
                at += end + 4;
                continue;
            }
            quote @ (b'"' | b'\'') => {
                let (read, used) = quoted(rest, quote, |offset, what| mistake(start + offset, what));
                at += used;
                Word::Text(read)
            }
            byte if byte.is_ascii_alphabetic() || byte == b'_' => {
                let is_part = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_' || *byte == b'.';
                at += rest.bytes().take_while(is_part).count();
                Word::Name(&text[start..at])
            }
            byte if byte.is_ascii_digit()
                || (b"+-.".contains(&byte) && bytes.get(at + 1).is_some_and(is_digit_or_dot)) =>
            {
                at += number_length(rest.as_bytes());
                let word = number(&text[start..at]);
                if word == Word::Integer(None) {
                    mistake(start, format!("`{}` is not a 64-bit number", &text[start..at]));
                }
                word
            }
            _ => {
                let sign = rest.chars().next().unwrap_or('\0');
                if !SIGNS.contains(sign) {
                    mistake(at, format!("unexpected `{}`", sign.escape_default()));
                }
                at += sign.len_utf8();
                Word::Sign(sign)
            }
        };
        tokens.push(Token { word, source: &text[start..at], at: start, is_first });
        is_first = false;
    }
    tokens.push(Token { word: Word::End, source: "", at: text.len(), is_first: true });
    tokens
}

fn number_length(bytes: &[u8]) -> usize {
    let digits = &bytes[usize::from(b"+-".contains(&bytes[0]))..];
    let is_hexadecimal = digits.starts_with(b"0x") || digits.starts_with(b"0X");
    let is_part = |(at, byte): &(usize, &u8)| {
        let takes_sign = *at == 0 || b"eE".contains(&bytes[at - 1]) && !is_hexadecimal;
        byte.is_ascii_alphanumeric() || **byte == b'.' || b"+-".contains(byte) && takes_sign
    };
    bytes.iter().enumerate().take_while(is_part).count()
}

fn number(text: &str) -> Word<'static> {
    let sign = if text.starts_with('-') { -1 } else { 1 };
    let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
    if let Some(digits) = digits.strip_prefix("0x").or_else(|| digits.strip_prefix("0X")) {
        let magnitude = if digits.starts_with('+') { None } else { i128::from_str_radix(digits, 16).ok() };
        return Word::Integer(magnitude.and_then(|value| i64::try_from(sign * value).ok()));
    }
    if digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return Word::Integer(digits.parse::<i128>().ok().and_then(|value| i64::try_from(sign * value).ok()));
    }
    match text.parse::<f64>() {
        Ok(value) if value.is_finite() => Word::Double(value),
        _ => Word::Integer(None),
    }
}

fn quoted(text: &str, quote: u8, mut mistake: impl FnMut(usize, String)) -> (String, usize) {
    let mut read = String::new();
    let mut characters = text.char_indices().skip(1);
    while let Some((at, character)) = characters.next() {
        match character {
            '\\' => match characters.next() {
                Some((_, 'n')) => read.push('\n'),
                Some((_, 't')) => read.push('\t'),
                Some((_, 'r')) => read.push('\r'),
                Some((_, escaped @ ('"' | '\'' | '\\'))) => read.push(escaped),
                Some((_, other)) => {
                    mistake(at, format!("unknown escape `\\{}`", other.escape_default()));
                    read.push(other);
                }
                None => break,
            },
            end if end == char::from(quote) => return (read, at + 1),
            // A string may span lines, as in the Apache compiler.
            other => read.push(other),
        }
    }
    mistake(0, "unterminated string".to_owned());
    (read, text.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expect: &str) {
        let mut found = Vec::new();
        let tokens = tokenize(text, |at, what| found.push(format!("{at}: {what}")));
        let mut said = tokens.iter().map(|token| format!("{:?}", token.word)).collect::<Vec<_>>();
        said.append(&mut found);
        assert_eq!(said.join(" "), expect, "of {text:?}");
    }

    #[test]
    fn splits_all_kinds_of_tokens() {
        check("a.b _c9 // x\n# y\n/* z */ /**/", r#"Name("a.b") Name("_c9") End"#);
        check(
            "1 -2 +3 0xFf -0x10",
            "Integer(Some(1)) Integer(Some(-2)) Integer(Some(3)) Integer(Some(255)) Integer(Some(-16)) End",
        );
        check("1.5 -2e-3 .5 1E+2", "Double(1.5) Double(-0.002) Double(0.5) Double(100.0) End");
        check(r#""a\"b\n" 'c"d'"#, r#"Text("a\"b\n") Text("c\"d") End"#);
        check("-9223372036854775808", "Integer(Some(-9223372036854775808)) End");
        check("{x:1}", "Sign('{') Name(\"x\") Sign(':') Integer(Some(1)) Sign('}') End");
    }

    #[test]
    fn reports_lexical_errors() {
        check("9223372036854775808", "Integer(None) End 0: `9223372036854775808` is not a 64-bit number");
        check("0x", "Integer(None) End 0: `0x` is not a 64-bit number");
        check("12ab", "Integer(None) End 0: `12ab` is not a 64-bit number");
        check("/* a", "End 0: unterminated comment");
        check("'a", "Text(\"a\") End 0: unterminated string");
        check("'\\q'", "Text(\"q\") End 1: unknown escape `\\q`");
        check("é", "Sign('é') End 0: unexpected `\\u{e9}`");
    }
}
