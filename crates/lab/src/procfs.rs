//! Files about processes in `/proc` (proc(5)). `proc` is this directory, or a different one in tests.

use std::fs;
use std::path::Path;

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

/// Unit of CPU times in `/proc/PID/stat`, ns.
pub(crate) fn tick_ns() -> u64 {
    1_000_000_000 / rustix::param::clock_ticks_per_second()
}

/// Fields of `/proc/PID/stat`. Source: proc_pid_stat(5).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Stat {
    /// Name of the process or thread, at most 15 bytes. Kernel threads change their names with their work.
    pub(crate) name: String,
    /// Whether the process is still running; false for a zombie.
    pub(crate) runs: bool,
    pub(crate) parent: u32,
    pub(crate) group: u32,
    pub(crate) own_ns: u64,
    /// CPU time in user mode in ns, including children that have ended and been waited for.
    pub(crate) user_ns: u64,
    pub(crate) system_ns: u64,
    pub(crate) threads: u32,
    /// Start time in ticks since boot. This time and the ID together identify a process, because IDs are reused.
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
}
