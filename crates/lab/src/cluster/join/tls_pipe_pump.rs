//! Copies data between an encrypted connection and two pipes, and buffers at most about 100 KiB per direction.

use std::fs::File;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::os::fd::{AsFd, OwnedFd};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::{Errno, ioctl_fionbio};
use rustls::{Connection, IoState};

use super::Pipes;
use crate::lab_clocks;

/// Time limit for sending the last bytes and waiting for the other side to end.
const LINGER: Duration = Duration::from_secs(2);
const CHUNK: usize = 64 * 1024;

pub(super) fn start(stream: TcpStream, mut tls: Connection, pending: Vec<u8>) -> io::Result<Pipes> {
    let (input, to) = pipe()?;
    let (from, output) = pipe()?;
    ioctl_fionbio(&to, true)?;
    ioctl_fionbio(&from, true)?;
    // Nothing is read from our side until all earlier data has been sent, which bounds the memory.
    tls.set_buffer_limit(None);
    let (to, from, chunk, peer) = (Some(to), Some(from), vec![0; CHUNK], Peer::Writes);
    let pump = Pump { stream, tls, pending, written: 0, to, from, chunk, peer, is_shut: false, until: None };
    std::thread::Builder::new().name("channel".to_owned()).spawn(move || pump.run())?;
    Ok(Pipes { input, output })
}

/// Sends as much as possible without waiting; returns whether anything was sent.
pub(super) fn send(tls: &mut Connection, stream: &mut TcpStream) -> io::Result<bool> {
    let mut moved = false;
    while tls.wants_write() {
        match tls.write_tls(stream) {
            Ok(_) => moved = true,
            Err(error) if error.kind() == ErrorKind::WouldBlock => break,
            Err(error) => return Err(error),
        }
    }
    Ok(moved)
}

/// Appends the decrypted data that has arrived to `data`. Returns whether anything has arrived, and the state of the
/// connection. Fails with the error of TLS, or with `None` if the connection is broken.
pub(super) fn receive(
    tls: &mut Connection,
    stream: &mut TcpStream,
    data: &mut Vec<u8>,
) -> Result<(bool, IoState), Option<rustls::Error>> {
    let mut moved = false;
    if tls.wants_read() {
        match tls.read_tls(stream) {
            // If the stream ends without close_notify, the peer was killed or the connection was cut.
            Ok(0) => return Err(None),
            Ok(_) => moved = true,
            Err(error) if error.kind() == ErrorKind::WouldBlock => {}
            Err(_) => return Err(None),
        }
    }
    let state = tls.process_new_packets().map_err(|error| {
        let _ = send(tls, stream); // an alert, which tells the peer why
        Some(error)
    })?;
    let before = data.len();
    data.resize(before + state.plaintext_bytes_to_read(), 0);
    tls.reader().read_exact(&mut data[before..]).map_err(|_| None)?;
    Ok((moved || data.len() > before, state))
}

fn pipe() -> io::Result<(File, File)> {
    let (reader, writer) = io::pipe()?;
    Ok((OwnedFd::from(reader).into(), OwnedFd::from(writer).into()))
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Peer {
    /// The peer may send more.
    Writes,
    /// The peer has finished sending but may still read.
    Reads,
    Gone,
}

struct Pump {
    stream: TcpStream,
    tls: Connection,
    pending: Vec<u8>,
    written: usize,
    /// Pipes that our side reads from and writes to; each is `None` once either end is closed.
    to: Option<File>,
    from: Option<File>,
    chunk: Vec<u8>,
    peer: Peer,
    /// Whether the other side knows that our side has finished.
    is_shut: bool,
    /// Deadline for the end of the thread; `None` until our side stops reading.
    until: Option<Instant>,
}

impl Pump {
    fn run(mut self) {
        loop {
            // Every iteration checks for the end, because the loop never pauses while a side keeps writing.
            let moved = self.deliver() | self.take();
            let exchanged = self.exchange();
            if exchanged.is_none() {
                self.lose();
            }
            let is_sent = self.is_shut || self.peer == Peer::Gone;
            let is_read = self.to.is_none() && self.peer != Peer::Writes;
            let is_late = self.until.is_some_and(|until| lab_clocks::now() >= until);
            if is_sent && is_read || is_late {
                return;
            }
            if !(moved | exchanged.unwrap_or(true)) {
                self.wait();
            }
        }
    }

    fn deliver(&mut self) -> bool {
        let before = self.written;
        while let Some(to) = &mut self.to
            && self.written < self.pending.len()
        {
            match to.write(&self.pending[self.written..]) {
                Ok(count) => self.written += count,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return self.written > before,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(_) => self.leave(),
            }
        }
        let moved = self.written > before;
        self.pending.clear();
        self.written = 0;
        if self.peer != Peer::Writes {
            self.to = None;
        }
        moved
    }

    fn take(&mut self) -> bool {
        let Some(from) = &mut self.from else { return false };
        if self.tls.wants_write() {
            return false;
        }
        match from.read(&mut self.chunk) {
            Ok(count) if count > 0 => {
                // This write cannot fail, because the buffer has no limit.
                let _ = self.tls.writer().write_all(&self.chunk[..count]);
            }
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            // A side that has stopped reading has also finished writing.
            Err(error) if error.kind() == ErrorKind::WouldBlock && self.until.is_none() => return false,
            _ => {
                self.from = None;
                self.tls.send_close_notify();
            }
        }
        true
    }

    /// Sends and receives as much as possible without waiting. Returns whether anything moved; `None` if the connection
    /// is broken.
    fn exchange(&mut self) -> Option<bool> {
        if self.peer == Peer::Gone {
            return Some(false);
        }
        let mut moved = send(&mut self.tls, &mut self.stream).ok()?;
        if self.from.is_none() && !self.is_shut && !self.tls.wants_write() {
            self.is_shut = true;
            self.stream.shutdown(Shutdown::Write).ok()?;
        }
        if self.wants_more() {
            let (has_arrived, state) = receive(&mut self.tls, &mut self.stream, &mut self.pending).ok()?;
            moved |= has_arrived;
            if state.peer_has_closed() {
                self.peer = Peer::Reads;
                moved = true;
            }
        }
        Some(moved)
    }

    fn wants_more(&self) -> bool {
        self.peer == Peer::Writes && self.pending.is_empty()
    }

    /// Stops writing to our side, which no longer reads, and limits the time for its last output to [`LINGER`].
    fn leave(&mut self) {
        self.to = None;
        self.until = Some(lab_clocks::now() + LINGER);
    }

    /// Marks the other side as gone. Only data that has already arrived is still delivered.
    fn lose(&mut self) {
        self.peer = Peer::Gone;
        self.from = None;
        let _ = self.stream.shutdown(Shutdown::Both);
    }

    fn wait(&mut self) {
        let none = PollFlags::empty();
        let of = |is_wanted, flag| if is_wanted { flag } else { none };
        let mut polled = Vec::with_capacity(3);
        let stream = of(self.wants_more(), PollFlags::IN) | of(self.tls.wants_write(), PollFlags::OUT);
        // Polling an idle stream for its end would wake this thread again and again while data is pending.
        let is_heard = self.peer != Peer::Gone && (!stream.is_empty() || self.pending.is_empty());
        polled.extend(is_heard.then(|| PollFd::from_borrowed_fd(self.stream.as_fd(), stream)));
        let out = of(!self.pending.is_empty(), PollFlags::OUT);
        polled.extend(self.to.as_ref().map(|to| PollFd::from_borrowed_fd(to.as_fd(), out)));
        let from = self.from.as_ref().filter(|_| !self.tls.wants_write());
        polled.extend(from.map(|from| PollFd::from_borrowed_fd(from.as_fd(), PollFlags::IN)));
        if poll(&mut polled, self.until.map(lab_clocks::left).as_ref()).is_err_and(|error| error != Errno::INTR) {
            return self.lose();
        }
        let is_broken = |one: &PollFd<'_>| one.revents().intersects(PollFlags::ERR | PollFlags::HUP | PollFlags::NVAL);
        // The next iteration handles the requested events.
        let is_lost = is_heard && stream.is_empty() && is_broken(&polled[0]);
        let is_left = self.to.is_some() && is_broken(&polled[usize::from(is_heard)]);
        if is_lost {
            self.lose();
        }
        if is_left {
            self.leave();
        }
    }
}
