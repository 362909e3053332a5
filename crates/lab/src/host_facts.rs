//! Facts about the machine, read from Linux's files below a root directory, which is `/` except in tests.

use std::collections::BTreeMap;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use study::record::{Cpu, Host, Interface};

use crate::cpu_list;
use crate::process_start_and_stop::capture;
use crate::procfs::{number, value};

const SYSCTLS: &[(&str, &str)] = &[
    ("fs", "file-max nr_open"),
    ("kernel", "io_uring_disabled nmi_watchdog numa_balancing perf_event_paranoid randomize_va_space"),
    ("kernel", "sched_autogroup_enabled timer_migration"),
    ("net.core", "busy_poll busy_read default_qdisc netdev_max_backlog rmem_max somaxconn wmem_max"),
    ("net.ipv4", "ip_local_port_range tcp_autocorking tcp_congestion_control tcp_max_syn_backlog tcp_rmem"),
    ("net.ipv4", "tcp_slow_start_after_idle tcp_syncookies tcp_tw_reuse tcp_wmem"),
    ("vm", "overcommit_memory swappiness"),
];

/// Tools that build and run servers, grouped by the argument that prints their version.
const TOOLS: &[(&str, &[&str])] = &[
    ("--version", &["c++", "cc", "git", "make", "node", "python3", "rustc"]),
    ("-version", &["java"]),
    ("version", &["go"]),
];

/// Facts about this machine, including the versions of the tools, which run in `directory`.
pub fn facts(directory: &Path) -> Host {
    Host { versions: versions(directory), ..read(Path::new("/")) }
}

/// First line that each tool prints when asked for its version in `directory`. Omits missing tools.
pub fn versions(directory: &Path) -> BTreeMap<String, String> {
    let version = |tool: &str, argument| {
        Some((tool.to_owned(), capture(&[tool, argument], directory)?.lines().next()?.trim().to_owned()))
    };
    TOOLS.iter().flat_map(|(argument, tools)| tools.iter().filter_map(move |tool| version(tool, argument))).collect()
}

/// Reads the facts from the files under `root`. An unreadable value is `None` or empty, and listed in `unknown` with
/// the reason unless this kernel does not provide it. `versions` stays empty, because no file has them.
pub fn read(root: &Path) -> Host {
    let mut files = Files { root: root.to_owned(), unknown: Vec::new() };
    let cpuinfo = files.must("CPU model", "proc/cpuinfo").unwrap_or_default();
    let meminfo = files.must("memory", "proc/meminfo").unwrap_or_default();
    let release = files.must("kernel release", "proc/sys/kernel/osrelease").unwrap_or_default();
    let version = files.may("proc/sys/kernel/version").unwrap_or_default();
    let bytes = |name: &str| number(&meminfo, name).unwrap_or(0) * 1024;
    let load_average = files.must("load average", "proc/loadavg");
    let idle = files.idle();
    let vulnerabilities = "sys/devices/system/cpu/vulnerabilities";
    let state = |name: &String| files.may(&format!("{vulnerabilities}/{name}"));
    let names = files.names(vulnerabilities).into_iter();
    let mitigations = names.filter_map(|name| state(&name).map(|text| (name, text))).collect();
    let os_release = files.may("etc/os-release").or_else(|| files.may("usr/lib/os-release")).unwrap_or_default();
    let system = os_release.lines().find_map(|line| line.strip_prefix("PRETTY_NAME="));
    let no_turbo = files.may("sys/devices/system/cpu/intel_pstate/no_turbo").map(|text| text == "0");
    let turbo = no_turbo.or_else(|| files.may("sys/devices/system/cpu/cpufreq/boost").map(|text| text == "1"));
    Host {
        name: files.must("host name", "proc/sys/kernel/hostname").unwrap_or_default(),
        kernel: format!("{release} {version}").trim().to_owned(),
        system: system.map(|name| name.trim_matches('"').to_owned()),
        cpu_model: files.cpu_model(&cpuinfo),
        hypervisor: files.hypervisor(&cpuinfo),
        cpus: files.cpus(),
        caches: files.caches(),
        memory_bytes: bytes("MemTotal"),
        swap_used_bytes: bytes("SwapTotal").saturating_sub(bytes("SwapFree")),
        governor: files.may("sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"),
        turbo,
        smt: files.may("sys/devices/system/cpu/smt/active").map(|text| text == "1"),
        clocksource: files.must("clock source", "sys/devices/system/clocksource/clocksource0/current_clocksource"),
        idle,
        mitigations,
        sysctls: files.sysctls(),
        versions: BTreeMap::new(),
        load_average: load_average.and_then(|text| text.split_whitespace().next()?.parse().ok()),
        unknown: files.unknown,
    }
}

struct Files {
    root: PathBuf,
    unknown: Vec<String>,
}

impl Files {
    /// Reads an optional file and trims its content; `None` if the file is missing or empty.
    fn may(&self, path: &str) -> Option<String> {
        let text = fs::read_to_string(self.root.join(path)).ok()?;
        Some(text.trim().to_owned()).filter(|text| !text.is_empty())
    }

    /// Reads and trims a file that every machine has. If it is unreadable, returns `None` and adds `what` to `unknown`.
    fn must(&mut self, what: &str, path: &str) -> Option<String> {
        let text = fs::read_to_string(self.root.join(path)).map_err(|error| {
            let why = match error.kind() {
                ErrorKind::NotFound => "no such file",
                ErrorKind::PermissionDenied => "permission denied",
                _ => "cannot be read",
            };
            self.unknown.push(format!("{what}: /{path}: {why}"));
        });
        Some(text.ok()?.trim().to_owned())
    }

    fn names(&self, path: &str) -> Vec<String> {
        let Ok(entries) = fs::read_dir(self.root.join(path)) else { return Vec::new() };
        let mut names: Vec<String> = entries.flatten().filter_map(|file| file.file_name().into_string().ok()).collect();
        names.sort();
        names
    }

    fn cpu_model(&mut self, cpuinfo: &str) -> String {
        let names = ["model name", "Model", "cpu model", "uarch"];
        let model = names.iter().find_map(|name| value(cpuinfo, name)).map(str::to_owned);
        model.unwrap_or_else(|| {
            self.unknown.push("CPU model: not in /proc/cpuinfo".to_owned());
            String::new()
        })
    }

    fn hypervisor(&self, cpuinfo: &str) -> Option<String> {
        let files = ["sys_vendor", "product_name"].map(|file| self.may(&format!("sys/class/dmi/id/{file}")));
        let hardware = files.into_iter().flatten().collect::<Vec<_>>().join(" ");
        let vendors = [("Microsoft Corporation Virtual", "Hyper-V"), ("Google", "Google Compute Engine")];
        let same = ["QEMU", "KVM", "VMware", "VirtualBox", "Amazon EC2", "Xen"].map(|name| (name, name));
        let named = |kinds: &[(&str, &str)], text: &str| {
            kinds.iter().find(|(mark, _)| text.contains(mark)).map(|(_, name)| (*name).to_owned())
        };
        let flag = value(cpuinfo, "flags").is_some_and(|flags| flags.split(' ').any(|flag| flag == "hypervisor"));
        let by_name = named(&vendors, &hardware).or_else(|| named(&same, &hardware));
        let by_file = self.may("sys/hypervisor/type");
        let by_clock = || {
            let clocks = self.may("sys/devices/system/clocksource/clocksource0/available_clocksource")?;
            named(&[("kvm-clock", "KVM"), ("hyperv", "Hyper-V"), ("xen", "Xen")], &clocks)
        };
        // The hardware's name proves nothing: bare-metal machines in a cloud carry the cloud's name.
        if flag { by_name.or(by_file).or_else(by_clock).or_else(|| Some("unknown".to_owned())) } else { by_file }
    }

    /// CPUs that this process may use. The kernel keeps this set within the process's cpuset.
    fn cpus(&mut self) -> Vec<Cpu> {
        let status = self.must("allowed CPUs", "proc/self/status").unwrap_or_default();
        let online = self.may("sys/devices/system/cpu/online");
        let list = value(&status, "Cpus_allowed_list").map(str::to_owned).or(online).unwrap_or_default();
        let allowed = cpu_list::parse(&list).unwrap_or_default();
        if allowed.is_empty() {
            self.unknown.push(format!("CPUs: `{list}` is not a CPU list"));
        }
        let nodes = self.nodes();
        let mut placeless = Vec::new();
        let place = |index: u32| {
            let file = |name: &str| self.may(&format!("sys/devices/system/cpu/cpu{index}/topology/{name}"));
            // Some virtual machines report -1 for an unknown package.
            let number = |name: &str| file(name)?.parse::<u32>().ok();
            let core = number("core_id");
            placeless.extend(core.is_none().then_some(index));
            let package = number("physical_package_id").unwrap_or(0);
            let node = nodes.iter().find(|(_, cpus)| cpus.contains(&index)).map_or(0, |(node, _)| *node);
            // A CPU without a reported core counts as its own core.
            Cpu { index, core: core.unwrap_or(index), package, node }
        };
        let mut cpus: Vec<Cpu> = allowed.into_iter().map(place).collect();
        if !placeless.is_empty() {
            self.unknown.push(format!("cores: none reported for CPUs {}", cpu_list::format(&placeless)));
        }
        self.tell_dies_apart(&mut cpus);
        cpus
    }

    /// Numbers each core by the first CPU in its list of siblings if dies repeat core numbers.
    fn tell_dies_apart(&self, cpus: &mut [Cpu]) {
        let first_sibling = |cpu: &Cpu| {
            let list = self.may(&format!("sys/devices/system/cpu/cpu{}/topology/thread_siblings_list", cpu.index))?;
            cpu_list::parse(&list).ok()?.first().copied()
        };
        let siblings: Vec<Option<u32>> = cpus.iter().map(first_sibling).collect();
        let mut cores = BTreeMap::new();
        let clash = cpus.iter().zip(&siblings).any(|(cpu, first)| {
            first.is_some_and(|first| *cores.entry((cpu.package, cpu.core)).or_insert(first) != first)
        });
        if clash {
            cpus.iter_mut().zip(siblings).for_each(|(cpu, first)| cpu.core = first.unwrap_or(cpu.index));
        }
    }

    fn nodes(&self) -> Vec<(u32, Vec<u32>)> {
        let names = self.names("sys/devices/system/node");
        let node = |name: &String| {
            let number = name.strip_prefix("node")?.parse().ok()?;
            let list = self.may(&format!("sys/devices/system/node/{name}/cpulist"))?;
            Some((number, cpu_list::parse(&list).ok()?))
        };
        names.iter().filter_map(node).collect()
    }

    fn caches(&self) -> Vec<String> {
        let base = "sys/devices/system/cpu/cpu0/cache";
        let cache = |name: &String| {
            let file = |file: &str| self.may(&format!("{base}/{name}/{file}"));
            let kind = match file("type")?.as_str() {
                "Data" => "d",
                "Instruction" => "i",
                _ => "",
            };
            let size = file("size")?;
            let kib: u64 = size.strip_suffix('K')?.parse().ok()?;
            let size = if kib.is_multiple_of(1024) { format!("{} MiB", kib / 1024) } else { format!("{kib} KiB") };
            Some(format!("L{}{kind} {size}", file("level")?))
        };
        self.names(base).iter().filter(|name| name.starts_with("index")).filter_map(cache).collect()
    }

    fn idle(&self) -> Option<String> {
        let file = |name: &str| self.may(&format!("sys/devices/system/cpu/cpuidle/{name}"));
        let driver = file("current_driver").filter(|driver| driver != "none")?;
        let governor = file("current_governor").or_else(|| file("current_governor_ro"));
        Some(governor.map_or_else(|| driver.clone(), |governor| format!("{driver}/{governor}")))
    }

    fn sysctls(&self) -> BTreeMap<String, String> {
        let setting =
            |name: String, path: &str| Some((name, self.may(path)?.split_whitespace().collect::<Vec<_>>().join(" ")));
        let names = SYSCTLS.iter().flat_map(|(folder, names)| names.split(' ').map(move |name| (folder, name)));
        let sysctl = |(folder, name): (&&str, &str)| {
            setting(format!("{folder}.{name}"), &format!("proc/sys/{}/{name}", folder.replace('.', "/")))
        };
        let mut found: BTreeMap<String, String> = names.filter_map(sysctl).collect();
        // Version 1 of control groups reports -1 for no quota.
        let older = |name: &str| self.may(&format!("sys/fs/cgroup/cpu/cpu.cfs_{name}_us"));
        if let Some((quota, period)) = older("quota").zip(older("period")) {
            let quota = if quota == "-1" { "max" } else { &quota };
            found.insert("cgroup.cpu.max".to_owned(), format!("{quota} {period}"));
        }
        // These kernel settings are not sysctls but also limit performance.
        found.extend(setting("cgroup.cpu.max".to_owned(), "sys/fs/cgroup/cpu.max"));
        found.extend(setting("transparent_hugepage".to_owned(), "sys/kernel/mm/transparent_hugepage/enabled"));
        found
    }
}

/// Network interfaces of this machine, each with its addresses.
pub fn interfaces() -> Vec<(Interface, Vec<String>)> {
    let mut addresses: BTreeMap<String, Vec<String>> = BTreeMap::new();
    // If the addresses cannot be read, the result is empty, because the interface in use could not be identified.
    for interface in if_addrs::get_if_addrs().unwrap_or_default() {
        addresses.entry(interface.name.clone()).or_default().push(interface.ip().to_string());
    }
    let class = Path::new("/sys/class/net");
    addresses.into_iter().map(|(name, addresses)| (interface(&class.join(&name), name), addresses)).collect()
}

fn interface(folder: &Path, name: String) -> Interface {
    let number = |file: &str| fs::read_to_string(folder.join(file)).ok()?.trim().parse::<i64>().ok();
    let queues = fs::read_dir(folder.join("queues")).into_iter().flatten().flatten();
    let receive = queues.filter(|queue| queue.file_name().to_string_lossy().starts_with("rx-")).count();
    let driver = fs::read_link(folder.join("device/driver")).ok();
    Interface {
        name,
        // Drivers report -1 or an error if they do not know the speed.
        speed_mbit_per_s: number("speed").and_then(|speed| u64::try_from(speed).ok()),
        mtu_bytes: number("mtu").and_then(|mtu| u64::try_from(mtu).ok()),
        driver: driver.and_then(|path| Some(path.file_name()?.to_string_lossy().into_owned())),
        receive_queues: u32::try_from(receive).ok().filter(|count| *count > 0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(root: &Path, path: &str, text: &str) {
        let path = root.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    /// Writes files for 2 packages of 20 cores with 2 threads each, with gaps and repeated numbers as in Linux.
    fn two_sockets(root: &Path) {
        for index in 0..80_u32 {
            let (package, core) = (index / 20 % 2, index % 20);
            let base = format!("sys/devices/system/cpu/cpu{index}/topology");
            write(root, &format!("{base}/core_id"), &format!("{}\n", core + core / 10 * 6));
            write(root, &format!("{base}/physical_package_id"), &format!("{package}\n"));
            write(root, &format!("{base}/thread_siblings_list"), &format!("{},{}\n", index % 40, index % 40 + 40));
        }
        write(root, "sys/devices/system/node/node0/cpulist", "0-19,40-59\n");
        write(root, "sys/devices/system/node/node1/cpulist", "20-39,60-79\n");
        write(root, "sys/devices/system/cpu/smt/active", "1\n");
        write(root, "sys/devices/system/cpu/online", "0-79\n");
        write(root, "sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", "powersave\n");
        write(root, "sys/devices/system/cpu/intel_pstate/no_turbo", "0\n");
        write(root, "sys/devices/system/cpu/cpuidle/current_driver", "intel_idle\n");
        write(root, "sys/devices/system/cpu/cpuidle/current_governor", "menu\n");
        for (index, (level, kind, size)) in
            [("1", "Data", "32K"), ("1", "Instruction", "32K"), ("2", "Unified", "1024K"), ("3", "Unified", "28160K")]
                .into_iter()
                .enumerate()
        {
            let base = format!("sys/devices/system/cpu/cpu0/cache/index{index}");
            write(root, &format!("{base}/level"), level);
            write(root, &format!("{base}/type"), kind);
            write(root, &format!("{base}/size"), size);
        }
        write(root, "sys/devices/system/cpu/vulnerabilities/meltdown", "Mitigation: PTI\n");
        write(root, "sys/devices/system/clocksource/clocksource0/current_clocksource", "tsc\n");
        write(root, "sys/kernel/mm/transparent_hugepage/enabled", "always [madvise] never\n");
        write(root, "proc/cpuinfo", "processor\t: 0\nmodel name\t: Intel(R) Xeon(R) Gold 6138\nflags\t\t: fpu tsc\n");
        write(root, "proc/meminfo", "MemTotal:  131072 kB\nSwapTotal:  4096 kB\nSwapFree:  1024 kB\n");
        write(root, "proc/loadavg", "0.25 0.10 0.05 1/999 4242\n");
        write(root, "proc/self/status", "Name:\tx\nCpus_allowed:\tffff\nCpus_allowed_list:\t0-79\n");
        write(root, "proc/sys/kernel/hostname", "lab1\n");
        write(root, "proc/sys/kernel/osrelease", "6.1.0\n");
        write(root, "proc/sys/kernel/version", "#1 SMP\n");
        write(root, "proc/sys/net/core/somaxconn", "4096\n");
        write(root, "proc/sys/net/ipv4/ip_local_port_range", "32768\t60999\n");
        write(root, "etc/os-release", "NAME=Debian\nPRETTY_NAME=\"Debian GNU/Linux 12 (bookworm)\"\n");
    }

    #[test]
    fn reads_two_sockets_with_siblings() {
        let folder = tempfile::tempdir().unwrap();
        two_sockets(folder.path());
        let host = read(folder.path());
        assert_eq!(host.unknown, Vec::<String>::new());
        assert_eq!((host.name.as_str(), host.kernel.as_str()), ("lab1", "6.1.0 #1 SMP"));
        assert_eq!(host.system.as_deref(), Some("Debian GNU/Linux 12 (bookworm)"));
        assert_eq!(host.cpu_model, "Intel(R) Xeon(R) Gold 6138");
        assert_eq!(host.hypervisor, None);
        assert_eq!(host.caches, ["L1d 32 KiB", "L1i 32 KiB", "L2 1 MiB", "L3 28160 KiB"]);
        assert_eq!((host.memory_bytes, host.swap_used_bytes), (128 << 20, 3 << 20));
        assert_eq!((host.governor.as_deref(), host.turbo, host.smt), (Some("powersave"), Some(true), Some(true)));
        assert_eq!((host.clocksource.as_deref(), host.idle.as_deref()), (Some("tsc"), Some("intel_idle/menu")));
        assert_eq!(host.mitigations["meltdown"], "Mitigation: PTI");
        assert_eq!(host.sysctls["net.core.somaxconn"], "4096");
        assert_eq!(host.sysctls["net.ipv4.ip_local_port_range"], "32768 60999");
        assert_eq!(host.load_average, Some(0.25));
        assert_eq!(host.cpus.len(), 80);
        assert_eq!(host.cpus[0], Cpu { index: 0, core: 0, package: 0, node: 0 });
        assert_eq!(host.cpus[79], Cpu { index: 79, core: 25, package: 1, node: 1 });

        let share = |subject, generator| {
            let share = crate::divide_cpus::share(&host.cpus, subject, generator, false).unwrap();
            (cpu_list::format(&share.subject), cpu_list::format(&share.generator))
        };
        assert_eq!(share(8, Some(4)), ("0-7".to_owned(), "8-11".to_owned()));
        assert_eq!(share(40, Some(8)), ("0-35".to_owned() + ",40-43", "36-39,76-79".to_owned()));
        assert_eq!(share(79, Some(1)), ("0-78".to_owned(), "79".to_owned()));
    }

    #[test]
    fn lists_only_cpus_of_the_affinity() {
        let folder = tempfile::tempdir().unwrap();
        two_sockets(folder.path());
        write(folder.path(), "proc/self/status", "Cpus_allowed_list:\t3,43,70\n");
        let host = read(folder.path());
        assert_eq!(host.cpus.iter().map(|cpu| cpu.index).collect::<Vec<_>>(), [3, 43, 70]);
        assert_eq!(host.cpus[0].core, host.cpus[1].core);
    }

    #[test]
    fn cores_of_different_dies_are_not_siblings() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        for index in 0..4_u32 {
            let base = format!("sys/devices/system/cpu/cpu{index}/topology");
            write(root, &format!("{base}/core_id"), &(index % 2).to_string());
            write(root, &format!("{base}/physical_package_id"), "0");
            write(root, &format!("{base}/thread_siblings_list"), &index.to_string());
        }
        write(root, "proc/self/status", "Cpus_allowed_list:\t0-3\n");
        let mut cores: Vec<u32> = read(root).cpus.iter().map(|cpu| cpu.core).collect();
        cores.dedup();
        assert_eq!(cores, [0, 1, 2, 3]);
    }

    #[test]
    fn detects_virtual_machines() {
        let folder = tempfile::tempdir().unwrap();
        two_sockets(folder.path());
        write(folder.path(), "proc/cpuinfo", "model name : AMD EPYC\nflags : fpu hypervisor lahf_lm\n");
        assert_eq!(read(folder.path()).hypervisor.as_deref(), Some("unknown"));
        write(folder.path(), "sys/devices/system/clocksource/clocksource0/available_clocksource", "tsc kvm-clock\n");
        assert_eq!(read(folder.path()).hypervisor.as_deref(), Some("KVM"));
        write(folder.path(), "sys/class/dmi/id/sys_vendor", "Amazon EC2\n");
        assert_eq!(read(folder.path()).hypervisor.as_deref(), Some("Amazon EC2"));
    }

    #[test]
    fn reads_the_quota_of_both_cgroup_versions() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        let quota = || read(root).sysctls.remove("cgroup.cpu.max");
        assert_eq!(quota(), None);
        write(root, "sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n");
        write(root, "sys/fs/cgroup/cpu/cpu.cfs_quota_us", "-1\n");
        assert_eq!(quota().as_deref(), Some("max 100000"));
        write(root, "sys/fs/cgroup/cpu/cpu.cfs_quota_us", "150000\n");
        assert_eq!(quota().as_deref(), Some("150000 100000"));
        write(root, "sys/fs/cgroup/cpu.max", "50000 100000\n");
        assert_eq!(quota().as_deref(), Some("50000 100000"));
    }

    #[test]
    fn missing_files_are_unknown_not_zero() {
        let folder = tempfile::tempdir().unwrap();
        let host = read(folder.path());
        assert_eq!((host.governor, host.turbo, host.smt, host.idle, host.load_average), (None, None, None, None, None));
        assert!(host.cpus.is_empty());
        for what in ["CPU model", "memory", "kernel release", "host name", "clock source", "load average", "CPUs"] {
            assert!(host.unknown.iter().any(|line| line.starts_with(what)), "{what} is not in {:?}", host.unknown);
        }
    }

    #[test]
    fn reads_this_machine() {
        let host = read(Path::new("/"));
        assert!(!host.cpus.is_empty() && host.memory_bytes > 0 && !host.kernel.is_empty(), "{host:?}");
    }

    #[test]
    fn missing_tool_has_no_version() {
        assert_eq!(capture(&["quintain-no-such-tool", "--version"], Path::new("/")), None);
        assert!(versions(Path::new("/")).contains_key("git"));
    }

    #[test]
    fn loopback_is_found_with_its_address() {
        let all = interfaces();
        let (loopback, _) = all.iter().find(|(_, addresses)| addresses.iter().any(|ip| ip == "127.0.0.1")).unwrap();
        assert_eq!((loopback.name.as_str(), loopback.driver.as_deref()), ("lo", None));
        assert!(loopback.mtu_bytes.is_some_and(|bytes| bytes >= 1500), "{loopback:?}");
    }

    #[test]
    fn unreported_values_are_unknown() {
        let folder = tempfile::tempdir().unwrap();
        for (file, text) in [("speed", "-1\n"), ("mtu", "9000\n")] {
            fs::write(folder.path().join(file), text).unwrap();
        }
        fs::create_dir_all(folder.path().join("queues/rx-0")).unwrap();
        let read = interface(folder.path(), "eth0".to_owned());
        let expected = Interface {
            name: "eth0".to_owned(),
            mtu_bytes: Some(9000),
            receive_queues: Some(1),
            ..Interface::default()
        };
        assert_eq!(read, expected);
    }
}
