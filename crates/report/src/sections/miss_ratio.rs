//! The section on miss-ratio curves.

use analysis::findings::{Findings, MissRatioCurve, MissRatioPoint, MissRatios};
use analysis::miss_ratio::{capacity, points};
use analysis::number::{percent, quantity};

use crate::document::{Block, Columns, Section, Table};

pub(crate) fn write(f: &Findings, section: &mut Section) {
    section.all(analysis::miss_ratio::sentences(f).map(Block::Text));
    section.long(f.miss_ratios.iter().map(|found| Block::Table(table(f, found))));
    section.long((!f.miss_ratios.is_empty()).then(|| Block::Note(READING.to_owned())));
}

const READING: &str = "Difference from policy: each trial minus the simulation of its own operations, over the \
                       simulated trials of a point; a curve deviates if that is more than a tenth of a point and \
                       more than chance (paired Student's t test, adjusted for the cache sizes of the curve by Holm's \
                       method).";

fn table(findings: &Findings, found: &MissRatios) -> Table {
    let place = if found.panel.is_empty() { String::new() } else { format!(", {}", found.panel) };
    let missing = || "-".to_owned();
    let miss_ratio = |point: &MissRatioPoint| match point.estimate {
        Some(estimate) => format!("{:.4} ± {:.4}", estimate.point, estimate.half_width()),
        None => format!("{:.4}", point.miss_ratio),
    };
    let difference = |curve: &MissRatioCurve, point: &MissRatioPoint| {
        let difference = point.difference?;
        let ends = format!(" [{}, {}]", points(difference.low), points(difference.high));
        let ends = if findings.quick { "" } else { &ends };
        let policy = curve.policy.as_deref().unwrap_or_default();
        Some(format!("{}{ends} {policy}{}", points(difference.point), if point.strays { " *" } else { "" }))
    };
    let rows = found.curves.iter().flat_map(|curve| curve.points.iter().map(move |point| (curve, point)));
    let table = Columns::of(rows)
        .text("", |(curve, _)| curve.label.as_str())
        .number(&found.x, |(_, point)| capacity(point.capacity_bytes))
        .number("of the footprint", |(_, point)| point.footprint_share.map_or_else(missing, percent))
        .number("memory used", |(_, point)| point.memory_bytes.map_or_else(missing, |bytes| quantity(bytes, "bytes")))
        .number("miss ratio", |(_, point)| miss_ratio(point))
        .number("difference from policy, points", |(curve, point)| difference(curve, point).unwrap_or_else(missing));
    let table = found.policies.iter().fold(table, |table, policy| {
        table.number(&format!("simulated {}", policy.name), |(_, point)| {
            let known = policy.points.iter().find(|known| known.capacity_bytes == point.capacity_bytes);
            known.map_or_else(missing, |known| format!("{:.4}", known.miss_ratio))
        })
    });
    table.plain(format!("Miss ratio by cache size{place} (*: deviates from its policy)"))
}
