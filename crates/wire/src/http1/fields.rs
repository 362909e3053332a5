//! Field lines: `name: value`. Source: RFC 9112 section 5, RFC 9110 section 5.

/// An error in a field line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum FieldError {
    /// RFC 9112 2.2: CR without LF.
    #[error("a CR without LF")]
    BareCr,
    /// RFC 9112 2.2: LF without CR.
    #[error("a line that ends in LF without CR")]
    BareLf,
    /// RFC 9110 5.5: CR, LF, NUL and other control characters are not allowed in a value. Contains the character.
    #[error("the control character 0x{0:02x}")]
    Control(u8),
    /// RFC 9112 5: the line has no colon.
    #[error("a header without a colon")]
    NoColon,
    /// RFC 9110 5.1: an empty name.
    #[error("a header without a name")]
    EmptyName,
    /// RFC 9110 5.6.2: not a token character. Contains the character.
    #[error("0x{0:02x} in a header name")]
    BadName(u8),
    /// RFC 9112 5.1: white space between name and colon.
    #[error("white space between a header name and its colon")]
    SpaceBeforeColon,
    /// RFC 9112 2.2, 5.2: a folded line without a field to continue, or in a request.
    #[error("an unexpected folded line")]
    Fold,
}

/// Returns the position of the colon after the name, or `None` if the input ends first.
#[inline]
pub(super) fn name_end(bytes: &[u8]) -> Result<Option<usize>, FieldError> {
    let Some(end) = bytes.iter().position(|&byte| !is_token_byte(byte)) else { return Ok(None) };
    if bytes[end] == b':' && end > 0 { Ok(Some(end)) } else { wrong_name(&bytes[end..], end) }
}

#[cold]
fn wrong_name(rest: &[u8], end: usize) -> Result<Option<usize>, FieldError> {
    match rest {
        [b':', ..] => Err(FieldError::EmptyName),
        [b' ' | b'\t', ..] if end > 0 => Err(FieldError::SpaceBeforeColon),
        [b'\r'] => Ok(None),
        [b'\r', b'\n', ..] => Err(FieldError::NoColon),
        [b'\r', ..] => Err(FieldError::BareCr),
        [b'\n', ..] => Err(FieldError::BareLf),
        [byte, ..] => Err(FieldError::BadName(*byte)),
        [] => Ok(None),
    }
}

/// Returns the position of the CRLF after text (HTAB, SP, visible characters, obs-text), or `None`.
#[inline]
pub(super) fn text_end(bytes: &[u8]) -> Result<Option<usize>, FieldError> {
    let mut at = control_at(bytes);
    loop {
        match bytes.get(at) {
            Some(b'\r') => break,
            Some(b'\t') => at += 1 + control_at(&bytes[at + 1..]),
            Some(b'\n') => return Err(FieldError::BareLf),
            Some(&byte) => return Err(FieldError::Control(byte)),
            None => return Ok(None),
        }
    }
    match bytes.get(at + 1) {
        Some(b'\n') => Ok(Some(at)),
        Some(_) => Err(FieldError::BareCr),
        None => Ok(None),
    }
}

/// Returns the position of the first control character or the length. Eight bytes at a time.
#[inline]
fn control_at(bytes: &[u8]) -> usize {
    const ONES: u64 = 0x0101_0101_0101_0101;
    const HIGHS: u64 = 0x8080_8080_8080_8080;
    let (words, rest) = bytes.as_chunks::<8>();
    for (index, word) in words.iter().enumerate() {
        let word = u64::from_le_bytes(*word);
        let delete = word ^ (ONES * 0x7f);
        // Marks bytes below 0x20 or equal to 0x7f. A borrow can only mark bytes above the first.
        let found = ((word.wrapping_sub(ONES * 0x20) & !word) | (delete.wrapping_sub(ONES) & !delete)) & HIGHS;
        if found != 0 {
            return index * 8 + found.trailing_zeros() as usize / 8;
        }
    }
    let found = rest.iter().position(|&byte| byte < 0x20 || byte == 0x7f);
    words.len() * 8 + found.unwrap_or(rest.len())
}

pub(crate) fn is_control(byte: u8) -> bool {
    (byte < 0x20) & (byte != b'\t') | (byte == 0x7f)
}

/// Removes optional white space at both ends: RFC 9110 5.6.3.
pub(crate) fn trim(mut text: &[u8]) -> &[u8] {
    while let [b' ' | b'\t', rest @ ..] = text {
        text = rest;
    }
    while let [rest @ .., b' ' | b'\t'] = text {
        text = rest;
    }
    text
}

pub(super) const fn letters_digits_and(marks: &[u8]) -> [bool; 256] {
    let mut table = [false; 256];
    let mut byte = 0;
    while byte < 256 {
        table[byte] = (byte as u8).is_ascii_alphanumeric();
        byte += 1;
    }
    let mut index = 0;
    while index < marks.len() {
        table[marks[index] as usize] = true;
        index += 1;
    }
    table
}

/// Whether a byte may be part of a token. Source: RFC 9110 section 5.6.2.
#[inline]
pub(crate) fn is_token_byte(byte: u8) -> bool {
    const TABLE: [bool; 256] = letters_digits_and(b"!#$%&'*+-.^_`|~");
    TABLE[usize::from(byte)]
}

pub(crate) fn is_token(text: &[u8]) -> bool {
    !text.is_empty() && text.iter().all(|&byte| is_token_byte(byte))
}
