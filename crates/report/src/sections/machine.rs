//! The section on the machines of a run, its calibration and its builds.

use std::collections::BTreeSet;

use analysis::findings::Findings;
use analysis::number;
use study::record::{BuildOutcome, Cpu, Finding, FindingState, Host, Link, Node};

use super::cells::shown;
use crate::document::{Block, Cell, Columns, Section, Table, Tone};

pub(crate) fn write(f: &Findings, section: &mut Section) {
    section.long([Block::Pairs(machine(f))]);
    section.long([Block::Heading("Generator calibration".to_owned())]);
    section.long([Block::Text(calibration(f))]);
    section.long([Block::Heading("Host checks".to_owned())]);
    section.long([checks(&f.doctor).map_or_else(|| Block::Text("Not checked.".to_owned()), Block::Table)]);
    section.long(builds(f).map(Block::Table));
    nodes(section, f);
    let details = f.machine.versions.iter().chain(&f.machine.sysctls).chain(&f.machine.mitigations);
    let details = details.map(|(name, value)| (name.clone(), value.clone())).collect();
    section.long([Block::Fold("Versions, kernel settings, mitigations".to_owned(), vec![Block::Pairs(details)])]);
}

fn fact(name: &str, value: String) -> (String, String) {
    (name.to_owned(), value)
}

fn machine(f: &Findings) -> Vec<(String, String)> {
    let network = format!(
        "{} segments retransmitted, {} accept-queue overflows, {} connection requests dropped",
        f.network.retransmits, f.network.listen_overflows, f.network.listen_drops
    );
    let mut facts = facts(&f.machine);
    facts.push(fact("Network, all trials", network));
    facts.extend(f.probes.as_ref().map(|probed| fact("Speed probe", probed.sentence.clone())));
    let unknown = &f.machine.unknown;
    facts.extend((!unknown.is_empty()).then(|| fact("Could not be read", unknown.join("; "))));
    facts
}

fn facts(host: &Host) -> Vec<(String, String)> {
    let known = |value: &Option<String>| value.clone().unwrap_or_else(|| "unknown".to_owned());
    let switch = |value: Option<bool>| value.map_or("unknown", |on| if on { "on" } else { "off" });
    let distinct = |noun: &str, pick: fn(&Cpu) -> (u32, u32)| {
        number::count(host.cpus.iter().map(pick).collect::<BTreeSet<_>>().len() as u64, noun)
    };
    let cores = distinct("core", |cpu| (cpu.package, cpu.core));
    let packages = distinct("package", |cpu| (cpu.package, 0));
    let nodes = distinct("NUMA node", |cpu| (cpu.node, 0));
    let cpus = format!("{}, on {cores} in {packages}, {nodes}", number::count(host.cpus.len() as u64, "CPU"));
    let [memory, swap] = [host.memory_bytes, host.swap_used_bytes].map(|bytes| shown(bytes as f64, "bytes"));
    vec![
        fact("Name", host.name.clone()),
        fact("Processor", host.cpu_model.clone()),
        fact("CPUs used", cpus),
        fact("Caches", if host.caches.is_empty() { "unknown".to_owned() } else { host.caches.join(", ") }),
        fact("Memory", format!("{memory}, {swap} of swap in use")),
        fact("Kernel", host.kernel.clone()),
        fact("System", known(&host.system)),
        fact("Hypervisor", host.hypervisor.clone().unwrap_or_else(|| "none seen".to_owned())),
        fact("Frequency governor", known(&host.governor)),
        fact("Turbo, SMT", format!("{}, {}", switch(host.turbo), switch(host.smt))),
        fact("Clock source, idle", format!("{}, {}", known(&host.clocksource), known(&host.idle))),
        fact("Load before", host.load_average.map_or_else(|| "unknown".to_owned(), |load| format!("{load:.2}"))),
    ]
}

fn calibration(f: &Findings) -> String {
    let Some(c) = &f.calibration else {
        return "Not measured: run `quintain calibrate` to measure the generator's limit on this machine.".to_owned();
    };
    let (rate, clients) = (shown(c.rate_max_per_s, "1/s"), number::count(u64::from(c.rate_max_clients), "client"));
    let (threads, protocol) = (number::count(u64::from(c.threads), "thread"), c.protocol);
    let times = [c.cpu_per_request_ns, c.floor_latency_ns_p50, c.floor_latency_ns_p99];
    let [cpu, p50, p99] = times.map(|ns| shown(ns, "ns"));
    format!(
        "At most {rate} with {clients} on {threads} ({protocol}, {}), {cpu} of its CPU time per request; with one client, \
         p50 {p50} and p99 {p99}. Measured {}.",
        c.backend, c.measured
    )
}

fn checks(doctor: &[Finding]) -> Option<Table> {
    let state = |finding: &Finding| match finding.state {
        FindingState::Good => Cell::from("good").tone(Tone::Good),
        FindingState::Warning => Cell::from("warning").tone(Tone::Warning),
        FindingState::Bad => Cell::from("bad").tone(Tone::Bad),
        FindingState::NotChecked => Cell::from("not checked").tone(Tone::Muted),
    };
    let table = Columns::of(doctor)
        .text("check", |finding| finding.check.as_str())
        .text("state", |finding| state(finding))
        .text("observed", |finding| Cell::sentence(&*finding.text))
        .text("fix", |finding| Cell::sentence(finding.hint.as_deref().unwrap_or("")));
    table.titled("").unless_empty()
}

fn builds(f: &Findings) -> Option<Table> {
    let outcome = |outcome: &'_ BuildOutcome| match outcome {
        BuildOutcome::Ready => ("ready", Tone::Good, String::new()),
        BuildOutcome::Skipped { reason } => ("skipped", Tone::Warning, reason.clone()),
        BuildOutcome::Unrunnable { reason } => ("unrunnable", Tone::Warning, reason.clone()),
        BuildOutcome::Failed { output_tail } => ("failed", Tone::Bad, output_tail.clone()),
        BuildOutcome::Unverified { reason, .. } => ("unverified", Tone::Bad, reason.clone()),
    };
    let table = Columns::of(f.builds.iter().map(|build| (build, outcome(&build.outcome))))
        .text("build", |(build, _)| build.command.as_str())
        .text("outcome", |(_, (word, tone, _))| Cell::from(*word).tone(*tone))
        .text("took", |(build, _)| shown(build.elapsed_ns as f64, "ns"))
        .text("why", |(_, (_, _, words))| Cell::sentence(words));
    table.titled("Builds").unless_empty()
}

fn nodes(section: &mut Section, f: &Findings) {
    let speed = |node: &Node| node.interface.as_ref().and_then(|interface| interface.speed_mbit_per_s);
    let link = |node: &Node, pick: fn(&Link) -> f64, unit| {
        node.link.as_ref().map_or_else(|| "–".to_owned(), |link| shown(pick(link), unit))
    };
    let table = Columns::of(&f.nodes)
        .text("machine", |node| node.name.as_str())
        .text("role", |node| node.role.word())
        .text("address", |node| node.address.as_str())
        .text("processor", |node| node.host.cpu_model.as_str())
        .number("CPUs", |node| node.host.cpus.len().to_string())
        .number("interface speed", |node| speed(node).map_or("–".to_owned(), |mbit| format!("{mbit} Mbit/s")))
        .number("received from the server", |node| link(node, |link| link.receive_bytes_per_s, "bytes/s"))
        .number("round trip", |node| link(node, |link| link.round_trip_ns_p50, "ns"));
    section.long(table.titled("Cluster").unless_empty().map(Block::Table));
    for node in &f.nodes {
        let mut blocks = vec![Block::Pairs(facts(&node.host))];
        blocks.extend(checks(&node.doctor).map(Block::Table));
        section.long([Block::Fold(format!("Machine {}", node.name), blocks)]);
    }
}
