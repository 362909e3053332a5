//! The section on the overhead of proxies.

use analysis::findings::{Added, Findings};
use analysis::number::quantity;
use analysis::proxy_overhead::{COMPARED, change, signed};
use study::Metric;

use crate::document::{Block, Head, Section, Table};

pub(crate) fn section(f: &Findings) -> Option<Section> {
    let mut section = Section::new("added", "Proxy overhead");
    if !f.added.is_empty() {
        f.added.iter().for_each(|found| section.long(Block::Text(found.sentence.clone())));
        section.all(Block::Table(table(f)));
    }
    section.unless_empty()
}

fn table(findings: &Findings) -> Table {
    let compared = COMPARED.iter().filter(|name| {
        let in_all =
            ["latency_mean", "latency_p50", "latency_p99", "client_bytes_per_request", "subject_bytes_per_request"];
        in_all.contains(name) && findings.added.iter().any(|found| found.metric(name).is_some())
    });
    let compared = compared.copied().collect::<Vec<_>>();
    let placed = findings.added.iter().any(|found| !found.place.is_empty());
    let mut heads = vec![Head::text("through")];
    heads.extend(placed.then(|| Head::text("at")));
    heads.push(Head::number("p50 direct"));
    heads.extend(compared.iter().map(|name| Head::number(format!("added {}", Metric::heading_of(name)))));
    heads.extend(["proxy CPU per request", "proxy RSS", "blocks"].map(Head::number));
    let row = |found: &Added| {
        let mut cells = vec![found.through.clone()];
        cells.extend(placed.then(|| found.place.clone()));
        let missing = || "-".to_owned();
        cells.push(found.metric("latency_p50").map_or_else(missing, |metric| quantity(metric.direct, "ns")));
        cells.extend(compared.iter().map(|name| {
            let unit = findings.metric_info(name).map_or("ns", |info| info.unit);
            found.metric(name).map_or_else(missing, |metric| match (&metric.difference, metric.shown) {
                (Some(difference), true) => change(difference, unit, findings.quick),
                (Some(difference), false) => format!("none shown: {}", change(difference, unit, findings.quick)),
                (None, _) => signed(metric.through - metric.direct, unit),
            })
        }));
        let used = &findings.rows[found.row];
        for (name, unit) in [("proxy_cpu_per_request", "ns"), ("proxy_rss", "bytes")] {
            let shown = used.estimate(name).map(|estimate| analysis::number::estimate(estimate, unit));
            let mean = used.mean(name).map(|mean| quantity(mean, unit));
            cells.push(shown.filter(|_| !findings.quick).or(mean).unwrap_or_else(missing));
        }
        cells.push(found.metrics.iter().map(|metric| metric.blocks).max().unwrap_or(0).to_string());
        cells
    };
    Table::plain("Proxy overhead, block by block", heads, findings.added.iter().map(row))
}
