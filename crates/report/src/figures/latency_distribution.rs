//! Latency distributions, as cumulative share or as quantiles.

use study::plan::{Figure as Wanted, FigureKind};

use super::{Detail, Drawing, Facet, Grid, left_out, tip};
use crate::panel::{Axis, Layer, Mark, Panel, Shape};
use analysis::censored_latency::Latency;
use analysis::enum_words_and_lists::serde_name;
use analysis::findings::{Clock, Findings, Row};
use analysis::group_by_key::distinct;
use analysis::number;

const MARKED: [(f64, &str); 5] = [(0.5, "p50"), (0.9, "p90"), (0.99, "p99"), (0.999, "p99.9"), (0.9999, "p99.99")];

/// Minimum number of values beyond a quantile that is drawn.
const BEYOND: f64 = 10.0;

struct Curve<'a> {
    row: &'a Row,
    series: usize,
    /// Quantiles with their latencies in ns.
    points: Vec<(f64, f64)>,
    marked: Vec<(f64, f64, &'static str)>,
}

/// Draws cumulative share over latency, or latency over quantiles spaced by their nines. Latency is on a log axis.
pub(super) fn distribution(findings: &Findings, wanted: &Wanted, detail: Detail) -> Drawing {
    let ecdf = wanted.kind == FigureKind::Ecdf;
    let grid = Grid::new(findings, wanted, false, detail);
    let (facets, more) = grid.facets();
    let rows = || facets.iter().flat_map(|facet| facet.rows.iter().copied());
    let each = (detail.curve_points / rows().count().max(1)).clamp(12, 90);
    let longest = rows().filter_map(|row| row.latency.as_ref()).map(|latency| latency.count).max().unwrap_or(0);
    let nines = (longest.max(1) as f64 / BEYOND).log10().floor().clamp(1.0, 5.0) as usize;
    let curves = facets.iter().map(|facet| {
        let rows = facet.rows.iter().copied();
        rows.filter_map(|row| curve(row, grid.series_of(row)?, each, ecdf, nines)).collect::<Vec<_>>()
    });
    let curves = curves.collect::<Vec<_>>();
    let times = curves.iter().flatten().flat_map(|curve| &curve.points).map(|(_, ns)| *ns).filter(|ns| *ns > 0.0);
    let (low, high) = times.fold((f64::INFINITY, 0.0_f64), |(low, high), ns| (low.min(ns), high.max(ns)));
    let (low, high) = if low < high { (low, high) } else { (1e3, 1e6) };
    // The horizontal axis has space for fewer labels.
    let time = Axis::log(low, high, "ns", clock_words(rows()), if ecdf { 4 } else { 7 });
    let labels = grid.series_labels();
    let panel = |(facet, curves): (&Facet<'_>, &Vec<Curve<'_>>)| {
        let turn = |q: f64, ns: f64| if ecdf { (ns, q) } else { (q, ns) };
        let layers = curves.iter().flat_map(|Curve { row, series, points, marked }| {
            let mark = |(q, ns, name): &(f64, f64, &str)| {
                let (x, y) = turn(*q, *ns);
                let words = format!("{name}: {}", number::quantity(*ns, "ns"));
                let tip = detail.tip(|| tip(&labels[series], row, &words));
                Mark { hollow: row.is_marked(), ..Mark::at(x, y, tip) }
            };
            let (series, marks) = (*series, marked.iter().map(mark).collect());
            let points = points.iter().map(|(q, ns)| turn(*q, *ns)).collect();
            [Shape::Curve(points), Shape::Marks { marks, joined: false }].map(|shape| Layer::new(series, shape))
        });
        let (x, y) = match ecdf {
            true => (time.clone(), Axis::linear(0.0, 1.0, "1", "fraction of requests at or below")),
            false => (Axis::nines(nines, "quantile (by number of nines)"), time.clone()),
        };
        Panel::new(facet.title.clone(), x, y, layers.collect())
    };
    let panels = facets.iter().zip(&curves).map(panel).collect();
    let beyond = format!("p50, p90, p99 and so on, while {BEYOND} requests lie beyond");
    let (title, how, at) = match ecdf {
        true => {
            ("Latency distribution", "Fraction of requests with a response within a given time.", "p50, p90 and p99")
        }
        false => (
            "Latency by quantile",
            "Time within which a given fraction of requests got a response; each nine is as wide as the one before.",
            beyond.as_str(),
        ),
    };
    let caption = format!(
        "{how} All trials of a point merged; markers at {at}. The curves have no intervals; the tables give them for \
         p50 to p99.9."
    );
    let title = wanted.title.as_deref().unwrap_or(title).to_owned();
    let (rows, drawn) = (rows().count(), curves.iter().flatten().count());
    let notes = [
        (drawn < rows).then(|| format!("{} of {rows} points have no latencies to draw.", rows - drawn)),
        left_out(more, "panels are not drawn; the table has their quantiles"),
    ];
    Drawing { name: serde_name(wanted.kind), title, caption, ..grid.drawing(&facets, panels, notes) }
}

fn curve(row: &Row, series: usize, each: usize, ecdf: bool, nines: usize) -> Option<Curve<'_>> {
    let latency = Latency::from_parts(row.latency.as_ref()?, row.censored.as_deref())?;
    let sample = Some(&latency.answered).filter(|sample| !sample.is_empty())?;
    let found = latency.estimate();
    // A curve ends before the first quantile that is unknown because of waiting requests.
    let known = |q: f64| found.quantile(q).filter(|bound| !bound.at_least).map(|bound| bound.value.max(1.0));
    let beyond = |q: f64| (1.0 - q) * sample.len() as f64 >= BEYOND;
    let mut points: Vec<(f64, f64)> = Vec::with_capacity(each);
    for index in 0..each {
        let share = index as f64 / (each - 1) as f64;
        // Points are denser where distributions bend: at both ends of a cumulative curve, and at high quantiles.
        let q = if ecdf {
            (1.0 - (share * std::f64::consts::PI).cos()) / 2.0
        } else {
            1.0 - 10f64.powf(-share * nines as f64)
        };
        if !ecdf && index > 0 && !beyond(q - 1e-12) {
            break;
        }
        let Some(ns) = known(q.clamp(0.0, 1.0)) else { break };
        points.push((q, ns));
    }
    let marked = MARKED.iter().filter(|(q, _)| beyond(*q)).filter_map(|(q, name)| Some((*q, known(*q)?, *name)));
    // Above p99, markers of a cumulative distribution would overlap, so they are omitted.
    let fits = |q: f64| if ecdf { q <= 0.99 } else { -(1.0 - q).log10() <= nines as f64 + 1e-9 };
    Some(Curve { row, series, points, marked: marked.filter(|(q, ..)| fits(*q)).collect() })
}

fn clock_words<'a>(rows: impl Iterator<Item = &'a Row>) -> &'static str {
    match distinct(rows.map(|row| row.clock)).as_slice() {
        [Some(Clock::Service)] => "service time",
        [Some(Clock::Response)] => "response time",
        _ => "latency (service and response time)",
    }
}
