//! One thread between a connection and two pipes. Nothing is kept but what has been read and cannot be written yet, at most some 100 KiB each way.

use std::fs::File;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::os::fd::{AsFd, OwnedFd};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::{Errno, ioctl_fionbio};
use rustls::Connection;

use super::Pipes;
use crate::clock;

/// What our side wrote last may take so long to be sent, and the other side to end.
const LINGER: Duration = Duration::from_secs(2);
/// Read at once from our side, bytes.
const CHUNK: usize = 64 * 1024;

/// Starts the thread; `pending` has been read from the connection.
pub(super) fn start(stream: TcpStream, mut tls: Connection, pending: Vec<u8>) -> io::Result<Pipes> {
    let (input, to) = pipe()?;
    let (from, output) = pipe()?;
    ioctl_fionbio(&to, true)?;
    ioctl_fionbio(&from, true)?;
    // The bound is that nothing is taken from our side before all has been sent.
    tls.set_buffer_limit(None);
    let pump = Pump {
        stream,
        tls,
        pending,
        written: 0,
        to: Some(to),
        from: Some(from),
        chunk: vec![0; CHUNK],
        peer: Peer::Writes,
        is_shut: false,
        until: None,
    };
    std::thread::Builder::new().name("channel".to_owned()).spawn(move || pump.run())?;
    Ok(Pipes { input, output })
}

fn pipe() -> io::Result<(File, File)> {
    let (reader, writer) = io::pipe()?;
    Ok((OwnedFd::from(reader).into(), OwnedFd::from(writer).into()))
}

/// What is known of the other side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Peer {
    /// More may come.
    Writes,
    /// It has said that no more will come, and may still read.
    Reads,
    /// Nothing can be sent or received any more.
    Gone,
}

struct Pump {
    stream: TcpStream,
    tls: Connection,
    /// Received and not yet written to `to`, from `written` on.
    pending: Vec<u8>,
    written: usize,
    /// Our side's input; `None`: it is closed at one of its ends.
    to: Option<File>,
    /// Our side's output, likewise.
    from: Option<File>,
    /// Where `from` is read to.
    chunk: Vec<u8>,
    peer: Peer,
    /// Whether the other side has been told that no more will come.
    is_shut: bool,
    /// Our side does not read any more: when this ends at the latest.
    until: Option<Instant>,
}

impl Pump {
    fn run(mut self) {
        loop {
            // The end is looked for after each turn: a side that writes without a pause would keep us moving for ever.
            let is_moving = self.turn();
            let is_sent = self.is_shut || self.peer == Peer::Gone;
            let is_read = self.to.is_none() && self.peer != Peer::Writes;
            let is_late = self.until.is_some_and(|until| clock::now() >= until);
            if is_sent && is_read || is_late {
                return;
            }
            if !is_moving {
                self.wait();
            }
        }
    }

    /// Moves what can be moved without waiting; whether anything was.
    fn turn(&mut self) -> bool {
        let moved = self.deliver() | self.take();
        match self.exchange() {
            Ok(more) => moved | more,
            Err(_) => {
                self.lose();
                true
            }
        }
    }

    /// To our side's input.
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

    /// From our side's output, if all that was taken before has been sent.
    fn take(&mut self) -> bool {
        let Some(from) = &mut self.from else { return false };
        if self.tls.wants_write() {
            return false;
        }
        match from.read(&mut self.chunk) {
            Ok(count) if count > 0 => {
                // Without a limit it takes all.
                let _ = self.tls.writer().write_all(&self.chunk[..count]);
            }
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            // Whoever does not read any more has written all there will be.
            Err(error) if error.kind() == ErrorKind::WouldBlock && self.until.is_none() => return false,
            _ => {
                self.from = None;
                self.tls.send_close_notify();
            }
        }
        true
    }

    /// With the other side.
    fn exchange(&mut self) -> io::Result<bool> {
        let mut moved = false;
        if self.peer == Peer::Gone {
            return Ok(false);
        }
        while self.tls.wants_write() {
            match self.tls.write_tls(&mut self.stream) {
                Ok(_) => moved = true,
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) => return Err(error),
            }
        }
        if self.from.is_none() && !self.is_shut && !self.tls.wants_write() {
            self.is_shut = true;
            self.stream.shutdown(Shutdown::Write)?;
        }
        if !self.wants_more() {
            return Ok(moved);
        }
        if self.tls.wants_read() {
            match self.tls.read_tls(&mut self.stream) {
                // Without the farewell of TLS: it was killed, or somebody in between ended it.
                Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
                Ok(_) => moved = true,
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                Err(error) => return Err(error),
            }
        }
        let state = self.tls.process_new_packets().map_err(io::Error::other)?;
        let count = state.plaintext_bytes_to_read();
        if count > 0 {
            self.pending.resize(count, 0);
            self.tls.reader().read_exact(&mut self.pending)?;
            moved = true;
        }
        if state.peer_has_closed() {
            self.peer = Peer::Reads;
            moved = true;
        }
        Ok(moved)
    }

    /// Whether there is room for what the other side writes.
    fn wants_more(&self) -> bool {
        self.peer == Peer::Writes && self.pending.is_empty()
    }

    /// Our side does not read any more: what it wrote is sent, and that is the end.
    fn leave(&mut self) {
        self.to = None;
        self.until = Some(clock::now() + LINGER);
    }

    /// The other side is gone: what came is still delivered.
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
        // Where our side does not read what came, the end of the other side is not news: it would wake us for ever.
        let is_heard = self.peer != Peer::Gone && (!stream.is_empty() || self.pending.is_empty());
        if is_heard {
            polled.push(PollFd::from_borrowed_fd(self.stream.as_fd(), stream));
        }
        if let Some(to) = &self.to {
            polled.push(PollFd::from_borrowed_fd(to.as_fd(), of(!self.pending.is_empty(), PollFlags::OUT)));
        }
        if let Some(from) = self.from.as_ref().filter(|_| !self.tls.wants_write()) {
            polled.push(PollFd::from_borrowed_fd(from.as_fd(), PollFlags::IN));
        }
        let left = self.until.map(|until| until.saturating_duration_since(clock::now()));
        let left = left.and_then(|left| Timespec::try_from(left).ok());
        match poll(&mut polled, left.as_ref()) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(_) => return self.lose(),
        }
        let is_broken =
            |polled: &PollFd<'_>| polled.revents().intersects(PollFlags::ERR | PollFlags::HUP | PollFlags::NVAL);
        let (mut at, mut is_lost, mut is_left) = (0, false, false);
        if is_heard {
            // What it was asked for tells by itself.
            is_lost = stream.is_empty() && is_broken(&polled[0]);
            at = 1;
        }
        if self.to.is_some() {
            is_left = is_broken(&polled[at]);
        }
        if is_lost {
            self.lose();
        }
        if is_left {
            self.leave();
        }
    }
}
