//! Scripts for the other side of a simulated connection.

use crate::driver::Nanos;

/// A server or client at the other end of a connection. Its methods receive the virtual time and record actions.
pub trait Peer {
    /// Called when the connection is established.
    fn on_connect(&mut self, _now: Nanos, _to: &mut Actions) {}

    /// Called when bytes arrive from the driver.
    fn on_data(&mut self, bytes: &[u8], now: Nanos, to: &mut Actions);

    /// Called when the driver has ended its stream. By default, the peer ends its own stream at once.
    fn on_end_of_stream(&mut self, _now: Nanos, to: &mut Actions) {
        to.end_of_stream(0);
    }

    /// Called at the time given to [`Actions::wake`].
    fn on_wake(&mut self, _now: Nanos, _to: &mut Actions) {}

    /// Called when the connection is closed. `reset` is true for a reset or refusal and false for an orderly close.
    fn on_closed(&mut self, _reset: bool, _now: Nanos) {}
}

/// A peer's actions, each with a delay in ns. Simultaneous actions run in the order of the calls.
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
    /// Sends `bytes` after a delay of `after` ns.
    pub fn send(&mut self, after: Nanos, bytes: impl Into<Vec<u8>>) {
        self.0.push((after, Action::Send(bytes.into())));
    }

    /// Ends the stream (half-close) after a delay of `after` ns, but not before all earlier bytes have been sent.
    pub fn end_of_stream(&mut self, after: Nanos) {
        self.0.push((after, Action::EndOfStream));
    }

    /// Resets the connection after a delay of `after` ns.
    pub fn reset(&mut self, after: Nanos) {
        self.0.push((after, Action::Reset));
    }

    /// Stops taking bytes for `span` ns after a delay of `after` ns. Bytes then accumulate at the sender.
    pub fn stall(&mut self, after: Nanos, span: Nanos) {
        self.0.push((after, Action::Stall(span)));
    }

    /// Schedules a call of [`Peer::on_wake`] in `after` ns.
    pub fn wake(&mut self, after: Nanos) {
        self.0.push((after, Action::Wake));
    }
}

/// How an address responds to a connect.
pub enum Answer {
    /// Accepts the connection, with this peer at the other end.
    Accept(Box<dyn Peer>),
    /// Refuses the connection, like an address without a listener.
    Refuse,
    /// Does not respond; the connect times out after [`super::CONNECT_TIMEOUT_NS`].
    Ignore,
}

impl<P: Peer + 'static> From<P> for Answer {
    fn from(peer: P) -> Self {
        Answer::Accept(Box::new(peer))
    }
}
