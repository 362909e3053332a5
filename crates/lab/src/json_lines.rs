//! Reads and writes lines of JSON over pipes and encrypted connections.

use std::fmt::Debug;
use std::fs::File;
use std::io::{self, ErrorKind, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use study::Json;
use study::node_messages::{BEAT, SILENCE_MAX};

use crate::lab_clocks;

/// Maximum length of a line in bytes, a hundred times the size of the histograms of all windows of a long trial.
const LINE_MAX: usize = 256 * 1024 * 1024;

/// A stream of bytes that can be polled.
pub(crate) trait Stream: Read + Write + AsFd + Send + Debug {}

impl<T: Read + Write + AsFd + Send + Debug> Stream for T {}

/// Two directions of a connection to another process.
#[derive(Debug)]
pub struct Channel {
    /// Lines from the other side.
    pub input: Lines,
    /// Lines for the other side.
    pub output: Writer,
}

impl Channel {
    /// Uses stdin and stdout of this process. Fails if they are closed.
    pub fn of_stdio() -> io::Result<Self> {
        let (input, output) = (io::stdin().as_fd().try_clone_to_owned()?, io::stdout().as_fd().try_clone_to_owned()?);
        Self::new(File::from(input), File::from(output))
    }

    pub(crate) fn new(input: impl Stream + 'static, output: impl Stream + 'static) -> io::Result<Self> {
        Ok(Self { input: Lines::of(input), output: Writer::new(output, SILENCE_MAX)? })
    }
}

/// Reading end of a channel.
#[derive(Debug)]
pub struct Lines {
    input: Box<dyn Stream>,
    unread: Vec<u8>,
    /// Length of the prefix of `unread` that is known to contain no line end.
    searched: usize,
    /// Time of the latest read.
    pub(crate) heard: Instant,
}

impl Lines {
    pub(crate) fn of(input: impl Stream + 'static) -> Self {
        Self { input: Box::new(input), unread: Vec::new(), searched: 0, heard: lab_clocks::now() }
    }

    pub(crate) fn handle(&self) -> BorrowedFd<'_> {
        self.input.as_fd()
    }

    /// Reads once and returns the lines that are complete; `None` at the end. Fails if a line is too long.
    pub fn read(&mut self) -> Result<Option<Vec<Vec<u8>>>, String> {
        let mut buffer = [0; 64 * 1024];
        let count = match self.input.read(&mut buffer).map_err(|error| (error.kind(), error)) {
            Ok(0) => return Ok(None),
            Err((ErrorKind::UnexpectedEof | ErrorKind::ConnectionReset | ErrorKind::BrokenPipe, _)) => return Ok(None),
            Ok(count) => count,
            Err((ErrorKind::Interrupted | ErrorKind::WouldBlock, _)) => 0,
            Err((_, error)) => return Err(format!("cannot read its output: {error}")),
        };
        self.heard = lab_clocks::now();
        self.unread.extend_from_slice(&buffer[..count]);
        let mut lines = Vec::new();
        while let Some(length) = self.unread[self.searched..].iter().position(|byte| *byte == b'\n') {
            let line: Vec<u8> = self.unread.drain(..self.searched + length + 1).collect();
            self.searched = 0;
            if !line.trim_ascii().is_empty() {
                lines.push(line);
            }
        }
        self.searched = self.unread.len();
        if self.searched > LINE_MAX { Err("it wrote an overlong line".to_owned()) } else { Ok(Some(lines)) }
    }
}

pub(crate) fn parse<T: Json>(line: &[u8]) -> Result<T, String> {
    let line = String::from_utf8_lossy(line);
    T::from_json(&line).map_err(|error| {
        let text: String = line.trim_end().chars().take(80).collect();
        format!("unexpected line in its output: `{text}` ({error})")
    })
}

/// Writing end of a channel, which threads may share. Each write waits at most `patience` for the reader.
#[derive(Clone, Debug)]
pub struct Writer {
    output: Arc<Mutex<dyn Stream>>,
    patience: Duration,
}

impl Writer {
    pub(crate) fn new(output: impl Stream + 'static, patience: Duration) -> io::Result<Self> {
        fcntl_setfl(&output, fcntl_getfl(&output)? | OFlags::NONBLOCK)?;
        Ok(Self { output: Arc::new(Mutex::new(output)), patience })
    }

    /// Starts a thread that writes `sign` every [`BEAT`] until the other side is gone, and then calls `end`.
    pub(crate) fn start_beats<T>(&self, sign: T, end: impl FnOnce() + Send + 'static) -> io::Result<()>
    where
        T: Json + Send + 'static,
    {
        let writer = self.clone();
        let beats = move || {
            while writer.say(&sign).is_ok() {
                std::thread::sleep(BEAT);
            }
            end();
        };
        std::thread::Builder::new().name("beats".to_owned()).spawn(beats).map(drop)
    }

    pub(crate) fn say<T: Json>(&self, what: &T) -> io::Result<()> {
        self.line(what.to_json()?.as_bytes())
    }

    /// Writes `text` and a line feed. Fails if the other side is gone or does not read in time.
    pub fn line(&self, text: &[u8]) -> io::Result<()> {
        // A panic during a write ends the process, so the lock is never poisoned.
        let mut output = self.output.lock().unwrap_or_else(PoisonError::into_inner);
        let text = [text, b"\n"].concat();
        let (mut rest, deadline) = (text.as_slice(), lab_clocks::now() + self.patience);
        loop {
            let written = if rest.is_empty() { output.flush().map(|()| 0) } else { output.write(rest) };
            match written {
                Ok(_) if rest.is_empty() => return Ok(()),
                Ok(count) => rest = &rest[count..],
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    let mut polled = [PollFd::from_borrowed_fd(output.as_fd(), PollFlags::OUT)];
                    match poll(&mut polled, Some(&lab_clocks::left(deadline))) {
                        Ok(0) => return Err(ErrorKind::TimedOut.into()),
                        Ok(_) | Err(rustix::io::Errno::INTR) => {}
                        Err(error) => return Err(error.into()),
                    }
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::fd::OwnedFd;

    use study::generator_messages::Heard;

    use super::*;

    fn pipe(patience: Duration) -> (Lines, Writer) {
        let (reader, writer) = io::pipe().unwrap();
        let [reader, writer] = [OwnedFd::from(reader), OwnedFd::from(writer)].map(File::from);
        (Lines::of(reader), Writer::new(writer, patience).unwrap())
    }

    fn read(lines: &mut Lines) -> Result<Option<Vec<Heard>>, String> {
        lines.read()?.map(|lines| lines.iter().map(|line| parse(line)).collect()).transpose()
    }

    #[test]
    fn assembles_lines_from_partial_reads() {
        let (mut lines, writer) = pipe(Duration::from_secs(10));
        writer.say(&Heard::Go { at_ns: 7 }).unwrap();
        writer.output.lock().unwrap().write_all(b"\n\n{\"go\":{\"at").unwrap();
        assert_eq!(read(&mut lines).unwrap(), Some(vec![Heard::Go { at_ns: 7 }]));
        writer.line(b"_ns\":89}}").unwrap();
        assert_eq!(read(&mut lines).unwrap(), Some(vec![Heard::Go { at_ns: 89 }]));
        writer.line(b"x").unwrap();
        assert!(read(&mut lines).unwrap_err().starts_with("unexpected line in its output: `x` ("));
        drop(writer);
        assert_eq!(read(&mut lines).unwrap(), None);
    }

    #[test]
    fn write_to_a_full_pipe_times_out() {
        let (_reader, writer) = pipe(Duration::from_millis(1));
        assert_eq!(writer.line(&vec![b'x'; 1 << 20]).unwrap_err().kind(), io::ErrorKind::TimedOut);
    }
}
