//! Volley's server: the response to a word is the word plus one; zero terminates. Source: `subjects/REQUIREMENTS.md`.

use net::{Conn, Data, Driver};
use wire::pingpong::{self, WORD_BYTES};

use crate::connections::entry;
use crate::event_loops::{Handler, Next, send_or_close};

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

    #[inline]
    fn data<D: Driver>(&mut self, driver: &mut D, conn: Conn, data: Data) -> Next {
        let mut next = Next::Serve;
        self.answers.clear();
        self.words.feed(conn, driver.bytes(data), |word| {
            if word == pingpong::TERMINATE {
                next = Next::Terminate;
            } else {
                self.answers.extend_from_slice(&pingpong::compose(pingpong::answer(word)));
            }
        });
        if !self.answers.is_empty() {
            send_or_close(driver, conn, &self.answers);
        }
        next
    }
}

/// Reassembles words per connection.
#[derive(Default)]
pub(crate) struct Words {
    /// Bytes of an incomplete word and their number, per slot.
    rests: Vec<([u8; WORD_BYTES], u8)>,
}

impl Words {
    pub(crate) fn forget(&mut self, conn: Conn) {
        entry(&mut self.rests, conn).1 = 0;
    }

    #[inline]
    pub(crate) fn feed(&mut self, conn: Conn, mut bytes: &[u8], mut word: impl FnMut(u32)) {
        let (rest, have) = &mut self.rests[conn.index()];
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
        while let Some((value, used)) = pingpong::parse(bytes) {
            word(value);
            bytes = &bytes[used..];
        }
        rest[..bytes.len()].copy_from_slice(bytes);
        *have = bytes.len() as u8;
    }
}
