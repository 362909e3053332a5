//! Ready-made peers for volley's protocol: valid and faulty servers, and a client for listening drivers.

use std::cell::RefCell;
use std::rc::Rc;

use super::peer::{Actions, Peer};
use crate::driver::Nanos;

/// A ping-pong request as a script sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// Number of earlier requests on this connection.
    pub number: u64,
    /// The received word.
    pub word: u32,
    /// Virtual time in ns at which the last byte of the word arrived.
    pub at: Nanos,
}

impl Request {
    /// The correct response: the word plus one in network byte order.
    pub fn answer(self) -> [u8; 4] {
        self.word.wrapping_add(1).to_be_bytes()
    }
}

/// A server that calls `serve` for each complete word.
pub fn word_server(serve: impl FnMut(Request, &mut Actions) + 'static) -> impl Peer {
    Words { serve, begun: Vec::new(), number: 0 }
}

struct Words<F> {
    serve: F,
    begun: Vec<u8>,
    number: u64,
}

impl<F: FnMut(Request, &mut Actions)> Peer for Words<F> {
    fn on_data(&mut self, bytes: &[u8], now: Nanos, to: &mut Actions) {
        for &byte in bytes {
            self.begun.push(byte);
            if let Some(word) = self.begun.first_chunk::<4>().copied() {
                self.begun.clear();
                let request = Request { number: self.number, word: u32::from_be_bytes(word), at: now };
                self.number += 1;
                (self.serve)(request, to);
            }
        }
    }
}

/// Answers each request after `delay` ns, in order.
pub fn ping_pong(mut delay: impl FnMut(Request) -> Nanos + 'static) -> impl Peer {
    let mut last = 0;
    word_server(move |request, to| {
        last = (request.at + delay(request)).max(last);
        to.send(last - request.at, request.answer());
    })
}

/// Returns each request's delay: `service` ns, plus the rest of the pause if the request arrives during one. A pause
/// of `pause` ns starts every `period` ns.
pub fn pauses(period: Nanos, pause: Nanos, service: Nanos) -> impl FnMut(Request) -> Nanos + Clone {
    move |request| {
        let into = request.at % period;
        let standing = request.at >= period && into < pause;
        if standing { pause - into + service } else { service }
    }
}

/// Answers at once. Every `period`-th answer is wrong; with a `period` of 1, all answers are.
pub fn wrong_every(period: u64) -> impl Peer {
    word_server(move |request, to| {
        let wrong = (request.number + 1).is_multiple_of(period);
        to.send(0, if wrong { request.word.wrapping_add(2).to_be_bytes() } else { request.answer() });
    })
}

/// Answers `count` requests, then resets the connection on the next.
pub fn reset_after(count: u64) -> impl Peer {
    word_server(move |request, to| if request.number < count { to.send(0, request.answer()) } else { to.reset(0) })
}

/// Answers `count` requests, then closes the connection gracefully on the next.
pub fn end_after(count: u64) -> impl Peer {
    word_server(
        move |request, to| if request.number < count { to.send(0, request.answer()) } else { to.end_of_stream(0) },
    )
}

/// Answers each request byte by byte, one byte every `gap` ns.
pub fn drip(gap: Nanos) -> impl Peer {
    let mut last = 0;
    word_server(move |request, to| {
        for byte in request.answer() {
            last = last.max(request.at) + gap;
            to.send(last - request.at, [byte]);
        }
    })
}

/// Accepts connections but never answers.
pub fn silent() -> impl Peer {
    word_server(|_, _| ())
}

/// Accepts connections but never reads or answers, so requests accumulate at the sender.
pub fn never_reads() -> impl Peer {
    struct NeverReads;
    impl Peer for NeverReads {
        fn on_connect(&mut self, _: Nanos, to: &mut Actions) {
            to.stall(0, Nanos::MAX / 2);
        }
        fn on_data(&mut self, _: &[u8], _: Nanos, _: &mut Actions) {}
    }
    NeverReads
}

/// Sends `chunk` zero bytes every `gap` ns, unsolicited and endlessly.
pub fn endless(chunk: usize, gap: Nanos) -> impl Peer {
    struct Endless(usize, Nanos);
    impl Peer for Endless {
        fn on_connect(&mut self, now: Nanos, to: &mut Actions) {
            self.on_wake(now, to);
        }
        fn on_wake(&mut self, _: Nanos, to: &mut Actions) {
            to.send(0, vec![0; self.0]);
            to.wake(self.1);
        }
        fn on_data(&mut self, _: &[u8], _: Nanos, _: &mut Actions) {}
    }
    assert!(gap > 0, "time must pass between two chunks");
    Endless(chunk, gap)
}

/// The observations of a [`client`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Seen {
    /// Virtual time at which each request was sent, in ns.
    pub sent: Vec<Nanos>,
    /// Virtual time at which each response was complete, in ns.
    pub answered: Vec<Nanos>,
    /// Number of responses other than the word plus one.
    pub wrong: u64,
    /// Whether a reset or refusal ended the connection, and the time of its end in ns; `None` while it is open.
    pub closed: Option<(bool, Nanos)>,
}

/// Sends the words 1 to `requests`, each `think` ns after the previous response, then ends its stream. Fills `seen`.
pub fn client(requests: u32, think: Nanos, seen: &Rc<RefCell<Seen>>) -> impl Peer + use<> {
    Client { requests, think, word: 0, begun: Vec::new(), seen: Rc::clone(seen) }
}

struct Client {
    requests: u32,
    think: Nanos,
    word: u32,
    begun: Vec<u8>,
    seen: Rc<RefCell<Seen>>,
}

impl Peer for Client {
    fn on_connect(&mut self, now: Nanos, to: &mut Actions) {
        self.on_wake(now, to);
    }

    fn on_wake(&mut self, now: Nanos, to: &mut Actions) {
        if self.word == self.requests {
            return to.end_of_stream(0);
        }
        self.word += 1;
        self.seen.borrow_mut().sent.push(now);
        to.send(0, self.word.to_be_bytes());
    }

    fn on_data(&mut self, bytes: &[u8], now: Nanos, to: &mut Actions) {
        self.begun.extend(bytes);
        while let Some(answer) = self.begun.first_chunk::<4>().copied() {
            self.begun.drain(..4);
            let mut seen = self.seen.borrow_mut();
            seen.answered.push(now);
            seen.wrong += u64::from(u32::from_be_bytes(answer) != self.word.wrapping_add(1));
            to.wake(self.think);
        }
    }

    fn on_closed(&mut self, reset: bool, now: Nanos) {
        self.seen.borrow_mut().closed = Some((reset, now));
    }
}
