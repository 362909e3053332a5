//! The kernel's byte counts for each TCP connection of a proxy (sock_diag(7), `tcp_info`).

use std::collections::BTreeMap;

use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, netlink, recv, send, socket_with};
use study::record::WireUse;

const SOCK_DIAG_BY_FAMILY: u16 = 20;
const NLMSG_ERROR: u16 = 2;
const NLMSG_DONE: u16 = 3;
/// Flags of a request: `NLM_F_REQUEST | NLM_F_DUMP`.
const REQUEST_DUMP: u16 = 0x301;
const IPPROTO_TCP: u8 = 6;
/// Number of `INET_DIAG_INFO`, the attribute with `tcp_info`. [`INFO_BIT`] requests it.
const INFO: u16 = 2;
const INFO_BIT: u8 = 1 << (INFO - 1);
const LISTEN: u8 = 10;
/// Length of `nlmsghdr` in bytes. `REQUEST` and `MESSAGE` are the lengths of `inet_diag_req_v2` and `inet_diag_msg`.
const HEADER: usize = 16;
const REQUEST: usize = 56;
const MESSAGE: usize = 72;
/// Offset of `tcpi_bytes_acked` in `tcp_info` in bytes (Linux 4.1). `tcpi_bytes_received` follows it.
const BYTES_ACKED: usize = 120;
const BUFFER: usize = 64 * 1024;

struct Socket {
    /// Identifier that the kernel never reuses.
    cookie: u64,
    local: u16,
    remote: u16,
    /// Payload bytes in both directions; `None` if the connection is closing and no longer counted.
    bytes: Option<u64>,
}

pub(crate) struct Table(Vec<Socket>);

/// Reads all TCP connections of this network namespace; `None` if the kernel does not report them.
pub(crate) fn read() -> Option<Table> {
    let mut sockets = dump(AddressFamily::INET)?;
    // IPv6 may be missing on this machine.
    sockets.extend(dump(AddressFamily::INET6).unwrap_or_default());
    Some(Table(sockets))
}

/// Bytes that passed a proxy on `port`, which connects to `next`. `None` if a connection closed in between.
pub(crate) fn between(begin: &Table, end: &Table, port: u16, next: u16) -> Option<WireUse> {
    let front = |socket: &&Socket| socket.local == port;
    let back = |socket: &&Socket| socket.remote == next;
    Some(WireUse { front_bytes: passed(begin, end, &front)?, back_bytes: passed(begin, end, &back)? })
}

fn passed(begin: &Table, end: &Table, of: &dyn Fn(&&Socket) -> bool) -> Option<u64> {
    let counted = |table: &Table| -> BTreeMap<u64, Option<u64>> {
        table.0.iter().filter(of).map(|socket| (socket.cookie, socket.bytes)).collect()
    };
    let (before, after) = (counted(begin), counted(end));
    let lost = before.iter().any(|(cookie, bytes)| bytes.is_some() && after.get(cookie).copied().flatten().is_none());
    let came_and_went = after.iter().any(|(cookie, bytes)| bytes.is_none() && !before.contains_key(cookie));
    if lost || came_and_went {
        return None;
    }
    let grown = after.iter().filter_map(|(cookie, bytes)| {
        Some((*bytes)?.saturating_sub(before.get(cookie).copied().flatten().unwrap_or(0)))
    });
    Some(grown.sum())
}

fn dump(family: AddressFamily) -> Option<Vec<Socket>> {
    let socket = socket_with(AddressFamily::NETLINK, SocketType::DGRAM, SocketFlags::CLOEXEC, Some(netlink::SOCK_DIAG));
    let socket = socket.ok()?;
    send(&socket, &request(family), SendFlags::empty()).ok()?;
    let mut found = Vec::new();
    let mut buffer = vec![0; BUFFER];
    loop {
        let (length, _) = recv(&socket, buffer.as_mut_slice(), RecvFlags::empty()).ok()?;
        if !take(&buffer[..length.min(BUFFER)], &mut found)? {
            return Some(found);
        }
    }
}

fn request(family: AddressFamily) -> [u8; HEADER + REQUEST] {
    let mut request = [0; HEADER + REQUEST];
    let mut put = |at: usize, bytes: &[u8]| request[at..at + bytes.len()].copy_from_slice(bytes);
    put(0, &(HEADER as u32 + REQUEST as u32).to_ne_bytes());
    put(4, &SOCK_DIAG_BY_FAMILY.to_ne_bytes());
    put(6, &REQUEST_DUMP.to_ne_bytes());
    let states = u32::from(u16::MAX) & !(1 << LISTEN);
    put(HEADER, &[family.as_raw() as u8, IPPROTO_TCP, INFO_BIT]);
    put(HEADER + 4, &states.to_ne_bytes());
    request
}

/// Adds the sockets in a part of the kernel's answer. Returns whether more parts follow; `None` for an error.
fn take(mut answer: &[u8], found: &mut Vec<Socket>) -> Option<bool> {
    while answer.len() >= HEADER {
        let length = bytes_at(answer, 0).map(u32::from_ne_bytes)? as usize;
        let message = answer.get(HEADER..length)?;
        match u16_at(answer, 4)? {
            NLMSG_DONE => return Some(false),
            NLMSG_ERROR => return None,
            SOCK_DIAG_BY_FAMILY => found.push(socket(message)?),
            _ => {}
        }
        answer = answer.get(length.next_multiple_of(4)..).unwrap_or_default();
    }
    Some(true)
}

fn socket(message: &[u8]) -> Option<Socket> {
    let port = |at: usize| bytes_at(message, at).map(u16::from_be_bytes);
    let cookie = u64::from_ne_bytes(bytes_at(message, 44)?);
    let mut socket = Socket { cookie, local: port(4)?, remote: port(6)?, bytes: None };
    let mut attributes = message.get(MESSAGE..)?;
    while attributes.len() >= 4 {
        let (length, kind) = (usize::from(u16_at(attributes, 0)?), u16_at(attributes, 2)?);
        let value = attributes.get(4..length)?;
        if kind == INFO {
            let count = |at: usize| bytes_at(value, at).map(u64::from_ne_bytes);
            socket.bytes = count(BYTES_ACKED).zip(count(BYTES_ACKED + 8)).map(|(sent, received)| sent + received);
        }
        attributes = attributes.get(length.next_multiple_of(4)..).unwrap_or_default();
    }
    Some(socket)
}

fn bytes_at<const N: usize>(bytes: &[u8], at: usize) -> Option<[u8; N]> {
    bytes.get(at..)?.first_chunk().copied()
}

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    bytes_at(bytes, at).map(u16::from_ne_bytes)
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::{TcpListener, TcpStream};

    use super::*;

    fn table(sockets: &[(u64, u16, u16, Option<u64>)]) -> Table {
        let socket = |&(cookie, local, remote, bytes): &_| Socket { cookie, local, remote, bytes };
        Table(sockets.iter().map(socket).collect())
    }

    #[test]
    fn distinguishes_front_and_back() {
        let begin = table(&[(1, 80, 5000, Some(100)), (2, 6000, 90, Some(50)), (3, 5000, 80, Some(100))]);
        let end = table(&[
            (1, 80, 5000, Some(150)),
            (2, 6000, 90, Some(170)),
            (3, 5000, 80, Some(150)),
            (4, 6001, 90, Some(30)),
        ]);
        assert_eq!(between(&begin, &end, 80, 90), Some(WireUse { front_bytes: 50, back_bytes: 150 }));
    }

    #[test]
    fn closed_connections_make_the_count_unknown() {
        let begin = table(&[(1, 80, 5000, Some(100))]);
        assert_eq!(between(&begin, &table(&[]), 80, 90), None, "it is gone");
        assert_eq!(between(&begin, &table(&[(1, 80, 5000, None)]), 80, 90), None, "it is closing");
        let came = table(&[(1, 80, 5000, Some(100)), (2, 6000, 90, None)]);
        assert_eq!(between(&begin, &came, 80, 90), None, "another came and went");
        let older = table(&[(1, 80, 5000, Some(100)), (7, 80, 5001, None)]);
        let still = table(&[(1, 80, 5000, Some(120)), (7, 80, 5001, None)]);
        assert_eq!(
            between(&older, &still, 80, 90),
            Some(WireUse { front_bytes: 20, back_bytes: 0 }),
            "it was over before"
        );
    }

    #[test]
    fn counts_exact_bytes_on_this_machine() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let mut client = TcpStream::connect(("127.0.0.1", port)).unwrap();
        let (mut server, _) = listener.accept().unwrap();
        let mut bounce = |bytes: &mut [u8]| {
            client.write_all(bytes).unwrap();
            server.read_exact(bytes).unwrap();
            server.write_all(&bytes[..3]).unwrap();
            client.read_exact(&mut bytes[..3]).unwrap();
            // Only acknowledged bytes count, and the acknowledgment of a response may be late.
            std::thread::sleep(std::time::Duration::from_millis(100));
        };
        bounce(&mut [7; 100]);
        let begin = read().unwrap();
        bounce(&mut [7; 1000]);
        let end = read().unwrap();
        assert_eq!(between(&begin, &end, port, 1), Some(WireUse { front_bytes: 1003, back_bytes: 0 }));
        assert_eq!(between(&begin, &end, 1, port), Some(WireUse { front_bytes: 0, back_bytes: 1003 }));
        drop((client, server));
        // A process that another test is starting keeps the sockets open until exec.
        let is_closed = || between(&begin, &read().unwrap(), port, 1).is_none();
        assert!((0..500).any(|_| {
            std::thread::sleep(std::time::Duration::from_millis(20));
            is_closed()
        }));
    }

    #[test]
    fn rejects_malformed_responses() {
        for answer in [&[0; 16][..], &[255; 40], &[17, 0, 0, 0, 20, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0]] {
            let mut found = Vec::new();
            assert!(take(answer, &mut found).is_none(), "{answer:?}");
        }
    }
}
