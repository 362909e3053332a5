//! Files about processes in `/proc` (proc(5)). `proc` is this directory, or a different one in tests.

use std::collections::BTreeSet;
use std::net::{IpAddr, SocketAddr};
use std::path::Path;
use std::{fs, io};

pub(crate) fn pids(proc: &Path) -> impl Iterator<Item = u32> + use<> {
    let entries = fs::read_dir(proc).into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

/// Reads a file of a process; `None` if unreadable. Replaces invalid UTF-8, which program names may contain.
pub(crate) fn read(proc: &Path, pid: u32, file: &str) -> Option<String> {
    let bytes = fs::read(proc.join(format!("{pid}/{file}"))).ok()?;
    Some(String::from_utf8(bytes).unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned()))
}

pub(crate) fn value<'a>(text: &'a str, key: &str) -> Option<&'a str> {
    let mut lines = text.lines().filter_map(|line| line.split_once(':'));
    lines.find(|(name, _)| name.trim() == key).map(|(_, value)| value.trim())
}

/// Number in a line such as `VmHWM: 1234 kB`; `None` without such a line.
pub(crate) fn number(text: &str, key: &str) -> Option<u64> {
    value(text, key)?.split_whitespace().next()?.parse().ok()
}

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
    let held =
        pids.iter().filter_map(|pid| sockets(proc, *pid).ok()).flatten().map(|(_, inode)| inode).collect::<Vec<_>>();
    let theirs = all.into_iter().filter(|(_, inode)| held.contains(inode)).map(|(address, _)| address);
    theirs.collect::<BTreeSet<_>>().into_iter().collect()
}

fn listening(proc: &Path, pid: u32) -> Option<Vec<(SocketAddr, u64)>> {
    let net = proc.join(pid.to_string()).join("net");
    let tables = ["tcp", "tcp6"].map(|name| fs::File::open(net.join(name)));
    if tables.iter().all(Result::is_err) {
        return None;
    }
    Some(tables.into_iter().flatten().flat_map(|table| listeners(io::BufReader::new(table))).collect())
}

/// Listening sockets in a table such as `/proc/net/tcp` (proc(5)). Stops at the first socket in another state, because
/// Linux lists those last and there may be 100,000 after a load.
fn listeners(table: impl io::BufRead) -> Vec<(SocketAddr, u64)> {
    const LISTEN: &str = "0A";
    let mut found = Vec::new();
    for line in table.lines().skip(1).map_while(Result::ok) {
        let words = line.split_whitespace().collect::<Vec<_>>();
        match words[..] {
            [_, local, _, LISTEN, _, _, _, _, _, inode, ..] => found.extend(address(local).zip(inode.parse().ok())),
            _ => break,
        }
    }
    found
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

/// Unit of CPU times in `/proc/PID/stat`, ns.
pub(crate) fn tick_ns() -> u64 {
    1_000_000_000 / rustix::param::clock_ticks_per_second()
}

/// Fields of `/proc/PID/stat`. Source: proc_pid_stat(5).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Stat {
    /// Name of the process or thread, at most 15 bytes. Kernel threads change theirs with their work.
    pub(crate) name: String,
    /// Whether the process is still running; false for a zombie.
    pub(crate) runs: bool,
    pub(crate) parent: u32,
    pub(crate) group: u32,
    pub(crate) own_ns: u64,
    /// CPU time in user mode, ns, including children that have ended and been waited for.
    pub(crate) user_ns: u64,
    pub(crate) system_ns: u64,
    pub(crate) threads: u32,
    /// Start time in ticks since boot, which identifies the process together with its ID.
    pub(crate) started_ticks: u64,
    pub(crate) rss_bytes: u64,
}

impl Stat {
    pub(crate) fn read(proc: &Path, pid: u32) -> Option<Self> {
        Self::parse(&read(proc, pid, "stat")?)
    }

    fn parse(text: &str) -> Option<Self> {
        // The name may contain parentheses and spaces, so fields are counted from the last `)`.
        let (before, after) = text.rsplit_once(')')?;
        let fields: Vec<&str> = after.split_whitespace().collect();
        let number = |field: usize| fields.get(field - 3)?.parse::<u64>().ok();
        let [user, system, children_user, children_system] = [number(14)?, number(15)?, number(16)?, number(17)?];
        Some(Self {
            name: before.split_once('(')?.1.to_owned(),
            runs: !["Z", "X"].contains(fields.first()?),
            parent: u32::try_from(number(4)?).ok()?,
            group: u32::try_from(number(5)?).ok()?,
            own_ns: (user + system) * tick_ns(),
            user_ns: (user + children_user) * tick_ns(),
            system_ns: (system + children_system) * tick_ns(),
            threads: u32::try_from(number(20)?).ok()?,
            started_ticks: number(22)?,
            rss_bytes: number(24)? * rustix::param::page_size() as u64,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parses_a_stat_line() {
        let text = "70 (a (b) c) S 1 70 70 0 -1 4194560 99 0 0 0 250 150 7 3 20 0 5 0 1000 9999 300 184467 1 1 0 0";
        let expected = Stat {
            name: "a (b) c".to_owned(),
            runs: true,
            parent: 1,
            group: 70,
            own_ns: 4_000_000_000,
            user_ns: 2_570_000_000,
            system_ns: 1_530_000_000,
            threads: 5,
            started_ticks: 1000,
            rss_bytes: 300 * rustix::param::page_size() as u64,
        };
        assert_eq!(Stat::parse(text).as_ref(), Some(&expected));
        assert_eq!(Stat::parse(&text.replace(" S ", " Z ")), Some(Stat { runs: false, ..expected }));
        let name = Stat::parse("42 (a) b (c)) S 1 42 42 0 -1 4194560 100 0 0 0 30 12 7 9 20 0 1 0 100 1000 10");
        assert_eq!(name.map(|stat| (stat.name, stat.own_ns)), Some(("a) b (c)".to_owned(), 420_000_000)));
    }

    #[test]
    fn rejects_malformed_stat_lines() {
        for text in ["", "42", "70 (a", "70 (a) S 1", "70 (a) S x y z", ")", "42 (x) S 1 2 3 4 5 6 7 8 9 10 11 x y"] {
            assert_eq!(Stat::parse(text), None, "{text:?}");
        }
    }

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
