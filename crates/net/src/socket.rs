//! Stream sockets with the options every backend needs, and the mapping of kernel errors.

use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fd::BorrowedFd;
use rustix::fs::{AtFlags, CWD, FileType, Stat};
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, sockopt};

use crate::address::{Address, check_path};
use crate::driver::CloseReason;

fn tcp(address: SocketAddr) -> io::Result<OwnedFd> {
    let socket = stream(if address.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 })?;
    sockopt::set_tcp_nodelay(&socket, true)?;
    Ok(socket)
}

fn stream(family: AddressFamily) -> io::Result<OwnedFd> {
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    Ok(rustix::net::socket_with(family, SocketType::STREAM, flags, None)?)
}

/// Creates a socket that becomes writable when its connect ends. Also returns the error if the connect fails at once.
pub(crate) fn connecting(address: &Address) -> io::Result<(OwnedFd, Option<CloseReason>)> {
    let (socket, started) = match address {
        Address::Inet(address) => {
            let socket = tcp(*address)?;
            let started = rustix::net::connect(&socket, address);
            (socket, started)
        }
        Address::Unix(path) => {
            check_path(path)?;
            let socket = stream(AddressFamily::UNIX)?;
            let started = rustix::net::connect(&socket, &SocketAddrUnix::new(path)?);
            (socket, started)
        }
    };
    let failed = match started {
        Ok(()) | Err(Errno::INPROGRESS | Errno::INTR) => {
            let is_own = matches!(address, Address::Inet(to) if is_connected_to_itself(&socket, *to));
            if is_own {
                // Leave no `TIME_WAIT`, which would prevent a server from listening on that port.
                reset_on_close(socket.as_fd());
            }
            is_own.then_some(CloseReason::Refused)
        }
        Err(Errno::AGAIN) if matches!(address, Address::Unix(_)) => Some(CloseReason::QueueFull),
        Err(Errno::NOENT) => Some(CloseReason::NoSuchFile),
        Err(error) => Some(reason(error)),
    };
    Ok((socket, failed))
}

/// Whether the kernel connected `socket` to itself, by a simultaneous open (RFC 9293, section 3.5).
fn is_connected_to_itself(socket: &OwnedFd, to: SocketAddr) -> bool {
    let own = rustix::net::getsockname(socket).ok().and_then(|own| SocketAddr::try_from(own).ok());
    own.is_some_and(|own| own.port() == to.port() && own.ip() == to.ip())
}

/// A bound socket. Dropping it removes the path of a Unix socket if the path is still the file created here.
pub(crate) struct Bound {
    pub(crate) socket: OwnedFd,
    /// The path of a Unix socket, and the file that `listening` created there.
    path: Option<(PathBuf, Stat)>,
}

impl Drop for Bound {
    fn drop(&mut self) {
        let Some((path, made)) = &self.path else { return };
        if look_at(path).is_ok_and(|now| now.st_dev == made.st_dev && now.st_ino == made.st_ino) {
            // If this fails, the next attempt to listen there reports the leftover file.
            let _ = rustix::fs::unlink(path);
        }
    }
}

fn look_at(path: &Path) -> rustix::io::Result<Stat> {
    rustix::fs::statat(CWD, path, AtFlags::SYMLINK_NOFOLLOW)
}

pub(crate) fn listening(address: &Address, backlog: u32) -> io::Result<(Bound, Address)> {
    let backlog = i32::try_from(backlog).unwrap_or(i32::MAX);
    match address {
        Address::Inet(address) => {
            let socket = tcp(*address)?; // Accepted sockets inherit TCP_NODELAY.
            sockopt::set_socket_reuseaddr(&socket, true)?;
            rustix::net::bind(&socket, address)?;
            rustix::net::listen(&socket, backlog)?;
            let at = SocketAddr::try_from(rustix::net::getsockname(&socket)?)?;
            Ok((Bound { socket, path: None }, at.into()))
        }
        Address::Unix(path) => {
            check_path(path)?;
            let socket = stream(AddressFamily::UNIX)?;
            let name = SocketAddrUnix::new(path)?;
            rustix::net::bind(&socket, &name).map_err(|error| match error {
                Errno::ADDRINUSE => is_taken(path, &name),
                other => other.into(),
            })?;
            let bound = Bound { socket, path: Some((path.clone(), look_at(path)?)) };
            rustix::net::listen(&bound.socket, backlog)?;
            Ok((bound, address.clone()))
        }
    }
}

fn is_taken(path: &Path, name: &SocketAddrUnix) -> io::Error {
    let is_socket = look_at(path).is_ok_and(|file| FileType::from_raw_mode(file.st_mode) == FileType::Socket);
    let shown = path.display();
    let text = if !is_socket {
        format!("`{shown}` already exists and is not a socket")
    } else {
        // A full queue also means that a server is listening.
        match stream(AddressFamily::UNIX).map(|socket| rustix::net::connect(&socket, name)) {
            Ok(Err(Errno::CONNREFUSED)) => {
                format!("`{shown}` was left behind by a server that has exited: remove it first (`rm {shown}`)")
            }
            _ => format!("another server is listening on `{shown}`"),
        }
    };
    io::Error::new(io::ErrorKind::AddrInUse, text)
}

pub(crate) fn prepare(socket: &OwnedFd) -> io::Result<()> {
    rustix::io::ioctl_fionbio(socket, true)?;
    match sockopt::set_tcp_nodelay(socket, true) {
        Ok(()) | Err(Errno::OPNOTSUPP) => Ok(()), // Unix sockets do not have this option.
        Err(error) => Err(error.into()),
    }
}

pub(crate) fn reset_on_close(socket: BorrowedFd<'_>) {
    // This cannot fail on a TCP socket and has no effect on a Unix socket.
    let _ = sockopt::set_socket_linger(socket, Some(Duration::ZERO));
}

pub(crate) fn pending_error(socket: impl AsFd) -> Option<CloseReason> {
    match sockopt::socket_error(socket) {
        Ok(Ok(())) => None,
        Ok(Err(error)) | Err(error) => Some(reason(error)),
    }
}

pub(crate) fn reason(error: Errno) -> CloseReason {
    match error {
        Errno::CONNRESET | Errno::PIPE => CloseReason::Reset,
        Errno::CONNREFUSED => CloseReason::Refused,
        Errno::TIMEDOUT => CloseReason::TimedOut,
        other => CloseReason::Os(other.raw_os_error()),
    }
}

/// Whether an error means that the process or machine is out of resources, not just that one connection was lost.
pub(crate) fn is_out_of_room(error: Errno) -> bool {
    matches!(error, Errno::MFILE | Errno::NFILE | Errno::NOBUFS | Errno::NOMEM)
}

pub(crate) fn no_slot(limit: usize) -> io::Error {
    io::Error::other(format!("all {limit} connection slots are in use"))
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, Ipv6Addr, TcpListener};

    use super::*;

    /// A bound port without a listener makes the kernel connect the socket to itself.
    #[test]
    fn detects_self_connection() {
        for ip in [Ipv4Addr::LOCALHOST.into(), Ipv6Addr::LOCALHOST.into()] {
            let Ok(socket) = tcp(SocketAddr::new(ip, 0)) else { continue }; // No IPv6 on this machine.
            if rustix::net::bind(&socket, &SocketAddr::new(ip, 0)).is_err() {
                continue;
            }
            let own = SocketAddr::try_from(rustix::net::getsockname(&socket).unwrap()).unwrap();
            assert!(matches!(rustix::net::connect(&socket, &own), Ok(()) | Err(Errno::INPROGRESS)));
            assert_eq!(pending_error(&socket), None, "the kernel thinks nothing of it");
            assert!(is_connected_to_itself(&socket, own));
        }
    }

    #[test]
    fn other_connection_is_not_a_self_connection() {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let at = listener.local_addr().unwrap();
        let (socket, failed) = connecting(&at.into()).unwrap();
        assert_eq!(failed, None);
        assert!(!is_connected_to_itself(&socket, at));
    }
}
