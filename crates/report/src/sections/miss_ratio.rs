//! The section on miss-ratio curves.

use analysis::findings::{CurvePolicy, Findings, MissRatioCurve, MissRatioPoint, MissRatios};
use analysis::miss_ratio::{capacity, points};
use analysis::number::{percent, quantity};

use crate::document::{Block, Head, Section, Table};

pub(crate) fn section(f: &Findings) -> Option<Section> {
    let mut section = Section::new("miss-ratio", "Miss ratio");
    analysis::miss_ratio::sentences(f).for_each(|sentence| section.all(Block::Text(sentence)));
    f.miss_ratios.iter().for_each(|found| section.long(Block::Table(table(f, found))));
    if !f.miss_ratios.is_empty() {
        section.long(Block::Note(READING.to_owned()));
    }
    section.unless_empty()
}

const READING: &str = "Difference from policy: each trial minus the simulation of its own operations, over the \
                       simulated trials of a point; a curve deviates if that is more than a tenth of a point and \
                       more than chance (paired Student's t test, adjusted for the cache sizes of the curve by Holm's \
                       method).";

fn table(findings: &Findings, found: &MissRatios) -> Table {
    let place = if found.panel.is_empty() { String::new() } else { format!(", {}", found.panel) };
    let numbers = [&found.x, "of the footprint", "memory used", "miss ratio", "difference from policy, points"];
    let simulated = found.policies.iter().map(|policy| Head::number(format!("simulated {}", policy.name)));
    let heads = [Head::text("")].into_iter().chain(numbers.map(Head::number)).chain(simulated);
    let row = |curve: &MissRatioCurve, point: &MissRatioPoint| {
        let missing = || "-".to_owned();
        let mut cells = vec![curve.label.clone(), capacity(point.capacity_bytes)];
        cells.push(point.footprint_share.map_or_else(missing, percent));
        cells.push(point.memory_bytes.map_or_else(missing, |bytes| quantity(bytes, "bytes")));
        cells.push(match point.estimate {
            Some(estimate) => format!("{:.4} ± {:.4}", estimate.point, estimate.half_width()),
            None => format!("{:.4}", point.miss_ratio),
        });
        cells.push(point.difference.map_or_else(missing, |difference| {
            let ends = format!(" [{}, {}]", points(difference.low), points(difference.high));
            let ends = if findings.quick { "" } else { &ends };
            let policy = curve.policy.as_deref().unwrap_or_default();
            format!("{}{ends} {policy}{}", points(difference.point), if point.strays { " *" } else { "" })
        }));
        let simulated = |policy: &CurvePolicy| {
            let known = policy.points.iter().find(|known| known.capacity_bytes == point.capacity_bytes);
            known.map_or_else(missing, |known| format!("{:.4}", known.miss_ratio))
        };
        cells.extend(found.policies.iter().map(simulated));
        cells
    };
    let rows = found.curves.iter().flat_map(|curve| curve.points.iter().map(move |point| (curve, point)));
    let title = format!("Miss ratio by cache size{place} (*: deviates from its policy)");
    Table::plain(title, heads, rows.map(|(curve, point)| row(curve, point)))
}
