//! A client that sends without reading.

use std::io::{ErrorKind, Write};
use std::thread;
use std::time::Duration;

use super::server::{Client, Server, reason};

/// Sends as much of `asked` as the server accepts while its responses are not read; returns the
/// number of bytes. Meanwhile other connections must be served.
pub(super) fn fill(server: &Server<'_>, slow: &mut Client, asked: &[u8]) -> Result<usize, String> {
    // A write that makes no progress for this long means that the server accepts no more.
    let io_error = |error: std::io::Error| format!("cannot send: {}", reason(&error));
    slow.stream.set_write_timeout(Some(Duration::from_millis(150))).map_err(io_error)?;
    let mut sent = 0;
    while sent < asked.len() {
        match slow.stream.write(&asked[sent..]) {
            Ok(taken) => sent += taken,
            Err(error) if error.kind() == ErrorKind::WouldBlock => break,
            // The server may have ended keep-alive; the responses show it to the caller.
            Err(error) if matches!(error.kind(), ErrorKind::BrokenPipe | ErrorKind::ConnectionReset) => break,
            Err(error) => return Err(io_error(error)),
        }
    }
    // Enough that some share a thread with the slow one; repeated, as it may not be stuck yet.
    let mut others = (0..16).map(|_| server.connect()).collect::<Result<Vec<_>, _>>()?;
    for _ in 0..4 {
        for (index, other) in others.iter_mut().enumerate() {
            other.ask(1).map_err(|why| format!("beside a client that does not read, client {}: {why}", index + 1))?;
        }
        thread::sleep(Duration::from_millis(50));
    }
    Ok(sent)
}
