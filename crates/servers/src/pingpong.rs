//! Volley's server: the response to a word is the word plus one; zero terminates. Source: `subjects/REQUIREMENTS.md`.

use net::{Conn, Data, Driver};
use wire::pingpong::{self, WORD_BYTES};

use crate::connections::entry;
use crate::event_loops::{Handler, send_or_close};

/// Handler of one thread of the ping-pong server.
#[derive(Default)]
pub struct Pingpong {
    words: Words,
    answers: Vec<u8>,
}

impl Handler for Pingpong {
    fn accepted<D: Driver>(&mut self, _driver: &mut D, conn: Conn) {
        self.words.forget(conn);
    }

    fn data<D: Driver>(&mut self, driver: &mut D, conn: Conn, data: Data) {
        self.answers.clear();
        self.words.feed(conn, driver.bytes(data), |word| {
            self.answers.extend_from_slice(&pingpong::compose(pingpong::answer(word)));
        });
        if !self.answers.is_empty() {
            send_or_close(driver, conn, &self.answers);
        }
    }

    fn is_terminated(&self) -> bool {
        self.words.is_terminated
    }
}

/// Reassembles words per connection.
#[derive(Default)]
pub(crate) struct Words {
    /// Bytes of an incomplete word and their number, per slot.
    rests: Vec<([u8; WORD_BYTES], u8)>,
    /// Whether a client has sent the word that terminates the server.
    pub(crate) is_terminated: bool,
}

impl Words {
    pub(crate) fn forget(&mut self, conn: Conn) {
        entry(&mut self.rests, conn).1 = 0;
    }

    /// Passes each complete word to `take`, except the word that terminates the server.
    pub(crate) fn feed(&mut self, conn: Conn, mut bytes: &[u8], mut take: impl FnMut(u32)) {
        let Self { rests, is_terminated } = self;
        let (rest, have) = &mut rests[conn.index()];
        let mut word = |word| match word {
            pingpong::TERMINATE => *is_terminated = true,
            word => take(word),
        };
        if *have > 0 {
            let taken = bytes.len().min(WORD_BYTES - usize::from(*have));
            rest[usize::from(*have)..][..taken].copy_from_slice(&bytes[..taken]);
            *have += taken as u8;
            bytes = &bytes[taken..];
            if usize::from(*have) < WORD_BYTES {
                return;
            }
            *have = 0;
            word(u32::from_be_bytes(*rest));
        }
        let (words, left) = bytes.as_chunks::<WORD_BYTES>();
        words.iter().for_each(|bytes| word(u32::from_be_bytes(*bytes)));
        rest[..left.len()].copy_from_slice(left);
        *have = left.len() as u8;
    }
}
