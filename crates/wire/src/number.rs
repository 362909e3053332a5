//! Decimal numbers as the cache protocols write them: digits, perhaps a minus sign, nothing else.

/// The number that `text` is, `None` where it is empty, has another character, or does not fit.
#[inline]
pub fn unsigned(text: &[u8]) -> Option<u64> {
    if text.is_empty() || text.len() > 20 {
        return None;
    }
    let mut value = 0u64;
    for &byte in text {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            return None;
        }
        value = value.checked_mul(10)?.checked_add(u64::from(digit))?;
    }
    Some(value)
}

/// The same with an optional minus sign.
#[inline]
pub fn signed(text: &[u8]) -> Option<i64> {
    match text {
        [b'-', digits @ ..] => 0i64.checked_sub_unsigned(unsigned(digits)?),
        digits => i64::try_from(unsigned(digits)?).ok(),
    }
}

/// Appends `value` in decimal digits, without the machinery of `std::fmt`: headers of answers are mostly numbers.
#[inline]
pub fn push(out: &mut Vec<u8>, mut value: u64) {
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

/// Appends `value` in decimal digits with its sign.
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
    fn numbers_that_fit_and_nothing_else() {
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

    #[test]
    fn written_numbers_are_read_again() {
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
