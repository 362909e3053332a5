//! Patterns over names: `*`, `?`, `[a-z]`, `[^a]`, `\x`. Source: Redis 7.0.15, `stringmatchlen`.

/// What the element at the front of a pattern makes of one byte, and how long it is.
enum Element {
    Any,
    One { is_match: bool, bytes: usize },
}

/// Whether `pattern` means `text`. Takes at most as many steps as the product of their lengths.
pub(super) fn matches(pattern: &[u8], text: &[u8], ignores_case: bool) -> bool {
    let (mut at, mut of) = (0, 0);
    // Behind the last `*`, and how much of the text it was given.
    let mut star: Option<(usize, usize)> = None;
    loop {
        let Some(&byte) = text.get(of) else { return pattern[at..].iter().all(|&byte| byte == b'*') };
        match element(&pattern[at..], byte, ignores_case) {
            Some(Element::Any) => {
                at += 1;
                star = Some((at, of));
            }
            Some(Element::One { is_match: true, bytes }) => {
                at += bytes;
                of += 1;
            }
            _ => {
                let Some((behind, given)) = star else { return false };
                star = Some((behind, given + 1));
                (at, of) = (behind, given + 1);
            }
        }
    }
}

fn element(pattern: &[u8], byte: u8, ignores_case: bool) -> Option<Element> {
    let is = |other: &u8| if ignores_case { other.eq_ignore_ascii_case(&byte) } else { *other == byte };
    Some(match pattern {
        [] => return None,
        [b'*', ..] => Element::Any,
        [b'?', ..] => Element::One { is_match: true, bytes: 1 },
        [b'[', class @ ..] => {
            let (is_match, bytes) = class_of(class, byte, ignores_case);
            Element::One { is_match, bytes: 1 + bytes }
        }
        [b'\\', escaped, ..] => Element::One { is_match: is(escaped), bytes: 2 },
        [plain, ..] => Element::One { is_match: is(plain), bytes: 1 },
    })
}

/// Whether a byte is in the class at the front of `class`, and how long that is with its `]`, which may be missing.
fn class_of(class: &[u8], byte: u8, ignores_case: bool) -> (bool, usize) {
    let fold = |byte: u8| if ignores_case { byte.to_ascii_lowercase() } else { byte };
    let is_not = class.first() == Some(&b'^');
    let mut at = usize::from(is_not);
    let mut is_in = false;
    loop {
        at += match &class[at..] {
            [] => break,
            [b'\\', escaped, ..] => {
                is_in |= *escaped == byte;
                2
            }
            [b']', ..] => {
                at += 1;
                break;
            }
            [from, b'-', to, ..] => {
                let (from, to) = (fold(*from.min(to)), fold(*from.max(to)));
                is_in |= (from..=to).contains(&fold(byte));
                3
            }
            [plain, ..] => {
                is_in |= fold(*plain) == fold(byte);
                1
            }
        };
    }
    (is_in != is_not, at)
}

#[cfg(test)]
mod tests {
    use super::matches;

    /// Redis 7.0.15 was asked `SCAN 0 MATCH pattern` with the text as a key.
    #[test]
    fn patterns() {
        for (pattern, text, expect) in [
            ("*", "a", true),
            ("", "a", false),
            ("a*c", "abbbc", true),
            ("a*c", "abbbd", false),
            ("*a*b*", "xxayybzz", true),
            ("a?c", "abc", true),
            ("a?c", "ac", false),
            ("[a-c]x", "bx", true),
            ("[c-a]x", "bx", true),
            ("[^a-c]x", "bx", false),
            ("[^a-c]x", "dx", true),
            (r"\*", "*", true),
            (r"\*", "a", false),
            (r"[\]]", "]", true),
            ("[abc", "c", true),
            ("[abc", "d", false),
            ("[]", "a", false),
            ("[^]", "a", true),
            ("A", "a", false),
            ("**", "ab", true),
            ("ab*", "ab", true),
            (r"a\", r"a\", true),
        ] {
            assert_eq!(matches(pattern.as_bytes(), text.as_bytes(), false), expect, "{pattern} {text}");
        }
        assert!(matches(b"MAX[A-Z]*", b"maxmemory", true));
    }

    #[test]
    fn many_stars_take_no_long_time() {
        let pattern = "*a".repeat(400) + "b";
        assert!(!matches(pattern.as_bytes(), "a".repeat(1000).as_bytes(), false));
    }
}
