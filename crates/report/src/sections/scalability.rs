//! The section on fits of the Universal Scalability Law.

use analysis::findings::{Estimate, Findings, ScalabilityPoint, UslFit};

use super::cells::{shown, shown_estimate};
use crate::document::{Block, Cell, Columns, Section, Table};

pub(crate) fn write(f: &Findings, section: &mut Section) {
    section.long(f.scalability.iter().map(|found| Block::Text(found.sentence.clone())));
    for (table, note) in [(fits(f), LAW), (points(f), "Efficiency: throughput / (N × λ); 1 is linear scaling.")] {
        section.long(table.into_iter().flat_map(|table| [Block::Table(table), Block::Note(note.to_owned())]));
    }
}

const LAW: &str = "Universal Scalability Law, X(N) = λN / (1 + σ(N−1) + κN(N−1)), fitted to throughput (Gunther \
                   2007). λ: throughput at N = 1, σ: contention, κ: coherency. Intervals by resampling trials; one \
                   that starts at 0 leaves open whether there is any.";

fn fits(f: &Findings) -> Option<Table> {
    let parameter = |e: &Estimate| format!("{} ({} to {})", shown(e.point, "1"), shown(e.low, "1"), shown(e.high, "1"));
    let table = Columns::of(f.scalability.iter().filter_map(|found| Some((&found.label, found.fit.as_ref()?))))
        .text("series", |(label, _)| label.as_str())
        .number("λ", |(_, fit)| shown_estimate(&fit.rate_per_s, "1/s"))
        .number("σ", |(_, fit)| parameter(&fit.contention))
        .number("κ", |(_, fit)| parameter(&fit.coherency))
        .number("peak at", |(_, fit)| peak(fit))
        .number("R²", |(_, fit)| format!("{:.3}", fit.r_squared));
    table.titled("").unless_empty()
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
    let fitted = f.scalability.iter().filter(|found| found.fit.is_some());
    let rows = fitted.flat_map(|found| found.points.iter().map(move |point| (found, point)));
    let efficiency = |point: &ScalabilityPoint| {
        let tags = point.left_out.iter().map(|reason| format!("left out: {reason}")).collect();
        Cell { tags, ..Cell::from(point.efficiency.map_or("–".to_owned(), |value| format!("{value:.2}"))) }
    };
    let table = Columns::of(rows)
        .when(f.scalability.len() > 1, |table| table.text("series", |(found, _)| found.label.as_str()))
        .number("N", |(found, point)| format!("{} {}", found.factor, point.n))
        .number("mean throughput", |(_, point)| shown(point.rate_per_s, "1/s"))
        .number("fitted", |(_, point)| point.fitted_per_s.map_or("–".to_owned(), |rate| shown(rate, "1/s")))
        .number("efficiency", |(_, point)| efficiency(point));
    table.titled("").unless_empty()
}
