//! A connection until its TLS handshake and first line are complete. None of the functions block.

use std::io::{self, Write};
use std::net::TcpStream;
use std::os::fd::AsFd;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags};
use rustix::net::sockopt;
use rustls::Connection;
use serde::Serialize;

use super::{LINE_MAX, Pipes, tls_pipe_pump};

pub(super) struct Opening {
    stream: TcpStream,
    tls: Connection,
    text: Vec<u8>,
}

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

impl Opening {
    pub(super) fn new(stream: TcpStream, tls: impl Into<Connection>) -> io::Result<Self> {
        stream.set_nonblocking(true)?;
        stream.set_nodelay(true)?;
        // These settings reveal a disconnected machine after 5 s.
        sockopt::set_socket_keepalive(&stream, true)?;
        sockopt::set_tcp_keepidle(&stream, Duration::from_secs(2))?;
        sockopt::set_tcp_keepintvl(&stream, Duration::from_secs(1))?;
        sockopt::set_tcp_keepcnt(&stream, 3)?;
        Ok(Self { stream, tls: tls.into(), text: Vec::new() })
    }

    pub(super) fn say(&mut self, line: &impl Serialize) -> io::Result<()> {
        let mut text = serde_json::to_vec(line)?;
        text.push(b'\n');
        self.tls.writer().write_all(&text)
    }

    /// Returns the first line; `None` until it is complete. Fails if the line is invalid or the connection has ended.
    pub(super) fn line<T: serde::de::DeserializeOwned>(&mut self) -> Result<Option<T>, Why> {
        loop {
            self.send().map_err(|_| Why::Ended)?;
            let received = tls_pipe_pump::receive(&mut self.tls, &mut self.stream, &mut self.text);
            let (has_arrived, state) = received.map_err(|error| error.map_or(Why::Ended, Why::Tls))?;
            // Data after the first line stays in `text`, and the pump delivers it later.
            if let Some(end) = self.text.iter().take(LINE_MAX).position(|byte| *byte == b'\n') {
                let line = serde_json::from_slice(&self.text[..end]).map_err(|_| Why::Line)?;
                self.text.drain(..=end);
                return Ok(Some(line));
            }
            match () {
                () if self.text.len() >= LINE_MAX => return Err(Why::Line),
                () if state.peer_has_closed() => return Err(Why::Ended),
                () if !has_arrived => return Ok(None),
                () => {}
            }
        }
    }

    pub(super) fn send(&mut self) -> io::Result<()> {
        tls_pipe_pump::send(&mut self.tls, &mut self.stream).map(drop)
    }

    /// What to poll before the next call of [`Opening::line`].
    pub(super) fn interest(&self) -> PollFd<'_> {
        let write = if self.tls.wants_write() { PollFlags::OUT } else { PollFlags::empty() };
        PollFd::from_borrowed_fd(self.stream.as_fd(), PollFlags::IN | write)
    }

    /// Closes the connection. Sends `line` first if the handshake is complete and the socket accepts it.
    pub(super) fn close(mut self, line: &impl Serialize) {
        if !self.tls.is_handshaking() && self.say(line).is_ok() {
            self.tls.send_close_notify();
            let _ = self.send();
        }
    }

    pub(super) fn pipes(self) -> io::Result<Pipes> {
        tls_pipe_pump::start(self.stream, self.tls, self.text)
    }
}
