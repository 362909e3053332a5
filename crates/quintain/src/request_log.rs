//! Writes the log of requests (`quintain load --log`).

use std::path::Path;

use study::record::Measurement;
use study::spec::Target;

use crate::command_result::{Result, machine};
use crate::output;

/// Writes logged requests as CSV, or as JSON lines if `path` ends in `.jsonl`. Times are in ns since measuring began.
pub(crate) fn write(path: &Path, measurement: &Measurement, target: &Target) -> Result<()> {
    let is_json = path.extension().is_some_and(|extension| extension == "jsonl");
    let head = if is_json { "" } else { "intended_ns,sent_ns,first_byte_ns,ended_ns,status,bytes,request,error\n" };
    let mut text = head.to_owned();
    for entry in &measurement.log {
        let name = target.request_name(entry.request);
        if is_json {
            let mut line = serde_json::to_value(entry).map_err(machine)?;
            line["request"] = name.into();
            text.push_str(&format!("{line}\n"));
        } else {
            let first = entry.first_byte_ns.map_or_else(String::new, |ns| ns.to_string());
            let (name, error) = (name.replace('"', "\"\""), &entry.error);
            text.push_str(&format!(
                "{},{},{first},{},{},{},\"{name}\",{error}\n",
                entry.intended_ns, entry.sent_ns, entry.ended_ns, entry.status, entry.bytes
            ));
        }
    }
    output::file(path, &text)?;
    if measurement.log_left_out > 0 {
        let (left_out, path) = (measurement.log_left_out, path.display());
        output::message(&format!("{left_out} requests are not in `{path}`, which is full; use --log-share"));
    }
    Ok(())
}
