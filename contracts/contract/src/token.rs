//! Splits the text of a contract into tokens.

use std::sync::LazyLock;

use regex_lite::Regex;

use crate::finding::{Findings, Span};

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Token {
    /// A word: `[A-Za-z_][A-Za-z0-9_]*`.
    Name,
    /// A quoted string with its escapes resolved.
    Text(String),
    Int(i64),
    Float(f64),
    Sign(&'static str),
    /// A string without its closing quote, up to the end of its line. It has been reported already.
    Unclosed,
    End,
}

/// Signs of the language. Longer ones come first, so that `<=` is not read as `<` and `=`.
const SIGNS: [&str; 31] = [
    "&&", "||", "==", "!=", "<=", ">=", "->", "{", "}", "(", ")", "[", "]", "<", ">", ",", ";", ":", ".", "?", "+",
    "-", "*", "/", "%", "!", "=", "&", "|", "@", "$",
];

pub(crate) fn tokens(text: &str, found: &mut Findings) -> Vec<(Token, Span)> {
    let bytes = text.as_bytes();
    let mut tokens = Vec::new();
    let mut at = 0;
    while at < bytes.len() {
        let start = at;
        let rest = &text[at..];
        let byte = bytes[at];
        if byte.is_ascii_whitespace() {
            at += 1;
        } else if byte == b'#' || rest.starts_with("//") {
            at += rest.find('\n').unwrap_or(rest.len());
        } else if byte.is_ascii_alphabetic() || byte == b'_' {
            at += rest.bytes().take_while(|byte| byte.is_ascii_alphanumeric() || *byte == b'_').count();
            tokens.push((Token::Name, Span::new(start, at)));
        } else if byte.is_ascii_digit() {
            at += NUMBER.find(rest).map_or(1, |number| number.end());
            let (span, digits) = (Span::new(start, at), &text[start..at]);
            let token = match digits.parse::<f64>() {
                Ok(number) if digits.contains(['.', 'e', 'E']) => number.is_finite().then_some(Token::Float(number)),
                _ => digits.parse().ok().map(Token::Int),
            };
            if token.is_none() {
                let message = format!("the number `{digits}` is too large: whole numbers have 64 bits");
                found.mistake("number", span, message);
            }
            // Replacing an invalid number with 0 keeps the parser from reporting a second error.
            tokens.push((token.unwrap_or(Token::Int(0)), span));
        } else if byte == b'"' || byte == b'\'' {
            let (value, length) = quoted(rest, start, found);
            at += length;
            // The end of an unclosed string is unknown, but unmatched braces probably belong to the surrounding code.
            let lone = if value.is_none() { lone_braces(&text[start..at]) } else { Vec::new() };
            tokens.push((value.map_or(Token::Unclosed, Token::Text), Span::new(start, at)));
            let sign = |(at, sign)| (Token::Sign(sign), Span::new(start + at, start + at + 1));
            tokens.extend(lone.into_iter().map(sign));
        } else if let Some(sign) = SIGNS.iter().find(|sign| rest.starts_with(**sign)) {
            at += sign.len();
            tokens.push((Token::Sign(sign), Span::new(start, at)));
        } else {
            let other = rest.chars().next().expect("there are bytes left");
            at += other.len_utf8();
            found.mistake("character", Span::new(start, at), format!("unexpected character {other:?}"));
        }
    }
    tokens.push((Token::End, Span::new(text.len(), text.len())));
    tokens
}

/// A number, such as `12`, `1.5`, `1e9` or `1.5e-3`; `1.` is the number 1 and a point.
static NUMBER: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"^\d+(?:\.\d+)?(?:[eE][+-]?\d+)?").expect("it is constant"));

fn lone_braces(text: &str) -> Vec<(usize, &'static str)> {
    let mut lone: Vec<(usize, &'static str)> = Vec::new();
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            b'{' => lone.push((at, "{")),
            b'}' if lone.last().is_some_and(|(_, sign)| *sign == "{") => drop(lone.pop()),
            b'}' => lone.push((at, "}")),
            _ => {}
        }
    }
    lone
}

/// Reads the string at the start of `rest`. Returns its value, or `None` if unclosed, and the number of bytes read.
fn quoted(rest: &str, start: usize, found: &mut Findings) -> (Option<String>, usize) {
    let line = rest.find('\n').map_or(rest, |end| &rest[..end]);
    let line = line.strip_suffix('\r').unwrap_or(line);
    let quote = line.chars().next().expect("the quote");
    let mut value = String::new();
    let mut chars = line.char_indices().skip(1);
    // Errors inside an unclosed string are dropped, because its text may not be a string at all.
    let mut within = Findings::default();
    while let Some((at, character)) = chars.next() {
        match character {
            _ if character == quote => {
                found.extend(within);
                return (Some(value), at + 1);
            }
            '\\' => match chars.next() {
                Some((_, 'n')) => value.push('\n'),
                Some((_, 't')) => value.push('\t'),
                Some((_, 'r')) => value.push('\r'),
                Some((_, escaped @ ('\\' | '"' | '\''))) => value.push(escaped),
                Some((_, 'u')) => {
                    let code = line[at + 2..].strip_prefix('{').and_then(|code| code.split_once('}'));
                    let code = code.map(|(code, _)| code).filter(|code| (1..=6).contains(&code.len()));
                    let known = code.and_then(|code| u32::from_str_radix(code, 16).ok()).and_then(char::from_u32);
                    match (code, known) {
                        (Some(code), Some(known)) => {
                            value.push(known);
                            chars.nth(code.chars().count() + 1);
                        }
                        _ => {
                            let span = Span::new(start + at, start + at + 2);
                            let message = "`\\u` must be followed by a code point";
                            within.mistake_hint("escape", span, message, "for example `\\u{e4}`");
                        }
                    }
                }
                Some((after, other)) => within.mistake_hint(
                    "escape",
                    Span::new(start + at, start + after + other.len_utf8()),
                    format!("unknown escape `\\{other}`"),
                    "valid escapes: `\\n`, `\\t`, `\\r`, `\\\\`, `\\\"`, `\\'`, `\\u{e4}`",
                ),
                None => break,
            },
            _ => value.push(character),
        }
    }
    let hint = format!("close it with {quote}; write a line break as `\\n`");
    let message = format!("this string has no closing {quote} on its line");
    found.mistake_hint("text", Span::new(start, start + line.len()), message, hint);
    (None, line.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: &str) {
        let mut found = Findings::default();
        let shown = tokens(text, &mut found).into_iter().map(|(token, span)| match token {
            Token::Name => text[span.range()].to_owned(),
            Token::Text(value) => format!("{value:?}"),
            Token::Int(number) => number.to_string(),
            Token::Float(number) => format!("{number:?}"),
            Token::Sign(sign) => sign.to_owned(),
            Token::Unclosed => "UNCLOSED".to_owned(),
            Token::End => ".".to_owned(),
        });
        let mut all = shown.collect::<Vec<_>>().join(" ");
        for finding in found.finish(text) {
            all += &format!(" | {finding}");
        }
        assert_eq!(all, expected, "{text}");
    }

    #[test]
    fn words_numbers_texts_signs() {
        check("requires a.b_1>=0", "requires a . b_1 >= 0 .");
        check("1 1.5 1e3 1.5e-3 1.x 1e", "1 1.5 1000.0 0.0015 1 . x 1 e .");
        check(r#""a\"b\\\n" 'it"s' "\u{e4}""#, r#""a\"b\\\n" "it\"s" "ä" ."#);
        check("a # rest\nb // rest\nc", "a b c .");
        check("a->b!c!=d", "a -> b ! c != d .");
    }

    #[test]
    fn errors_have_locations() {
        check(
            "99999999999999999999",
            "0 . | 1:1: the number `99999999999999999999` is too large: whole numbers have 64 bits",
        );
        check("a \"b\nc", "a UNCLOSED c . | 1:3: this string has no closing \" on its line");
        check("'abc", "UNCLOSED . | 1:1: this string has no closing ' on its line");
        check("\"a\\", "UNCLOSED . | 1:1: this string has no closing \" on its line");
        check("\"a\\\r\nb", "UNCLOSED b . | 1:1: this string has no closing \" on its line");
        check("'\\q } {x} {\nb", "UNCLOSED } { b . | 1:1: this string has no closing ' on its line");
        check(
            r#""\q\u{110000}""#,
            r#""{110000}" . | 1:2: unknown escape `\q` | 1:4: `\u` must be followed by a code point"#,
        );
        check("ä ~", ". | 1:1: unexpected character 'ä' | 1:3: unexpected character '~'");
    }
}
