//! `quintain doctor`: checks this machine for sources of noise.

use std::path::Path;

use study::record::{Finding, FindingState, Host, Node};

use crate::cli::ClusterArgs;
use crate::command_result::{Done, Exit, Problem};
use crate::{output, signals, start_cluster};

pub(crate) fn doctor(wants_json: bool, cluster: &ClusterArgs) -> Done {
    if cluster.is_given() {
        return of_cluster(wants_json, cluster);
    }
    let host = lab::host_facts::facts(Path::new("."));
    let findings = examine(&host);
    let json = serde_json::json!({ "host": host, "findings": findings });
    output::json_or(wants_json, &json, || text(&host, &findings))?;
    Ok(exit(&findings))
}

fn of_cluster(wants_json: bool, args: &ClusterArgs) -> Done {
    signals::watch_interrupts()?;
    let Some(cluster) = start_cluster::start(args, None)? else { return Ok(Exit::Fine) };
    let nodes = cluster.nodes();
    let together = cluster.examine().map_err(|why| Problem::text(Exit::Machine, why))?;
    let of_node = |node: &Node| format!("{} ({})  {}\n", node.name, node.role.word(), text(&node.host, &node.doctor));
    let json = serde_json::json!({ "nodes": nodes, "findings": together });
    output::json_or(wants_json, &json, || {
        format!("{}together\n\n{}", nodes.iter().map(of_node).collect::<String>(), table(&together))
    })?;
    Ok(exit(nodes.iter().flat_map(|node| &node.doctor).chain(&together)))
}

fn exit<'a>(findings: impl IntoIterator<Item = &'a Finding>) -> Exit {
    let bad = findings.into_iter().any(|finding| finding.state == FindingState::Bad);
    if bad { Exit::Machine } else { Exit::Fine }
}

pub(crate) fn examine(host: &Host) -> Vec<Finding> {
    lab::doctor::examine(host, &lab::doctor::measure(host, Some(net::probe())))
}

fn text(host: &Host, findings: &[Finding]) -> String {
    format!("{}, {} CPUs, {}\n\n{}", host.cpu_model, host.cpus.len(), host.kernel, table(findings))
}

const STATES: [(FindingState, &str); 4] = [
    (FindingState::Good, "good"),
    (FindingState::Warning, "WARNING"),
    (FindingState::Bad, "BAD"),
    (FindingState::NotChecked, "not checked"),
];

fn table(findings: &[Finding]) -> String {
    let mut text = String::new();
    let width = findings.iter().map(|finding| finding.check.chars().count()).max().unwrap_or(0);
    for finding in findings {
        let word = STATES.iter().find(|(state, _)| *state == finding.state).map_or("", |(_, word)| word);
        text += &format!("{word:11}  {:width$}  {}\n", finding.check, finding.text);
        text.extend(finding.hint.iter().map(|hint| format!("{:13}{:width$}    = help: {hint}\n", "", "")));
    }
    let count = |state| findings.iter().filter(|finding| finding.state == state).count();
    let [good, warnings, bad, unchecked] = STATES.map(|(state, _)| count(state));
    text + &format!("\n{good} good, {warnings} warnings, {bad} bad, {unchecked} not checked\n")
}
