//! Bodies of HTTP messages: forwarded in pieces while a copy is collected, or read completely within a limit.

use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http_body_util::BodyExt;
use hyper::body::{Body as HttpBody, Frame, Incoming, SizeHint};
use hyper::header::CONTENT_TYPE;
use hyper::{HeaderMap, Response, StatusCode};
use tokio::time::{Sleep, timeout_at};

use crate::config::Limits;
use crate::memory_budget::{Budget, Share};
use crate::metrics::Skip;

/// A body to forward: the part already read, and the rest as it arrives.
#[derive(Default)]
pub(crate) struct Body {
    read: VecDeque<Bytes>,
    trailers: Option<HeaderMap>,
    rest: Option<Incoming>,
    /// Whether the body's length is unknown. Without this flag, an empty chunked body would lose its framing.
    is_open: bool,
    /// Why the connection failed after the part in `read`, and whether that part has had time to be sent.
    cut: Option<(hyper::Error, bool)>,
    watch: Option<Watch>,
}

type Done = Box<dyn FnOnce(Result<Bytes, Skip>) + Send>;

/// Collects a copy of a body while it is forwarded.
struct Watch {
    /// `None` once the copy has been passed on.
    open: Option<(Gathered, Done)>,
    deadline: Pin<Box<Sleep>>,
}

impl Watch {
    fn add(&mut self, data: &Bytes) {
        let Some((gathered, _)) = &mut self.open else { return };
        if let Err((why, _)) = gathered.add(data.clone()) {
            self.end(Err(why));
        }
    }

    /// Passes on the copy, or the reason why it is incomplete.
    fn end(&mut self, read: Result<(), Skip>) {
        if let Some((gathered, done)) = self.open.take() {
            done(read.map(|()| Bytes::from_owner(gathered)));
        }
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.end(Err(Skip::Unreadable));
    }
}

/// Maximum frame size of complete bodies. hyper copies a frame into its own buffer, which the budget does not count.
const FRAME_BYTES: usize = 64 << 10;

impl Body {
    pub(crate) fn streaming(rest: Incoming) -> Self {
        Self { rest: Some(rest), ..Self::default() }
    }

    /// Creates a body that is forwarded as it arrives. `done` gets a copy of it before the receiver sees its end.
    pub(crate) fn watched(rest: Incoming, limits: &Limits, budget: &Arc<Budget>, done: Done) -> Self {
        let open = Some((Gathered::new(limits.body_bytes, budget), done));
        let watch = Watch { open, deadline: Box::pin(tokio::time::sleep(limits.request)) };
        Self { rest: Some(rest), watch: Some(watch), ..Self::default() }
    }

    pub(crate) fn cut(self, error: hyper::Error) -> Self {
        Self { cut: Some((error, false)), ..self }
    }

    pub(crate) async fn read(mut from: Incoming, limits: &Limits, budget: &Arc<Budget>) -> Read {
        let hint = from.size_hint();
        if hint.lower() > limits.body_bytes as u64 {
            return Read::Part(Self::streaming(from), Skip::Size);
        }
        let bytes_max = hint.upper().map_or(limits.body_bytes, |bytes| limits.body_bytes.min(bytes as usize));
        let mut gathered = Gathered::new(bytes_max, budget);
        let (is_open, mut trailers) = (hint.exact().is_none(), None);
        let until = tokio::time::Instant::now() + limits.request;
        let read =
            |gathered, more| Self { read: pieces([Bytes::from_owner(gathered), more]), is_open, ..Self::default() };
        let part = |gathered, more, from, skip| Read::Part(Self { rest: Some(from), ..read(gathered, more) }, skip);
        loop {
            let frame = match timeout_at(until, from.frame()).await {
                Ok(Some(Ok(frame))) => frame,
                Ok(Some(Err(error))) => return Read::Cut(read(gathered, Bytes::new()), error),
                Ok(None) => break,
                Err(_) => return part(gathered, Bytes::new(), from, Skip::Slow),
            };
            match frame.into_data() {
                Ok(data) => {
                    if let Err((skip, data)) = gathered.add(data) {
                        return part(gathered, data, from, skip);
                    }
                }
                Err(frame) => trailers = frame.into_trailers().ok(),
            }
        }
        let bytes = Bytes::from_owner(gathered);
        let body = Self { read: pieces([bytes.clone()]), trailers, is_open, ..Self::default() };
        Read::Whole(bytes, body)
    }
}

/// Creates a response from the adapter itself. `kind` is the content type.
pub(crate) fn respond(code: StatusCode, kind: &'static str, body: String) -> Response<Body> {
    let response = Response::builder().status(code).header(CONTENT_TYPE, kind);
    let body = Body { read: pieces([body.into()]), ..Body::default() };
    response.body(body).expect("a status and a constant are valid")
}

fn pieces<const COUNT: usize>(bytes: [Bytes; COUNT]) -> VecDeque<Bytes> {
    bytes.into_iter().filter(|bytes| !bytes.is_empty()).collect()
}

/// Collects the frames of a body. A single frame is kept as it arrived. Several frames are copied into one buffer,
/// because a frame of one byte would keep its connection's whole buffer in memory. Holds its share of the memory budget
/// until the last copy of the [`Bytes`] made of it is dropped.
struct Gathered {
    first: Bytes,
    all: Vec<u8>,
    bytes_max: usize,
    share: Share,
}

impl Gathered {
    fn new(bytes_max: usize, budget: &Arc<Budget>) -> Self {
        Self { first: Bytes::new(), all: Vec::new(), bytes_max, share: budget.share() }
    }

    fn add(&mut self, data: Bytes) -> Result<(), (Skip, Bytes)> {
        let length = self.first.len() + self.all.len() + data.len();
        if length > self.bytes_max {
            return Err((Skip::Size, data));
        }
        if length == data.len() {
            if !self.share.resize(length) {
                return Err((Skip::Memory, data));
            }
            self.first = data;
            return Ok(());
        }
        if self.all.capacity() < length {
            let capacity = (self.all.capacity() * 2).min(self.bytes_max).max(length);
            if !self.share.resize(capacity) {
                return Err((Skip::Memory, data));
            }
            self.all.reserve_exact(capacity - self.all.len());
        }
        self.all.extend_from_slice(&std::mem::take(&mut self.first));
        self.all.extend_from_slice(&data);
        Ok(())
    }
}

impl AsRef<[u8]> for Gathered {
    fn as_ref(&self) -> &[u8] {
        if self.all.is_empty() { &self.first } else { &self.all }
    }
}

pub(crate) enum Read {
    Whole(Bytes, Body),
    Part(Body, Skip),
    Cut(Body, hyper::Error),
}

impl HttpBody for Body {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        if let Some(mut data) = self.read.pop_front() {
            if data.len() > FRAME_BYTES {
                self.read.push_front(data.split_off(FRAME_BYTES));
            }
            return Poll::Ready(Some(Ok(Frame::data(data))));
        }
        if self.watch.as_mut().is_some_and(|watch| watch.deadline.as_mut().poll(cx).is_ready())
            && let Some(mut watch) = self.watch.take()
        {
            watch.end(Err(Skip::Slow));
        }
        if let Some(rest) = &mut self.rest {
            match ready!(Pin::new(rest).poll_frame(cx)) {
                Some(Ok(frame)) => {
                    if let (Some(watch), Some(data)) = (&mut self.watch, frame.data_ref()) {
                        watch.add(data);
                    }
                    return Poll::Ready(Some(Ok(frame)));
                }
                Some(Err(error)) => (self.rest, self.watch, self.cut) = (None, None, Some((error, false))),
                None => {
                    if let Some(mut watch) = self.watch.take() {
                        watch.end(Ok(()));
                    }
                    return Poll::Ready(None);
                }
            }
        }
        match self.cut.take() {
            // If a body fails, hyper discards unsent data. So fail at the next poll, once hyper has sent the data.
            Some((error, false)) => {
                self.cut = Some((error, true));
                cx.waker().wake_by_ref();
                Poll::Pending
            }
            Some((error, true)) => Poll::Ready(Some(Err(error))),
            None => {
                self.is_open = false;
                Poll::Ready(self.trailers.take().map(|trailers| Ok(Frame::trailers(trailers))))
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        !self.is_open
            && self.cut.is_none()
            && self.watch.is_none()
            && self.read.is_empty()
            && self.trailers.is_none()
            && self.rest.as_ref().is_none_or(HttpBody::is_end_stream)
    }

    fn size_hint(&self) -> SizeHint {
        let read = self.read.iter().map(Bytes::len).sum::<usize>() as u64;
        let mut hint = match &self.rest {
            Some(rest) => rest.size_hint(),
            None if self.is_open || self.cut.is_some() => SizeHint::new(),
            None => SizeHint::with_exact(0),
        };
        if let Some(upper) = hint.upper() {
            hint.set_upper(upper + read);
        }
        hint.set_lower(hint.lower() + read);
        hint
    }
}
