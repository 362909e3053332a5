//! Latency distributions, as cumulative share or as quantiles.

use study::plan::{Figure as Wanted, FigureKind};

use super::{Detail, Drawing, Facet, Grid, left_out, tip};
use crate::panel::{Axis, Layer, Mark, Panel};
use analysis::censored_latency::Latency;
use analysis::findings::{Clock, Findings, Row};
use analysis::number;

const MARKED: [(f64, &str); 5] = [(0.5, "p50"), (0.9, "p90"), (0.99, "p99"), (0.999, "p99.9"), (0.9999, "p99.99")];

/// Minimum number of values beyond a quantile that is drawn.
const BEYOND: f64 = 10.0;

struct Curve<'a> {
    row: &'a Row,
    series: usize,
    points: Vec<(f64, f64)>,
    marked: Vec<(f64, f64, &'static str)>,
}

/// Draws cumulative share over latency, or latency over quantiles spaced by their nines. Latency is on a log axis.
pub(super) fn distribution(findings: &Findings, wanted: &Wanted, detail: Detail) -> Drawing {
    let ecdf = wanted.kind == FigureKind::Ecdf;
    let grid = Grid::new(findings, wanted, false, detail);
    let (facets, more) = grid.facets();
    let rows: usize = facets.iter().map(|facet| facet.rows.len()).sum();
    let each = (detail.curve_points / rows.max(1)).clamp(12, 90);
    let nines = |count: f64| (count / BEYOND).log10().floor().clamp(1.0, 5.0) as usize;
    let latencies = facets.iter().flat_map(|facet| &facet.rows).filter_map(|row| row.latency.as_ref());
    let longest = latencies.map(|latency| latency.count).max();
    let last_nines = nines(longest.unwrap_or(0).max(1) as f64);

    let curves: Vec<Vec<Curve<'_>>> = facets.iter().map(|facet| curves(&grid, facet, each, ecdf, last_nines)).collect();
    let values = curves.iter().flatten().flat_map(|curve| curve.points.iter().map(|point| point.1));
    let (low, high) = values
        .filter(|ns| *ns > 0.0)
        .fold((f64::INFINITY, 0.0), |(low, high): (f64, f64), ns| (low.min(ns), high.max(ns)));
    let latency = clock_words(&facets);
    let (low, high) = if low < high { (low, high) } else { (1e3, 1e6) };
    // The horizontal axis has space for fewer labels.
    let time = Axis::log(low, high, "ns", latency, if ecdf { 4 } else { 7 });
    let labels = grid.series_labels();
    let panel = |(facet, curves): (&Facet<'_>, &Vec<Curve<'_>>)| {
        let turn = |q: f64, ns: f64| if ecdf { (ns, q) } else { (q, ns) };
        let mut layers = Vec::new();
        for curve in curves {
            let points = curve.points.iter().map(|(q, ns)| turn(*q, *ns)).collect();
            layers.push(Layer::Curve { series: curve.series, points });
            let mark = |(q, ns, name): &(f64, f64, &str)| {
                let (x, y) = turn(*q, *ns);
                let words = format!("{name}: {}", number::quantity(*ns, "ns"));
                let tip = detail.tip(|| tip(&labels[&curve.series], curve.row, &words));
                Mark { hollow: curve.row.is_marked(), ..Mark::at(x, y, tip) }
            };
            let marks = curve.marked.iter().map(mark).collect();
            layers.push(Layer::Marks { series: curve.series, marks, joined: false, aside: 0.0 });
        }
        let title = facet.title.clone();
        if ecdf {
            let y = Axis::linear(0.0, 1.0, "1", "fraction of requests at or below");
            Panel::new(title, time.clone(), y, layers)
        } else {
            Panel::new(title, Axis::nines(last_nines, "quantile (by number of nines)"), time.clone(), layers)
        }
    };
    let panels = facets.iter().zip(&curves).map(panel).collect();
    let (name, made, how) = if ecdf {
        ("ecdf", "Latency distribution", "Fraction of requests with a response within a given time.")
    } else {
        (
            "quantiles",
            "Latency by quantile",
            "Time within which a given fraction of requests got a response; each nine is as wide as the one before.",
        )
    };
    let beyond = format!("p50, p90, p99 and so on, while {BEYOND} requests lie beyond");
    let at = if ecdf { "p50, p90 and p99" } else { &beyond };
    let caption = format!(
        "{how} All trials of a point merged; markers at {at}. The curves have no intervals; the tables give them for \
         p50 to p99.9."
    );
    let title = wanted.title.clone().unwrap_or_else(|| made.to_owned());
    let left_out = left_out(more, "panels are not drawn; the table has their quantiles");
    let name = name.to_owned();
    let mut drawing = Drawing { name, title, caption, ..grid.drawing(&facets, panels, left_out) };
    let without = rows - curves.iter().map(|curves| curves.len()).sum::<usize>();
    if without > 0 {
        drawing.notes.insert(0, format!("{without} of {rows} points have no latencies to draw."));
    }
    drawing
}

fn curves<'a>(grid: &Grid<'_>, facet: &Facet<'a>, each: usize, ecdf: bool, last_nines: usize) -> Vec<Curve<'a>> {
    let curve = |row: &&'a Row| {
        let latency = Latency::from_parts(row.latency.as_ref()?, row.censored.as_deref())?;
        let sample = Some(&latency.answered).filter(|sample| !sample.is_empty())?;
        let found = latency.estimate();
        // A curve ends before the first quantile that is unknown because of waiting requests.
        let known = |q: f64| found.quantile(q).filter(|bound| !bound.at_least).map(|bound| bound.value.max(1.0));
        let series = grid.series_of(row)?;
        let beyond = |q: f64| (1.0 - q) * sample.len() as f64 >= BEYOND;
        let mut points: Vec<(f64, f64)> = Vec::with_capacity(each);
        for index in 0..each {
            let share = index as f64 / (each - 1) as f64;
            // Points are denser where distributions bend: at both ends of a cumulative curve, and at high quantiles.
            let q = if ecdf {
                (1.0 - (share * std::f64::consts::PI).cos()) / 2.0
            } else {
                1.0 - 10f64.powf(-share * last_nines as f64)
            };
            if !ecdf && index > 0 && !beyond(q - 1e-12) {
                break;
            }
            let Some(ns) = known(q.clamp(0.0, 1.0)) else { break };
            points.push((q, ns));
        }
        let marked = MARKED.iter().filter(|(q, _)| beyond(*q)).filter_map(|(q, name)| Some((*q, known(*q)?, *name)));
        // Above p99, markers of a cumulative distribution would overlap, so they are omitted.
        let marked = marked
            .filter(|(q, ..)| if ecdf { *q <= 0.99 } else { -(1.0 - q).log10() <= last_nines as f64 + 1e-9 })
            .collect();
        Some(Curve { row, series, points, marked })
    };
    facet.rows.iter().filter_map(curve).collect()
}

fn clock_words(facets: &[Facet<'_>]) -> &'static str {
    let clocks: Vec<Option<Clock>> = facets.iter().flat_map(|facet| &facet.rows).map(|row| row.clock).collect();
    let all = |clock| !clocks.is_empty() && clocks.iter().all(|known| *known == Some(clock));
    match (all(Clock::Service), all(Clock::Response)) {
        (true, _) => "service time",
        (_, true) => "response time",
        _ => "latency (service and response time)",
    }
}
