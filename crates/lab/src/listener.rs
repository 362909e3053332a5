//! Whose port is it? A port that answers may be another process's: another lab's subject, started at the same moment.

use std::fs;
use std::path::Path;

/// Whether one of `pids` listens on `port`; `None` where that cannot be seen (no permission, no such files).
///
/// `proc` is `/proc`. The sockets are those of the network namespace of the first of `pids`.
pub(crate) fn is_held_by(proc: &Path, pids: &[u32], port: u16) -> Option<bool> {
    let net = proc.join(pids.first()?.to_string()).join("net");
    let tables = [fs::read_to_string(net.join("tcp")), fs::read_to_string(net.join("tcp6"))];
    if tables.iter().all(Result::is_err) {
        return None;
    }
    let inodes = tables.iter().flatten().flat_map(|table| listening(table, port)).collect::<Vec<_>>();
    let mut seen_all = true;
    for pid in pids {
        match fs::read_dir(proc.join(pid.to_string()).join("fd")) {
            Ok(entries) => {
                let held = entries.flatten().filter_map(|entry| socket_of(&fs::read_link(entry.path()).ok()?));
                if held.into_iter().any(|inode| inodes.contains(&inode)) {
                    return Some(true);
                }
            }
            // One that has just ended holds nothing.
            Err(error) => seen_all &= error.kind() == std::io::ErrorKind::NotFound,
        }
    }
    seen_all.then_some(false)
}

/// Inodes of the sockets that listen on `port`, of a table like `/proc/net/tcp` (proc(5)).
fn listening(table: &str, port: u16) -> Vec<u64> {
    const LISTEN: &str = "0A";
    let inode = |line: &str| {
        let words = line.split_whitespace().collect::<Vec<_>>();
        let (_, local) = words.get(1)?.rsplit_once(':')?;
        let here = u16::from_str_radix(local, 16).ok()? == port && *words.get(3)? == LISTEN;
        here.then(|| words.get(9)?.parse().ok())?
    };
    table.lines().skip(1).filter_map(inode).collect()
}

/// The inode in `socket:[12345]`.
fn socket_of(link: &Path) -> Option<u64> {
    link.to_str()?.strip_prefix("socket:[")?.strip_suffix(']')?.parse().ok()
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
    fn the_table_of_sockets_is_read() {
        assert_eq!(listening(TABLE, 8080), [4711]);
        assert_eq!(listening(TABLE, 8081), [4713]);
        assert_eq!(listening(TABLE, 8082), [0; 0]);
        assert_eq!(socket_of(Path::new("socket:[4711]")), Some(4711));
        assert_eq!(socket_of(Path::new("/dev/null")), None);
    }

    #[test]
    fn a_port_belongs_to_who_listens() {
        let listener = std::net::TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        let (proc, own) = (Path::new("/proc"), std::process::id());
        assert_eq!(is_held_by(proc, &[own], port), Some(true));
        drop(listener);
        assert_eq!(is_held_by(proc, &[own], port), Some(false));
        assert_eq!(is_held_by(Path::new("/nowhere"), &[own], port), None);
    }
}
