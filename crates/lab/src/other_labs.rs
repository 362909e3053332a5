//! Detects other labs on this machine, because labs that run at the same time disturb each other without a trace. A
//! running lab holds a Unix socket with an abstract name (unix(7)). The kernel shows such sockets to every user, they
//! need no writable file, and none is left when a lab ends. Labs in other network namespaces are not visible.

use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener};

/// Prefix of the names of sockets; the process ID and the name of the run follow.
const PREFIX: &str = "quintain-lab/";
/// Maximum length of a name in bytes: `sun_path` has 108, and the first is NUL.
const NAME_MAX: usize = 107;

/// Announces to other labs that this process runs `work`, until the result is dropped. Fails if already announced.
pub fn announce(work: &str) -> std::io::Result<UnixListener> {
    UnixListener::bind_addr(&SocketAddr::from_abstract_name(name(std::process::id(), work))?)
}

fn name(pid: u32, work: &str) -> String {
    // Whitespace would end the name in the kernel's list.
    let plain = |c: char| if c.is_whitespace() || c.is_control() { '_' } else { c };
    let mut name: String = format!("{PREFIX}{pid}/{work}").chars().map(plain).collect();
    while name.len() > NAME_MAX {
        name.pop();
    }
    name
}

/// Names the other labs that are running, such as `process 4711 (volley-1)`; empty if there are none. `None` if the
/// kernel's list cannot be read.
pub fn others() -> Option<String> {
    let table = std::fs::read("/proc/self/net/unix").ok()?;
    Some(labs(&String::from_utf8_lossy(&table), std::process::id()))
}

/// Names the labs except `own` in a table such as `/proc/net/unix` (proc(5)), in which abstract names begin with `@`.
fn labs(table: &str, own: u32) -> String {
    let lab = |line: &str| {
        let (pid, work) = line.split_whitespace().nth(7)?.strip_prefix('@')?.strip_prefix(PREFIX)?.split_once('/')?;
        (pid.parse::<u32>().ok()? != own).then(|| format!("process {pid} ({work})"))
    };
    table.lines().filter_map(lab).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_labs_in_the_kernel_table() {
        let table = "Num       RefCount Protocol Flags    Type St Inode Path\n\
                     0000000000000000: 00000002 00000000 00010000 0001 01 20500 /run/quintain-lab/5/x\n\
                     0000000000000000: 00000002 00000000 00010000 0001 01 20501 @quintain-lab/4711/volley-20261120-210500\n\
                     0000000000000000: 00000003 00000000 00000000 0001 03 20502\n\
                     0000000000000000: 00000002 00000000 00010000 0001 01 20503 @quintain-lab/x/y\n";
        assert_eq!(labs(table, 1), "process 4711 (volley-20261120-210500)");
        assert_eq!(labs(table, 4711), "");
    }

    #[test]
    fn truncates_long_names() {
        assert_eq!(name(7, "a b\nc"), "quintain-lab/7/a_b_c");
        assert!(name(u32::MAX, &"é".repeat(200)).len() <= NAME_MAX);
    }

    #[test]
    fn presence_is_visible_only_to_others() {
        let announced = || {
            let table = std::fs::read("/proc/self/net/unix").unwrap();
            labs(&String::from_utf8_lossy(&table), 0).contains("(presence-test)")
        };
        let presence = announce("presence-test").unwrap();
        assert!(announced());
        assert!(!others().unwrap().contains("(presence-test)"));
        assert!(announce("presence-test").is_err(), "once is enough");
        drop(presence);
        assert!(!announced());
    }
}
