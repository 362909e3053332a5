//! Checks that all servers share: connections, resets, signals, restarts.

use std::net::SocketAddr;
use std::thread;
use std::time::Duration;

use rustix::process::{PidfdFlags, PidfdGetfdFlags, pidfd_getfd, pidfd_open};
use study::record::FailureKind;
use study::verification::Suite;

use super::check_definition::{Check, code};
use super::client::PATIENCE;
use super::server_under_test::Server;
use super::unsuccessful_check_reason::Trouble;
use super::{cache_checks, http_checks, http2_checks, pingpong_checks};
use crate::lab_clocks;
use crate::trial_end_reason::End;

pub(super) fn checks(suite: Suite) -> Vec<Check> {
    let mut all = match suite {
        Suite::Pingpong => pingpong_checks::checks(),
        Suite::Http => http_checks::checks(),
        Suite::Http2 => http2_checks::checks(),
        Suite::Cache => cache_checks::checks(),
    };
    all.extend([
        code("connections", "1,000 connections at once are served", connections),
        code("reset", "a reset ends its connection and nothing else", reset),
        code("churn", "connections come and go, and leave no open socket behind", churn).of_process(),
        code("nodelay", "TCP_NODELAY is set on every connection", nodelay).of_process(),
        code("sigterm", "SIGTERM ends it within 1 s with connections open, and all it has started", sigterm).ending(),
        code("sigterm-idle", "SIGTERM ends it within 1 s when no client has ever come", sigterm_idle).ending(),
    ]);
    if suite == Suite::Pingpong {
        let promise = "a zero word ends it within 1 s, and all it has started";
        all.push(code("zero", promise, pingpong_checks::zero).ending());
    }
    all.push(code("restart", "a new process can listen on the port of the one that just ended", restart).of_process());
    all
}

const MANY: usize = 1000;

fn connections(server: &mut Server<'_>) -> Result<(), Trouble> {
    let connect = |index| server.connect().map_err(|why| format!("connection {}: {why}", index + 1));
    let mut clients = (0..MANY).map(connect).collect::<Result<Vec<_>, _>>()?;
    for round in [1_u32, 1 << 16] {
        for (index, client) in clients.iter_mut().enumerate() {
            let question = client.question(round + index as u32);
            client.send(&question)?;
        }
        for (index, client) in clients.iter_mut().enumerate() {
            let answered = client.expect_answer(round + index as u32);
            answered.map_err(|why| format!("connection {} of {MANY}: {why}", index + 1))?;
        }
    }
    Ok(())
}

fn reset(server: &mut Server<'_>) -> Result<(), Trouble> {
    let mut witness = server.connect()?;
    witness.ask(1)?;
    for _ in 0..10 {
        reset_once(server).and_then(|()| witness.ask(1)).map_err(|why| format!("after a reset: {why}"))?;
    }
    thread::sleep(Duration::from_millis(50)); // the server may receive the last reset with some delay
    witness.ask(1).map_err(|why| format!("after a reset: {why}"))?;
    Ok(())
}

/// Resets four connections: one without a request, one that is idle, one amid a request, and one with many requests.
fn reset_once(server: &Server<'_>) -> Result<(), String> {
    server.connect()?.reset()?; // nothing was sent
    let mut idle = server.connect()?;
    idle.ask(1)?;
    idle.reset()?;
    let mut begun = server.connect()?;
    let beginning = begun.speech.begun();
    begun.send(beginning)?;
    begun.reset()?;
    // The server may be sending responses, or be about to write to a closed socket.
    let mut busy = server.connect()?;
    let questions = (1..2000).flat_map(|number| busy.question(number)).collect::<Vec<_>>();
    busy.send(&questions)?;
    busy.reset()?;
    server.connect()?.ask(7)
}

fn churn(server: &mut Server<'_>) -> Result<(), Trouble> {
    /// Number of additional sockets that do not count as a leak, because a runtime may own them or they may be closing.
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
    let deadline = lab_clocks::now() + PATIENCE;
    while server.sockets().len() > before + SLACK {
        if lab_clocks::now() < deadline {
            thread::sleep(Duration::from_millis(2));
            continue;
        }
        let after = server.sockets().len();
        return Err(format!("300 connections have left sockets open: {after}, and {before} before them").into());
    }
    Ok(())
}

fn nodelay(server: &mut Server<'_>) -> Result<(), Trouble> {
    let mut clients = server.served_clients(4)?;
    let mut ports = Vec::new();
    for client in &mut clients {
        client.ask(7)?; // some servers set TCP_NODELAY only after the first response
        ports.push(client.stream.local_addr().map_err(|error| format!("no local address: {error}"))?.port());
    }
    let (mut found, mut refused) = (0, None);
    for (pid, number) in server.sockets() {
        let fd = pidfd_open(pid, PidfdFlags::empty()).and_then(|of| pidfd_getfd(of, number, PidfdGetfdFlags::empty()));
        let Ok(socket) = fd.map_err(|error| refused = Some(error)) else { continue };
        let peer = rustix::net::getpeername(&socket).ok().flatten().and_then(|peer| SocketAddr::try_from(peer).ok());
        // A runtime may use IPv6 sockets for IPv4, as Java does.
        if !peer.is_some_and(|peer| peer.ip().to_canonical().is_loopback() && ports.contains(&peer.port())) {
            continue;
        }
        found += 1;
        let set = rustix::net::sockopt::tcp_nodelay(&socket).map_err(|error| format!("getsockopt: {error}"))?;
        if !set {
            return Err("TCP_NODELAY is not set: responses may wait for acknowledgements".to_owned().into());
        }
    }
    match refused {
        _ if found >= ports.len() => Ok(()),
        Some(error) => Err(Trouble::NotChecked(format!("cannot inspect the server's sockets: {error}"))),
        None => Err(Trouble::NotChecked(format!("of {} connections {found} were found in the server", ports.len()))),
    }
}

fn sigterm(server: &mut Server<'_>) -> Result<(), Trouble> {
    let mut clients = server.served_clients(20)?;
    let begun = clients[0].speech.begun();
    clients[0].send(begun)?; // one request is incomplete
    sigterm_idle(server)
}

fn sigterm_idle(server: &mut Server<'_>) -> Result<(), Trouble> {
    server.terminate()?;
    Ok(server.check_deaf()?)
}

/// Restarts a server while the kernel still holds connections of its previous process.
fn restart(server: &mut Server<'_>) -> Result<(), Trouble> {
    let _clients = server.served_clients(4)?;
    server.terminate()?;
    server.start_again().map_err(|end| match end {
        End::Failed(failure) if failure.kind != FailureKind::Unrunnable => {
            Trouble::from(format!("on the same port again: {}", failure.message))
        }
        end => end.into(),
    })
}
