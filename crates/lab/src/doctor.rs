//! Checks whether this machine is fit for measurements.

use std::collections::BTreeSet;
use std::str::FromStr;
use std::time::Duration;

use rustix::process::{Resource, getrlimit};
use study::record::{Finding, FindingState, Host};

use crate::exec::on_each_cpu;
use crate::lab_clocks;
use crate::other_labs;

use FindingState::{Bad, Good, NotChecked, Warning};

/// Limits of this process and results of short tests, as opposed to facts about the machine.
#[derive(Clone, Debug, PartialEq)]
pub struct Limits {
    /// Maximum number of open files (`RLIMIT_NOFILE`, soft); `None` if unlimited.
    pub open_files: Option<u64>,
    /// Whether io_uring works here; the error is the reason why not. `None` if not tested.
    pub io_uring: Option<Result<(), String>>,
    /// Interruptions of a busy loop on each CPU; empty if not tested.
    pub noise: Vec<Noise>,
    /// Other labs that are running, in words; empty without any, and `None` if unknown.
    pub labs: Option<String>,
}

/// Measures [`Limits`] in 200 ms on all CPUs of `host`. The caller provides the result of its own test of `io_uring`.
pub fn measure(host: &Host, io_uring: Option<Result<(), String>>) -> Limits {
    let cpus: Vec<u32> = host.cpus.iter().map(|cpu| cpu.index).collect();
    let noise = on_each_cpu(&cpus, |cpu| measure_noise(cpu, Duration::from_millis(200)));
    Limits { open_files: getrlimit(Resource::Nofile).current, io_uring, noise, labs: other_labs::others() }
}

/// Minimum length of a pause that counts as an interruption, ns. The loop reads the clock about every 50 ns.
const INTERRUPTION_NS: u64 = 5_000;

/// Interruptions of a busy loop on one CPU.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Noise {
    /// Number of the CPU, as the kernel counts CPUs.
    pub cpu: u32,
    /// Share of the time in which the loop did not run, from 0 to 1.
    pub lost: f64,
    /// Duration of the longest interruption, ns.
    pub longest_ns: u64,
}

fn measure_noise(cpu: u32, duration: Duration) -> Noise {
    let begun = lab_clocks::now();
    let length = lab_clocks::nanos(duration);
    let steps = std::iter::repeat_with(|| lab_clocks::nanos(lab_clocks::now() - begun));
    let mut ended = false;
    // The readings include the first one after the end, so that an interruption at the end counts.
    let steps = steps.take_while(|at| !std::mem::replace(&mut ended, *at >= length));
    Noise { cpu, ..noise_of_steps(steps) }
}

/// Computes the noise from the clock readings of the loop, in ns since its start.
fn noise_of_steps(steps: impl Iterator<Item = u64>) -> Noise {
    let (mut before, mut lost_ns, mut longest_ns) = (0, 0, 0);
    for at in steps {
        let step = at.saturating_sub(before);
        if step > INTERRUPTION_NS {
            lost_ns += step;
            longest_ns = longest_ns.max(step);
        }
        before = at;
    }
    Noise { cpu: 0, lost: if before == 0 { 0.0 } else { lost_ns as f64 / before as f64 }, longest_ns }
}

/// Returns one finding per check, good or bad.
pub fn examine(host: &Host, limits: &Limits) -> Vec<Finding> {
    findings(cpu_checks(host).into_iter().chain(use_checks(host, limits)).chain(limit_checks(host, limits)))
}

pub(crate) fn findings<'a>(checks: impl IntoIterator<Item = (&'a str, Seen)>) -> Vec<Finding> {
    let finding = |(check, (state, text, hint)): (&str, Seen)| {
        let (check, hint) = (check.to_owned(), hint.map(str::to_owned));
        Finding { check, state, text, hint }
    };
    checks.into_iter().map(finding).collect()
}

pub(crate) type Seen = (FindingState, String, Option<&'static str>);

pub(crate) fn good(text: impl Into<String>) -> Seen {
    (Good, text.into(), None)
}

pub(crate) fn warning(text: impl Into<String>, hint: &'static str) -> Seen {
    (Warning, text.into(), Some(hint))
}

pub(crate) fn not_checked(text: impl Into<String>) -> Seen {
    (NotChecked, text.into(), None)
}

fn setting(host: &Host, name: &str) -> Option<u64> {
    host.sysctls.get(name)?.parse().ok()
}

fn two_numbers<T: FromStr>(text: &str) -> Option<(T, T)> {
    let (first, second) = text.split_once(' ')?;
    Some((first.parse().ok()?, second.parse().ok()?))
}

fn cpu_checks(host: &Host) -> [(&'static str, Seen); 8] {
    let processors = match host.cpus.len() {
        0 => not_checked("no CPU available to this process"),
        1 => (
            Bad,
            "1 CPU: server and generator compete for it".to_owned(),
            Some("measure on a machine with at least 2 CPUs, or run the generator on another host"),
        ),
        count => good(format!("{count} CPUs")),
    };
    let cores = host.cpus.iter().map(|cpu| (cpu.node, cpu.package, cpu.core)).collect::<BTreeSet<_>>();
    let siblings = match host.smt {
        _ if cores.len() < host.cpus.len() => warning(
            "CPUs share cores (simultaneous multithreading): load on one slows its sibling",
            "studies that need at most one CPU per core avoid siblings; to be sure: `echo off > \
             /sys/devices/system/cpu/smt/control`",
        ),
        None => not_checked("SMT state not exposed by the kernel"),
        Some(_) => good("no SMT: one CPU per core"),
    };
    let quota = match host.sysctls.get("cgroup.cpu.max").map(|text| two_numbers::<f64>(text)) {
        None => not_checked("cgroup quota not readable"),
        Some(Some((quota, period))) if period > 0.0 => warning(
            format!("cgroup CPU quota: {:.2} CPUs", quota / period),
            "lift the quota (`cpu.max`, `docker run --cpus`) or assign CPUs instead (`--cpuset-cpus`)",
        ),
        Some(_) => good("no CPU quota"),
    };
    let governor = match host.governor.as_deref() {
        None => not_checked("no cpufreq governor"),
        Some("performance") => good("performance"),
        Some(other) => warning(
            format!("`{other}`: frequency scales with load, so lightly loaded servers look slow"),
            "`cpupower frequency-set -g performance`",
        ),
    };
    let turbo = match host.turbo {
        None => not_checked("turbo state not exposed by the kernel"),
        Some(false) => good("off"),
        Some(true) => warning(
            "on: frequency depends on temperature and active cores",
            "`echo 1 > /sys/devices/system/cpu/intel_pstate/no_turbo` or `echo 0 > /sys/devices/system/cpu/cpufreq/boost`",
        ),
    };
    let idle = match host.idle.as_deref() {
        None => not_checked("idle states not exposed by the kernel"),
        Some(idle) => warning(
            format!("{idle}: idle CPUs sleep; wake-up time adds to latency at light load"),
            "`quintain run --idle spin` keeps the CPUs in use awake; compare only runs with the same idle policy",
        ),
    };
    let nodes = host.cpus.iter().map(|cpu| cpu.node).collect::<BTreeSet<_>>().len();
    let numa = match setting(host, "kernel.numa_balancing") {
        _ if nodes < 2 => good("one node"),
        None => not_checked(format!("{nodes} nodes; automatic NUMA balancing state not exposed by the kernel")),
        Some(0) => good(format!("{nodes} nodes, automatic NUMA balancing is off")),
        Some(_) => warning(
            format!("{nodes} nodes, automatic NUMA balancing migrates memory during measurements"),
            "`sysctl kernel.numa_balancing=0`",
        ),
    };
    let virtualisation = match host.hypervisor.as_deref() {
        None => good("none detected"),
        Some(name) => warning(
            format!("a virtual machine ({name}): noisy neighbours are invisible, and CPU wake-up is slow"),
            "compare within one run rather than absolute numbers; prefer a dedicated host",
        ),
    };
    [
        ("processors", processors),
        ("siblings", siblings),
        ("quota", quota),
        ("governor", governor),
        ("turbo", turbo),
        ("idle", idle),
        ("numa", numa),
        ("virtualisation", virtualisation),
    ]
}

fn use_checks(host: &Host, limits: &Limits) -> [(&'static str, Seen); 5] {
    let clock = match host.clocksource.as_deref() {
        None => not_checked("clock source not exposed by the kernel"),
        // These clocks are read without a system call (vdso(7)).
        Some(
            name @ ("tsc" | "kvm-clock" | "arch_sys_counter" | "hyperv_clocksource_tsc_page" | "riscv_clocksource"),
        ) => good(name),
        Some(other) => warning(
            format!("`{other}`: clock reads are system calls (two per request)"),
            "boot with `clocksource=tsc` if the CPU's time-stamp counter is stable",
        ),
    };
    let idle_load = (0.1 * host.cpus.len() as f64).max(0.5);
    let load = match host.load_average {
        None => not_checked("load average not readable"),
        Some(load) if load <= idle_load => good(format!("{load:.2} over the last minute")),
        Some(load) => warning(
            format!("{load:.2} over the last minute: another process is or was running"),
            "stop it, or wait a minute after a build",
        ),
    };
    let swap = match host.swap_used_bytes {
        0 if host.memory_bytes == 0 => not_checked("memory use not readable"),
        0 => good("none in use"),
        bytes => warning(format!("{} MiB in use: pages may be swapped out", bytes >> 20), "`swapoff -a`"),
    };
    let labs = match limits.labs.as_deref() {
        None => not_checked("cannot check for other labs on this kernel"),
        Some("") => good("no other lab is running"),
        Some(labs) => warning(
            format!("another lab is running and competes for CPUs: {labs}"),
            "let it finish first, or give each its own CPUs: `quintain run --cpus LIST`",
        ),
    };
    [("clock", clock), ("load", load), ("noise", quiet(&limits.noise)), ("labs", labs), ("swap", swap)]
}

fn limit_checks(host: &Host, limits: &Limits) -> [(&'static str, Seen); 4] {
    let hint = "`ulimit -n 65536` in the shell that starts quintain";
    let open_files = match limits.open_files {
        None => good("no limit"),
        Some(limit) if limit < 64 => (Bad, format!("open-file limit {limit}"), Some(hint)),
        Some(limit) if limit < 4096 => {
            warning(format!("open-file limit {limit}; each client needs one, plus a few more"), hint)
        }
        Some(limit) => good(format!("open-file limit {limit}")),
    };
    let accept_queue = match setting(host, "net.core.somaxconn") {
        None => not_checked("accept queue limit not readable"),
        Some(count) if count >= 1024 => good(format!("up to {count} connections can wait to be accepted")),
        Some(count) => warning(
            format!("only {count} connections can wait to be accepted: connection bursts will be dropped"),
            "`sysctl net.core.somaxconn=4096`",
        ),
    };
    let io_uring = match &limits.io_uring {
        None => not_checked("not tried"),
        Some(Ok(())) => good("works"),
        Some(Err(reason)) => warning(
            format!("io_uring unavailable ({reason}): falling back to epoll; servers that need io_uring will fail"),
            "use Linux 6.1 or later with `sysctl kernel.io_uring_disabled=0`; containers often forbid io_uring \
             (seccomp)",
        ),
    };
    [("open-files", open_files), ("ports", ports(host)), ("accept-queue", accept_queue), ("io-uring", io_uring)]
}

fn quiet(noise: &[Noise]) -> Seen {
    let Some(worst) = noise.iter().max_by(|a, b| a.lost.total_cmp(&b.lost)) else {
        return not_checked("noise not measured");
    };
    let longest_ns = noise.iter().map(|noise| noise.longest_ns).max().unwrap_or(0);
    let (lost, cpu, us) = (worst.lost * 100.0, worst.cpu, longest_ns as f64 / 1e3);
    let text =
        format!("a busy loop lost {lost:.2} % of its time on CPU {cpu}; longest interruption on any CPU: {us:.0} µs");
    let advice =
        "stop other processes or move them off these CPUs (`isolcpus`, `taskset`); then `quintain run --cpus LIST`";
    if worst.lost <= 0.01 && longest_ns <= 2_000_000 { good(text) } else { warning(text, advice) }
}

fn ports(host: &Host) -> Seen {
    let range = host.sysctls.get("net.ipv4.ip_local_port_range");
    let Some((low, high)) = range.and_then(|text| two_numbers::<u32>(text)) else {
        return not_checked("local port range not readable");
    };
    let count = high.saturating_sub(low) + 1;
    let text = format!("{count} ports for outgoing connections ({low} to {high})");
    if count >= 16_384 { good(text) } else { warning(text, "`sysctl net.ipv4.ip_local_port_range=\"32768 60999\"`") }
}

#[cfg(test)]
mod tests {
    use study::record::Cpu;

    use super::*;

    fn fit() -> (Host, Limits) {
        let cpu = |index| Cpu { index, core: index, package: 0, node: 0 };
        let settings = [
            ("cgroup.cpu.max", "max 100000"),
            ("kernel.numa_balancing", "0"),
            ("net.core.somaxconn", "4096"),
            ("net.ipv4.ip_local_port_range", "32768 60999"),
        ];
        let host = Host {
            cpus: (0..8).map(cpu).collect(),
            memory_bytes: 1 << 33,
            governor: Some("performance".to_owned()),
            turbo: Some(false),
            smt: Some(false),
            clocksource: Some("tsc".to_owned()),
            sysctls: settings.map(|(name, value)| (name.to_owned(), value.to_owned())).into(),
            load_average: Some(0.3),
            ..Host::default()
        };
        let noise = vec![Noise { cpu: 0, lost: 0.001, longest_ns: 20_000 }, Noise { cpu: 1, lost: 0.0, longest_ns: 0 }];
        (host, Limits { open_files: Some(65_536), io_uring: Some(Ok(())), noise, labs: Some(String::new()) })
    }

    fn check(name: &str, change: impl FnOnce(&mut Host, &mut Limits), state: FindingState, text: &str) {
        let (mut host, mut limits) = fit();
        let before = examine(&host, &limits);
        change(&mut host, &mut limits);
        let after = examine(&host, &limits);
        let finding = after.iter().find(|finding| finding.check == name).expect("there is such a check");
        assert_eq!(finding.state, state, "{finding:?}");
        assert!(finding.text.contains(text), "{finding:?}");
        assert_eq!(finding.hint.is_some(), matches!(state, Warning | Bad), "{finding:?}");
        for (before, after) in before.iter().zip(&after).filter(|(before, _)| before.check != name) {
            assert_eq!(before, after, "only `{name}` should change");
        }
    }

    #[test]
    fn fit_machine_has_no_bad_findings() {
        let (host, limits) = fit();
        let findings = examine(&host, &limits);
        assert!(findings.iter().all(|finding| matches!(finding.state, Good | NotChecked)), "{findings:?}");
        assert_eq!(findings.iter().map(|finding| &finding.check).collect::<BTreeSet<_>>().len(), findings.len());
    }

    #[test]
    fn missing_facts_are_not_good() {
        let limits = Limits { open_files: Some(65_536), io_uring: None, noise: Vec::new(), labs: None };
        for finding in examine(&Host::default(), &limits) {
            let known = ["numa", "open-files", "virtualisation"].contains(&finding.check.as_str());
            assert!(known || finding.state == NotChecked, "{finding:?}");
        }
    }

    #[test]
    fn one_cpu_is_bad() {
        check("processors", |host, _| host.cpus.truncate(1), Bad, "1 CPU");
    }
    #[test]
    fn warns_of_sibling_threads() {
        check("siblings", |host, _| host.cpus[1].core = 0, Warning, "share cores");
    }
    #[test]
    fn warns_of_a_cpu_quota() {
        let change = |host: &mut Host, _: &mut Limits| {
            host.sysctls.insert("cgroup.cpu.max".to_owned(), "150000 100000".to_owned());
        };
        check("quota", change, Warning, "1.50 CPUs");
    }
    #[test]
    fn warns_of_a_powersave_governor() {
        check("governor", |host, _| host.governor = Some("powersave".to_owned()), Warning, "powersave");
    }
    #[test]
    fn missing_cpufreq_is_not_checked() {
        check("governor", |host, _| host.governor = None, NotChecked, "no cpufreq");
    }
    #[test]
    fn warns_of_turbo() {
        check("turbo", |host, _| host.turbo = Some(true), Warning, "temperature");
    }
    #[test]
    fn warns_of_deep_idle_states() {
        check("idle", |host, _| host.idle = Some("intel_idle/menu".to_owned()), Warning, "intel_idle/menu");
    }
    #[test]
    fn warns_of_numa_balancing() {
        let change = |host: &mut Host, _: &mut Limits| {
            host.cpus[7].node = 1;
            host.sysctls.insert("kernel.numa_balancing".to_owned(), "1".to_owned());
        };
        check("numa", change, Warning, "2 nodes");
    }
    #[test]
    fn guest() {
        check("virtualisation", |host, _| host.hypervisor = Some("KVM".to_owned()), Warning, "KVM");
    }
    #[test]
    fn warns_of_a_slow_clock() {
        check("clock", |host, _| host.clocksource = Some("hpet".to_owned()), Warning, "hpet");
    }
    #[test]
    fn warns_of_a_busy_machine() {
        check("load", |host, _| host.load_average = Some(1.0), Warning, "1.00");
    }
    #[test]
    fn warns_of_frequent_noise() {
        check("noise", |_, limits| limits.noise[1].lost = 0.05, Warning, "5.00 % of its time on CPU 1");
    }
    #[test]
    fn warns_of_one_long_interruption() {
        check("noise", |_, limits| limits.noise[0].longest_ns = 4_000_000, Warning, "4000 µs");
    }
    #[test]
    fn warns_of_another_lab() {
        let labs = Some("process 7 (volley-1)".to_owned());
        check("labs", |_, limits| limits.labs = labs, Warning, "process 7 (volley-1)");
    }
    #[test]
    fn warns_of_swap_in_use() {
        check("swap", |host, _| host.swap_used_bytes = 3 << 20, Warning, "3 MiB");
    }
    #[test]
    fn checks_the_limit_of_open_files() {
        check("open-files", |_, limits| limits.open_files = Some(1024), Warning, "1024");
        check("open-files", |_, limits| limits.open_files = Some(20), Bad, "20");
        check("open-files", |_, limits| limits.open_files = None, Good, "no limit");
    }
    #[test]
    fn checks_the_range_of_ports() {
        let set = |text: &'static str| {
            move |host: &mut Host, _: &mut Limits| {
                host.sysctls.insert("net.ipv4.ip_local_port_range".to_owned(), text.to_owned());
            }
        };
        check("ports", set("50000 50999"), Warning, "1000 ports");
        check("ports", set("60000 50000"), Warning, "1 ports");
        check("ports", set("many"), NotChecked, "not readable");
    }
    #[test]
    fn warns_of_a_short_accept_queue() {
        let change = |host: &mut Host, _: &mut Limits| {
            host.sysctls.insert("net.core.somaxconn".to_owned(), "128".to_owned());
        };
        check("accept-queue", change, Warning, "128");
    }
    #[test]
    fn warns_if_io_uring_fails() {
        check("io-uring", |_, limits| limits.io_uring = Some(Err("forbidden".to_owned())), Warning, "forbidden");
    }

    #[test]
    fn examines_this_machine() {
        let host = crate::host_facts::read(std::path::Path::new("/"));
        let limits = measure(&host, None);
        assert!(limits.noise.len() <= host.cpus.len());
        assert!(examine(&host, &limits).iter().all(|finding| !finding.text.is_empty()));
    }

    #[test]
    fn even_steps_are_quiet() {
        assert_eq!(noise_of_steps((0..1000).map(|step| step * 100)), Noise::default());
    }

    #[test]
    fn sums_interruptions_and_keeps_the_longest() {
        let noise = noise_of_steps([1_000, 21_000, 22_000, 92_000, 100_000].into_iter());
        assert_eq!((noise.lost, noise.longest_ns), (0.98, 70_000));
    }

    #[test]
    fn no_readings_means_no_noise() {
        assert_eq!(noise_of_steps(std::iter::empty()), Noise::default());
    }

    #[test]
    fn noise_omits_missing_cpus() {
        let cpus: Vec<u32> =
            crate::host_facts::read(std::path::Path::new("/")).cpus.iter().map(|cpu| cpu.index).collect();
        let heard = on_each_cpu(&[cpus[0], 1_000_000], |cpu| measure_noise(cpu, Duration::from_millis(5)));
        assert_eq!(heard.iter().map(|noise| noise.cpu).collect::<Vec<_>>(), [cpus[0]]);
        assert!((0.0..=1.0).contains(&heard[0].lost), "{heard:?}");
    }
}
