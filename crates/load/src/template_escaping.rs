//! Escapes values in templates, so that each remains a single value in its context.

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

/// All characters except the unreserved ones. Source: RFC 3986, section 2.3.
pub(crate) const RESERVED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Escape {
    /// No escaping, for contexts without a syntax that a value could break out of.
    #[default]
    None,
    JsonString,
    JsonValue,
    Percent,
    Quoted,
    Xml,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Syntax {
    Url,
    Header,
    Json,
    Form,
    Xml,
    Other,
}

impl Syntax {
    pub(crate) fn of_body(media_type: Option<&str>, begins: &str) -> Syntax {
        match media_type.map(str::to_ascii_lowercase) {
            Some(media_type) if media_type.contains("json") => Syntax::Json,
            Some(media_type) if media_type.contains("x-www-form-urlencoded") => Syntax::Form,
            Some(media_type) if media_type.contains("xml") => Syntax::Xml,
            Some(_) => Syntax::Other,
            None => match begins.trim_start().bytes().next() {
                Some(b'{' | b'[') => Syntax::Json,
                Some(b'<') => Syntax::Xml,
                _ => Syntax::Other,
            },
        }
    }
}

/// Escaping of a name's value in a template, given the characters `before` the name.
pub(crate) fn escape_after(syntax: Syntax, before: &str) -> Escape {
    match syntax {
        // A name at the start may hold the start of a URL, which must not be escaped.
        Syntax::Url if before.split_once("://").map_or(before, |(_, rest)| rest).contains(['/', '?', '#']) => {
            Escape::Percent
        }
        Syntax::Header if is_quoted(before) => Escape::Quoted,
        Syntax::Url | Syntax::Header | Syntax::Other => Escape::None,
        Syntax::Json if is_quoted(before) => Escape::JsonString,
        Syntax::Json => Escape::JsonValue,
        Syntax::Form => Escape::Percent,
        Syntax::Xml => Escape::Xml,
    }
}

fn is_quoted(text: &str) -> bool {
    let (mut is_open, mut is_escaped) = (false, false);
    for char in text.chars() {
        match char {
            _ if is_escaped => is_escaped = false,
            '\\' if is_open => is_escaped = true,
            '"' => is_open = !is_open,
            _ => {}
        }
    }
    is_open
}

pub(crate) fn push(out: &mut String, text: &str, escape: Escape) {
    match escape {
        Escape::None => out.push_str(text),
        Escape::JsonString => text.chars().for_each(|char| push_json(out, char)),
        Escape::JsonValue if is_json_scalar(text) => out.push_str(text),
        Escape::JsonValue => {
            out.push('"');
            text.chars().for_each(|char| push_json(out, char));
            out.push('"');
        }
        // In forms, `%20` means the same as `+`.
        Escape::Percent => out.extend(utf8_percent_encode(text, RESERVED)),
        // RFC 9110, section 5.6.4: quoted strings.
        Escape::Quoted => {
            for char in text.chars() {
                if matches!(char, '"' | '\\') {
                    out.push('\\');
                }
                out.push(char);
            }
        }
        Escape::Xml => {
            for char in text.chars() {
                match char {
                    '&' => out.push_str("&amp;"),
                    '<' => out.push_str("&lt;"),
                    '>' => out.push_str("&gt;"),
                    '"' => out.push_str("&quot;"),
                    '\'' => out.push_str("&apos;"),
                    char => out.push(char),
                }
            }
        }
    }
}

/// Appends a character to a JSON string, escaped if necessary. Source: RFC 8259, section 7.
fn push_json(out: &mut String, char: char) {
    match char {
        '"' | '\\' => out.extend(['\\', char]),
        '\u{0}'..='\u{1f}' => out.push_str(&format!("\\u{:04x}", char as u32)),
        char => out.push(char),
    }
}

fn is_json_scalar(text: &str) -> bool {
    let begins = text.starts_with(|char: char| char == '-' || char.is_ascii_digit() || matches!(char, 't' | 'f' | 'n'));
    begins && !text.ends_with(char::is_whitespace) && codecs::json::parse(text.as_bytes()).is_ok()
}
