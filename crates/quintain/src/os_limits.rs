//! Checks and raises the limits that a load needs on this machine: open files and local ports.

use study::LoadSpec;
use study::plan::LoadPlan;
use study::spec::Connection;

use crate::command_result::{Exit, Problem, Result};

/// Number of descriptors per worker in addition to connections, for the backend, timers and temporary files.
const FILES_A_WORKER: u64 = 8;
const FILES_SPARE: u64 = 16;
/// Share of the local ports above which a load gets a warning.
const PORTS_SHARE: f64 = 0.8;

/// Raises the limits of this process for a load; fails if they remain too low. Returns warnings, one sentence each.
pub(crate) fn make_room(spec: &LoadSpec) -> Result<Vec<String>> {
    let others = net::thread_and_process::open_files().unwrap_or(FILES_SPARE)
        + FILES_SPARE
        + FILES_A_WORKER * u64::from(spec.threads);
    if spec.connection != Connection::KeepAlive {
        // Room for twice as many connections is better but not required: one may open before the previous one closes.
        let _ = net::thread_and_process::raise_open_files(others + 2 * u64::from(spec.clients));
    }
    let raised = net::thread_and_process::raise_open_files(others + u64::from(spec.clients));
    raised.map_err(|most| too_many_files(u64::from(spec.clients), others, most))?;
    // Unix sockets use no ports, and clients of journeys connect to several addresses, so ports are not checked.
    if spec.target.address().starts_with("unix:") || matches!(spec.target, study::spec::Target::Journey { .. }) {
        return Ok(Vec::new());
    }
    ports_here().map_or(Ok(Vec::new()), |range| enough_ports(spec.clients, spec.target.address(), &range))
}

/// Explains why a design point cannot open its connections on this machine; `None` if it can or if that is unknown.
/// Changes no limits, because the generator raises its own.
pub(crate) fn obstacle(load: &LoadPlan) -> Option<String> {
    obstacle_of(load.clients, load.threads.unwrap_or(1), most_files(), ports_here())
}

fn obstacle_of(clients: u32, threads: u32, most: Option<u64>, ports: Option<Ports>) -> Option<String> {
    let files = u64::from(clients) + FILES_SPARE + FILES_A_WORKER * u64::from(threads);
    if let Some(most) = most.filter(|most| files > *most) {
        return Some(format!("needs {files} open files, the limit is {most}"));
    }
    let Ports { first, last, count } = ports.filter(|ports| clients > ports.count)?;
    Some(format!("needs {clients} local ports, has {count} (net.ipv4.ip_local_port_range is {first} to {last})"))
}

/// Maximum number of open files that a process can have here; `None` without a limit.
fn most_files() -> Option<u64> {
    let hard = rustix::process::getrlimit(rustix::process::Resource::Nofile).maximum?;
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    if !may_raise(&status) {
        return Some(hard);
    }
    let most = std::fs::read_to_string("/proc/sys/fs/nr_open").ok().and_then(|text| text.trim().parse::<u64>().ok());
    Some(most.unwrap_or(hard).max(hard))
}

/// Whether the process with this `/proc/self/status` may raise its hard limits (CAP_SYS_RESOURCE, capabilities(7)).
fn may_raise(status: &str) -> bool {
    const CAP_SYS_RESOURCE: u32 = 24;
    let line = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
    let mask = line.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    mask.is_some_and(|mask| mask >> CAP_SYS_RESOURCE & 1 == 1)
}

fn ports_here() -> Option<Ports> {
    let read = |name: &str| std::fs::read_to_string(format!("/proc/sys/net/ipv4/{name}")).unwrap_or_default();
    ports(&read("ip_local_port_range"), &read("ip_local_reserved_ports"))
}

fn too_many_files(clients: u64, others: u64, most: u64) -> Problem {
    let (needed, possible) = (clients + others, most.saturating_sub(others));
    let text = format!(
        "{clients} connections need {needed} open files, but the limit is {most}: {possible} connections are possible"
    );
    Problem::text(Exit::Machine, text).hint(format!(
        "raise the hard limit: `ulimit -Hn {needed}` as root, `LimitNOFILE={needed}` in a service, or `nofile` in \
         /etc/security/limits.conf"
    ))
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Ports {
    first: u16,
    last: u16,
    /// Number of ports in the range that are not reserved.
    count: u32,
}

/// Parses `ip_local_port_range` and `ip_local_reserved_ports` (kernel documentation: ip-sysctl); `None` if invalid.
fn ports(range: &str, reserved: &str) -> Option<Ports> {
    let mut bounds = range.split_whitespace().map(str::parse::<u16>);
    let (first, last) = (bounds.next()?.ok()?, bounds.next()?.ok()?);
    if last < first {
        return None;
    }
    // The kernel lists reserved ports in the format of CPUs.
    let mut reserved = lab::cpu_list::parse(reserved).ok()?;
    reserved.retain(|port| (first.into()..=last.into()).contains(port));
    Some(Ports { first, last, count: u32::from(last - first) + 1 - reserved.len() as u32 })
}

fn enough_ports(clients: u32, address: &str, ports: &Ports) -> Result<Vec<String>> {
    let Ports { first, last, count } = *ports;
    let all = format!("{count} local ports (net.ipv4.ip_local_port_range is {first} to {last})");
    if clients > count {
        let text = format!("{clients} connections to {address} need a local port each, and this machine has {all}");
        let hint = "widen the range: `sysctl -w net.ipv4.ip_local_port_range='1024 65535'`, or use a Unix socket";
        return Err(Problem::text(Exit::Machine, text).hint(hint));
    }
    let share = f64::from(clients) / f64::from(count);
    let warning =
        format!("{clients} connections use {:.0} % of the {all}; some of these may already be in use", share * 100.0);
    Ok(if share > PORTS_SHARE { vec![warning] } else { Vec::new() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reserved_ports_reduce_the_range() {
        let count = |range, reserved| ports(range, reserved).map(|ports| ports.count);
        assert_eq!(count("32768\t60999\n", "\n"), Some(28_232));
        assert_eq!(count("1024 65535", "8080,9000-9099\n"), Some(64_512 - 101));
        assert_eq!(count("1024 65535", "80,1-1024"), Some(64_511));
        assert_eq!(count("2000 2000", "2000"), Some(0));
        for wrong in ["", "a b", "5", "9 1", "1 70000"] {
            assert_eq!(count(wrong, ""), None, "{wrong}");
        }
    }

    #[test]
    fn reports_obstacles_of_a_design_point() {
        let of = |clients, most| obstacle_of(clients, 2, most, ports("32768 60999", ""));
        assert_eq!(of(1_000, Some(1_032)), None);
        assert_eq!(of(1_001, Some(1_032)).as_deref(), Some("needs 1033 open files, the limit is 1032"));
        assert_eq!(of(28_232, None), None);
        let text = "needs 28233 local ports, has 28232 (net.ipv4.ip_local_port_range is 32768 to 60999)";
        assert_eq!(of(28_233, None).as_deref(), Some(text));
        assert_eq!(obstacle_of(1_000_000, 1, None, None), None, "not known");
    }

    #[test]
    fn capability_allows_raising_limits() {
        assert!(may_raise("Name:\tx\nCapEff:\t000001ffffffffff\n"));
        assert!(may_raise("CapEff:\t0000000001000000"));
        for status in ["CapEff:\t0000000000000000", "CapEff:\tx", "CapPrm:\tffffffffff", ""] {
            assert!(!may_raise(status), "{status}");
        }
    }

    #[test]
    fn too_many_clients_for_the_ports() {
        let ports = ports("32768 60999", "").unwrap();
        assert_eq!(enough_ports(22_585, "h:80", &ports).unwrap(), Vec::<String>::new());
        let warned = enough_ports(22_586, "h:80", &ports).unwrap();
        assert!(warned[0].starts_with("22586 connections use 80 % of the 28232 local ports"), "{warned:?}");
        assert_eq!(enough_ports(28_232, "h:80", &ports).unwrap().len(), 1);
        let problem = format!("{:?}", enough_ports(28_233, "h:80", &ports).unwrap_err());
        assert!(problem.contains("28233 connections to h:80 need a local port each"), "{problem}");
    }

    #[test]
    fn too_many_clients_for_the_files() {
        let problem = format!("{:?}", too_many_files(50_000, 34, 20_000));
        assert!(
            problem.contains("need 50034 open files") && problem.contains("19966 connections are possible"),
            "{problem}"
        );
    }
}
