//! Parses and writes the decimal numbers of the cache protocols.

/// Parses an unsigned number. `None` if `text` is empty, exceeds 20 bytes or 2^64 - 1, or contains a non-digit.
pub fn unsigned(text: &[u8]) -> Option<u64> {
    if text.len() > 20 { None } else { unsigned_of_any_length(text) }
}

/// Parses a number like [`unsigned`], but allows any number of leading zeros.
pub(crate) fn unsigned_of_any_length(text: &[u8]) -> Option<u64> {
    if text.is_empty() {
        return None;
    }
    text.iter().try_fold(0u64, |value, byte| {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 { None } else { value.checked_mul(10)?.checked_add(u64::from(digit)) }
    })
}

pub(crate) fn hexadecimal(digit: u8) -> u8 {
    if digit.is_ascii_digit() { digit - b'0' } else { (digit | 0x20) - b'a' + 10 }
}

/// Parses a number with an optional minus sign. `None` if `text` is not such a number or does not fit 64 bits.
pub fn signed(text: &[u8]) -> Option<i64> {
    match text {
        [b'-', digits @ ..] => 0i64.checked_sub_unsigned(unsigned(digits)?),
        digits => i64::try_from(unsigned(digits)?).ok(),
    }
}

/// Parses a signed number as Redis 7.0.15's `string2ll` does, which rejects leading zeros and `-0`.
pub fn canonical(text: &[u8]) -> Option<i64> {
    match text {
        [b'0', _, ..] | [b'-', b'0', ..] => None,
        text => signed(text),
    }
}

/// Parses a number in C's syntax, as in ` -05 more`. Returns whether it is negative, and its absolute value.
fn c_number(text: &[u8]) -> Option<(bool, u64)> {
    let is_space = |byte: &u8| matches!(byte, b' ' | b'\t'..=b'\r');
    let text = &text[text.iter().position(|byte| !is_space(byte))?..];
    let (is_negative, text) = match text {
        [b'-', rest @ ..] => (true, rest),
        [b'+', rest @ ..] | rest => (false, rest),
    };
    let end = text.iter().position(|byte| !byte.is_ascii_digit()).unwrap_or(text.len());
    let value = unsigned_of_any_length(&text[..end])?;
    text[end..].first().is_none_or(is_space).then_some((is_negative, value))
}

/// Parses an unsigned number, such as `+5`, ` 5` or `5 and more`, like C's `strtoull`. A negative number wraps, and is
/// rejected if the result is 2^63 or more. Source: memcached 1.6.18, `safe_strtoull`.
pub fn unsigned_of_c(text: &[u8]) -> Option<u64> {
    unsigned(text).or_else(|| {
        let (is_negative, value) = c_number(text)?;
        let wrapped = if is_negative { value.wrapping_neg() } else { value };
        (!is_negative || wrapped.cast_signed() >= 0).then_some(wrapped)
    })
}

/// Parses a signed number as memcached does. Source: memcached 1.6.18, `safe_strtol`.
pub fn signed_of_c(text: &[u8]) -> Option<i64> {
    signed(text).or_else(|| {
        let (is_negative, value) = c_number(text)?;
        if is_negative { 0i64.checked_sub_unsigned(value) } else { i64::try_from(value).ok() }
    })
}

/// Appends `value` in decimal. Faster than `std::fmt`, which matters because response headers are mostly numbers.
#[inline]
pub fn push(out: &mut Vec<u8>, mut value: u64) {
    if value < 10 {
        return out.push(b'0' + value as u8); // The client flags of most items are 0.
    }
    let mut digits = [0u8; 20];
    let mut at = digits.len();
    loop {
        at -= 1;
        digits[at] = b'0' + (value % 10) as u8;
        value /= 10;
        if value == 0 {
            break;
        }
    }
    out.extend_from_slice(&digits[at..]);
}

/// Appends `value` in decimal with its sign.
pub fn push_signed(out: &mut Vec<u8>, value: i64) {
    if value < 0 {
        out.push(b'-');
    }
    push(out, value.unsigned_abs());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parses_only_numbers_that_fit() {
        for (text, expect) in [
            ("0", Some(0)),
            ("007", Some(7)),
            ("18446744073709551615", Some(u64::MAX)),
            ("18446744073709551616", None),
            ("", None),
            ("+1", None),
            ("-1", None),
            (" 1", None),
            ("1 ", None),
            ("0x1", None),
            ("000000000000000000001", None),
        ] {
            assert_eq!(unsigned(text.as_bytes()), expect, "{text:?}");
        }
        for (text, expect) in [
            ("-1", Some(-1)),
            ("-9223372036854775808", Some(i64::MIN)),
            ("-9223372036854775809", None),
            ("9223372036854775808", None),
            ("-", None),
            ("--1", None),
        ] {
            assert_eq!(signed(text.as_bytes()), expect, "{text:?}");
        }
    }

    /// Expects the results of memcached 1.6.18 (`incr` operands and exptimes) and Redis 7.0.15 (`INCRBY`).
    #[test]
    fn parses_numbers_like_memcached_and_redis() {
        for (text, value, exptime, redis) in [
            ("5", Some(5), Some(5), Some(5)),
            ("+5", Some(5), Some(5), None),
            (" 12 x", Some(12), Some(12), None),
            ("\t7\t", Some(7), Some(7), None),
            ("-5", None, Some(-5), Some(-5)),
            ("-0", Some(0), Some(0), None),
            ("007", Some(7), Some(7), None),
            ("0000000000000000000000000000012", Some(12), Some(12), None),
            ("-9223372036854775809", Some(9_223_372_036_854_775_807), None, None),
            ("18446744073709551615", Some(u64::MAX), None, None),
            ("18446744073709551616", None, None, None),
            ("12x", None, None, None),
            ("", None, None, None),
            (" ", None, None, None),
            ("+", None, None, None),
            ("--1", None, None, None),
            ("0", Some(0), Some(0), Some(0)),
            ("000", Some(0), Some(0), None),
        ] {
            assert_eq!(unsigned_of_c(text.as_bytes()), value, "{text:?}");
            assert_eq!(signed_of_c(text.as_bytes()), exptime, "{text:?}");
            assert_eq!(canonical(text.as_bytes()), redis, "{text:?}");
        }
    }

    #[test]
    fn written_numbers_parse_back() {
        for value in [0, 9, 10, 99, 12_345, u64::MAX] {
            let mut out = Vec::new();
            push(&mut out, value);
            assert_eq!(unsigned(&out), Some(value));
        }
        for value in [0, -1, i64::MIN, i64::MAX] {
            let mut out = Vec::new();
            push_signed(&mut out, value);
            assert_eq!(signed(&out), Some(value));
        }
    }
}
