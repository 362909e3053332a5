//! Chooses the backend once, and tests io_uring before relying on it.

use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, TcpListener};
use std::time::Duration;

use rustix::io::Errno;

use crate::address::Address;
use crate::driver::{Close, CloseReason, Config, Driver, Event, Nanos};
use crate::uring::Uring;

/// The user's choice of a backend.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Choice {
    /// Uses io_uring if it passes [`probe`], otherwise epoll.
    #[default]
    Auto,
    /// Uses epoll without testing io_uring.
    Epoll,
    /// Uses io_uring, or fails with the reason why it is unusable.
    IoUring,
}

/// The backend that [`choose`] selected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Backend {
    /// Readiness notifications by epoll(7).
    Epoll,
    /// Asynchronous operations by io_uring(7).
    Uring,
}

/// Selects the backend, and says why if [`Choice::Auto`] selects epoll. Fails if [`Choice::IoUring`] is unusable.
pub fn choose(choice: Choice) -> io::Result<(Backend, Option<String>)> {
    if choice == Choice::Epoll {
        return Ok((Backend::Epoll, None));
    }
    match probe() {
        Ok(()) => Ok((Backend::Uring, None)),
        Err(reason) if choice == Choice::Auto => {
            Ok((Backend::Epoll, Some(format!("io_uring is not usable here, falling back to epoll: {reason}"))))
        }
        Err(reason) => {
            Err(io::Error::new(io::ErrorKind::Unsupported, format!("io_uring is not usable here: {reason}")))
        }
    }
}

/// Tests io_uring over loopback with pings and a reset. The kernel has all features that the driver uses if it accepts
/// the driver's ring, so this finds only a sandbox that forbids some of them. Fails with the reason.
pub fn probe() -> Result<(), String> {
    let config =
        Config { connections: 2, receive_bytes: 4096, send_bytes_max: 4096, pause_reads_above_bytes: usize::MAX };
    let uring = Uring::new(&config).map_err(|error| explain(&error))?;
    try_out(uring).map_err(|error| format!("its self-test failed: {error}"))
}

const PATIENCE_NS: Nanos = 5_000_000_000;

fn explain(error: &io::Error) -> String {
    let hint = match error.raw_os_error().map(Errno::from_raw_os_error) {
        Some(Errno::NOSYS) => "not in this kernel, or hidden by a sandbox",
        Some(Errno::PERM | Errno::ACCESS) => "forbidden by `kernel.io_uring_disabled` or a sandbox",
        Some(Errno::INVAL) => "the kernel is older than Linux 6.1",
        Some(Errno::NOMEM) => "the limit on locked memory is too low (`ulimit -l`)",
        _ => return error.to_string(),
    };
    format!("{hint} ({error})")
}

fn try_out<D: Driver>(mut driver: D) -> io::Result<()> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    let conn = driver.connect(&Address::Inet(listener.local_addr()?))?;
    let (mut peer, _) = listener.accept()?;
    peer.set_nodelay(true)?;
    peer.set_read_timeout(Some(Duration::from_nanos(PATIENCE_NS)))?;
    expect(&mut driver, |event, _| matches!(event, Event::Connected(c) if c == conn))?;

    for round in 0..3u8 {
        let ping = [round; 4];
        driver.send(conn, &ping).map_err(io::Error::other)?;
        driver.turn(Some(0))?; // The kernel has the data when this returns.
        let mut pong = [0; 4];
        peer.read_exact(&mut pong)?;
        check(pong == ping, "a ping arrived corrupted")?;
        peer.write_all(&pong)?;
        expect(&mut driver, |event, bytes| matches!(event, Event::Data(c, _) if c == conn) && bytes == ping)?;
    }
    driver.close(conn, Close::Reset);
    expect(&mut driver, |event, _| matches!(event, Event::Closed(c, CloseReason::Local) if c == conn))?;
    let end = peer.read(&mut [0; 1]).expect_err("a reset is an error").kind();
    check(end == io::ErrorKind::ConnectionReset, "a reset did not reach the peer")
}

fn expect<D: Driver>(driver: &mut D, is_it: impl Fn(Event, &[u8]) -> bool) -> io::Result<()> {
    let until = driver.now() + PATIENCE_NS;
    while driver.now() < until {
        driver.turn(Some(until))?;
        if let Some(event) = driver.next_event() {
            let bytes = if let Event::Data(_, data) = event { driver.bytes(data) } else { &[] };
            return check(is_it(event, bytes), &format!("unexpected {event:?}"));
        }
    }
    Err(io::Error::other("an event did not arrive"))
}

fn check(holds: bool, otherwise: &str) -> io::Result<()> {
    if holds { Ok(()) } else { Err(io::Error::other(otherwise)) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::epoll::Epoll;

    const SMALL: Config =
        Config { connections: 2, receive_bytes: 64, send_bytes_max: 64, pause_reads_above_bytes: usize::MAX };

    #[test]
    fn epoll_passes_io_uring_self_test() {
        try_out(Epoll::new(&SMALL).unwrap()).unwrap();
    }

    #[test]
    fn choice_is_followed_or_fallback_explained() {
        assert_eq!(choose(Choice::Epoll).unwrap(), (Backend::Epoll, None));
        match (choose(Choice::IoUring), choose(Choice::Auto).unwrap()) {
            (Ok((Backend::Uring, None)), (Backend::Uring, None)) => {}
            (Err(error), (Backend::Epoll, Some(note))) => {
                assert!(error.to_string().starts_with("io_uring is not usable here: "), "{error}");
                assert!(note.starts_with("io_uring is not usable here, falling back to epoll: "), "{note}");
            }
            _ => panic!("the two choices disagree"),
        }
    }

    #[test]
    fn explains_why_io_uring_is_unusable() {
        let explain = |errno: rustix::io::Errno| explain(&errno.into());
        assert!(explain(rustix::io::Errno::PERM).starts_with("forbidden"));
        assert!(explain(rustix::io::Errno::INVAL).starts_with("the kernel is older"));
        assert!(explain(rustix::io::Errno::NOMEM).contains("ulimit -l"));
    }
}
