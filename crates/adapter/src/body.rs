//! Bodies that were read as a whole, and those that stream through.

use std::collections::VecDeque;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http_body_util::BodyExt;
use hyper::HeaderMap;
use hyper::body::{Body as HttpBody, Frame, Incoming, SizeHint};
use tokio::time::timeout_at;

use crate::metrics::Skip;

/// A body to be sent on: what was read of it, and the rest as it comes.
#[derive(Debug, Default)]
pub(crate) struct Body {
    read: VecDeque<Bytes>,
    trailers: Option<HeaderMap>,
    rest: Option<Incoming>,
    /// It came without a length, and so it goes on: otherwise one in chunks that is empty would become none at all.
    is_open: bool,
}

impl Body {
    /// One that is there as a whole.
    pub(crate) fn of(bytes: impl Into<Bytes>) -> Self {
        let bytes = bytes.into();
        Self { read: if bytes.is_empty() { VecDeque::new() } else { VecDeque::from([bytes]) }, ..Self::default() }
    }

    /// One of which nothing was read.
    pub(crate) fn streaming(rest: Incoming) -> Self {
        Self { rest: Some(rest), ..Self::default() }
    }

    /// Reads a body, but no more than so much of it, and for no longer than so long.
    ///
    /// # Errors
    /// Its connection failed.
    pub(crate) async fn read(mut from: Incoming, limit: usize, within: Duration) -> Result<Read, hyper::Error> {
        if from.size_hint().lower() > limit as u64 {
            return Ok(Read::Part(Self::streaming(from), Skip::Size));
        }
        let mut body = Self { is_open: from.size_hint().exact().is_none(), ..Self::default() };
        let mut length = 0;
        let until = tokio::time::Instant::now() + within;
        loop {
            let Ok(frame) = timeout_at(until, from.frame()).await else {
                body.rest = Some(from);
                return Ok(Read::Part(body, Skip::Slow));
            };
            let Some(frame) = frame else { break };
            match frame?.into_data() {
                Ok(data) => {
                    length += data.len();
                    body.read.push_back(data);
                }
                Err(frame) => body.trailers = frame.into_trailers().ok(),
            }
            if length > limit {
                body.rest = Some(from);
                return Ok(Read::Part(body, Skip::Size));
            }
        }
        let whole = match body.read.len() {
            0 => Bytes::new(),
            1 => body.read[0].clone(),
            _ => {
                let mut whole = BytesMut::with_capacity(length);
                body.read.iter().for_each(|part| whole.extend_from_slice(part));
                whole.freeze()
            }
        };
        Ok(Read::Whole(whole, body))
    }
}

/// What was read of a body.
#[derive(Debug)]
pub(crate) enum Read {
    /// All of it.
    Whole(Bytes, Body),
    /// Not all of it, and why: the rest streams through.
    Part(Body, Skip),
}

impl HttpBody for Body {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        if let Some(data) = self.read.pop_front() {
            return Poll::Ready(Some(Ok(Frame::data(data))));
        }
        match &mut self.rest {
            Some(rest) => Pin::new(rest).poll_frame(context),
            None => {
                self.is_open = false;
                Poll::Ready(self.trailers.take().map(|trailers| Ok(Frame::trailers(trailers))))
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        !self.is_open
            && self.read.is_empty()
            && self.trailers.is_none()
            && self.rest.as_ref().is_none_or(HttpBody::is_end_stream)
    }

    fn size_hint(&self) -> SizeHint {
        let read = self.read.iter().map(Bytes::len).sum::<usize>() as u64;
        match &self.rest {
            None if !self.is_open => SizeHint::with_exact(read),
            None => {
                let mut hint = SizeHint::new();
                hint.set_lower(read);
                hint
            }
            Some(rest) => {
                let rest = rest.size_hint();
                let mut hint = SizeHint::new();
                hint.set_lower(rest.lower() + read);
                if let Some(upper) = rest.upper() {
                    hint.set_upper(upper + read);
                }
                hint
            }
        }
    }
}
