//! A server under check, and a client of it.

use std::fmt;
use std::fs;
use std::io::{ErrorKind, Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::process::Pid;

use super::http::TEST;
use super::kind::Kind;
use super::process::{Process, until};

/// A server must listen within this: an interpreter or a virtual machine may have to start on a busy machine.
const READY: Duration = Duration::from_secs(10);

/// Every connect, read and write of a client ends within this, done or failed.
pub(super) const PATIENCE: Duration = Duration::from_secs(5);

/// Why a server was not started.
pub(crate) enum NotStarted {
    /// It says that this machine cannot run it.
    Unrunnable(String),
    /// Anything else.
    Failed(String),
}

/// A started server that listens.
pub(super) struct Server {
    pub(super) process: Process,
    pub(super) kind: Kind,
    address: SocketAddr,
    command: String,
    directory: PathBuf,
}

impl Server {
    /// Starts a command, with `{port}` in it, on a free port.
    pub(super) fn start(kind: Kind, command: &str, directory: &Path) -> Result<Server, NotStarted> {
        // Between looking and listening somebody else may take the port. Twice in a row is no accident.
        let first = Server::start_on(kind, free_port()?, command, directory);
        if matches!(&first, Err(NotStarted::Failed(why)) if why.to_lowercase().contains("in use")) {
            return Server::start_on(kind, free_port()?, command, directory);
        }
        first
    }

    /// Starts the same command on the same port; the process before must have ended.
    pub(super) fn start_again(&mut self) -> Result<(), NotStarted> {
        *self = Server::start_on(self.kind, self.address.port(), &self.command, &self.directory)?;
        Ok(())
    }

    fn start_on(kind: Kind, port: u16, command: &str, directory: &Path) -> Result<Server, NotStarted> {
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        let mut process =
            Process::start(&command.replace("{port}", &port.to_string()), directory).map_err(NotStarted::Failed)?;
        let ready = until(READY, || {
            if let Some(status) = process.ended() {
                return Some(Err(status));
            }
            TcpStream::connect_timeout(&address, PATIENCE).ok().map(|_| Ok(()))
        });
        match ready {
            Some(Ok(())) => {
                Ok(Server { process, kind, address, command: command.to_owned(), directory: directory.to_owned() })
            }
            Some(Err(status)) => match process.confession("cannot run here:") {
                Some(why) => Err(NotStarted::Unrunnable(why)),
                None => Err(NotStarted::Failed(format!(
                    "ended at its start ({status}){}",
                    LastWords(&process.last_words())
                ))),
            },
            None => {
                let last_words = process.last_words();
                Err(NotStarted::Failed(format!("did not listen within {READY:?}{}", LastWords(&last_words))))
            }
        }
    }

    pub(super) fn connect(&self) -> Result<Client, String> {
        let error = |error| format!("cannot connect: {error}");
        let stream = TcpStream::connect_timeout(&self.address, PATIENCE).map_err(error)?;
        stream.set_nodelay(true).map_err(error)?;
        stream.set_read_timeout(Some(PATIENCE)).map_err(error)?;
        stream.set_write_timeout(Some(PATIENCE)).map_err(error)?;
        Ok(Client { stream, kind: self.kind, received: Vec::new() })
    }

    /// Whether it still runs and serves a new connection.
    pub(super) fn check_alive(&mut self) -> Result<(), String> {
        if let Some(status) = self.process.ended() {
            return Err(format!("the server ended ({status})"));
        }
        self.connect()?.ask(41)
    }

    /// After it has ended, nothing may answer on its port.
    pub(super) fn check_deaf(&self) -> Result<(), String> {
        match TcpStream::connect_timeout(&self.address, PATIENCE) {
            Ok(_) => Err("its port still accepts connections".to_owned()),
            Err(_) => Ok(()),
        }
    }

    /// The open sockets of its processes: whose, and by which descriptor.
    pub(super) fn sockets(&self) -> Vec<(Pid, i32)> {
        let mut sockets = Vec::new();
        for pid in self.process.members() {
            let entries = fs::read_dir(format!("/proc/{}/fd", pid.as_raw_nonzero())).into_iter().flatten().flatten();
            let links = entries.filter(|entry| {
                fs::read_link(entry.path()).is_ok_and(|target| target.to_string_lossy().starts_with("socket:"))
            });
            sockets.extend(links.filter_map(|entry| Some((pid, entry.file_name().to_str()?.parse().ok()?))));
        }
        sockets
    }
}

pub(crate) fn free_port() -> Result<u16, NotStarted> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).and_then(|listener| listener.local_addr());
    listener.map(|address| address.port()).map_err(|error| NotStarted::Failed(format!("no free port: {error}")))
}

/// What a process said last, as the end of a message; nothing if it said nothing.
pub(super) struct LastWords<'a>(pub(super) &'a str);

impl fmt::Display for LastWords<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut lines = self.0.lines().rev().take(5).collect::<Vec<_>>();
        lines.reverse();
        if lines.is_empty() { Ok(()) } else { write!(f, "; its last words: {}", lines.join(" / ")) }
    }
}

/// A connection.
pub(super) struct Client {
    pub(super) stream: TcpStream,
    pub(super) kind: Kind,
    /// What was read of answers that nobody has asked for yet. Ping-pong has none: it reads words.
    pub(super) received: Vec<u8>,
}

impl Client {
    /// Sends bytes in one write, unless the socket takes only a part of them.
    pub(super) fn send(&mut self, bytes: &[u8]) -> Result<(), String> {
        self.stream.write_all(bytes).map_err(|error| format!("cannot send: {}", reason(&error)))
    }

    /// One question, one right answer.
    pub(super) fn ask(&mut self, number: u32) -> Result<(), String> {
        self.send(&self.kind.question(number))?;
        self.expect_answer(number)
    }

    /// Reads the answer to the question with this number.
    pub(super) fn expect_answer(&mut self, number: u32) -> Result<(), String> {
        match self.kind {
            Kind::PingPong => self.expect_words([number]),
            Kind::Http => self.expect_page(&TEST),
            Kind::Cache => super::cache::expect_miss(self),
        }
    }

    /// Says that nothing more will be sent.
    pub(super) fn half_close(&self) -> Result<(), String> {
        self.stream.shutdown(Shutdown::Write).map_err(|error| format!("cannot shut down: {error}"))
    }

    /// The server must close the connection, and send nothing before it does.
    pub(super) fn expect_end(&mut self) -> Result<(), String> {
        match self.stream.read(&mut [0]) {
            Ok(0) => Ok(()),
            Ok(_) => Err("an answer to nothing".to_owned()),
            Err(error) => Err(format!("the connection was not closed: {}", reason(&error))),
        }
    }

    /// Nothing must come within a moment.
    pub(super) fn expect_silence(&mut self, moment: Duration) -> Result<(), String> {
        if !self.received.is_empty() {
            return Err("an answer to nothing".to_owned());
        }
        let error = |error| format!("cannot set a timeout: {error}");
        self.stream.set_read_timeout(Some(moment)).map_err(error)?;
        let read = self.stream.read(&mut [0]);
        self.stream.set_read_timeout(Some(PATIENCE)).map_err(error)?;
        match read {
            Err(error) if error.kind() == ErrorKind::WouldBlock => Ok(()),
            Err(error) => Err(format!("the connection broke: {error}")),
            Ok(0) => Err("the connection was closed in the middle of a question".to_owned()),
            Ok(_) => Err("an answer to a question that was not complete".to_owned()),
        }
    }

    /// Closes by a reset, with whatever was not read or sent lost.
    pub(super) fn reset(self) -> Result<(), String> {
        rustix::net::sockopt::set_socket_linger(&self.stream, Some(Duration::ZERO))
            .map_err(|error| format!("cannot set SO_LINGER: {error}"))
    }
}

pub(super) fn reason(error: &std::io::Error) -> String {
    match error.kind() {
        ErrorKind::WouldBlock => format!("nothing happened for {PATIENCE:?}"),
        ErrorKind::UnexpectedEof => "the connection was closed".to_owned(),
        _ => error.to_string(),
    }
}
