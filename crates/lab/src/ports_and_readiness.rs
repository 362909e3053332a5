//! Finds free ports, and waits until a server listens on its port.

use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use crate::process_start_and_stop::{Child, Exit};
use crate::{lab_clocks, process_sockets};

#[derive(Debug, PartialEq, Eq)]
pub(crate) enum NotReady {
    Exited(Exit),
    TimedOut,
    /// The port accepts connections but belongs to a different process.
    Foreign,
    Interrupted,
}

/// Waits up to `timeout` until `child` or one of its descendants accepts connections on `address`. It listens on `port`,
/// which may be a different one in a container. `first_inside` asks the engine for the ID of a container's first process.
pub(crate) fn wait(
    child: &mut Child,
    address: SocketAddr,
    port: u16,
    first_inside: &dyn Fn() -> Option<u32>,
    timeout: Duration,
    interrupted: &dyn Fn() -> bool,
) -> Result<(), NotReady> {
    let deadline = lab_clocks::now() + timeout;
    let mut pause = Duration::from_micros(200);
    loop {
        let answers = answers(address, Duration::from_millis(200));
        let is_held = || {
            let mut servers = child.servers();
            // Marks of another user's processes are unreadable, but the engine knows the ID of the first process.
            if servers.is_empty() {
                servers.extend(first_inside());
            }
            // The engine accepts connections to a published port before the server does. An unreadable file is no proof.
            !servers.is_empty() && process_sockets::is_port_held("/proc".as_ref(), &servers, port) != Some(false)
        };
        if answers && is_held() {
            return Ok(());
        }
        let left = deadline.saturating_duration_since(lab_clocks::now());
        // This pause waits for the server's exit, so that an early exit is noticed at once.
        if let Some(exit) = child.wait(pause.min(left)) {
            return Err(NotReady::Exited(exit));
        }
        if left.is_zero() {
            return Err(if answers { NotReady::Foreign } else { NotReady::TimedOut });
        }
        if interrupted() {
            return Err(NotReady::Interrupted);
        }
        pause = (pause * 2).min(Duration::from_millis(20));
    }
}

pub(crate) fn answers(address: SocketAddr, timeout: Duration) -> bool {
    let Ok(stream) = TcpStream::connect_timeout(&address, timeout) else { return false };
    // A port may connect to itself without a listener (simultaneous open, RFC 9293, section 3.5).
    stream.local_addr().ok() != stream.peer_addr().ok()
}

/// Returns a free port outside `ip_local_port_range`, so that no client takes the port before the server does. Each
/// call returns a different port, so that no trial meets closing connections of the previous one.
pub(crate) fn free_port() -> std::io::Result<u16> {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let range = std::fs::read_to_string("/proc/sys/net/ipv4/ip_local_port_range").unwrap_or_default();
    let mut bounds = range.split_whitespace().filter_map(|bound| bound.parse::<u16>().ok());
    let outgoing = bounds.next().unwrap_or(32_768)..=bounds.next().unwrap_or(60_999);
    let ports = (10_000..=65_000).filter(|port| !outgoing.contains(port)).collect::<Vec<u16>>();
    for _ in 0..ports.len() {
        // The process ID lets labs on one machine start at different ports.
        let turn = NEXT.fetch_add(1, Ordering::Relaxed).wrapping_add(std::process::id().wrapping_mul(61));
        let port = ports[turn as usize % ports.len()];
        if is_free(port) {
            return Ok(port);
        }
    }
    // All ports belong to the range for outgoing connections, so the kernel chooses.
    TcpListener::bind((Ipv4Addr::UNSPECIFIED, 0))?.local_addr().map(|address| address.port())
}

pub(crate) fn is_free(port: u16) -> bool {
    TcpListener::bind((Ipv4Addr::UNSPECIFIED, port)).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn free_ports_are_free_and_differ() {
        let (a, b) = (free_port().unwrap(), free_port().unwrap());
        assert_ne!(a, b);
        let held = TcpListener::bind((Ipv4Addr::LOCALHOST, a)).unwrap();
        assert!(!is_free(a));
        assert!(answers((Ipv4Addr::LOCALHOST, a).into(), Duration::from_secs(1)));
        drop(held);
        assert!(!answers((Ipv4Addr::LOCALHOST, b).into(), Duration::from_secs(1)));
    }
}
