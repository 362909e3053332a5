//! Measures the cost of pooling the measurements of many generators, each as large as the largest of a real run:
//! `quintain report -f records | cargo run --release -p study --example pool_cost -- 64`.

#![expect(clippy::disallowed_methods, clippy::print_stdout, reason = "it prints its measurements")]

use std::time::{Duration, Instant};

use study::Record;
use study::pool_measurements::{outline, pool};
use study::record::Measurement;

#[derive(serde::Deserialize)]
struct Records {
    records: Vec<Record>,
}

fn peak() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|line| line.starts_with("VmHWM:"))?;
    line.split_whitespace().nth(1)?.parse().ok()
}

fn timed<T>(what: impl FnOnce() -> T) -> (T, Duration) {
    let since = Instant::now();
    let done = what();
    (done, since.elapsed())
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let nodes = std::env::args().nth(1).unwrap_or_else(|| "64".to_owned()).parse::<u32>()?;
    let line = {
        let records = serde_json::from_reader::<_, Records>(std::io::stdin().lock())?.records;
        let measured = records.iter().filter_map(Record::measurement);
        let largest = measured.max_by_key(|measurement| measurement.requests).ok_or("no trial was measured")?;
        serde_json::to_string(largest)?
    };
    let before = peak().unwrap_or(0);
    let parse = || (0..nodes).map(|_| serde_json::from_str::<Measurement>(&line)).collect::<Result<Vec<_>, _>>();
    let (parts, parsing) = timed(parse);
    let parts = parts?;
    let outlines = || (1..).zip(&parts).map(|(nth, part)| outline(part, nth, nodes)).collect::<Result<Vec<_>, _>>();
    let (outlines, outlining) = timed(outlines);
    let outlines = outlines?;
    let (all, pooling) = timed(|| pool(&parts));
    let all = all?;
    println!(
        "{} generators of {} requests in {} windows, a line of {} kB: parsed in {parsing:.1?}, outlined in {outlining:.1?}, pooled in {pooling:.1?}; \
         {} requests; memory {before} KiB before, at most {} KiB",
        outlines.len(),
        all.requests / u64::from(nodes.max(1)),
        all.windows.len(),
        line.len() / 1000,
        all.requests,
        peak().unwrap_or(0),
    );
    Ok(())
}
