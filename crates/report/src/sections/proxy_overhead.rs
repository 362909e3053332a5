//! The section on the overhead of proxies.

use analysis::findings::{Added, Findings};
use analysis::number::{self, quantity};
use analysis::proxy_overhead::{COMPARED, change, signed};
use study::Metric;

use crate::document::{Block, Columns, Section, Table};

pub(crate) fn write(f: &Findings, section: &mut Section) {
    section.long(f.added.iter().map(|found| Block::Text(found.sentence.clone())));
    section.all(table(f).unless_empty().map(Block::Table));
}

fn table(findings: &Findings) -> Table {
    let compared = COMPARED.iter().filter(|name| {
        let in_all =
            ["latency_mean", "latency_p50", "latency_p99", "client_bytes_per_request", "subject_bytes_per_request"];
        in_all.contains(name) && findings.added.iter().any(|found| found.metric(name).is_some())
    });
    let placed = findings.added.iter().any(|found| !found.place.is_empty());
    let missing = || "-".to_owned();
    let added = |found: &Added, name: &str| {
        let unit = findings.metric_info(name).map_or("ns", |info| info.unit);
        found.metric(name).map_or_else(missing, |metric| match (&metric.difference, metric.shown) {
            (Some(difference), true) => change(difference, unit, findings.quick),
            (Some(difference), false) => format!("none shown: {}", change(difference, unit, findings.quick)),
            (None, _) => signed(metric.through - metric.direct, unit),
        })
    };
    let used = |found: &Added, name: &str, unit: &str| {
        let row = &findings.rows[found.row];
        let shown = row.estimate(name).filter(|_| !findings.quick).map(|estimate| number::estimate(estimate, unit));
        shown.or(row.mean(name).map(|mean| quantity(mean, unit))).unwrap_or_else(missing)
    };
    let blocks = |found: &Added| found.metrics.iter().map(|metric| metric.blocks).max().unwrap_or(0);
    let direct = |found: &Added| Some(quantity(found.metric("latency_p50")?.direct, "ns"));
    let table = Columns::of(&findings.added)
        .text("through", |found| found.through.as_str())
        .when(placed, |table| table.text("at", |found| found.place.as_str()))
        .number("p50 direct", |found| direct(found).unwrap_or_else(missing));
    let table = compared.fold(table, |table, name| {
        table.number(&format!("added {}", Metric::heading_of(name)), |found| added(found, name))
    });
    let table = table
        .number("proxy CPU per request", |found| used(found, "proxy_cpu_per_request", "ns"))
        .number("proxy RSS", |found| used(found, "proxy_rss", "bytes"))
        .number("blocks", |found| blocks(found).to_string());
    table.plain("Proxy overhead, block by block")
}
