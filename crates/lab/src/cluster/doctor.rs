//! Checks for disturbances that arise only between several machines.

use std::collections::BTreeSet;

use study::record::{Finding, Node, Role};

use crate::doctor::{Seen, findings, good, not_checked, warning};

const CLOCK_ERROR_NS: u64 = 1_000_000;
/// Maximum drift between two clocks, in parts per million. Their crystals cannot explain a larger drift.
const DRIFT_PPM: f64 = 100.0;
/// Fraction of the median speed of all paths below which the slowest path causes a warning.
const SLOW: f64 = 0.1;
/// MTU of Ethernet, bytes. A smaller MTU indicates a tunnel.
const MTU_BYTES: u64 = 1500;

/// A node and the error and drift of its clock, from two readings.
#[derive(Clone, Debug)]
pub struct ExaminedNode {
    /// The machine of the node, as stored in records.
    pub node: Node,
    /// Boot ID of the machine ([`study::node_messages::Hello::boot_id`]); nodes with equal IDs share one machine.
    pub boot_id: String,
    /// Error of the clock's offset in ns: half of the shortest round trip.
    pub clock_error_ns: u64,
    /// Drift of the node's clock relative to the lab's clock, and the error of the drift, both in parts per million.
    pub drift_ppm: (f64, f64),
}

/// Returns one finding per check, each covering all machines.
pub fn examine(all: &[ExaminedNode]) -> Vec<Finding> {
    let load = all.iter().filter(|looked| looked.node.role == Role::Load).collect::<Vec<_>>();
    findings([
        ("machines", machines(all)),
        ("clocks", clocks(all)),
        ("generators", equal(&load)),
        ("paths", paths(&load)),
        ("interfaces", interfaces(all)),
    ])
}

fn machines(all: &[ExaminedNode]) -> Seen {
    let distinct = all.iter().map(|looked| &looked.boot_id).collect::<BTreeSet<_>>().len();
    if all.iter().any(|looked| looked.boot_id.is_empty()) {
        return not_checked("unknown whether they are different");
    }
    if distinct == all.len() {
        return good(format!("{distinct} different ones"));
    }
    warning(
        format!("{} nodes on {distinct} running system{}", all.len(), if distinct == 1 { "" } else { "s" }),
        "nodes on one machine compete for its CPUs; use one machine for each",
    )
}

fn clocks(all: &[ExaminedNode]) -> Seen {
    let error_ns = all.iter().map(|looked| looked.clock_error_ns).max().unwrap_or(0);
    // The error is subtracted, so that a drift within it causes no warning.
    let drift = |looked: &ExaminedNode| looked.drift_ppm.0.abs() - looked.drift_ppm.1;
    let fastest = all.iter().max_by(|a, b| drift(a).total_cmp(&drift(b)));
    let text = format!("offsets known within {:.0} µs", error_ns as f64 / 1e3);
    if let Some(fastest) = fastest.filter(|fastest| drift(fastest) > DRIFT_PPM) {
        let (name, (ppm, error_ppm)) = (&fastest.node.name, fastest.drift_ppm);
        let text = format!("{text}; {name} drifts by {ppm:.0} ± {error_ppm:.0} ppm");
        return warning(text, "check the clock source and time synchronisation there");
    }
    let hint =
        "generators start at most this far apart; a shorter path from the lab to its machines gives a better estimate";
    if error_ns > CLOCK_ERROR_NS { warning(text, hint) } else { good(text) }
}

fn equal(load: &[&ExaminedNode]) -> Seen {
    let kind = |looked: &&ExaminedNode| {
        let host = &looked.node.host;
        format!("{}, {} CPUs, {}", host.cpu_model, host.cpus.len(), host.kernel)
    };
    let kinds = load.iter().map(kind).collect::<BTreeSet<_>>();
    if kinds.len() <= 1 {
        return good(kinds.into_iter().next().unwrap_or_default());
    }
    let all = load.iter().map(|looked| format!("{}: {}", looked.node.name, kind(looked)));
    warning(
        all.collect::<Vec<_>>().join("; "),
        "all have as many workers as the smallest can; equal machines can be compared with each other",
    )
}

fn paths(load: &[&ExaminedNode]) -> Seen {
    let mut rates = load.iter().filter_map(|looked| Some(looked.node.link?.receive_bytes_per_s)).collect::<Vec<_>>();
    rates.sort_by(f64::total_cmp);
    let Some(median) = rates.get(rates.len() / 2) else { return not_checked("not measured") };
    let words = |looked: &&ExaminedNode| {
        let link = looked.node.link?;
        let (mb, us) = (link.receive_bytes_per_s / 1e6, link.round_trip_ns_p50 / 1e3);
        Some(format!("{} {mb:.0} MB/s, {us:.0} µs", looked.node.name))
    };
    let text = load.iter().filter_map(words).collect::<Vec<_>>().join("; ");
    let advice = "the slowest is below a tenth of the median: check its cable, switch port, tunnel or firewall";
    if rates[0] < SLOW * median { warning(text, advice) } else { good(text) }
}

fn interfaces(all: &[ExaminedNode]) -> Seen {
    let words = |looked: &ExaminedNode| {
        let Some(interface) = &looked.node.interface else { return format!("{}: not found", looked.node.name) };
        let speed = interface.speed_mbit_per_s.map_or("speed unknown".to_owned(), |speed| format!("{speed} Mbit/s"));
        let mtu = interface.mtu_bytes.map_or("MTU unknown".to_owned(), |mtu| format!("MTU {mtu}"));
        let queues = interface.receive_queues;
        let queues = queues
            .map_or(String::new(), |count| format!(", {count} receive queue{}", if count == 1 { "" } else { "s" }));
        format!("{}: {}, {speed}, {mtu}{queues}", looked.node.name, interface.name)
    };
    let text = all.iter().map(words).collect::<Vec<_>>().join("; ");
    let mtus = all.iter().filter_map(|looked| looked.node.interface.as_ref()?.mtu_bytes).collect::<BTreeSet<_>>();
    match mtus.first() {
        None => not_checked(text),
        Some(_) if mtus.len() > 1 => {
            warning(text, "unequal MTUs fragment or drop packets: set the same on all, `ip link set DEV mtu 1500`")
        }
        Some(mtu) if *mtu < MTU_BYTES => warning(text, "an MTU below 1500 speaks of a tunnel or overlay"),
        Some(_) => good(text),
    }
}

#[cfg(test)]
mod tests {
    use study::record::{FindingState, Host, Interface, Link};

    use super::*;

    fn node(name: &str, role: Role) -> ExaminedNode {
        ExaminedNode {
            node: Node {
                name: name.to_owned(),
                role,
                address: "10.0.0.1".to_owned(),
                host: Host { cpu_model: "Fast 9000".to_owned(), kernel: "Linux 6.1".to_owned(), ..Host::default() },
                doctor: Vec::new(),
                build: String::new(),
                interface: Some(Interface { name: "eth0".to_owned(), mtu_bytes: Some(1500), ..Interface::default() }),
                link: Some(Link {
                    receive_bytes_per_s: 1.2e9,
                    round_trip_ns_p50: 40_000.0,
                    receive_together_bytes_per_s: None,
                }),
            },
            boot_id: name.to_owned(),
            clock_error_ns: 20_000,
            drift_ppm: (3.0, 40.0),
        }
    }

    fn three() -> Vec<ExaminedNode> {
        vec![node("s1", Role::Subject), node("l1", Role::Load), node("l2", Role::Load), node("l3", Role::Load)]
    }

    fn state(all: &[ExaminedNode], check: &str) -> (FindingState, String) {
        let found = examine(all).into_iter().find(|finding| finding.check == check).unwrap();
        (found.state, found.text)
    }

    #[test]
    fn equal_machines_have_no_findings() {
        for finding in examine(&three()) {
            assert_eq!(finding.state, FindingState::Good, "{finding:?}");
        }
        assert_eq!(state(&three(), "clocks").1, "offsets known within 20 µs");
    }

    #[test]
    fn finds_each_fault() {
        let check = |name: &str, spoil: fn(&mut ExaminedNode), text: &str| {
            let mut all = three();
            spoil(&mut all[3]);
            let (found, said) = state(&all, name);
            assert_eq!(found, FindingState::Warning, "{said}");
            assert!(said.contains(text), "{said}");
        };
        check("machines", |l3| l3.boot_id = "l2".to_owned(), "4 nodes on 3 running systems");
        check("clocks", |l3| l3.clock_error_ns = 2_000_000, "within 2000 µs");
        check("clocks", |l3| l3.drift_ppm = (-400.0, 50.0), "l3 drifts by -400 ± 50 ppm");
        check("generators", |l3| l3.node.host.cpu_model = "Slow".to_owned(), "l3: Slow, 0 CPUs, Linux 6.1");
        check("paths", |l3| l3.node.link.as_mut().unwrap().receive_bytes_per_s = 2.4e6, "l3 2 MB/s, 40 µs");
        check(
            "interfaces",
            |l3| l3.node.interface.as_mut().unwrap().mtu_bytes = Some(9000),
            "l3: eth0, speed unknown, MTU 9000",
        );
    }

    #[test]
    fn missing_facts_are_not_checked() {
        let mut all = three();
        all[1].boot_id.clear();
        all.iter_mut().for_each(|looked| (looked.node.link, looked.node.interface) = (None, None));
        for name in ["machines", "paths", "interfaces"] {
            assert_eq!(state(&all, name).0, FindingState::NotChecked);
        }
        all[2].drift_ppm = (300.0, 300.0);
        assert_eq!(state(&all, "clocks").0, FindingState::Good);
    }
}
