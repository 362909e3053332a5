//! Files about processes in `/proc` (proc(5)). `proc` is that directory, or another one in tests.

use std::path::Path;
use std::{fs, io};

pub(crate) fn pids(proc: &Path) -> impl Iterator<Item = u32> + use<> {
    let entries = fs::read_dir(proc).into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

/// Text of a file of a process. Program names in it need not be UTF-8.
pub(crate) fn read(proc: &Path, pid: u32, file: &str) -> Option<String> {
    let bytes = fs::read(proc.join(format!("{pid}/{file}"))).ok()?;
    Some(String::from_utf8(bytes).unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned()))
}

pub(crate) fn value<'a>(text: &'a str, key: &str) -> Option<&'a str> {
    let mut lines = text.lines().filter_map(|line| line.split_once(':'));
    lines.find(|(name, _)| name.trim() == key).map(|(_, value)| value.trim())
}

/// Number in a line such as `VmHWM: 1234 kB`.
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

/// Unit of CPU times in `/proc/PID/stat`, ns.
pub(crate) fn tick_ns() -> u64 {
    1_000_000_000 / rustix::param::clock_ticks_per_second()
}

/// Fields of `/proc/PID/stat`. Source: proc_pid_stat(5).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stat<'a> {
    pub(crate) name: &'a str,
    /// Whether it has not ended; zombies have.
    pub(crate) runs: bool,
    pub(crate) parent: u32,
    pub(crate) group: u32,
    pub(crate) own_ns: u64,
    /// Includes children that have ended and been waited for.
    pub(crate) user_ns: u64,
    pub(crate) system_ns: u64,
    pub(crate) threads: u32,
    /// Start time since boot; identifies the process together with its ID.
    pub(crate) started_ticks: u64,
    pub(crate) rss_bytes: u64,
}

impl<'a> Stat<'a> {
    pub(crate) fn parse(text: &'a str) -> Option<Self> {
        // The name may contain parentheses and blanks: count fields from the last `)`.
        let (before, after) = text.rsplit_once(')')?;
        let fields: Vec<&str> = after.split_whitespace().collect();
        let number = |field: usize| fields.get(field - 3)?.parse::<u64>().ok();
        let [user, system, children_user, children_system] = [number(14)?, number(15)?, number(16)?, number(17)?];
        Some(Self {
            name: before.split_once('(')?.1,
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
            name: "a (b) c",
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
        assert_eq!(Stat::parse(text), Some(expected));
        assert_eq!(Stat::parse(&text.replace(" S ", " Z ")), Some(Stat { runs: false, ..expected }));
        let name = Stat::parse("42 (a) b (c)) S 1 42 42 0 -1 4194560 100 0 0 0 30 12 7 9 20 0 1 0 100 1000 10");
        assert_eq!(name.map(|stat| (stat.name, stat.own_ns)), Some(("a) b (c)", 420_000_000)));
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
}
