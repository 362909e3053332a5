//! `quintain doctor`: checks this machine for sources of noise.

use std::path::Path;

use study::record::{Finding, FindingState, Host};

use crate::cli::DoctorArgs;
use crate::message::{Done, Exit, Problem};
use crate::{cluster, output, signals};

pub(crate) fn doctor(args: DoctorArgs) -> Done {
    if args.cluster.is_given() {
        return of_cluster(&args);
    }
    let host = lab::host::facts(Path::new("."));
    let findings = examine(&host);
    if args.json {
        output::json(&serde_json::json!({ "host": host, "findings": findings }))?;
    } else {
        output::text(&text(&host, &findings))?;
    }
    Ok(exit(&findings))
}

fn of_cluster(args: &DoctorArgs) -> Done {
    signals::watch_interrupts()?;
    let Some(cluster) = cluster::start(&args.cluster, None)? else { return Ok(Exit::Fine) };
    let nodes = cluster.nodes();
    let together = cluster.examine(&signals::is_interrupted).map_err(|why| Problem::text(Exit::Machine, why))?;
    if args.json {
        output::json(&serde_json::json!({ "nodes": nodes, "findings": together }))?;
    } else {
        let each = nodes
            .iter()
            .map(|node| format!("{} ({})  {}\n", node.name, node.role.word(), text(&node.host, &node.doctor)));
        output::text(&format!("{}together\n\n{}", each.collect::<String>(), table(&together)))?;
    }
    let all = nodes.iter().flat_map(|node| &node.doctor).chain(&together);
    Ok(exit(all))
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

fn table(findings: &[Finding]) -> String {
    let mut text = String::new();
    let width = findings.iter().map(|finding| finding.check.chars().count()).max().unwrap_or(0);
    for finding in findings {
        let word = match finding.state {
            FindingState::Good => "good       ",
            FindingState::Warning => "WARNING    ",
            FindingState::Bad => "BAD        ",
            FindingState::NotChecked => "not checked",
        };
        text.push_str(&format!("{word}  {:width$}  {}\n", finding.check, finding.text));
        if let Some(hint) = &finding.hint {
            text.push_str(&format!("{:13}{:width$}    = help: {hint}\n", "", ""));
        }
    }
    let states = [FindingState::Good, FindingState::Warning, FindingState::Bad, FindingState::NotChecked];
    let count = |state| findings.iter().filter(|finding| finding.state == state).count();
    let [good, warnings, bad, unchecked] = states.map(count);
    text + &format!("\n{good} good, {warnings} warnings, {bad} bad, {unchecked} not checked\n")
}
