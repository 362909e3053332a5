//! A stream that counts its bytes, and a function that copies between two such streams.

use std::collections::HashSet;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::{Buf, Bytes, BytesMut};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, ReadBuf};

pub(crate) trait Duplex: AsyncRead + AsyncWrite + Unpin + Send {}

impl<S: AsyncRead + AsyncWrite + Unpin + Send> Duplex for S {}

/// A connection that counts bytes in both directions. With TLS, it counts decrypted bytes.
pub(crate) struct Stream {
    inner: Box<dyn Duplex>,
    pub(crate) bytes: Arc<AtomicU64>,
    /// Bytes read ahead, which the next reads return first.
    again: Bytes,
    _own: Option<OwnSocket>,
}

impl Stream {
    pub(crate) fn new(inner: impl Duplex + 'static) -> Self {
        Self { inner: Box::new(inner), bytes: Arc::default(), again: Bytes::new(), _own: None }
    }

    pub(crate) fn of_own_socket(inner: impl Duplex + 'static, own: OwnSocket) -> Self {
        Self { _own: Some(own), ..Self::new(inner) }
    }

    /// Whether the stream begins with these bytes, which stay unread. Fails if too few bytes arrive within `limit`.
    pub(crate) async fn begins_with(&mut self, with: &[u8], limit: Duration) -> io::Result<bool> {
        let mut begin = BytesMut::with_capacity(4 << 10);
        let reading = async {
            while begin.len() < with.len() && with.starts_with(&begin) && self.read_buf(&mut begin).await? > 0 {}
            io::Result::Ok(())
        };
        tokio::time::timeout(limit, reading).await.map_err(|_| io::Error::from(io::ErrorKind::TimedOut))??;
        let is = begin.starts_with(with);
        self.again = begin.freeze();
        Ok(is)
    }

    fn add(&self, bytes: usize) {
        self.bytes.fetch_add(bytes as u64, Ordering::Relaxed);
    }
}

impl AsyncRead for Stream {
    fn poll_read(mut self: Pin<&mut Self>, context: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        if !self.again.is_empty() {
            let part = self.again.len().min(into.remaining());
            into.put_slice(&self.again[..part]);
            self.again.advance(part);
            return Poll::Ready(Ok(()));
        }
        let before = into.filled().len();
        let polled = Pin::new(&mut *self.inner).poll_read(context, into);
        self.add(into.filled().len() - before);
        polled
    }
}

impl AsyncWrite for Stream {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let polled = Pin::new(&mut *self.inner).poll_write(context, bytes);
        if let Poll::Ready(Ok(written)) = polled {
            self.add(written);
        }
        polled
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut *self.inner).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut *self.inner).poll_shutdown(context)
    }
}

/// Copies bytes in both directions until both have ended or nothing arrives for `idle`.
pub(crate) async fn copy(idle: Duration, down: &mut Stream, up: &mut Stream) -> io::Result<()> {
    let counts = [down.bytes.clone(), up.bytes.clone()];
    let seen = || counts.iter().map(|count| count.load(Ordering::Relaxed)).sum::<u64>();
    let watchdog = async {
        let mut before = seen();
        loop {
            tokio::time::sleep(idle).await;
            match seen() {
                same if same == before => return,
                more => before = more,
            }
        }
    };
    tokio::select! {
        copied = tokio::io::copy_bidirectional(down, up) => copied.map(drop),
        () = watchdog => Ok(()),
    }
}

pub(crate) type OwnSockets = Arc<Mutex<HashSet<SocketAddr>>>;

pub(crate) struct OwnSocket {
    address: SocketAddr,
    all: OwnSockets,
}

impl OwnSocket {
    pub(crate) fn new(address: SocketAddr, all: &OwnSockets) -> Self {
        all.lock().unwrap_or_else(PoisonError::into_inner).insert(address);
        Self { address, all: all.clone() }
    }
}

impl Drop for OwnSocket {
    fn drop(&mut self) {
        self.all.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.address);
    }
}
