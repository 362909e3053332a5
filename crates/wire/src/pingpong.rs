//! Volley's protocol: a word of 32 bits in network byte order, answered by the word plus one, wrapping; zero asks the
//! server to terminate. Source: `subjects/REQUIREMENTS.md`.

/// Bytes of a word on the wire.
pub const WORD_BYTES: usize = 4;

/// The word that asks the server to terminate.
pub const TERMINATE: u32 = 0;

/// The word at the front of `bytes` and the bytes it used; `None` when fewer than four are there. Every four bytes
/// are a word, so there is no error.
pub fn parse(bytes: &[u8]) -> Option<(u32, usize)> {
    let word = bytes.first_chunk::<WORD_BYTES>()?;
    Some((u32::from_be_bytes(*word), WORD_BYTES))
}

/// The bytes of `word`.
pub fn compose(word: u32) -> [u8; WORD_BYTES] {
    word.to_be_bytes()
}

/// What an honest server answers to `word`.
pub fn answer(word: u32) -> u32 {
    word.wrapping_add(1)
}

/// The word that is answered by `answer`.
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
    fn the_answer_wraps() {
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
