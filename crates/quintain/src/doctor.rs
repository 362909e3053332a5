//! `quintain doctor`: check this machine for sources of noise

use std::path::Path;

use study::record::{Finding, FindingState, Host};

use crate::cli::DoctorArgs;
use crate::message::{Done, Exit};
use crate::output;

pub(crate) fn doctor(args: DoctorArgs) -> Done {
    let host = lab::host::facts(Path::new("."));
    let findings = examine(&host);
    if args.json {
        output::json(&serde_json::json!({ "host": host, "findings": findings }))?;
    } else {
        output::data(&text(&host, &findings))?;
    }
    let bad = findings.iter().any(|finding| finding.state == FindingState::Bad);
    Ok(if bad { Exit::Machine } else { Exit::Fine })
}

/// What the doctor finds on this machine.
pub(crate) fn examine(host: &Host) -> Vec<Finding> {
    lab::doctor::examine(host, &lab::doctor::measure(host, Some(net::probe())))
}

fn text(host: &Host, findings: &[Finding]) -> String {
    let mut text = format!("{}, {} CPUs, {}\n\n", host.cpu_model, host.cpus.len(), host.kernel);
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
            text.push_str(&format!("{:13}{:width$}    hint: {hint}\n", "", ""));
        }
    }
    let count = |state| findings.iter().filter(|finding| finding.state == state).count();
    text.push_str(&format!(
        "\n{} good, {} warnings, {} bad, {} not checked\n",
        count(FindingState::Good),
        count(FindingState::Warning),
        count(FindingState::Bad),
        count(FindingState::NotChecked)
    ));
    text
}
