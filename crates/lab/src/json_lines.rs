//! Reads and writes lines of JSON over pipes.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use study::Json;

use crate::lab_clocks;

/// Maximum length of a line in bytes, a hundred times the size of the histograms of all windows of a long trial.
const LINE_MAX: usize = 256 * 1024 * 1024;

pub(crate) struct Lines {
    input: File,
    unread: Vec<u8>,
    /// Length of the prefix of `unread` that is known to contain no line end.
    searched: usize,
}

impl Lines {
    pub(crate) fn of(input: impl Into<OwnedFd>) -> Self {
        Self { input: input.into().into(), unread: Vec::new(), searched: 0 }
    }

    pub(crate) fn handle(&self) -> BorrowedFd<'_> {
        self.input.as_fd()
    }

    pub(crate) fn read(&mut self) -> Result<Option<Vec<Vec<u8>>>, String> {
        let mut buffer = [0; 64 * 1024];
        let count = match self.input.read(&mut buffer) {
            Ok(0) => return Ok(None),
            Ok(count) => count,
            Err(error) if matches!(error.kind(), io::ErrorKind::Interrupted | io::ErrorKind::WouldBlock) => 0,
            Err(error) => return Err(format!("cannot read its output: {error}")),
        };
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
#[derive(Clone)]
pub(crate) struct Writer {
    output: Arc<Mutex<File>>,
    patience: Duration,
}

impl Writer {
    pub(crate) fn new(output: impl Into<OwnedFd>, patience: Duration) -> io::Result<Self> {
        let output = output.into();
        fcntl_setfl(&output, fcntl_getfl(&output)? | OFlags::NONBLOCK)?;
        Ok(Self { output: Arc::new(Mutex::new(output.into())), patience })
    }

    pub(crate) fn say<T: Json>(&self, what: &T) -> io::Result<()> {
        self.line(what.to_json()?.as_bytes())
    }

    pub(crate) fn line(&self, text: &[u8]) -> io::Result<()> {
        // A panic during a write ends the process, so the lock is never poisoned.
        let mut output = self.output.lock().unwrap_or_else(PoisonError::into_inner);
        let text = [text, b"\n"].concat();
        let (mut rest, deadline) = (text.as_slice(), lab_clocks::now() + self.patience);
        while !rest.is_empty() {
            match output.write(rest) {
                Ok(count) => rest = &rest[count..],
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    let mut polled = [PollFd::from_borrowed_fd(output.as_fd(), PollFlags::OUT)];
                    match poll(&mut polled, Some(&lab_clocks::left(deadline))) {
                        Ok(0) => return Err(io::ErrorKind::TimedOut.into()),
                        Ok(_) | Err(rustix::io::Errno::INTR) => {}
                        Err(error) => return Err(error.into()),
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use study::generator_messages::Heard;

    use super::*;

    fn read(lines: &mut Lines) -> Result<Option<Vec<Heard>>, String> {
        lines.read()?.map(|lines| lines.iter().map(|line| parse(line)).collect()).transpose()
    }

    #[test]
    fn assembles_lines_from_partial_reads() {
        let (reader, writer) = io::pipe().unwrap();
        let (mut lines, writer) = (Lines::of(reader), Writer::new(writer, Duration::from_secs(10)).unwrap());
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
        let (_reader, writer) = io::pipe().unwrap();
        let writer = Writer::new(writer, Duration::from_millis(1)).unwrap();
        assert_eq!(writer.line(&vec![b'x'; 1 << 20]).unwrap_err().kind(), io::ErrorKind::TimedOut);
    }
}
