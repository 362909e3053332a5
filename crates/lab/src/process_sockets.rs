//! Sockets of processes, and the addresses that they listen on, from `/proc` (proc(5)).

use std::net::{IpAddr, SocketAddr};
use std::path::Path;
use std::{fs, io};

pub(crate) fn sockets(proc: &Path, pid: u32) -> io::Result<Vec<(i32, u64)>> {
    let socket = |entry: fs::DirEntry| {
        let inode = socket_inode(&fs::read_link(entry.path()).ok()?)?;
        Some((entry.file_name().to_str()?.parse().ok()?, inode))
    };
    Ok(fs::read_dir(proc.join(format!("{pid}/fd")))?.flatten().filter_map(socket).collect())
}

fn socket_inode(link: &Path) -> Option<u64> {
    link.to_str()?.strip_prefix("socket:[")?.strip_suffix(']')?.parse().ok()
}

/// Whether one of `pids` listens on `port`, in the first one's network namespace. `None` if the files are unreadable.
pub(crate) fn is_port_held(proc: &Path, pids: &[u32], port: u16) -> Option<bool> {
    let here = listening(proc, *pids.first()?)?.into_iter().filter(|(address, _)| address.port() == port);
    let inodes = here.map(|(_, inode)| inode).collect::<Vec<_>>();
    let mut seen_all = true;
    for pid in pids {
        match sockets(proc, *pid) {
            Ok(held) if held.iter().any(|(_, inode)| inodes.contains(inode)) => return Some(true),
            Ok(_) => {}
            // A process that has just ended has no sockets.
            Err(error) => seen_all &= error.kind() == io::ErrorKind::NotFound,
        }
    }
    seen_all.then_some(false)
}

/// TCP addresses that `pids` listen on and that this process may see, without duplicates.
pub(crate) fn listening_addresses(proc: &Path, pids: &[u32]) -> Vec<SocketAddr> {
    let all = pids.first().and_then(|pid| listening(proc, *pid)).unwrap_or_default();
    let held = pids.iter().flat_map(|pid| sockets(proc, *pid)).flatten().map(|(_, inode)| inode).collect::<Vec<_>>();
    let theirs = all.into_iter().filter(|(_, inode)| held.contains(inode)).map(|(address, _)| address);
    theirs.collect::<std::collections::BTreeSet<_>>().into_iter().collect()
}

fn listening(proc: &Path, pid: u32) -> Option<Vec<(SocketAddr, u64)>> {
    let net = proc.join(pid.to_string()).join("net");
    let tables = ["tcp", "tcp6"].map(|name| fs::File::open(net.join(name)));
    if tables.iter().all(Result::is_err) {
        return None;
    }
    Some(tables.into_iter().flatten().flat_map(|table| listeners(io::BufReader::new(table))).collect())
}

/// Reads only the listening sockets, which come first in `/proc/net/tcp` (proc(5)); 100,000 others may follow.
fn listeners(table: impl io::BufRead) -> Vec<(SocketAddr, u64)> {
    const LISTEN: &str = "0A";
    let listener = |line: String| match line.split_whitespace().collect::<Vec<_>>()[..] {
        [_, local, _, LISTEN, _, _, _, _, _, inode, ..] => Some(address(local).zip(inode.parse().ok())),
        _ => None,
    };
    table.lines().skip(1).map_while(Result::ok).map_while(listener).flatten().collect()
}

/// Parses `0100007F:1F90`: 32-bit words in the byte order of this machine, then the port.
fn address(text: &str) -> Option<SocketAddr> {
    let (host, port) = text.rsplit_once(':')?;
    let port = u16::from_str_radix(port, 16).ok()?;
    let word = |at: usize| u32::from_str_radix(host.get(at..at + 8)?, 16).ok().map(u32::to_ne_bytes);
    let host: IpAddr = match host.len() {
        8 => word(0)?.into(),
        32 => {
            let words = [word(0)?, word(8)?, word(16)?, word(24)?];
            <[u8; 16]>::try_from(words.concat()).ok()?.into()
        }
        _ => return None,
    };
    Some(SocketAddr::new(host, port))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn recognizes_sockets() {
        assert_eq!(socket_inode(Path::new("socket:[4711]")), Some(4711));
        assert_eq!(socket_inode(Path::new("/dev/null")), None);
    }

    const TABLE: &str = "\
  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 4711 1 0000000000000000 100 0 0 10 0
   1: 00000000:1F91 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 4713 1 0000000000000000 100 0 0 10 0
   2: 0100007F:1F90 0100007F:C350 01 00000000:00000000 00:00000000 00000000     0        0 4712 1 0000000000000000 20 4 0 10 -1
   broken";

    #[test]
    #[cfg(target_endian = "little")]
    fn parses_the_socket_table() {
        let listening = |address: &str, inode: u64| (address.parse().unwrap(), inode);
        assert_eq!(listeners(TABLE.as_bytes()), [listening("127.0.0.1:8080", 4711), listening("0.0.0.0:8081", 4713)]);
        let loopback = "0: 00000000000000000000000001000000:1F92 0:0 0A 0 0 0 0 0 4714";
        assert_eq!(listeners(format!("\n{loopback}").as_bytes()), [listening("[::1]:8082", 4714)]);
        for wrong in ["", "0100007F", "0100007:1F90", "0100007F:x", "é100007F:1F90"] {
            assert_eq!(address(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn finds_the_process_that_listens() {
        let listener = std::net::TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        let (proc, own) = (Path::new("/proc"), std::process::id());
        assert_eq!(is_port_held(proc, &[own], port), Some(true));
        assert!(listening_addresses(proc, &[own]).contains(&listener.local_addr().unwrap()));
        drop(listener);
        assert_eq!(is_port_held(proc, &[own], port), Some(false));
        assert!(!listening_addresses(proc, &[own]).iter().any(|address| address.port() == port));
        assert!(listening_addresses(proc, &[]).is_empty());
        assert_eq!(is_port_held(Path::new("/nowhere"), &[own], port), None);
    }
}
