//! The ping-pong client: sends random words and checks that each response is the word plus one.

use net::Nanos;
use stats::Rng;
use wire::pingpong;

use super::{Answer, Difference, Parsed, Protocol};
use crate::recorder::Fault;

/// Sends random words as challenges. Zero is excluded because it terminates the server.
#[derive(Debug, Default)]
pub(crate) struct Pingpong {
    wrong: Option<(u32, u32)>,
}

#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct PartialWord {
    bytes: [u8; pingpong::WORD_BYTES],
    len: usize,
}

impl Protocol for Pingpong {
    type Stream = PartialWord;
    type Expected = u32;
    type Exchange = ();
    const UNREADABLE: Fault = Fault::WrongAnswer;

    fn stream(&self) -> PartialWord {
        PartialWord::default()
    }

    fn request(&mut self, _: &mut PartialWord, _: Nanos, rng: &mut Rng, out: &mut Vec<u8>) -> u32 {
        let word = loop {
            match rng.next_u32() {
                pingpong::TERMINATE => {}
                word => break word,
            }
        };
        out.extend_from_slice(&pingpong::compose(word));
        pingpong::answer(word)
    }

    fn again(&mut self, _: &mut PartialWord, expected: u32, _: Nanos, out: &mut Vec<u8>) -> u32 {
        out.extend_from_slice(&pingpong::compose(pingpong::challenge(expected)));
        expected
    }

    fn read(&mut self, partial: &mut PartialWord, expected: u32, bytes: &[u8], _: Nanos) -> Parsed {
        let (word, used) = if partial.len == 0
            && let Some(found) = pingpong::parse(bytes)
        {
            found
        } else {
            let used = bytes.len().min(pingpong::WORD_BYTES - partial.len);
            partial.bytes[partial.len..partial.len + used].copy_from_slice(&bytes[..used]);
            partial.len += used;
            let Some((word, _)) = pingpong::parse(&partial.bytes[..partial.len]) else { return Parsed::More };
            partial.len = 0;
            (word, used)
        };
        if word != expected {
            self.wrong = Some((word, expected));
            return Parsed::Broken(Fault::WrongAnswer);
        }
        Parsed::Answer(Answer { used, ..Answer::default() })
    }

    fn end(&mut self, partial: &mut PartialWord, _: u32) -> Result<Answer, Fault> {
        self.wrong = None;
        Err(if partial.len == 0 { Fault::Closed } else { Fault::Truncated })
    }

    fn explain(&self) -> Option<String> {
        let (word, expected) = self.wrong?;
        let bytes = expected.to_be_bytes();
        let difference = Difference::find(0, &word.to_be_bytes(), |at, byte| bytes[at as usize] == byte)?;
        let words = difference.describe(&bytes);
        Some(format!("received {word:#010x}, expected {expected:#010x}: {words}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn right(used: usize) -> Parsed {
        Parsed::Answer(Answer { used, ..Answer::default() })
    }

    #[test]
    fn accepts_only_successor_of_word() {
        let mut protocol = Pingpong::default();
        let mut out = Vec::new();
        let expected = protocol.request(&mut PartialWord::default(), 0, &mut Rng::new(1), &mut out);
        let word = u32::from_be_bytes(out.try_into().unwrap());
        assert_eq!(expected, word.wrapping_add(1));
        let good = expected.to_be_bytes();
        let partial = || PartialWord::default();
        assert_eq!(protocol.read(&mut partial(), expected, &good, 0), right(4));
        assert_eq!(protocol.read(&mut partial(), expected, &[good, [0; 4]].concat(), 0), right(4));
        assert_eq!(protocol.read(&mut partial(), expected, &word.to_be_bytes(), 0), Parsed::Broken(Fault::WrongAnswer));
        assert_eq!(
            protocol.explain(),
            Some(format!(
                "received {word:#010x}, expected {expected:#010x}: at offset 3, found `{}`, expected `{}`",
                std::ascii::escape_default(word as u8),
                std::ascii::escape_default(expected as u8)
            ))
        );
    }

    #[test]
    fn resent_word_expects_same_response() {
        let mut protocol = Pingpong::default();
        let (mut first, mut second) = (Vec::new(), Vec::new());
        let expected = protocol.request(&mut PartialWord::default(), 0, &mut Rng::new(1), &mut first);
        assert_eq!(protocol.again(&mut PartialWord::default(), expected, 0, &mut second), expected);
        assert_eq!(first, second);
    }

    #[test]
    fn end_of_stream_within_word_is_truncation() {
        let mut protocol = Pingpong::default();
        let mut partial = PartialWord::default();
        assert_eq!(protocol.end(&mut partial, 7), Err(Fault::Closed));
        assert_eq!(protocol.read(&mut partial, 7, &[0], 0), Parsed::More);
        assert_eq!(protocol.end(&mut partial, 7), Err(Fault::Truncated));
    }

    #[test]
    fn accepts_word_in_pieces() {
        let mut protocol = Pingpong::default();
        let bytes = 7u32.to_be_bytes();
        for first in 1..4 {
            let mut partial = PartialWord::default();
            assert_eq!(protocol.read(&mut partial, 7, &bytes[..first], 0), Parsed::More);
            assert_eq!(protocol.read(&mut partial, 7, &bytes[first..], 0), right(4 - first));
            assert_eq!(protocol.read(&mut partial, 7, &bytes, 0), right(4), "the next word begins anew");
        }
    }

    #[test]
    fn challenges_are_distinct_and_nonzero() {
        let mut protocol = Pingpong::default();
        let mut rng = Rng::new(7);
        let mut out = Vec::new();
        let words = (0..1000)
            .map(|_| protocol.request(&mut PartialWord::default(), 0, &mut rng, &mut out).wrapping_sub(1))
            .collect::<Vec<_>>();
        assert!(words.iter().all(|&word| word != pingpong::TERMINATE));
        assert!(words.iter().collect::<std::collections::HashSet<_>>().len() > 990);
    }
}
