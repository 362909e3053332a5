//! The section on fits of the Universal Scalability Law.

use analysis::findings::{Estimate, Findings, UslFit};

use super::cells::{shown, shown_estimate};
use crate::document::{Block, Cell, Head, Section, Table};

pub(crate) fn section(f: &Findings) -> Option<Section> {
    let mut section = Section::new("scalability", "Scalability");
    f.scalability.iter().for_each(|found| section.long(Block::Text(found.sentence.clone())));
    if let Some(table) = fits(f) {
        section.long(Block::Table(table));
        section.long(Block::Note(LAW.to_owned()));
    }
    if let Some(table) = points(f) {
        section.long(Block::Table(table));
        section.long(Block::Note("Efficiency: throughput / (N × λ); 1 is linear scaling.".to_owned()));
    }
    section.unless_empty()
}

const LAW: &str = "Universal Scalability Law, X(N) = λN / (1 + σ(N−1) + κN(N−1)), fitted to throughput (Gunther \
                   2007). λ: throughput at N = 1, σ: contention, κ: coherency. Intervals by resampling trials; one \
                   that starts at 0 leaves open whether there is any.";

fn fits(f: &Findings) -> Option<Table> {
    let cells = |found: &analysis::findings::Scalability| {
        let fit = found.fit.as_ref()?;
        let parameter = |e: &Estimate| {
            Cell::new(format!("{} ({} to {})", shown(e.point, "1"), shown(e.low, "1"), shown(e.high, "1")))
        };
        Some(vec![
            Cell::new(&*found.label),
            Cell::new(shown_estimate(&fit.rate_per_s, "1/s")),
            parameter(&fit.contention),
            parameter(&fit.coherency),
            Cell::new(peak(fit)),
            Cell::new(format!("{:.3}", fit.r_squared)),
        ])
    };
    let rows = f.scalability.iter().filter_map(cells).collect();
    let heads =
        std::iter::once(Head::text("series")).chain(["λ", "σ", "κ", "peak at", "R²"].map(Head::number)).collect();
    Table { heads, rows, ..Table::default() }.unless_empty()
}

/// Formats the N of the highest throughput with its interval, whose ends may be unbounded.
fn peak(fit: &UslFit) -> String {
    let at = |peak: Option<f64>| peak.filter(|peak| peak.is_finite()).map(|peak| format!("{peak:.1}"));
    match (at(fit.peak), at(fit.peak_low), at(fit.peak_high)) {
        (None, None, _) => "none".to_owned(),
        (None, Some(low), _) => format!("none ({low} or more)"),
        (Some(peak), Some(low), None) => format!("{peak} ({low} or more)"),
        (Some(peak), Some(low), Some(high)) => format!("{peak} ({low} to {high})"),
        (Some(peak), None, _) => peak,
    }
}

fn points(f: &Findings) -> Option<Table> {
    let several = f.scalability.len() > 1;
    let mut rows = Vec::new();
    for found in f.scalability.iter().filter(|found| found.fit.is_some()) {
        for point in &found.points {
            let mut cells = if several { vec![Cell::new(&*found.label)] } else { Vec::new() };
            cells.push(Cell::new(format!("{} {}", found.factor, point.n)));
            cells.push(Cell::new(shown(point.rate_per_s, "1/s")));
            cells.push(Cell::new(point.fitted_per_s.map_or_else(|| "–".to_owned(), |rate| shown(rate, "1/s"))));
            let efficiency = point.efficiency.map_or_else(|| "–".to_owned(), |value| format!("{value:.2}"));
            let tags = point.left_out.iter().map(|reason| format!("left out: {reason}")).collect();
            cells.push(Cell { tags, ..Cell::new(efficiency) });
            rows.push(cells);
        }
    }
    let mut heads = if several { vec![Head::text("series")] } else { Vec::new() };
    heads.extend(["N", "mean throughput", "fitted", "efficiency"].map(Head::number));
    Table { heads, rows, ..Table::default() }.unless_empty()
}
