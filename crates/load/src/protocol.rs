//! What the engine must know of a protocol: how a request is made, and whether bytes are its answer.

use stats::Rng;
use wire::pingpong;

/// What the bytes of one answer come to, so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reading {
    /// Not the whole answer yet.
    More,
    /// The right answer, in so many bytes.
    Right(usize),
    /// Not the answer: the stream cannot be trusted any more.
    Wrong,
}

/// One client's side of a protocol with one request in flight on each connection.
pub trait Protocol {
    /// What is remembered of a request to know its answer.
    type Expected: Copy + Default;

    /// No answer is longer, bytes; more than this unread is a wrong answer.
    const ANSWER_BYTES_MAX: usize;

    /// The next request: its bytes, and what its answer must be.
    fn request(&mut self, rng: &mut Rng) -> (&[u8], Self::Expected);

    /// Reads an answer from the front of `bytes`.
    fn read(&self, expected: Self::Expected, bytes: &[u8]) -> Reading;
}

/// Volley's ping-pong. Challenges are random words, zero left out because it terminates the server.
#[derive(Debug, Default)]
pub struct Pingpong {
    request: [u8; pingpong::WORD_BYTES],
}

impl Protocol for Pingpong {
    type Expected = u32;

    const ANSWER_BYTES_MAX: usize = pingpong::WORD_BYTES;

    #[inline]
    fn request(&mut self, rng: &mut Rng) -> (&[u8], u32) {
        let word = loop {
            match rng.next_u32() {
                pingpong::TERMINATE => {}
                word => break word,
            }
        };
        self.request = pingpong::compose(word);
        (&self.request, pingpong::answer(word))
    }

    #[inline]
    fn read(&self, expected: u32, bytes: &[u8]) -> Reading {
        match pingpong::parse(bytes) {
            None => Reading::More,
            Some((word, used)) if word == expected => Reading::Right(used),
            Some(_) => Reading::Wrong,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_is_answered_by_its_successor() {
        let mut protocol = Pingpong::default();
        let mut rng = Rng::new(1);
        let (request, expected) = protocol.request(&mut rng);
        let word = u32::from_be_bytes(request.try_into().unwrap());
        assert_eq!(expected, word.wrapping_add(1));
        assert_eq!(protocol.read(expected, &expected.to_be_bytes()), Reading::Right(4));
        assert_eq!(protocol.read(expected, &expected.to_be_bytes()[..3]), Reading::More);
        assert_eq!(protocol.read(expected, &word.to_be_bytes()), Reading::Wrong);
        assert_eq!(protocol.read(expected, &[expected.to_be_bytes(), [0; 4]].concat()), Reading::Right(4));
    }

    #[test]
    fn challenges_differ_and_none_terminates() {
        let mut protocol = Pingpong::default();
        let mut rng = Rng::new(7);
        let words = (0..1000).map(|_| protocol.request(&mut rng).1.wrapping_sub(1)).collect::<Vec<_>>();
        assert!(words.iter().all(|&word| word != pingpong::TERMINATE));
        assert!(words.iter().collect::<std::collections::HashSet<_>>().len() > 990);
    }
}
