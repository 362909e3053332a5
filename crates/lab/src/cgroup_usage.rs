//! Resource usage of a container's control group (kernel documentation: cgroup-v1 and cgroup-v2).

use std::fs;
use std::path::{Path, PathBuf};

use study::record::CgroupUse;

const DEPTH_MAX: u32 = 8;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Cgroup {
    version: u32,
    path: String,
    cpu: Option<PathBuf>,
    memory: Option<PathBuf>,
    io: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Usage {
    /// CPU time in user mode and in the kernel, ns. The sum is exact; the split is an estimate. `None` if unreadable.
    pub(crate) cpu_ns: Option<(u64, u64)>,
    memory_bytes: Option<u64>,
    memory_max_bytes: Option<u64>,
    /// Bytes read from and written to block devices; `None` if unreadable.
    io_bytes: Option<(u64, u64)>,
}

/// Names of the files with CPU time, memory, peak memory and I/O, by version of control groups.
const FILES: [[&str; 4]; 2] = [
    ["cpuacct.usage", "memory.usage_in_bytes", "memory.max_usage_in_bytes", "blkio.throttle.io_service_bytes"],
    ["cpu.stat", "memory.current", "memory.peak", "io.stat"],
];

impl Cgroup {
    /// Finds the control group of process `pid`. `None` if it is unreadable or the root, which all processes share.
    pub(crate) fn of(proc: &Path, pid: u32) -> Option<Self> {
        let memberships = fs::read_to_string(proc.join(pid.to_string()).join("cgroup")).ok()?;
        let mounts = fs::read_to_string(proc.join("self/mountinfo")).ok()?;
        let found = find(&memberships, &mounts)?;
        // A mounted hierarchy may lack the files with usage.
        (found.usage().cpu_ns.is_some() || found.usage().memory_bytes.is_some()).then_some(found)
    }

    pub(crate) fn members(&self) -> Option<Vec<u32>> {
        members(self.cpu.as_ref().or(self.memory.as_ref()).or(self.io.as_ref())?, DEPTH_MAX)
    }

    pub(crate) fn usage(&self) -> Usage {
        let read = |folder: &Option<PathBuf>, file: &str| fs::read_to_string(folder.as_ref()?.join(file)).ok();
        let [cpu, memory, memory_max, io] = FILES[usize::from(self.version == 2)];
        let number = |folder: &Option<PathBuf>, file: &str| read(folder, file)?.trim().parse::<u64>().ok();
        let is_v1 = self.version == 1;
        let stat = read(&self.cpu, if is_v1 { "cpuacct.stat" } else { cpu }).unwrap_or_default();
        let [user, system] = if is_v1 { ["user", "system"] } else { ["user_usec", "system_usec"] };
        let total_ns = match is_v1 {
            true => number(&self.cpu, cpu),
            false => value(&stat, "usage_usec").and_then(|us| us.checked_mul(1_000)),
        };
        Usage {
            cpu_ns: total_ns.map(|total_ns| split(total_ns, value(&stat, user), value(&stat, system))),
            memory_bytes: number(&self.memory, memory),
            memory_max_bytes: number(&self.memory, memory_max),
            io_bytes: read(&self.io, io).map(|text| io_bytes(&text)),
        }
    }

    /// Describes the usage between two readings, of which any value may be unknown.
    pub(crate) fn used(&self, [begin, end]: [Usage; 2]) -> CgroupUse {
        let [cpu, _, memory, io] = FILES[usize::from(self.version == 2)];
        let source = |known: bool, file: &str| known.then(|| file.to_owned());
        let io_bytes = begin.io_bytes.zip(end.io_bytes);
        CgroupUse {
            version: self.version,
            path: self.path.clone(),
            cpu_source: source(begin.cpu_ns.and(end.cpu_ns).is_some(), cpu),
            memory_max_bytes: end.memory_max_bytes,
            memory_end_bytes: end.memory_bytes,
            memory_source: source(end.memory_max_bytes.is_some(), memory),
            read_bytes: io_bytes.map(|(begin, end)| end.0.saturating_sub(begin.0)),
            written_bytes: io_bytes.map(|(begin, end)| end.1.saturating_sub(begin.1)),
            io_source: source(io_bytes.is_some(), io),
        }
    }
}

/// Processes of a group and of the groups below it, up to `depth` levels. `None` if it is unreadable or was removed.
fn members(folder: &Path, depth: u32) -> Option<Vec<u32>> {
    let procs = fs::read_to_string(folder.join("cgroup.procs")).ok()?;
    let own = procs.lines().filter_map(|line| line.trim().parse().ok());
    let below = fs::read_dir(folder).ok()?.flatten().filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
    let below = below.filter(|_| depth > 0).filter_map(|group| members(&group.path(), depth - 1));
    Some(own.chain(below.flatten()).collect())
}

/// Finds a process's control group from its `cgroup` and `mountinfo` (proc_pid_cgroup(5), proc_pid_mountinfo(5)).
fn find(memberships: &str, mounts: &str) -> Option<Cgroup> {
    // `ID:CONTROLLERS:PATH`; version 2 has ID 0 and no controllers.
    let groups = memberships.lines().filter_map(|line| {
        let mut fields = line.splitn(3, ':');
        Some((fields.next()?, fields.next()?, fields.next()?))
    });
    let groups = groups.collect::<Vec<_>>();
    let group_v1 = |controller: &str| {
        let has = |list: &str| list.split(',').any(|name| name == controller);
        let (.., path) = groups.iter().find(|(_, controllers, _)| has(controllers))?;
        Some(((*path).to_owned(), folder(mounts, path, |kind, options| kind == "cgroup" && has(options))))
    };
    let (cpu, memory, io) = (group_v1("cpuacct"), group_v1("memory"), group_v1("blkio"));
    let path = cpu.as_ref().or(memory.as_ref()).map(|(path, _)| path.clone());
    let [cpu, memory, io] = [cpu, memory, io].map(|group| group.and_then(|(_, folder)| folder));
    if cpu.is_some() || memory.is_some() {
        return Some(Cgroup { version: 1, path: path?, cpu, memory, io });
    }
    let (.., path) = groups.iter().find(|(id, controllers, _)| *id == "0" && controllers.is_empty())?;
    let folder = folder(mounts, path, |kind, _| kind == "cgroup2")?;
    let all = || Some(folder.clone());
    Some(Cgroup { version: 2, path: (*path).to_owned(), cpu: all(), memory: all(), io: all() })
}

fn folder(mounts: &str, path: &str, is_it: impl Fn(&str, &str) -> bool) -> Option<PathBuf> {
    mounts.lines().find_map(|line| {
        let (before, after) = line.split_once(" - ")?;
        let mut before = before.split(' ').skip(3);
        let (root, place) = (before.next()?, before.next()?);
        let mut after = after.split(' ');
        let (kind, options) = (after.next()?, after.nth(1)?);
        if !is_it(kind, options) {
            return None;
        }
        // A mount may show only part of the hierarchy, as it does inside a container.
        let below = path.strip_prefix(root.trim_end_matches('/'))?.trim_start_matches('/');
        let inside = !below.is_empty() && !below.split('/').any(|part| part == "..");
        inside.then(|| Path::new(place).join(below))
    })
}

fn value(text: &str, key: &str) -> Option<u64> {
    text.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(' ')?.trim().parse().ok())
}

fn split(total_ns: u64, user: Option<u64>, system: Option<u64>) -> (u64, u64) {
    let (user, system) = (user.unwrap_or(0), system.unwrap_or(0));
    let share = if user == 0 && system == 0 { 0.0 } else { user as f64 / (user as f64 + system as f64) };
    let user_ns = ((total_ns as f64 * share).round() as u64).min(total_ns);
    (user_ns, total_ns - user_ns)
}

/// Sums the bytes read and written over lines such as `8:0 Read 4096` (version 1) or `8:0 rbytes=4096 wbytes=0 rios=1`.
fn io_bytes(text: &str) -> (u64, u64) {
    let sum = |v1: &str, v2: &str| {
        let of = |line: &str| {
            let mut words = line.split_ascii_whitespace().skip(1);
            let found = words.clone().find_map(|word| word.strip_prefix(v2));
            let bytes = if words.next()? == v1 { words.next() } else { found };
            bytes?.parse::<u64>().ok()
        };
        text.lines().filter_map(of).fold(0, u64::saturating_add)
    };
    (sum("Read", "rbytes="), sum("Write", "wbytes="))
}

#[cfg(test)]
mod tests {
    use super::*;

    const V1: &str = "\
31 23 0:28 / /sys/fs/cgroup rw,relatime - tmpfs tmpfs rw,mode=755
33 31 0:30 / /sys/fs/cgroup/cpu,cpuacct rw,relatime shared:1 - cgroup cgroup rw,cpu,cpuacct
35 31 0:32 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory
41 31 0:38 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw";
    const V2: &str = "30 23 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate";

    #[test]
    fn finds_directories_of_both_versions() {
        let of_v1 = find("9:name=systemd:/x\n4:memory:/libpod/a\n2:cpu,cpuacct:/libpod/a\n0::/libpod/a\n", V1).unwrap();
        let expected = Cgroup {
            version: 1,
            path: "/libpod/a".to_owned(),
            cpu: Some("/sys/fs/cgroup/cpu,cpuacct/libpod/a".into()),
            memory: Some("/sys/fs/cgroup/memory/libpod/a".into()),
            io: None,
        };
        assert_eq!(of_v1, expected);
        let of_v2 = find("0::/machine.slice/libpod-a.scope/container\n", V2).unwrap();
        let place = Some(PathBuf::from("/sys/fs/cgroup/machine.slice/libpod-a.scope/container"));
        assert_eq!((of_v2.version, of_v2.cpu, of_v2.io), (2, place.clone(), place));
        let inside = V2.replace("0:26 / ", "0:26 /docker/abc ");
        let inner = find("0::/docker/abc/libpod/a", &inside).unwrap();
        assert_eq!(inner.memory, Some("/sys/fs/cgroup/libpod/a".into()));
    }

    #[test]
    fn ignores_root_and_invisible_groups() {
        for (groups, mounts) in
            [("0::/", V2), ("0::/../b", V2), ("", V2), ("0::/a", ""), ("2:cpuacct:/\n0::/", V1), ("nonsense", "x - y")]
        {
            assert_eq!(find(groups, mounts), None, "{groups:?}");
        }
    }

    fn usage(version: u32, files: &[(&str, &str)]) -> (Cgroup, Usage, tempfile::TempDir) {
        let folder = tempfile::tempdir().unwrap();
        files.iter().for_each(|(name, text)| fs::write(folder.path().join(name), text).unwrap());
        let place = || Some(folder.path().to_owned());
        let group = Cgroup { version, path: "/a".to_owned(), cpu: place(), memory: place(), io: place() };
        let usage = group.usage();
        (group, usage, folder)
    }

    #[test]
    fn reads_counters_of_version_1() {
        let files = [
            ("cpuacct.usage", "26044074\n"),
            ("cpuacct.stat", "user 1\nsystem 3\n"),
            ("memory.usage_in_bytes", "4096\n"),
            ("memory.max_usage_in_bytes", "3780608\n"),
            (
                "blkio.throttle.io_service_bytes",
                "8:0 Read 4096\n8:0 Write 512\n8:16 Read 1\n8:0 Total 4608\nTotal 4609\n",
            ),
            ("cgroup.procs", "12\n7\n"),
        ];
        let (group, usage, folder) = usage(1, &files);
        assert_eq!(usage.cpu_ns, Some((6_511_019, 19_533_055)));
        assert_eq!(
            (usage.memory_bytes, usage.memory_max_bytes, usage.io_bytes),
            (Some(4096), Some(3_780_608), Some((4097, 512)))
        );
        fs::create_dir(folder.path().join("inner")).unwrap();
        fs::write(folder.path().join("inner/cgroup.procs"), "99\n").unwrap();
        assert_eq!(group.members(), Some(vec![12, 7, 99]));
        let later = Usage { io_bytes: Some((5000, 600)), ..usage };
        let used = group.used([usage, later]);
        assert_eq!((used.read_bytes, used.written_bytes), (Some(903), Some(88)));
        assert_eq!(used.cpu_source.as_deref(), Some("cpuacct.usage"));
        assert_eq!(used.memory_source.as_deref(), Some("memory.max_usage_in_bytes"));
    }

    #[test]
    fn reads_counters_of_version_2() {
        let files = [
            ("cpu.stat", "usage_usec 400\nuser_usec 300\nsystem_usec 100\nnr_periods 0\n"),
            ("memory.current", "10\n"),
            ("io.stat", "8:0 rbytes=4096 wbytes=12 rios=1 wios=0 dbytes=0 dios=0\n8:16 rbytes=1\n"),
        ];
        let (group, usage, _folder) = usage(2, &files);
        assert_eq!(usage.cpu_ns, Some((300_000, 100_000)));
        assert_eq!((usage.memory_bytes, usage.memory_max_bytes, usage.io_bytes), (Some(10), None, Some((4097, 12))));
        assert_eq!(group.members(), None);
        let used = group.used([usage, usage]);
        assert_eq!(
            (used.memory_source, used.cpu_source.as_deref(), used.io_source.as_deref()),
            (None, Some("cpu.stat"), Some("io.stat"))
        );
    }

    #[test]
    fn group_without_files_has_no_usage() {
        let (group, usage, _folder) = usage(2, &[("cpu.stat", "usage_usec x\n"), ("memory.peak", "max\n")]);
        assert_eq!(usage, Usage::default());
        assert_eq!(
            group.used([Usage::default(); 2]),
            CgroupUse { version: 2, path: "/a".to_owned(), ..CgroupUse::default() }
        );
    }
}
