//! The state of a stream: its request and its unsent response.

use net::Nanos;
use wire::http1::MessageError;
use wire::http2::{Incoming, ReceiveWindow, SendWindow, push_data};

use super::super::prebuilt_responses::Body;
use super::super::route::{Refusal, Route};

/// Maximum size of a DATA frame, in bytes. Every client accepts frames of this size.
pub(super) const FRAME_BYTES: u32 = 16_384;

/// The part of a request that determines its response.
#[derive(Clone, Copy, Debug)]
pub(super) struct Request {
    pub(super) route: Result<Route, Refusal>,
    /// Error for a head or body that exceeds a limit; `None` if neither does.
    pub(super) error: Option<MessageError>,
    pub(super) head_only: bool,
    pub(super) expect_continue: bool,
    pub(super) content_length: Option<u64>,
}

pub(super) struct Stream {
    pub(super) id: u32,
    pub(super) request: Request,
    pub(super) incoming: Incoming,
    /// Time at which the request's body started.
    pub(super) since: Nanos,
    pub(super) window: SendWindow,
    pub(super) receive: ReceiveWindow,
    /// Whether the response's head has been sent.
    pub(super) begun: bool,
    pub(super) body: Body,
    /// Maximum size of the response's frames, in bytes.
    pub(super) frame_bytes: u32,
}

impl Stream {
    pub(super) fn new(id: u32, request: Request, incoming: Incoming, window: u32) -> Stream {
        Stream {
            id,
            request,
            incoming,
            since: 0,
            window: SendWindow::new(window),
            receive: ReceiveWindow::new(wire::http2::Settings::DEFAULT.initial_window_size),
            begun: false,
            body: Body::EMPTY,
            frame_bytes: FRAME_BYTES,
        }
    }

    pub(super) fn is_receiving(&self) -> bool {
        !self.incoming.is_complete()
    }

    pub(super) fn is_echo(&self) -> bool {
        self.request.route == Ok(Route::Echo)
    }

    /// Number of received body bytes that wait to be echoed and for which no credit has been returned yet.
    pub(super) fn body_to_echo(&self) -> u32 {
        if self.is_echo() { self.body.left() as u32 } else { 0 }
    }

    pub(super) fn is_done(&self) -> bool {
        self.begun && !self.is_receiving() && self.body.left() == 0
    }

    /// Takes credit for up to `wanted` bytes of a frame from both windows. Returns the number of bytes that they allow.
    pub(super) fn grant(&mut self, wanted: u64, connection: &mut SendWindow) -> u32 {
        let most = self.frame_bytes.min(self.window.available()).min(u32::try_from(wanted).unwrap_or(u32::MAX));
        let granted = connection.take(most);
        self.window.take(granted)
    }

    /// Appends the next frame of the body. Returns its size in bytes, or 0 if the windows allow none.
    pub(super) fn send_frame(&mut self, out: &mut Vec<u8>, connection: &mut SendWindow) -> u32 {
        let left = self.body.left();
        let count = self.grant(left, connection);
        if count > 0 {
            let ends = u64::from(count) == left && !self.is_receiving();
            push_data(out, self.id, self.body.take(count), ends);
        }
        count
    }
}
