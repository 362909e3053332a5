//! Which labs work on this machine? Two at a time disturb each other, and nothing in the numbers says so.
//!
//! A lab at work holds a Unix socket whose name is abstract (unix(7)): nothing is left of it however the lab ends, no file has to be
//! writable, and the kernel lists the names to every user. Labs in other network namespaces are not seen.

use std::io;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener};
use std::path::Path;

/// What the names begin with; behind it, process number and what is done.
const PREFIX: &str = "quintain-lab/";
/// Longest name, bytes (`sun_path` has 108, the first is NUL).
const NAME_MAX: usize = 107;

/// Says that a lab is at work, until it is dropped.
#[derive(Debug)]
pub struct Presence {
    _socket: UnixListener,
}

/// Another lab at work.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lab {
    /// Its process number.
    pub pid: u32,
    /// What it does: the name of its run, as far as that fits.
    pub work: String,
}

impl std::fmt::Display for Lab {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "process {} ({})", self.pid, self.work)
    }
}

/// Lets other labs know that this process does `work`.
///
/// # Errors
/// The kernel's, and that this process says so already.
pub fn announce(work: &str) -> io::Result<Presence> {
    let name = name(std::process::id(), work);
    let socket = UnixListener::bind_addr(&SocketAddr::from_abstract_name(name)?)?;
    Ok(Presence { _socket: socket })
}

fn name(pid: u32, work: &str) -> String {
    // What ends a line or a word of the kernel's list is no part of a name.
    let plain = |c: char| if c.is_whitespace() || c.is_control() { '_' } else { c };
    let mut name: String = format!("{PREFIX}{pid}/{work}").chars().map(plain).collect();
    while name.len() > NAME_MAX {
        name.pop();
    }
    name
}

/// The labs at work beside this process; `None` where the kernel's list cannot be read.
pub fn others() -> Option<Vec<Lab>> {
    let table = std::fs::read(Path::new("/proc/self/net/unix")).ok()?;
    let mut labs = labs(&String::from_utf8_lossy(&table));
    labs.retain(|lab| lab.pid != std::process::id());
    Some(labs)
}

/// Those of a table like `/proc/net/unix` (proc(5)), where an abstract name begins with `@`.
fn labs(table: &str) -> Vec<Lab> {
    let lab = |line: &str| {
        let (pid, work) = line.split_whitespace().nth(7)?.strip_prefix('@')?.strip_prefix(PREFIX)?.split_once('/')?;
        Some(Lab { pid: pid.parse().ok()?, work: work.to_owned() })
    };
    table.lines().filter_map(lab).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labs_are_found_in_the_table_of_the_kernel() {
        let table = "Num       RefCount Protocol Flags    Type St Inode Path\n\
                     0000000000000000: 00000002 00000000 00010000 0001 01 20500 /run/quintain-lab/5/x\n\
                     0000000000000000: 00000002 00000000 00010000 0001 01 20501 @quintain-lab/4711/volley-20261120-210500\n\
                     0000000000000000: 00000003 00000000 00000000 0001 03 20502\n\
                     0000000000000000: 00000002 00000000 00010000 0001 01 20503 @quintain-lab/x/y\n";
        let [lab] = labs(table).try_into().unwrap();
        assert_eq!(lab.to_string(), "process 4711 (volley-20261120-210500)");
    }

    #[test]
    fn a_name_fits_whatever_is_done() {
        assert_eq!(name(7, "a b\nc"), "quintain-lab/7/a_b_c");
        assert!(name(u32::MAX, &"é".repeat(200)).len() <= NAME_MAX);
    }

    #[test]
    fn a_presence_is_seen_while_it_lasts_but_not_by_oneself() {
        let announced = || {
            let table = std::fs::read("/proc/self/net/unix").unwrap();
            labs(&String::from_utf8_lossy(&table)).into_iter().any(|lab| lab.work == "presence-test")
        };
        let presence = announce("presence-test").unwrap();
        assert!(announced());
        assert!(others().unwrap().iter().all(|lab| lab.work != "presence-test"));
        assert!(announce("presence-test").is_err(), "once is enough");
        drop(presence);
        assert!(!announced());
    }
}
