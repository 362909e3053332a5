//! Field lines such as `name: value`. Source: RFC 9112, section 5, and RFC 9110, section 5.

/// An error in a field line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum FieldError {
    /// CR without LF. Source: RFC 9112, section 2.2.
    #[error("a CR without LF")]
    BareCr,
    /// LF without CR. Source: RFC 9112, section 2.2.
    #[error("a line that ends in LF without CR")]
    BareLf,
    /// A control character in a value, such as CR, LF or NUL. Contains the character. Source: RFC 9110, section 5.5.
    #[error("the control character 0x{0:02x}")]
    Control(u8),
    /// A line without a colon. Source: RFC 9112, section 5.
    #[error("a header without a colon")]
    NoColon,
    /// An empty name. Source: RFC 9110, section 5.1.
    #[error("a header without a name")]
    EmptyName,
    /// A name with a character that tokens cannot have. Contains the character. Source: RFC 9110, section 5.6.2.
    #[error("0x{0:02x} in a header name")]
    BadName(u8),
    /// White space between name and colon. Source: RFC 9112, section 5.1.
    #[error("white space between a header name and its colon")]
    SpaceBeforeColon,
    /// A folded line in a request, or one without a field to continue. Source: RFC 9112, sections 2.2 and 5.2.
    #[error("an unexpected folded line")]
    Fold,
}

/// Returns the position of the colon after the name, or `None` if the input ends first.
pub(super) fn name_end(bytes: &[u8]) -> Result<Option<usize>, FieldError> {
    let end = bytes.iter().position(|&byte| !is_token_byte(byte)).unwrap_or(bytes.len());
    match &bytes[end..] {
        [b':', ..] if end > 0 => Ok(Some(end)),
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

/// Returns the position of the CRLF after a text (HTAB, SP, visible characters, obs-text); `None` if it is missing.
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

/// Returns the first control character's position, or the input's length if it has none. Reads eight bytes at a time.
fn control_at(bytes: &[u8]) -> usize {
    const ONES: u64 = 0x0101_0101_0101_0101;
    const HIGHS: u64 = 0x8080_8080_8080_8080;
    let (words, rest) = bytes.as_chunks::<8>();
    for (index, word) in words.iter().enumerate() {
        let word = u64::from_le_bytes(*word);
        let delete = word ^ (ONES * 0x7f);
        // Marks bytes below 0x20 or equal to 0x7f. A borrow can wrongly mark only bytes above the first marked one.
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

/// Whether a byte may be part of a token. Source: RFC 9110, section 5.6.2.
pub(crate) fn is_token_byte(byte: u8) -> bool {
    const TABLE: [bool; 256] = {
        let mut table = [false; 256];
        let mut byte = 0;
        while byte < 256 {
            table[byte] = (byte as u8).is_ascii_alphanumeric()
                || matches!(byte as u8, b'!' | b'#'..=b'\'' | b'*' | b'+' | b'-' | b'.' | b'^'..=b'`' | b'|' | b'~');
            byte += 1;
        }
        table
    };
    TABLE[usize::from(byte)]
}

pub(crate) fn is_token(text: &[u8]) -> bool {
    !text.is_empty() && text.iter().all(|&byte| is_token_byte(byte))
}
