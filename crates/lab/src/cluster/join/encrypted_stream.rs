//! A connection over TLS: its first line, and the channel that it becomes. None of the functions block.

use std::fmt::Debug;
use std::io::{self, BufRead, ErrorKind, Read, Write};
use std::net::TcpStream;
use std::ops::{Deref, DerefMut};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustls::{ConnectionCommon, SideData, StreamOwned};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::LINE_MAX;
use crate::json_lines::Channel;

/// Why a connection was refused or could not be opened.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum Why {
    /// The lab expects no node from this address, or expects this node from a different address.
    #[error("no such node is expected from this address")]
    Address,
    /// The node did not join in time.
    #[error("it did not join in time")]
    Slow,
    /// The node closed the connection before joining.
    #[error("the connection ended before it joined")]
    Ended,
    /// The TLS handshake failed.
    #[error("TLS: {0}")]
    Tls(#[from] rustls::Error),
    /// The first line is too long or is not a join message.
    #[error("its first line is not understood")]
    Line,
    /// The ticket is not the cluster's.
    #[error("wrong ticket")]
    Ticket,
    /// The cluster has no node of this rank.
    #[error("no rank {0}")]
    Rank(u32),
    /// A node of this rank has already joined.
    #[error("rank {0} has joined already")]
    Twice(u32),
    /// An operation failed on this machine, for this reason.
    #[error("{0}")]
    Machine(String),
}

impl From<io::Error> for Why {
    fn from(error: io::Error) -> Self {
        Why::Machine(error.to_string())
    }
}

/// A connection that has not sent its first line yet. `C` is the client's or the server's side of TLS.
pub(super) struct Opening<C> {
    tls: StreamOwned<C, TcpStream>,
    text: Vec<u8>,
}

impl<C, S> Opening<C>
where
    C: DerefMut + Deref<Target = ConnectionCommon<S>> + Send + Debug + 'static,
    S: SideData + 'static,
{
    pub(super) fn new(socket: TcpStream, tls: C) -> io::Result<Self> {
        socket.set_nonblocking(true)?;
        socket.set_nodelay(true)?;
        Ok(Self { tls: StreamOwned::new(tls, socket), text: Vec::new() })
    }

    /// Readable when [`Opening::line`] has something to do. Nobody waits for it to be writable, because all that is
    /// sent until the node has joined fits into the socket's buffer.
    pub(super) fn handle(&self) -> BorrowedFd<'_> {
        self.tls.sock.as_fd()
    }

    /// Sends a line, or buffers it until the handshake is complete.
    pub(super) fn say(&mut self, line: &impl Serialize) -> io::Result<()> {
        let mut text = serde_json::to_vec(line)?;
        text.push(b'\n');
        self.tls.conn.writer().write_all(&text)?;
        send(&mut self.tls)
    }

    /// Returns the first line; `None` until it is complete. Fails if the line is invalid or the connection has ended.
    pub(super) fn line<T: DeserializeOwned>(&mut self) -> Result<Option<T>, Why> {
        let left = LINE_MAX - self.text.len();
        match Read::by_ref(&mut self.tls).take(left as u64).read_until(b'\n', &mut self.text) {
            Ok(_) if self.text.ends_with(b"\n") => serde_json::from_slice(&self.text).map(Some).map_err(|_| Why::Line),
            Ok(_) if self.text.len() == LINE_MAX => Err(Why::Line),
            Ok(_) => Err(Why::Ended),
            Err(error) if error.kind() == ErrorKind::WouldBlock => Ok(None),
            Err(error) => Err(error.downcast().map_or(Why::Ended, Why::Tls)),
        }
    }

    /// Data that has arrived after the first line is delivered with the next data, at the latest with a beat.
    pub(super) fn channel(self) -> io::Result<Channel> {
        let socket = Arc::new(self.tls.sock.try_clone()?);
        let tls = Arc::new(Mutex::new(self.tls));
        let stream = || Encrypted { tls: tls.clone(), socket: socket.clone() };
        Channel::new(stream(), stream())
    }
}

/// The stream of a [`Channel`], for one of its directions.
#[derive(Debug)]
struct Encrypted<C> {
    tls: Arc<Mutex<StreamOwned<C, TcpStream>>>,
    /// The socket of `tls`, for polling without the lock.
    socket: Arc<TcpStream>,
}

impl<C> Encrypted<C> {
    fn lock(&self) -> MutexGuard<'_, StreamOwned<C, TcpStream>> {
        // A panic during a write ends the process, so the lock is never poisoned.
        self.tls.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<C> AsFd for Encrypted<C> {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

impl<C: DerefMut + Deref<Target = ConnectionCommon<S>>, S: SideData> Read for Encrypted<C> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.lock().read(buffer)
    }
}

/// Writing never reads, because the reader would wait for data that has left the socket.
impl<C: DerefMut + Deref<Target = ConnectionCommon<S>>, S: SideData> Write for Encrypted<C> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.flush()?;
        self.lock().conn.writer().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        send(&mut self.lock())
    }
}

fn send<C, S>(tls: &mut StreamOwned<C, TcpStream>) -> io::Result<()>
where
    C: DerefMut + Deref<Target = ConnectionCommon<S>>,
    S: SideData,
{
    while tls.conn.wants_write() {
        tls.conn.write_tls(&mut tls.sock)?;
    }
    Ok(())
}
