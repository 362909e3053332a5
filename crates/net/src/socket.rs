//! TCP sockets as every backend wants them, and the kernel's errors in this crate's words.

use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;

use rustix::fd::BorrowedFd;
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketFlags, SocketType, sockopt};

use crate::driver::{CloseReason, Nanos};

/// A TCP socket for `address`, nonblocking, without Nagle's delay, closed on exec.
pub(crate) fn tcp(address: SocketAddr) -> io::Result<OwnedFd> {
    let family = if address.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    let socket = rustix::net::socket_with(family, SocketType::STREAM, flags, None)?;
    sockopt::set_tcp_nodelay(&socket, true)?;
    Ok(socket)
}

/// A socket that listens on `address`, and the address it got.
pub(crate) fn listening(address: SocketAddr, backlog: u32, shared: bool) -> io::Result<(OwnedFd, SocketAddr)> {
    let socket = tcp(address)?; // Accepted sockets inherit TCP_NODELAY.
    sockopt::set_socket_reuseaddr(&socket, true)?;
    if shared {
        sockopt::set_socket_reuseport(&socket, true)?;
    }
    rustix::net::bind(&socket, &address)?;
    rustix::net::listen(&socket, i32::try_from(backlog).unwrap_or(i32::MAX))?;
    let bound = SocketAddr::try_from(rustix::net::getsockname(&socket)?)?;
    Ok((socket, bound))
}

/// Makes a socket from elsewhere like those of [`tcp`].
pub(crate) fn prepare(socket: &OwnedFd) -> io::Result<()> {
    rustix::io::ioctl_fionbio(socket, true)?;
    sockopt::set_tcp_nodelay(socket, true)?;
    Ok(())
}

/// Makes the coming close of `socket` a reset.
pub(crate) fn reset_on_close(socket: BorrowedFd<'_>) {
    // It cannot fail on a TCP socket; if it did, the close would be an orderly one.
    let _ = sockopt::set_socket_linger(socket, Some(Duration::ZERO));
}

/// The error that waits at `socket`, or `None`.
pub(crate) fn pending_error(socket: impl AsFd) -> Option<CloseReason> {
    match sockopt::socket_error(socket) {
        Ok(Ok(())) => None,
        Ok(Err(error)) | Err(error) => Some(reason(error)),
    }
}

/// Why a connection ended, from the error the kernel gave.
pub(crate) fn reason(error: Errno) -> CloseReason {
    match error {
        Errno::CONNRESET | Errno::PIPE => CloseReason::Reset,
        Errno::CONNREFUSED => CloseReason::Refused,
        Errno::TIMEDOUT => CloseReason::TimedOut,
        other => CloseReason::Os(other.raw_os_error()),
    }
}

/// Whether a failed accept says that this process or machine has no room, rather than that one connection went away
/// before it was accepted.
pub(crate) fn is_out_of_room(error: Errno) -> bool {
    matches!(error, Errno::MFILE | Errno::NFILE | Errno::NOBUFS | Errno::NOMEM)
}

/// The error of a table without a free slot.
pub(crate) fn no_slot(limit: usize) -> io::Error {
    io::Error::other(format!("all {limit} connection slots are in use"))
}

/// How long to wait first when `left` is to be waited for: most of it, so that the last wait is a short one.
///
/// The kernel lets a wait of epoll end late by a part of its length, whatever the timer slack: by a 1,000th, for a nice
/// process a 200th (`select_estimate_accuracy` in `fs/select.c`). And on a virtual machine a processor that slept for
/// long wakes up later: a wait of 10 ms ended 45 to 55 us late, in two parts 19 to 24 us (io_uring, medians of 25).
pub(crate) fn approach(left: Nanos) -> Nanos {
    const SHORT_NS: Nanos = 20_000;
    if left > SHORT_NS { left - left / 128 } else { left }
}

/// Lets this thread's timers fire on time: the kernel otherwise gathers them within 50 us (`PR_SET_TIMERSLACK`).
pub(crate) fn precise_timers() {
    let slack = std::num::NonZeroU64::new(1);
    // A sandbox may forbid it; timers are then late by up to the slack, which send lag shows.
    let _ = rustix::thread::set_current_timer_slack(slack);
}
