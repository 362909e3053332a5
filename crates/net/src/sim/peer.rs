//! The other side of a simulated connection: a script.

use crate::driver::Nanos;

/// What stands at the other end of a connection: a server that the driver connects to, or a client that connects to a
/// driver that listens. Each method is told the virtual time and writes down what is to happen.
pub trait Peer {
    /// The connection stands.
    fn on_connect(&mut self, now: Nanos, to: &mut Actions) {
        let _ = (now, to);
    }

    /// Bytes arrived.
    fn on_data(&mut self, bytes: &[u8], now: Nanos, to: &mut Actions);

    /// The driver sends no more. Ends the peer's own stream at once unless it is told otherwise.
    fn on_end_of_stream(&mut self, now: Nanos, to: &mut Actions) {
        let _ = now;
        to.end_of_stream(0);
    }

    /// The time asked for by [`Actions::wake`] has come.
    fn on_wake(&mut self, now: Nanos, to: &mut Actions) {
        let _ = (now, to);
    }

    /// The connection is no more: `reset` or in order. For a client also: refused.
    fn on_closed(&mut self, reset: bool, now: Nanos) {
        let _ = (reset, now);
    }
}

/// What a peer does, and after how many ns. Things to be done at the same time are done in the order they were written.
#[derive(Debug, Default)]
pub struct Actions(pub(super) Vec<(Nanos, Action)>);

#[derive(Clone, Debug)]
pub(super) enum Action {
    Send(Vec<u8>),
    EndOfStream,
    Reset,
    Stall(Nanos),
    Wake,
}

impl Actions {
    /// Sends `bytes`.
    pub fn send(&mut self, after: Nanos, bytes: impl Into<Vec<u8>>) {
        self.0.push((after, Action::Send(bytes.into())));
    }

    /// Sends no more (half-close), once all that was sent before is on its way.
    pub fn end_of_stream(&mut self, after: Nanos) {
        self.0.push((after, Action::EndOfStream));
    }

    /// Resets the connection.
    pub fn reset(&mut self, after: Nanos) {
        self.0.push((after, Action::Reset));
    }

    /// Takes no bytes for `span` ns; they pile up at the sender.
    pub fn stall(&mut self, after: Nanos, span: Nanos) {
        self.0.push((after, Action::Stall(span)));
    }

    /// Has [`Peer::on_wake`] called.
    pub fn wake(&mut self, after: Nanos) {
        self.0.push((after, Action::Wake));
    }
}

/// What an address says to a connection.
pub enum Answer {
    /// Yes, and this is who talks.
    Accept(Box<dyn Peer>),
    /// Nobody listens.
    Refuse,
    /// Nothing at all; the connect times out after [`super::CONNECT_TIMEOUT_NS`].
    Ignore,
}

impl<P: Peer + 'static> From<P> for Answer {
    fn from(peer: P) -> Self {
        Answer::Accept(Box::new(peer))
    }
}
