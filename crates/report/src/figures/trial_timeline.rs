//! The timeline of one trial: responses, latencies, CPU and memory.

use super::{Colours, Detail, Drawing, metric_of};
use crate::panel::{Axis, Cell, Layer, Panel, Shape, style};
use analysis::findings::{Column, Findings, InsideTrial, Process, Role};
use analysis::group_by_key::grouped;
use analysis::number::{self, drawable};
use analysis::trial_timeline::{band_ns, rule};

const TRIALS: usize = 12;
const BANDS_MAX: f64 = 32.0;
/// Fractions of a column's requests at or above which a cell is one shade darker.
const SHADES_FROM: [f64; style::SHADES - 1] = [0.003, 0.01, 0.03, 0.1, 0.3];

struct Bands {
    low: f64,
    /// Number of bands merged into one.
    step: f64,
    high: f64,
}

pub(super) fn inside(findings: &Findings, detail: Detail) -> Option<Drawing> {
    let shown = &findings.inside[..findings.inside.len().min(TRIALS).min(detail.panels)];
    let longest_ns = shown.iter().map(|trial| trial.duration_ns).max()? as f64;
    let columns = || shown.iter().flat_map(|trial| &trial.columns);
    let processes = || shown.iter().flat_map(|trial| &trial.processes);
    let bands = columns().flat_map(|column| &column.bands).map(|(band, _)| f64::from(*band));
    let (low, high) = bands.fold((f64::INFINITY, 0.0_f64), |(low, high), band| (low.min(band), high.max(band)));
    let (low, high) = if low <= high { (low, high + 1.0) } else { (40.0, 80.0) };
    let bands = Bands { low, step: ((high - low) / BANDS_MAX).ceil().max(1.0), high };
    // All trials share these axes. Those of processes and errors are missing if there is nothing to draw.
    let axis = |values: &mut dyn Iterator<Item = f64>, unit: &str, label: &str| {
        let most = values.filter(|value| drawable(*value)).fold(0.0, f64::max);
        (most > 0.0).then(|| few(Axis::linear(0.0, most, unit, label)))
    };
    let mut cpus = processes().flat_map(|process| process.cpus.iter().map(|point| point.1).chain(process.cpus_mean));
    let cpus = axis(&mut cpus, "", "CPUs in use").filter(|_| processes().any(|process| !process.cpus.is_empty()));
    let mut memory = processes().flat_map(|process| process.rss_bytes.iter().map(|point| point.1));
    let memory = axis(&mut memory, "bytes", "memory (RSS)");
    let errors = axis(&mut columns().map(|column| per_second(column, |column| column.errors)), "1/s", "errors");
    let rates = columns().map(|column| per_second(column, |column| column.requests));
    let rate = few(Axis::of_values(rates.chain([0.0]), "1/s", &metric_of("throughput").1));
    let latency_axis = Axis::log(band_ns(low), band_ns(high), "ns", "latency", 6);
    let time = few(Axis::linear(0.0, longest_ns, "ns", "since start of measurement"));
    let colours = Colours::new(findings);
    let stack = |trial: &InsideTrial| {
        let row = findings.rows.get(trial.row)?;
        let series = colours.of_row(row);
        let per_s = |count: fn(&Column) -> u64| {
            let ends =
                |column: &Column| [column.from_ns, column.to_ns].map(|ns| (ns as f64, per_second(column, count)));
            let points = trial.columns.iter().flat_map(ends).filter(|(_, value)| drawable(*value)).collect();
            vec![Layer::new(series, Shape::Curve(points))]
        };
        let used_cpus = used(trial, series, |process| &process.cpus, true);
        let tall = f64::max(70.0, 14.0 * used_cpus.len() as f64);
        let panels = [
            (70.0, Some(&rate), per_s(|column| column.requests)),
            (150.0, Some(&latency_axis), latency(trial, series, &bands)),
            (tall, cpus.as_ref(), used_cpus),
            (56.0, memory.as_ref(), used(trial, series, |process| &process.rss_bytes, false)),
            (40.0, errors.as_ref(), per_s(|column| column.errors)),
        ];
        let mut panels = panels.into_iter().filter_map(|(tall, y, layers)| {
            Some(Panel { tall, ..Panel::new(String::new(), time.clone(), y?.clone(), layers) })
        });
        let title = format!("{}, trial {} (block {})", row.label, trial.order, trial.block);
        let first = panels.next()?;
        Some(Panel { title, below: panels.collect(), ..first })
    };
    let measured = findings.rows.iter().enumerate().filter(|(_, row)| row.n > 0);
    let left_out = measured.filter(|(index, _)| shown.iter().all(|trial| trial.row != *index));
    let left_out = left_out.map(|(_, row)| row.label.as_str()).collect::<Vec<_>>();
    let left_out = match left_out.as_slice() {
        [] => None,
        [one] => Some((*one).to_owned()),
        [first, last] => Some(format!("{first}; {last}")),
        [first, rest @ .., last] => Some(format!("{first}; and {} more up to {last}", rest.len() + 1)),
    };
    let notes = [
        left_out.map(|labels| format!("Not drawn, to keep the page small: {labels}.")),
        errors.is_none().then(|| "No request failed in any of these trials.".to_owned()),
        cpus.is_none().then(|| "CPU use over time is unknown.".to_owned()),
    ];
    Some(Drawing {
        caption: format!(
            "{} Latency: color is the share of requests in that time slice, from under 0.3 % to over 30 %; lines: p50 and, from 100 requests on, p99. The generator's CPU time is known only for the \
             whole trial.",
            rule(shown)
        ),
        panels: shown.iter().filter_map(stack).collect(),
        notes: notes.into_iter().flatten().collect(),
        ..Drawing::new("inside", "Inside a trial")
    })
}

/// Omits every other label of a crowded axis, because the panels of a timeline have little height.
fn few(axis: Axis) -> Axis {
    let step = if axis.major.len() > 4 { 2 } else { 1 };
    Axis { major: axis.major.into_iter().step_by(step).collect(), ..axis }
}

fn per_second(column: &Column, count: fn(&Column) -> u64) -> f64 {
    count(column) as f64 * 1e9 / column.to_ns.saturating_sub(column.from_ns).max(1) as f64
}

fn latency(trial: &InsideTrial, series: usize, bands: &Bands) -> Vec<Layer> {
    let Bands { low, step, high } = *bands;
    let cells = |column: &Column| {
        let all = number::total(column.bands.iter().map(|(_, count)| *count)) as f64;
        let from = |band: u16| low + ((f64::from(band) - low) / step).floor() * step;
        let bands = grouped(column.bands.iter().map(|(band, count)| (from(*band), *count as f64)));
        let x = (column.from_ns as f64, column.to_ns as f64);
        let cell = |(from, counts): (f64, Vec<f64>)| Cell {
            x,
            y: (band_ns(from), band_ns((from + step).min(high))),
            shade: 1 + SHADES_FROM.iter().filter(|least| counts.iter().sum::<f64>() / all >= **least).count(),
        };
        bands.into_iter().map(cell).collect::<Vec<_>>()
    };
    let mut cells = trial.columns.iter().flat_map(cells).collect::<Vec<_>>();
    // Cells are sorted by band, so that adjacent cells of one shade share a stroke.
    cells.sort_by(|a, b| a.y.0.total_cmp(&b.y.0));
    let line = |name: &str, of: fn(&Column) -> Option<f64>, dashed| {
        let at = |column: &Column| {
            let midpoint_ns = column.from_ns as f64 + (column.to_ns - column.from_ns) as f64 / 2.0;
            Some((midpoint_ns, of(column).filter(|ns| *ns > 0.0 && drawable(*ns))?))
        };
        let points = trial.columns.iter().filter_map(at).collect();
        Layer { name: name.to_owned(), ..Layer::new(None, Shape::Plain { points, dashed }) }
    };
    vec![
        Layer::new(series, Shape::Heat(cells)),
        line("p50", |column| column.p50_ns, false),
        line("p99", |column| column.p99_ns, true),
    ]
}

fn used(trial: &InsideTrial, series: usize, of: fn(&Process) -> &[(f64, f64)], is_cpu: bool) -> Vec<Layer> {
    let mut layers = Vec::new();
    for process in &trial.processes {
        let points = of(process).iter().copied().filter(|(_, value)| drawable(*value)).collect::<Vec<_>>();
        if process.role == Role::Generator {
            let mean = process.cpus_mean.filter(|mean| is_cpu && drawable(*mean));
            let across = |mean| vec![(0.0, mean), (trial.duration_ns as f64, mean)];
            let plain = |mean| Layer::new(None, Shape::Plain { points: across(mean), dashed: true });
            layers.extend(mean.map(|mean| Layer { name: "generator".to_owned(), ..plain(mean) }));
        } else if !points.is_empty() {
            let name = if process.role == Role::Server { "server" } else { &process.name }.to_owned();
            layers.push(Layer { name, ..Layer::new(style::dashed(series, layers.len()), Shape::Curve(points)) });
        }
    }
    layers
}
