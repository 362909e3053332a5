//! Determines which process listens on a port. Another lab may have taken it at the same moment.

use std::collections::BTreeSet;
use std::fs;
use std::net::{IpAddr, SocketAddr};
use std::path::Path;

use crate::procfs::sockets;

/// Whether one of `pids` listens on `port`. `None`: unknown, for lack of permission or files.
///
/// `proc` is `/proc`. Sockets are searched in the network namespace of the first of `pids`.
pub(crate) fn is_held_by(proc: &Path, pids: &[u32], port: u16) -> Option<bool> {
    let here = listening(proc, *pids.first()?)?.into_iter().filter(|(address, _)| address.port() == port);
    let inodes = here.map(|(_, inode)| inode).collect::<Vec<_>>();
    let mut seen_all = true;
    for pid in pids {
        match sockets(proc, *pid) {
            Ok(held) if held.iter().any(|(_, inode)| inodes.contains(inode)) => return Some(true),
            Ok(_) => {}
            // A process that has just ended has no sockets.
            Err(error) => seen_all &= error.kind() == std::io::ErrorKind::NotFound,
        }
    }
    seen_all.then_some(false)
}

pub(crate) fn addresses(proc: &Path, pids: &[u32]) -> Vec<SocketAddr> {
    let all = pids.first().and_then(|pid| listening(proc, *pid)).unwrap_or_default();
    let held =
        pids.iter().filter_map(|pid| sockets(proc, *pid).ok()).flatten().map(|(_, inode)| inode).collect::<Vec<_>>();
    let theirs = all.into_iter().filter(|(_, inode)| held.contains(inode)).map(|(address, _)| address);
    theirs.collect::<BTreeSet<_>>().into_iter().collect()
}

fn listening(proc: &Path, pid: u32) -> Option<Vec<(SocketAddr, u64)>> {
    let net = proc.join(pid.to_string()).join("net");
    let tables = [fs::read_to_string(net.join("tcp")), fs::read_to_string(net.join("tcp6"))];
    if tables.iter().all(Result::is_err) {
        return None;
    }
    Some(tables.iter().flatten().flat_map(|table| listeners(table)).collect())
}

fn listeners(table: &str) -> Vec<(SocketAddr, u64)> {
    const LISTEN: &str = "0A";
    let listener = |line: &str| {
        let words = line.split_whitespace().collect::<Vec<_>>();
        let listens = *words.get(3)? == LISTEN;
        listens.then_some((address(words.get(1)?)?, words.get(9)?.parse().ok()?))
    };
    table.lines().skip(1).filter_map(listener).collect()
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

    const TABLE: &str = "\
  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 4711 1 0000000000000000 100 0 0 10 0
   1: 0100007F:1F90 0100007F:C350 01 00000000:00000000 00:00000000 00000000     0        0 4712 1 0000000000000000 20 4 0 10 -1
   2: 00000000:1F91 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 4713 1 0000000000000000 100 0 0 10 0
   broken";

    #[test]
    #[cfg(target_endian = "little")]
    fn parses_the_socket_table() {
        let listening = |address: &str, inode: u64| (address.parse().unwrap(), inode);
        assert_eq!(listeners(TABLE), [listening("127.0.0.1:8080", 4711), listening("0.0.0.0:8081", 4713)]);
        let loopback = "0: 00000000000000000000000001000000:1F92 0:0 0A 0 0 0 0 0 4714";
        assert_eq!(listeners(&format!("\n{loopback}")), [listening("[::1]:8082", 4714)]);
        for wrong in ["", "0100007F", "0100007:1F90", "0100007F:x", "é100007F:1F90"] {
            assert_eq!(address(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn finds_the_process_that_listens() {
        let listener = std::net::TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        let (proc, own) = (Path::new("/proc"), std::process::id());
        assert_eq!(is_held_by(proc, &[own], port), Some(true));
        assert!(addresses(proc, &[own]).contains(&listener.local_addr().unwrap()));
        drop(listener);
        assert_eq!(is_held_by(proc, &[own], port), Some(false));
        assert!(!addresses(proc, &[own]).iter().any(|address| address.port() == port));
        assert!(addresses(proc, &[]).is_empty());
        assert_eq!(is_held_by(Path::new("/nowhere"), &[own], port), None);
    }
}
