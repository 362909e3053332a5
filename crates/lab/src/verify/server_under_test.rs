//! A server process under verification: starts, watches and ends it, and connects clients.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::io::{self, ErrorKind, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::path::Path;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::Pid;
use study::plan::ProcessPlan;
use study::record::{FailureKind, SubjectUse};
use study::verification::Suite;
use wire::http2::Settings;

use super::client::{CASE, Client, PATIENCE, Speech, late, reason};
use super::expected_page::{Page, get};
use super::http2_session::{Frame, GENEROUS};
use super::unsuccessful_check_reason::{END, Trouble};
use crate::process_start_and_stop::{Child, pid_of};
use crate::start_server::{Ground, Started};
use crate::trial_end_reason::{End, failed};
use crate::{lab_clocks, ports_and_readiness, process_sockets};

/// Server to verify: one that is running, or a plan and the means to start one.
pub(super) enum Home<'a> {
    Running(SocketAddr),
    Command { ground: Box<Ground<'a>>, plan: &'a ProcessPlan },
}

pub(super) struct Server<'a> {
    home: &'a Home<'a>,
    child: Option<Child>,
    pub(super) address: SocketAddr,
    until: Instant,
    pub(super) suite: Option<Suite>,
    pub(super) path: String,
    pages: RefCell<BTreeMap<String, Arc<Page>>>,
}

impl<'a> Server<'a> {
    pub(super) fn start(home: &'a Home<'a>, suite: Option<Suite>, path: &str) -> Result<Server<'a>, End> {
        let (child, address) = match home {
            Home::Running(address) => (None, *address),
            Home::Command { ground, plan } => start(ground, plan)?,
        };
        let until = lab_clocks::now() + CASE;
        Ok(Server { home, child, address, until, suite, path: path.to_owned(), pages: RefCell::default() })
    }

    /// Starts the command again on its port. The previous process must have ended. Fails if the server does not start.
    pub(super) fn start_again(&mut self) -> Result<(), End> {
        self.child = None;
        if let Home::Command { ground, plan } = self.home {
            let plan = ProcessPlan { port: Some(self.address.port()), ..(*plan).clone() };
            self.child = start(ground, &plan)?.0;
        }
        Ok(())
    }

    pub(super) fn process(&mut self) -> Result<&mut Child, Trouble> {
        self.child.as_mut().ok_or_else(|| Trouble::NotChecked("the process of the server is not ours".to_owned()))
    }

    pub(super) fn last_words(&mut self) -> String {
        let Some(child) = &mut self.child else { return String::new() };
        child.wait(Duration::ZERO);
        child.last_words()
    }

    pub(super) fn check_time(&self) -> Result<(), String> {
        if lab_clocks::now() < self.until { Ok(()) } else { Err(late()) }
    }

    pub(super) fn dial(&self) -> Result<Client, String> {
        let error = |error| format!("cannot connect: {error}");
        self.check_time()?;
        let stream = TcpStream::connect_timeout(&self.address, PATIENCE).map_err(error)?;
        stream.set_nodelay(true).map_err(error)?;
        stream.set_read_timeout(Some(PATIENCE)).map_err(error)?;
        stream.set_write_timeout(Some(PATIENCE)).map_err(error)?;
        Ok(Client::new(stream, self.until))
    }

    pub(super) fn connect(&self) -> Result<Client, String> {
        let speech = match self.suite {
            None => Speech::None,
            Some(Suite::Pingpong) => Speech::Pingpong,
            Some(Suite::Http) => Speech::Http(self.page(&self.path)?),
            Some(Suite::Http2) => Speech::Http2(self.page(&self.path)?),
            Some(Suite::Cache) => Speech::Cache,
        };
        let mut client = Client { speech, ..self.dial()? };
        if let Speech::Http2(_) = client.speech {
            client.start_http2(&GENEROUS)?;
        }
        Ok(client)
    }

    /// Connects over HTTP/2 with these settings and waits for the server's.
    pub(super) fn http2(&self, own: &Settings) -> Result<Client, String> {
        let mut client = self.dial()?;
        client.start_http2(own)?;
        let ack = client.frames_until(|frame| frame == Frame::SettingsAck);
        ack.map(|_| client).map_err(|why| format!("SETTINGS were not acknowledged: {why}"))
    }

    /// Returns the expected response to GET of a path. The first call requests the path twice.
    pub(super) fn page(&self, path: &str) -> Result<Arc<Page>, String> {
        if let Some(page) = self.pages.borrow().get(path) {
            return Ok(page.clone());
        }
        let ask = || {
            let mut client = self.dial()?;
            let response = if self.suite == Some(Suite::Http2) {
                client.start_http2(&GENEROUS)?;
                client.get_response(path)
            } else {
                client.send(&get(path))?;
                client.response(false)
            };
            response.map_err(|why| format!("GET {path}: {why}"))
        };
        let page = Arc::new(Page::of(path, [ask()?, ask()?]).map_err(|miss| miss.to_string())?);
        self.pages.borrow_mut().insert(path.to_owned(), page.clone());
        Ok(page)
    }

    /// Fails unless the server is still running and serves a new connection.
    pub(super) fn check_alive(&mut self) -> Result<(), String> {
        if let Some(exit) = self.child.as_mut().and_then(|child| child.wait(Duration::ZERO)) {
            return Err(format!("the server ended ({exit})"));
        }
        match self.suite {
            None => self.dial().map(drop),
            Some(_) => self.connect()?.ask(41),
        }
    }

    /// Fails if the server's port still accepts connections. The server must have ended.
    pub(super) fn check_deaf(&self) -> Result<(), String> {
        match TcpStream::connect_timeout(&self.address, PATIENCE) {
            Ok(_) => Err("its port still accepts connections".to_owned()),
            Err(_) => Ok(()),
        }
    }

    /// Sends `asked`, but reads nothing, until no more is accepted. Returns the length. Fails if other clients starve.
    pub(super) fn fill(&self, slow: &mut Client, asked: &[u8]) -> Result<usize, String> {
        // A write without progress for this long means that the server accepts no more.
        let io_error = |error: io::Error| format!("cannot send: {}", reason(&error));
        slow.stream.set_write_timeout(Some(Duration::from_millis(150))).map_err(io_error)?;
        let mut sent = 0;
        while sent < asked.len() {
            match slow.stream.write(&asked[sent..]) {
                Ok(taken) => sent += taken,
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                // The server may have ended keep-alive, which the caller sees in the responses.
                Err(error) if matches!(error.kind(), ErrorKind::BrokenPipe | ErrorKind::ConnectionReset) => break,
                Err(error) => return Err(io_error(error)),
            }
        }
        // Some of the 16 clients share a thread with the slow client. They send repeatedly: the thread may block later.
        let mut others = (0..16).map(|_| self.connect()).collect::<Result<Vec<_>, _>>()?;
        for _ in 0..4 {
            for (index, other) in others.iter_mut().enumerate() {
                let starved = |why| format!("beside a client that does not read, client {}: {why}", index + 1);
                other.ask(1).map_err(starved)?;
            }
            thread::sleep(Duration::from_millis(50));
        }
        Ok(sent)
    }

    pub(super) fn served_clients(&self, count: usize) -> Result<Vec<Client>, String> {
        let mut clients = (0..count).map(|_| self.connect()).collect::<Result<Vec<_>, _>>()?;
        clients.iter_mut().try_for_each(|client| client.ask(7))?;
        Ok(clients)
    }

    /// Sends SIGTERM and waits until the server and all processes that it has started have ended. Fails after [`END`].
    pub(super) fn terminate(&mut self) -> Result<(), Trouble> {
        self.process()?.terminate().map_err(|error| format!("cannot send SIGTERM: {error}"))?;
        Ok(self.process()?.wait_gone(END).map_err(|why| format!("after SIGTERM {why}"))?)
    }

    pub(super) fn sockets(&self) -> Vec<(Pid, i32)> {
        let of_process = |pid: u32| {
            let process = pid_of(pid);
            let sockets = process_sockets::sockets(Path::new("/proc"), pid).unwrap_or_default();
            sockets.into_iter().filter_map(move |(number, _)| Some((process?, number)))
        };
        self.child.iter().flat_map(Child::family).flat_map(of_process).collect()
    }
}

impl Drop for Server<'_> {
    fn drop(&mut self) {
        // The server ends as in a trial. Cases about its end have finished by now.
        if let (Some(child), Home::Command { plan, .. }) = (&mut self.child, self.home) {
            child.stop(Duration::from_nanos(plan.stop_timeout_ns));
        }
    }
}

fn start(ground: &Ground<'_>, plan: &ProcessPlan) -> Result<(Option<Child>, SocketAddr), End> {
    let no_port = |error| failed(FailureKind::Start, format!("no second free port: {error}"));
    let second_port = ports_and_readiness::free_port().map_err(no_port)?;
    let names = |name: &str| crate::server_side::port_of(name, second_port, &[]);
    let server = crate::start_server::Server { names: &names, ..crate::start_server::Server::new(plan, ground) };
    let Started { child, port, .. } = server.start(&mut SubjectUse::default())?;
    Ok((Some(child), (Ipv4Addr::LOCALHOST, port).into()))
}

pub(super) fn quoted(last_words: &str) -> String {
    let mut lines = last_words.lines().filter(|line| !line.starts_with("ready ")).rev().take(5).collect::<Vec<_>>();
    lines.reverse();
    if lines.is_empty() { String::new() } else { format!("; its last output: {}", lines.join(" / ")) }
}
