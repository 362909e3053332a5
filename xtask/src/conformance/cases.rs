//! The cases of the suite. Each runs against a fresh process of the server.

use std::io::{ErrorKind, Write};
use std::net::SocketAddr;
use std::path::Path;
use std::thread;
use std::time::Duration;

use rustix::process::{PidfdFlags, PidfdGetfdFlags, pidfd_getfd, pidfd_open};

use super::server::{NotStarted, PATIENCE, Server};

/// What a server must do, as a name and a check.
pub(super) struct Case {
    /// As the table and `--case` call it.
    pub(super) name: &'static str,
    /// What is promised, for `--help`.
    pub(super) promise: &'static str,
    /// Whether the server has ended when the check has passed.
    ends: bool,
    check: fn(&mut Server) -> Result<(), Miss>,
}

/// Why a case did not pass.
pub(super) enum Miss {
    /// The server broke its promise.
    Failed(String),
    /// It could not be looked at here.
    NotChecked(String),
    /// The server says that this machine cannot run it.
    Unrunnable(String),
}

impl From<String> for Miss {
    fn from(why: String) -> Miss {
        Miss::Failed(why)
    }
}

impl From<NotStarted> for Miss {
    fn from(error: NotStarted) -> Miss {
        match error {
            NotStarted::Unrunnable(why) => Miss::Unrunnable(why),
            NotStarted::Failed(why) => Miss::Failed(why),
        }
    }
}

/// A server must end within this after SIGTERM or a zero word.
const END: Duration = Duration::from_secs(1);

/// How many connections `connections` opens at once.
pub(super) const MANY: usize = 1000;

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
        promise: "a client that does not read keeps no other waiting and loses nothing",
        ends: false,
        check: slow_reader,
    },
    Case { name: "connections", promise: "1,000 connections at once are served", ends: false, check: connections },
    Case {
        name: "half-close",
        promise: "a client that has sent everything still gets all answers, then the end",
        ends: false,
        check: half_close,
    },
    Case { name: "reset", promise: "a reset ends its connection and nothing else", ends: false, check: reset },
    Case {
        name: "churn",
        promise: "connections come and go, and leave no open socket behind",
        ends: false,
        check: churn,
    },
    Case { name: "nodelay", promise: "TCP_NODELAY is set on every connection", ends: false, check: nodelay },
    Case {
        name: "sigterm",
        promise: "SIGTERM ends it within 1 s with connections open, and all it has started",
        ends: true,
        check: sigterm,
    },
    Case {
        name: "sigterm-idle",
        promise: "SIGTERM ends it within 1 s when no client has ever come",
        ends: true,
        check: sigterm_idle,
    },
    Case { name: "zero", promise: "a zero word ends it within 1 s, and all it has started", ends: true, check: zero },
    Case {
        name: "restart",
        promise: "it can listen on the port that its predecessor has just left",
        ends: false,
        check: restart,
    },
];

impl Case {
    /// Starts the server and checks it.
    pub(super) fn run(&self, command: &str, directory: &Path) -> Result<(), Miss> {
        let mut server = Server::start(command, directory)?;
        let mut checked = (self.check)(&mut server);
        if checked.is_ok() && !self.ends {
            checked = server.check_alive().map_err(|why| Miss::Failed(format!("afterwards: {why}")));
        }
        checked.map_err(|miss| match miss {
            Miss::Failed(why) => {
                Miss::Failed(format!("{why}{}", super::server::LastWords(&server.process.last_words())))
            }
            other => other,
        })
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
        client.expect_answers([word])?;
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
    client.expect_answers(words)?;
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
        client.expect_answers(words)?;
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

/// As `Client::expect_answers`, with fewer reads.
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

fn connections(server: &mut Server) -> Result<(), Miss> {
    let mut clients = Vec::with_capacity(MANY);
    for index in 0..MANY {
        clients.push(server.connect().map_err(|why| format!("connection {}: {why}", index + 1))?);
    }
    for round in [1_u32, 1 << 16] {
        // Every word is on its way before the first answer is read.
        for (index, client) in clients.iter_mut().enumerate() {
            client.send(&(round + index as u32).to_be_bytes())?;
        }
        for (index, client) in clients.iter_mut().enumerate() {
            client
                .expect_answers([round + index as u32])
                .map_err(|why| format!("connection {} of {MANY}: {why}", index + 1))?;
        }
    }
    Ok(())
}

fn half_close(server: &mut Server) -> Result<(), Miss> {
    for count in [1, 1000] {
        let mut client = server.connect()?;
        let words = 1..1 + count;
        client.send(&to_bytes(words.clone()))?;
        client.half_close()?;
        client.expect_answers(words)?;
        client.expect_end()?;
    }
    // The connection ends in the middle of a word: no answer to that.
    let mut client = server.connect()?;
    client.send(&[0, 0, 0, 1, 0, 0])?;
    client.half_close()?;
    client.expect_answers([1])?;
    client.expect_end()?;
    Ok(())
}

fn reset(server: &mut Server) -> Result<(), Miss> {
    let mut witness = server.connect()?;
    witness.ask(1)?;
    for round in 0..10 {
        server.connect()?.reset()?; // nothing was said
        let mut idle = server.connect()?;
        idle.ask(1)?;
        idle.reset()?;
        let mut begun = server.connect()?;
        begun.send(&[1, 2])?;
        begun.reset()?;
        // Answers are on their way, or yet to be sent to a socket that is no more.
        let mut busy = server.connect()?;
        busy.send(&to_bytes(1..2000))?;
        busy.reset()?;
        let mut witnesses = || {
            witness.ask(round)?;
            server.connect()?.ask(7)
        };
        if round > 0 {
            witnesses().map_err(|why| format!("after a reset: {why}"))?;
        }
    }
    thread::sleep(Duration::from_millis(50)); // the last reset may still be in some queue when the server is looked at
    witness.ask(1).map_err(|why| format!("after a reset: {why}"))?;
    Ok(())
}

fn churn(server: &mut Server) -> Result<(), Miss> {
    /// So many sockets more than before are not yet a leak: those of a runtime, or of connections that just end.
    const SLACK: usize = 10;
    let come_and_go = |count: usize| -> Result<(), String> {
        for index in 0..count {
            let mut client = server.connect()?;
            client.ask(7).map_err(|why| format!("connection {}: {why}", index + 1))?;
        }
        Ok(())
    };
    come_and_go(20)?;
    let before = server.sockets().len();
    come_and_go(300)?;
    let closed = super::process::until(PATIENCE, || (server.sockets().len() <= before + SLACK).then_some(()));
    if closed.is_none() {
        let after = server.sockets().len();
        return Err(format!("300 connections have left sockets open: {after}, and {before} before them").into());
    }
    Ok(())
}

fn nodelay(server: &mut Server) -> Result<(), Miss> {
    let mut clients = (0..4).map(|_| server.connect()).collect::<Result<Vec<_>, _>>()?;
    let mut ports = Vec::new();
    for client in &mut clients {
        client.ask(7)?;
        ports.push(client.stream.local_addr().map_err(|error| format!("no local address: {error}"))?.port());
    }
    let (mut found, mut refused) = (0, None);
    for (pid, number) in server.sockets() {
        let copy =
            pidfd_open(pid, PidfdFlags::empty()).and_then(|of| pidfd_getfd(of, number, PidfdGetfdFlags::empty()));
        let socket = match copy {
            Ok(socket) => socket,
            Err(error) => {
                refused = Some(error);
                continue;
            }
        };
        let peer = rustix::net::getpeername(&socket).ok().flatten();
        let peer = peer.and_then(|peer| SocketAddr::try_from(peer).ok());
        // A runtime may speak IPv4 through an IPv6 socket, as Java does.
        if !peer.is_some_and(|peer| peer.ip().to_canonical().is_loopback() && ports.contains(&peer.port())) {
            continue;
        }
        found += 1;
        let set = rustix::net::sockopt::tcp_nodelay(&socket).map_err(|error| format!("getsockopt: {error}"))?;
        if !set {
            return Err("TCP_NODELAY is not set: answers may wait for acknowledgements".to_owned().into());
        }
    }
    match refused {
        _ if found >= ports.len() => Ok(()),
        Some(error) => Err(Miss::NotChecked(format!("the sockets of the server cannot be looked at: {error}"))),
        None => Err(Miss::NotChecked(format!("of {} connections {found} were found in the server", ports.len()))),
    }
}

fn sigterm(server: &mut Server) -> Result<(), Miss> {
    let mut clients = (0..20).map(|_| server.connect()).collect::<Result<Vec<_>, _>>()?;
    for client in &mut clients {
        client.ask(7)?;
    }
    clients[0].send(&[1, 2])?; // one is in the middle of a word
    server.process.terminate()?;
    server.process.wait_gone(END).map_err(|why| format!("after SIGTERM {why}"))?;
    server.check_deaf()?;
    Ok(())
}

fn sigterm_idle(server: &mut Server) -> Result<(), Miss> {
    server.process.terminate()?;
    server.process.wait_gone(END).map_err(|why| format!("after SIGTERM {why}"))?;
    server.check_deaf()?;
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

/// A server that ends with connections open leaves its side of them in the kernel for a while.
fn restart(server: &mut Server) -> Result<(), Miss> {
    let mut clients = (0..4).map(|_| server.connect()).collect::<Result<Vec<_>, _>>()?;
    for client in &mut clients {
        client.ask(7)?;
    }
    server.process.terminate()?;
    server.process.wait_gone(END).map_err(|why| format!("after SIGTERM {why}"))?;
    server.start_again().map_err(|error| match error.into() {
        Miss::Failed(why) => Miss::Failed(format!("on the same port again: {why}")),
        other => other,
    })
}
