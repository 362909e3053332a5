//! One trial as a timeline, from the server's start to the end of its last process, in the Trace Event Format.

use serde_json::{Value, json};
use study::record::{Measurement, Outcome, Record, SubjectUse};

use super::{File, Source, word};
use crate::ReportError;

const TRIAL: usize = 1;
const LOAD: usize = 2;
const SERVER: usize = 3;

/// Events on a clock that is 0 at the start of the server.
struct Events(Vec<Value>);

impl Events {
    fn push(&mut self, pid: usize, phase: &str, name: &str, at_ns: u64, more: Value) {
        let mut event = json!({ "ph": phase, "name": name, "pid": pid, "tid": 0, "ts": at_ns as f64 / 1e3 });
        if let (Some(event), Value::Object(more)) = (event.as_object_mut(), more) {
            event.extend(more);
        }
        self.0.push(event);
    }

    fn process(&mut self, pid: usize, name: &str) {
        self.push(pid, "M", "process_name", 0, json!({ "args": { "name": name } }));
        self.push(pid, "M", "process_sort_index", 0, json!({ "args": { "sort_index": pid } }));
    }

    fn slice(&mut self, name: &str, from_ns: u64, to_ns: u64) {
        if let Some(length_ns) = to_ns.checked_sub(from_ns).filter(|ns| *ns > 0) {
            self.push(TRIAL, "X", name, from_ns, json!({ "dur": length_ns as f64 / 1e3 }));
        }
    }

    fn counter(&mut self, pid: usize, name: &str, at_ns: Option<u64>, value: Option<f64>) {
        if let Some((at_ns, value)) = at_ns.zip(value.filter(|value| value.is_finite())) {
            self.push(pid, "C", name, at_ns, json!({ "args": { "value": value } }));
        }
    }

    fn instant(&mut self, pid: usize, name: &str, at_ns: u64, text: &str) {
        self.push(pid, "i", name, at_ns, json!({ "s": "p", "args": { "text": text } }));
    }
}

fn chosen<'a>(source: &Source<'a>) -> Result<Option<(&'a Record, &'a Measurement)>, ReportError> {
    let run = &source.findings.run;
    let Some(trial) = source.trial else {
        let measured = source.records.iter().filter_map(|record| Some((record, record.measurement()?)));
        return Ok(measured.min_by_key(|(record, _)| record.order));
    };
    let found = source.records.iter().find(|record| record.order == trial).ok_or_else(|| {
        let orders = source.records.iter().map(|record| record.order);
        let known = orders.clone().min().zip(orders.max()).map(|(first, last)| format!("{first} to {last}"));
        let known = known.unwrap_or_else(|| "none".to_owned());
        ReportError(format!("run `{run}` has no trial {trial}: it has {known}"), None)
    })?;
    match &found.outcome {
        Outcome::Measured(measurement) => Ok(Some((found, measurement))),
        Outcome::Failed(failure) => {
            Err(ReportError(format!("trial {trial} of run `{run}` failed: {}", failure.message), None))
        }
    }
}

pub(super) fn trace(source: &Source<'_>) -> Result<Vec<File>, ReportError> {
    let Some((record, measurement)) = chosen(source)? else { return Ok(Vec::new()) };
    let row = source.findings.all_rows().find(|row| row.point == record.point);
    let label = row.map_or("", |row| row.label.as_str());
    let ready_ns = record.ready_ns.unwrap_or(0);
    let from_ns = match record.subject.measured_from_ns {
        // Older records lack the time at which measuring began.
        0 => ready_ns.saturating_add(measurement.warmup_ns),
        from_ns => from_ns,
    };
    let until_ns = from_ns.saturating_add(measurement.duration_ns);
    let mut events = Events(Vec::new());

    events.process(TRIAL, &format!("trial {} of {}: {label}", record.order, source.findings.run));
    let warmup_ns = from_ns.saturating_sub(measurement.warmup_ns).max(ready_ns);
    events.slice("start", 0, ready_ns);
    events.slice("connect", ready_ns, warmup_ns);
    events.slice("warm-up", warmup_ns, from_ns);
    events.slice("measure", from_ns, until_ns);
    // The elapsed time includes the CPU probes before and after.
    let probes = [&record.probes.before, &record.probes.after];
    let probed_ns = probes.map(|probes| probes.iter().map(|probe| probe.wall_ns).max().unwrap_or(0));
    let end_ns = probed_ns.into_iter().fold(record.elapsed_ns, u64::saturating_sub);
    events.slice("stop", until_ns, end_ns.max(until_ns));
    for warning in &record.warnings {
        events.instant(TRIAL, "warning", until_ns, &analysis::visible(&warning.text));
    }
    for (kind, count) in &measurement.errors {
        let example = measurement.error_examples.get(kind).map_or(String::new(), |text| format!(": {text}"));
        events.instant(TRIAL, "errors", until_ns, &analysis::visible(&format!("{count} {kind}{example}")));
    }

    events.process(LOAD, "load");
    windows(&mut events, measurement, from_ns, until_ns);
    events.process(SERVER, "server");
    samples(&mut events, SERVER, &record.subject, from_ns);
    for (index, proxy) in record.proxies.iter().enumerate() {
        let pid = SERVER + 1 + index;
        events.process(pid, &format!("proxy {}", proxy.name));
        samples(&mut events, pid, &proxy.used, from_ns);
    }
    let trace = json!({
        "traceEvents": events.0,
        "displayTimeUnit": "ms",
        "otherData": { "run": source.findings.run, "trial": record.order, "point": label, "started": record.started },
    });
    let name = format!("{}-trial-{}.json", word(&source.findings.run), record.order);
    Ok(vec![File { name, text: trace.to_string() }])
}

/// Adds counters per window. A counter keeps its value until its next event.
fn windows(events: &mut Events, measurement: &Measurement, from_ns: u64, until_ns: u64) {
    const COUNTERS: [&str; 4] = ["requests per second", "p50 ms", "p99 ms", "errors per second"];
    for (index, window) in (0_u64..).zip(&measurement.windows) {
        let at_ns = from_ns.saturating_add(index.saturating_mul(measurement.window_ns));
        let to_ns = at_ns.saturating_add(measurement.window_ns).min(until_ns);
        let Some(length_ns) = to_ns.checked_sub(at_ns).filter(|ns| *ns > 0) else { break };
        let per_s = |count: u64| Some(count as f64 * 1e9 / length_ns as f64);
        let latency = stats::Histogram::try_from(&window.latency).ok();
        let quantile = |q: f64| latency.as_ref().and_then(|latency| latency.quantile(q)).map(|ns| ns / 1e6);
        let values = [per_s(window.requests), quantile(0.5), quantile(0.99), per_s(window.errors)];
        COUNTERS.iter().zip(values).for_each(|(name, value)| events.counter(LOAD, name, Some(at_ns), value));
        if window.errors > 0 {
            events.instant(LOAD, "errors", at_ns, &analysis::number::count(window.errors, "error"));
        }
    }
    [0, 3].iter().for_each(|&of| events.counter(LOAD, COUNTERS[of], Some(until_ns), Some(0.0)));
}

/// Adds the resource usage of a process. Its clock read [`SubjectUse::measured_from_ns`] when measuring began.
fn samples(events: &mut Events, pid: usize, used: &SubjectUse, from_ns: u64) {
    let at = |ns: u64| ns.saturating_add(from_ns).checked_sub(used.measured_from_ns);
    for two in used.samples.windows(2) {
        let [before, after] = two else { continue };
        let busy_ns = after.cpu_ns.saturating_sub(before.cpu_ns) as f64;
        let cpus = after.at_ns.checked_sub(before.at_ns).filter(|ns| *ns > 0).map(|ns| busy_ns / ns as f64);
        events.counter(pid, "CPUs in use", at(before.at_ns), cpus);
    }
    for sample in &used.samples {
        events.counter(pid, "RSS MiB", at(sample.at_ns), Some(sample.rss_bytes as f64 / f64::from(1 << 20)));
        events.counter(pid, "threads", at(sample.at_ns), Some(f64::from(sample.threads)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use study::record::Failure;

    #[test]
    fn a_trial_is_chosen_by_its_order_or_is_the_first_with_a_measurement() {
        let (run, mut records) = fixtures::volley();
        let findings = analysis::analyze(&run, &records);
        records.reverse();
        let first = records.iter_mut().find(|record| record.order == 0).unwrap();
        let failure = Failure { kind: study::record::FailureKind::Hung, message: "silent".to_owned() };
        first.outcome = Outcome::Failed(failure);
        let source = |trial| Source { findings: &findings, records: &records, history: &[], trial };
        let order = |trial| {
            let chosen = chosen(&source(trial)).map_err(|error| error.to_string())?;
            Ok(chosen.expect("a trial with a measurement").0.order)
        };
        assert_eq!(order(None), Ok(1));
        assert_eq!(order(Some(9)), Ok(9));
        assert_eq!(order(Some(0)), Err("trial 0 of run `volley-20261120-210500` failed: silent".to_owned()));
        let missing = "run `volley-20261120-210500` has no trial 99: it has 0 to 87".to_owned();
        assert_eq!(order(Some(99)), Err(missing));
    }
}
