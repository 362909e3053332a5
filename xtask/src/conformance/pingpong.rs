//! What servers of ping-pong promise: subjects/REQUIREMENTS.md, "Ping-pong".

use std::io::{ErrorKind, Read, Write};
use std::thread;
use std::time::Duration;

use super::cases::{self, Case, END, Miss};
use super::server::{Client, Server, reason};

pub(super) const CASES: [Case; 14] = [
    Case {
        name: "answers",
        promise: "a word is answered by the word plus one, network byte order",
        ends: false,
        check: answers,
    },
    Case { name: "wrap", promise: "0xffffffff is answered by 0, and the connection goes on", ends: false, check: wrap },
    Case {
        name: "partial",
        promise: "a word may arrive in pieces, or together with a piece of the next",
        ends: false,
        check: partial,
    },
    Case {
        name: "pipelined",
        promise: "many words in one write are all answered, in order",
        ends: false,
        check: pipelined,
    },
    Case {
        name: "slow-reader",
        promise: "a slow reader neither blocks other clients nor loses data",
        ends: false,
        check: slow_reader,
    },
    cases::CONNECTIONS,
    Case {
        name: "half-close",
        promise: "a client that has sent everything still gets all answers, then the end",
        ends: false,
        check: half_close,
    },
    cases::RESET,
    cases::CHURN,
    cases::NODELAY,
    cases::SIGTERM,
    cases::SIGTERM_IDLE,
    Case { name: "zero", promise: "a zero word ends it within 1 s, and all it has started", ends: true, check: zero },
    cases::RESTART,
];

impl Client {
    /// Reads the answers to these words.
    pub(super) fn expect_words(&mut self, words: impl IntoIterator<Item = u32>) -> Result<(), String> {
        for (index, word) in words.into_iter().enumerate() {
            let mut bytes = [0; 4];
            self.stream
                .read_exact(&mut bytes)
                .map_err(|error| format!("no answer to word {} ({word:#x}): {}", index + 1, reason(&error)))?;
            let (answer, right) = (u32::from_be_bytes(bytes), word.wrapping_add(1));
            if answer != right {
                return Err(format!(
                    "the answer to word {} ({word:#x}) is {answer:#x} instead of {right:#x}",
                    index + 1
                ));
            }
        }
        Ok(())
    }
}

fn to_bytes(words: impl IntoIterator<Item = u32>) -> Vec<u8> {
    words.into_iter().flat_map(u32::to_be_bytes).collect()
}

fn answers(server: &mut Server) -> Result<(), Miss> {
    let mut client = server.connect()?;
    for word in [1, 255, 256, 0x0102_0304, 0x00ff_ffff, 0x7fff_ffff, 0x8000_0000, 0xffff_fffe] {
        client.ask(word)?;
    }
    Ok(())
}

fn wrap(server: &mut Server) -> Result<(), Miss> {
    let mut client = server.connect()?;
    for word in [u32::MAX, 5, u32::MAX, u32::MAX] {
        client.ask(word)?;
    }
    Ok(())
}

fn partial(server: &mut Server) -> Result<(), Miss> {
    let mut client = server.connect()?;
    for word in [0x0102_0304_u32, u32::MAX, 0x0000_0001] {
        let bytes = word.to_be_bytes();
        for byte in &bytes[..3] {
            client.send(&[*byte])?;
            client.expect_silence(Duration::from_millis(5))?;
        }
        client.send(&bytes[3..])?;
        client.expect_words([word])?;
    }
    // Pieces that never end where a word does, until the last.
    let words = 0x1000_0001..0x1000_0021_u32;
    let bytes = to_bytes(words.clone());
    for (index, piece) in pieces(&bytes, &[5, 2, 6, 1, 7, 3, 9, 2]).enumerate() {
        client.send(piece)?;
        if index % 4 == 0 {
            thread::sleep(Duration::from_millis(2)); // so that some pieces arrive alone
        }
    }
    client.expect_words(words)?;
    Ok(())
}

/// Cuts bytes into pieces of these lengths, over and over.
fn pieces<'a>(mut bytes: &'a [u8], lengths: &'a [usize]) -> impl Iterator<Item = &'a [u8]> {
    lengths.iter().cycle().map_while(move |length| {
        let (piece, rest) = bytes.split_at((*length).min(bytes.len()));
        bytes = rest;
        (!piece.is_empty()).then_some(piece)
    })
}

fn pipelined(server: &mut Server) -> Result<(), Miss> {
    let mut client = server.connect()?;
    for count in [2, 3, 1000] {
        let words = 1..1 + count;
        client.send(&to_bytes(words.clone()))?;
        client.expect_words(words)?;
    }
    // More than any buffer on the way holds, the reader keeping up with the writer.
    let words = 1..1 + (1_u32 << 20);
    let mut writer = server.connect()?;
    writer.stream = client.stream.try_clone().map_err(|error| format!("cannot clone a socket: {error}"))?;
    let bytes = to_bytes(words.clone());
    thread::scope(|scope| {
        let sent = scope.spawn(move || writer.send(&bytes));
        let mut reader = std::io::BufReader::with_capacity(1 << 16, &client.stream);
        let read = expect_stream(&mut reader, words);
        if read.is_err() {
            let _ = client.stream.shutdown(std::net::Shutdown::Both); // ends the writer as well
        }
        read.and(sent.join().expect("the writer does not panic"))
    })?;
    Ok(())
}

/// As `Client::expect_words`, with fewer reads.
fn expect_stream(reader: &mut impl std::io::Read, words: std::ops::Range<u32>) -> Result<(), String> {
    for word in words {
        let mut bytes = [0; 4];
        reader.read_exact(&mut bytes).map_err(|error| format!("no answer to word {word:#x}: {error}"))?;
        let (answer, right) = (u32::from_be_bytes(bytes), word.wrapping_add(1));
        if answer != right {
            return Err(format!("the answer to word {word:#x} is {answer:#x} instead of {right:#x}"));
        }
    }
    Ok(())
}

fn slow_reader(server: &mut Server) -> Result<(), Miss> {
    /// More than the buffers of both sides of a connection hold; a server that keeps what it cannot send takes it all.
    const ENOUGH: u32 = 4 << 20;
    let mut slow = server.connect()?;
    let bytes = to_bytes(1..1 + ENOUGH);
    let io_error = |error: std::io::Error| format!("cannot send: {error}");
    // The server takes no more when nothing goes for this long; a pause before that only makes the case weaker.
    slow.stream.set_write_timeout(Some(Duration::from_millis(150))).map_err(io_error)?;
    let mut sent = 0;
    while sent < bytes.len() {
        match slow.stream.write(&bytes[sent..]) {
            Ok(count) => sent += count,
            Err(error) if error.kind() == ErrorKind::WouldBlock => break,
            Err(error) => return Err(io_error(error).into()),
        }
    }
    // Enough others that some of them share a thread with the slow one.
    let mut others = (0..16).map(|_| server.connect()).collect::<Result<Vec<_>, _>>()?;
    for (index, other) in others.iter_mut().enumerate() {
        other.ask(7).map_err(|why| format!("beside a client that does not read, client {}: {why}", index + 1))?;
    }
    let whole = (sent / 4) as u32;
    let mut reader = std::io::BufReader::with_capacity(1 << 16, &slow.stream);
    expect_stream(&mut reader, 1..1 + whole)?;
    Ok(())
}

fn half_close(server: &mut Server) -> Result<(), Miss> {
    for count in [1, 1000] {
        let mut client = server.connect()?;
        let words = 1..1 + count;
        client.send(&to_bytes(words.clone()))?;
        client.half_close()?;
        client.expect_words(words)?;
        client.expect_end()?;
    }
    // The connection ends in the middle of a word: no answer to that.
    let mut client = server.connect()?;
    client.send(&[0, 0, 0, 1, 0, 0])?;
    client.half_close()?;
    client.expect_words([1])?;
    client.expect_end()?;
    Ok(())
}

fn zero(server: &mut Server) -> Result<(), Miss> {
    let mut clients = (0..4).map(|_| server.connect()).collect::<Result<Vec<_>, _>>()?;
    for client in &mut clients {
        client.ask(7)?;
    }
    clients[3].send(&[0; 4])?;
    server.process.wait_gone(END).map_err(|why| format!("after a zero word {why}"))?;
    server.check_deaf()?;
    Ok(())
}
