//! A connection over TLS, which becomes a channel after its first line. Nothing here blocks.

use std::io::{self, ErrorKind, Read, Write};
use std::net::TcpStream;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustls::Connection;
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

/// A connection whose first line has not arrived yet.
pub(super) struct Opening {
    stream: Encrypted,
    text: Vec<u8>,
}

impl Opening {
    pub(super) fn new(socket: TcpStream, tls: impl Into<Connection>) -> io::Result<Self> {
        socket.set_nonblocking(true)?;
        socket.set_nodelay(true)?;
        let stream = Encrypted { tls: Arc::new(Mutex::new(tls.into())), socket: Arc::new(socket) };
        Ok(Self { stream, text: Vec::new() })
    }

    /// Readable when [`Opening::line`] has something to do. Nobody waits for it to be writable, because all that is
    /// sent until the node has joined fits into the socket's buffer.
    pub(super) fn handle(&self) -> BorrowedFd<'_> {
        self.stream.as_fd()
    }

    /// Sends a line, or buffers it until the handshake is complete.
    pub(super) fn say(&mut self, line: &impl Serialize) -> io::Result<()> {
        let mut text = serde_json::to_vec(line)?;
        text.push(b'\n');
        self.stream.write_all(&text)?;
        self.stream.flush()
    }

    /// Returns the first line; `None` until it is complete. Fails if the line is invalid or the connection has ended.
    pub(super) fn line<T: DeserializeOwned>(&mut self) -> Result<Option<T>, Why> {
        while !self.text.ends_with(b"\n") {
            if self.text.len() == LINE_MAX {
                return Err(Why::Line);
            }
            // Bytes after the line belong to the channel.
            let mut byte = [0];
            match self.stream.read(&mut byte) {
                Ok(0) => return Err(Why::Ended),
                Ok(_) => self.text.extend(byte),
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(None),
                Err(error) => return Err(error.downcast().map_or(Why::Ended, Why::Tls)),
            }
        }
        serde_json::from_slice(&self.text).map(Some).map_err(|_| Why::Line)
    }

    /// Data that has arrived after the first line is delivered with the next data, at the latest with a beat.
    pub(super) fn channel(self) -> io::Result<Channel> {
        Channel::new(self.stream.clone(), self.stream)
    }
}

/// TLS over a socket that does not block. Clones share the connection.
#[derive(Clone, Debug)]
struct Encrypted {
    tls: Arc<Mutex<Connection>>,
    socket: Arc<TcpStream>,
}

impl Encrypted {
    fn lock(&self) -> MutexGuard<'_, Connection> {
        // A panic during a write ends the process, so the lock is never poisoned.
        self.tls.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl AsFd for Encrypted {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

impl Read for Encrypted {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let mut tls = self.lock();
        loop {
            match tls.reader().read(buffer) {
                // No decrypted data is left.
                Err(error) if error.kind() == ErrorKind::WouldBlock => tls.complete_io(&mut &*self.socket)?,
                read => return read,
            };
        }
    }
}

/// Writing never reads, because the reader would wait for data that has left the socket.
impl Write for Encrypted {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.flush()?;
        self.lock().writer().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        let mut tls = self.lock();
        while tls.wants_write() {
            tls.write_tls(&mut &*self.socket)?;
        }
        Ok(())
    }
}
