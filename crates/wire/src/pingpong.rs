//! Volley's protocol: a word of 32 bits, answered with the word plus one. Source: `subjects/REQUIREMENTS.md`.

/// Size of a word on the wire, in bytes.
pub const WORD_BYTES: usize = 4;

/// The word that terminates the server.
pub const TERMINATE: u32 = 0;

/// Parses the word at the start of `bytes` and returns it with its size. `None` if there are fewer than four bytes.
pub fn parse(bytes: &[u8]) -> Option<(u32, usize)> {
    let word = bytes.first_chunk::<WORD_BYTES>()?;
    Some((u32::from_be_bytes(*word), WORD_BYTES))
}

/// Encodes `word` in network byte order.
pub fn compose(word: u32) -> [u8; WORD_BYTES] {
    word.to_be_bytes()
}

/// Returns the correct response to `word`: the word plus one, wrapping.
pub fn answer(word: u32) -> u32 {
    word.wrapping_add(1)
}

/// Returns the word whose correct response is `answer`.
pub fn challenge(answer: u32) -> u32 {
    answer.wrapping_sub(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(bytes: &[u8], expect: Option<(u32, usize)>) {
        assert_eq!(parse(bytes), expect, "{bytes:02x?}");
    }

    #[test]
    fn words_are_four_bytes_in_network_order() {
        check(b"", None);
        check(b"\x00\x00\x01", None);
        check(b"\x00\x00\x01\x02", Some((258, 4)));
        check(b"\xff\xff\xff\xff\x00", Some((u32::MAX, 4)));
    }

    #[test]
    fn response_wraps_at_the_maximum() {
        assert_eq!(answer(1), 2);
        assert_eq!(answer(u32::MAX), 0);
        assert_eq!([challenge(answer(1)), challenge(0)], [1, u32::MAX]);
    }

    #[test]
    fn composing_is_the_inverse_of_parsing() {
        for word in [0, 1, 0x0102_0304, u32::MAX] {
            assert_eq!(parse(&compose(word)), Some((word, WORD_BYTES)));
        }
    }
}
