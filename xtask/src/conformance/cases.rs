//! The cases of the suite. Each runs against a fresh process of the server; those here are the same for every kind of server.

use std::net::SocketAddr;
use std::path::Path;
use std::thread;
use std::time::Duration;

use rustix::process::{PidfdFlags, PidfdGetfdFlags, pidfd_getfd, pidfd_open};

use super::kind::Kind;
use super::process::until;
use super::server::{LastWords, NotStarted, PATIENCE, Server};

/// What a server must do, as a name and a check.
#[derive(Clone, Copy)]
pub(super) struct Case {
    /// As the table and `--case` call it.
    pub(super) name: &'static str,
    /// What is promised, for `--help`.
    pub(super) promise: &'static str,
    /// Whether the server has ended when the check has passed.
    pub(super) ends: bool,
    pub(super) check: fn(&mut Server) -> Result<(), Miss>,
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

/// A server must end within this after it was told to.
pub(super) const END: Duration = Duration::from_secs(1);

/// How many connections `connections` opens at once.
pub(super) const MANY: usize = 1000;

pub(super) const CONNECTIONS: Case =
    Case { name: "connections", promise: "1,000 connections at once are served", ends: false, check: connections };
pub(super) const RESET: Case =
    Case { name: "reset", promise: "a reset ends its connection and nothing else", ends: false, check: reset };
pub(super) const CHURN: Case = Case {
    name: "churn",
    promise: "connections come and go, and leave no open socket behind",
    ends: false,
    check: churn,
};
pub(super) const NODELAY: Case =
    Case { name: "nodelay", promise: "TCP_NODELAY is set on every connection", ends: false, check: nodelay };
pub(super) const SIGTERM: Case = Case {
    name: "sigterm",
    promise: "SIGTERM ends it within 1 s with connections open, and all it has started",
    ends: true,
    check: sigterm,
};
pub(super) const SIGTERM_IDLE: Case = Case {
    name: "sigterm-idle",
    promise: "SIGTERM ends it within 1 s when no client has ever come",
    ends: true,
    check: sigterm_idle,
};
pub(super) const RESTART: Case = Case {
    name: "restart",
    promise: "it can listen on the port that its predecessor has just left",
    ends: false,
    check: restart,
};

impl Case {
    /// Starts the server and checks it.
    pub(super) fn run(&self, kind: Kind, command: &str, directory: &Path) -> Result<(), Miss> {
        let mut server = Server::start(kind, command, directory)?;
        let mut checked = (self.check)(&mut server);
        if checked.is_ok() && !self.ends {
            checked = server.check_alive().map_err(|why| Miss::Failed(format!("afterwards: {why}")));
        }
        checked.map_err(|miss| match miss {
            Miss::Failed(why) => Miss::Failed(format!("{why}{}", LastWords(&server.process.last_words()))),
            other => other,
        })
    }
}

fn connections(server: &mut Server) -> Result<(), Miss> {
    let mut clients = Vec::with_capacity(MANY);
    for index in 0..MANY {
        clients.push(server.connect().map_err(|why| format!("connection {}: {why}", index + 1))?);
    }
    for round in [1_u32, 1 << 16] {
        // Every question is on its way before the first answer is read.
        for (index, client) in clients.iter_mut().enumerate() {
            client.send(&server.kind.question(round + index as u32))?;
        }
        for (index, client) in clients.iter_mut().enumerate() {
            client
                .expect_answer(round + index as u32)
                .map_err(|why| format!("connection {} of {MANY}: {why}", index + 1))?;
        }
    }
    Ok(())
}

fn reset(server: &mut Server) -> Result<(), Miss> {
    let mut witness = server.connect()?;
    witness.ask(1)?;
    for _ in 0..10 {
        reset_once(server).and_then(|()| witness.ask(1)).map_err(|why| format!("after a reset: {why}"))?;
    }
    thread::sleep(Duration::from_millis(50)); // the last reset may still be in some queue when the server is looked at
    witness.ask(1).map_err(|why| format!("after a reset: {why}"))?;
    Ok(())
}

/// Resets a connection in each state that it can be in.
fn reset_once(server: &Server) -> Result<(), String> {
    server.connect()?.reset()?; // nothing was said
    let mut idle = server.connect()?;
    idle.ask(1)?;
    idle.reset()?;
    let mut begun = server.connect()?;
    begun.send(server.kind.begun())?;
    begun.reset()?;
    // Answers are on their way, or yet to be sent to a socket that is no more.
    let mut busy = server.connect()?;
    busy.send(&(1..2000).flat_map(|number| server.kind.question(number)).collect::<Vec<_>>())?;
    busy.reset()?;
    server.connect()?.ask(7)
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
    let closed = until(PATIENCE, || (server.sockets().len() <= before + SLACK).then_some(()));
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
        client.ask(7)?; // some set it when a connection turns out to go on, after the first answer
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
    clients[0].send(server.kind.begun())?; // one is in the middle of a question
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
