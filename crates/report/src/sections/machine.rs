//! The section on the machines of a run, its calibration and its builds.

use std::collections::BTreeSet;

use analysis::findings::Findings;
use analysis::number;
use study::record::{BuildOutcome, Finding, FindingState, Host, Node};

use super::cells::shown;
use crate::document::{Block, Cell, Head, Section, Table, Tone};

pub(crate) fn section(f: &Findings) -> Option<Section> {
    let mut section = Section::new("machine", "Machine");
    section.long(Block::Pairs(machine(f)));
    section.long(Block::Heading("Generator calibration".to_owned()));
    section.long(Block::Text(calibration(f)));
    section.long(Block::Heading("Host checks".to_owned()));
    section.long(checks(&f.doctor).map_or_else(|| Block::Text("Not checked.".to_owned()), Block::Table));
    if let Some(table) = builds(f) {
        section.long(Block::Heading("Builds".to_owned()));
        section.long(Block::Table(table));
    }
    nodes(&mut section, f);
    let details = vec![Block::Pairs(details(f))];
    section.long(Block::Fold("Versions, kernel settings, mitigations".to_owned(), details));
    Some(section)
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

pub(super) fn facts(host: &Host) -> Vec<(String, String)> {
    let known = |value: &Option<String>| value.clone().unwrap_or_else(|| "unknown".to_owned());
    let switch = |value: Option<bool>| value.map_or("unknown", |on| if on { "on" } else { "off" });
    let distinct = |noun: &str, pick: fn(&study::record::Cpu) -> (u32, u32)| {
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

fn details(f: &Findings) -> Vec<(String, String)> {
    let all = f.machine.versions.iter().chain(&f.machine.sysctls).chain(&f.machine.mitigations);
    all.map(|(name, value)| (name.clone(), value.clone())).collect()
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

pub(super) fn checks(doctor: &[Finding]) -> Option<Table> {
    let cells = |finding: &Finding| {
        let (word, tone) = match finding.state {
            FindingState::Good => ("good", Tone::Good),
            FindingState::Warning => ("warning", Tone::Warning),
            FindingState::Bad => ("bad", Tone::Bad),
            FindingState::NotChecked => ("not checked", Tone::Muted),
        };
        vec![
            Cell::new(&*finding.check),
            Cell::new(word).tone(tone),
            Cell::sentence(&*finding.text),
            Cell::sentence(finding.hint.as_deref().unwrap_or("")),
        ]
    };
    let heads = ["check", "state", "observed", "fix"].map(Head::text).to_vec();
    Table { heads, rows: doctor.iter().map(cells).collect(), ..Table::default() }.unless_empty()
}

fn builds(f: &Findings) -> Option<Table> {
    let cells = |build: &study::record::Build| {
        let (word, tone, words) = match &build.outcome {
            BuildOutcome::Ready => ("ready", Tone::Good, ""),
            BuildOutcome::Skipped { reason } => ("skipped", Tone::Warning, reason.as_str()),
            BuildOutcome::Unrunnable { reason } => ("unrunnable", Tone::Warning, reason.as_str()),
            BuildOutcome::Failed { output_tail } => ("failed", Tone::Bad, output_tail.as_str()),
            BuildOutcome::Unverified { reason, .. } => ("unverified", Tone::Bad, reason.as_str()),
        };
        let time = shown(build.elapsed_ns as f64, "ns");
        vec![Cell::new(&*build.command), Cell::new(word).tone(tone), Cell::new(time), Cell::sentence(words)]
    };
    let heads = ["build", "outcome", "took", "why"].map(Head::text).to_vec();
    Table { heads, rows: f.builds.iter().map(cells).collect(), ..Table::default() }.unless_empty()
}

fn nodes(section: &mut Section, f: &Findings) {
    if f.nodes.is_empty() {
        return;
    }
    section.long(Block::Heading("Cluster".to_owned()));
    let heads = ["machine", "role", "address", "processor"].map(Head::text);
    let numbers = ["CPUs", "interface speed", "received from the server", "round trip"].map(Head::number);
    let heads = heads.into_iter().chain(numbers).collect();
    section.long(Block::Table(Table { heads, rows: f.nodes.iter().map(node_cells).collect(), ..Table::default() }));
    for node in &f.nodes {
        let mut blocks = vec![Block::Pairs(facts(&node.host))];
        blocks.extend(checks(&node.doctor).map(Block::Table));
        section.long(Block::Fold(format!("Machine {}", node.name), blocks));
    }
}

fn node_cells(node: &Node) -> Vec<Cell> {
    let speed = node.interface.as_ref().and_then(|interface| interface.speed_mbit_per_s);
    let speed = speed.map_or_else(|| "–".to_owned(), |mbit| format!("{mbit} Mbit/s"));
    let link = |pick: fn(&study::record::Link) -> f64, unit| {
        node.link.as_ref().map_or_else(|| "–".to_owned(), |link| shown(pick(link), unit))
    };
    let words = [node.name.as_str(), node.role.word(), &node.address, &node.host.cpu_model].map(Cell::new);
    let numbers = [
        node.host.cpus.len().to_string(),
        speed,
        link(|link| link.receive_bytes_per_s, "bytes/s"),
        link(|link| link.round_trip_ns_p50, "ns"),
    ];
    words.into_iter().chain(numbers.map(Cell::new)).collect()
}
