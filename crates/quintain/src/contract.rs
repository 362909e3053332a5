//! `quintain contract`: checks contracts, explains reports, and inspects stores of entries.

use std::path::Path;

use ::contract::monitor::report::Report;
use ::contract::monitor::{Shown, show_entry};
use ::contract::{Severity, to_text};
use config::printable;
use serde_json::json;

use crate::cli::{ContractVerb, StateVerb};
use crate::command_result::{Done, Exit, Result, usage};
use crate::output;

pub(crate) fn contract(verb: ContractVerb) -> Done {
    match verb {
        ContractVerb::Check { file, strict, json } => check(&file, strict, json),
        ContractVerb::Explain { reports, clause, call } => explain(&reports, clause.as_deref(), call),
        ContractVerb::State { store, verb } => state(&store, verb),
    }
}

fn check(path: &Path, strict: bool, json: bool) -> Done {
    let loaded = ::adapter::check_contract(path, &[]).map_err(usage)?;
    let findings = &loaded.checked.findings;
    if json {
        let mut listed = findings.iter().map(|finding| json!(finding)).collect::<Vec<_>>();
        for mistake in &loaded.schemas {
            let mut found = json!({
                "path": mistake.file, "severity": Severity::Mistake, "rule": "schema", "message": mistake.text,
                "line": mistake.line, "column": mistake.column,
            });
            if let Some(hint) = &mistake.hint {
                found["hint"] = json!(hint);
            }
            listed.push(found);
        }
        output::json(&listed)?;
    } else if findings.is_empty() && loaded.schemas.is_empty() {
        output::message(&format!("{}: no errors", path.display()));
    } else {
        let mut text = to_text(&path.display().to_string(), findings);
        for mistake in &loaded.schemas {
            text +=
                &format!("{}:{}:{}: error: {} [schema]\n", mistake.file, mistake.line, mistake.column, mistake.text);
            text.extend(mistake.hint.iter().map(|hint| format!("  = help: {hint}\n")));
        }
        output::text(&text)?;
    }
    let has = |severity| findings.iter().any(|finding| finding.severity == severity);
    Ok(match () {
        () if has(Severity::Mistake) || !loaded.schemas.is_empty() => Exit::Usage,
        () if strict && has(Severity::Warning) => Exit::Findings,
        () => Exit::Fine,
    })
}

/// Explains the blame in each report that an adapter with `format = "json"` has written. Fails if a report is invalid.
fn explain(reports: &Path, clause: Option<&str>, call: Option<u64>) -> Done {
    let text = if reports.as_os_str() == "-" {
        let read = std::io::read_to_string(std::io::stdin());
        read.map_err(|error| usage(format!("cannot read standard input: {error}")))?
    } else {
        output::read(reports)?
    };
    let mut shown = 0;
    for (number, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
        let value = serde_json::from_str::<serde_json::Value>(line).map_err(|error| {
            usage(format!("line {} is not valid JSON: {error}", number + 1))
                .hint("an adapter writes JSON lines with `[reports] format = \"json\"`")
        })?;
        // The output also contains notes, which are not reports.
        let Ok(report) = serde_json::from_value::<Report>(value.clone()) else { continue };
        let is_asked =
            clause.is_none_or(|clause| *clause == report.clause) && call.is_none_or(|call| value["call"] == call);
        if is_asked {
            output::text(&format!("{report}{}\n", report.explain()))?;
            shown += 1;
        }
    }
    match shown {
        0 => Err(usage("no matching report")),
        _ => Ok(Exit::Fine),
    }
}

fn state(store: &Path, verb: StateVerb) -> Done {
    let told = |error: ::adapter::StoreError| {
        let is_busy = matches!(error, ::adapter::StoreError::Busy);
        let hint = is_busy.then_some("query the running adapter: `curl http://ADMIN/state`");
        usage(format!("{}: {error}", store.display())).hint_if(hint)
    };
    let kept = ::adapter::look(store).map_err(told)?;
    let shown = kept.entries.iter().filter_map(|(key, _, entry)| show_entry(&kept.names, key, entry));
    match verb {
        StateVerb::List { json } => {
            let mut shown = shown.collect::<Vec<_>>();
            shown.sort_by(|left, right| (&left.endpoint, &left.index).cmp(&(&right.endpoint, &right.index)));
            output::message(&format!("{} entries of adapter `{}`", shown.len(), kept.name));
            print(&shown, json)?;
        }
        StateVerb::Get { endpoint, json } => {
            let found = shown.filter(|shown| shown.endpoint == endpoint).collect::<Vec<_>>();
            if found.is_empty() {
                return Err(usage(format!("no entry for `{endpoint}`")));
            }
            print(&found, json)?;
        }
        StateVerb::Purge { endpoint, all } => {
            if endpoint.is_none() && !all {
                return Err(usage("pass `--endpoint` or `--all`"));
            }
            let gone = ::adapter::purge(store, &mut |_, entry| {
                let shown = show_entry(&kept.names, &[0; 12], entry);
                all || shown.is_some_and(|shown| Some(&shown.endpoint) == endpoint.as_ref())
            });
            output::message(&format!("deleted {} entries", gone.map_err(told)?));
        }
    }
    Ok(Exit::Fine)
}

fn print(shown: &[Shown], json: bool) -> Result<()> {
    if json {
        return output::data(&printable::text(&output::pretty(&shown)?));
    }
    for entry in shown {
        let index = entry.index.as_ref().map_or(String::new(), |index| format!("<{index}>"));
        let peer = entry.peer.as_ref().map_or(String::new(), |peer| format!(", adapter at {peer}"));
        let Shown { service, endpoint, labels, because, .. } = entry;
        let (labels, because) = (labels.join(", "), because.join("; "));
        let line = format!("{service}{index} at {endpoint}, vouched for by {labels}{peer}: {because}");
        output::data(&format!("{}\n", printable::line(&line)))?;
    }
    Ok(())
}
