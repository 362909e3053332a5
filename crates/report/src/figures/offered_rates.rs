//! Figures of offered rates: latency quantiles over the rate, and the steps of a search.

use std::collections::BTreeSet;

use study::plan::{FigureKind, Level};

use super::{Colours, Detail, Drawing, Key, bars, is_drawable};
use crate::panel::{Axis, Layer, Mark, Panel, Shape};
use analysis::enum_words_and_lists::serde_name;
use analysis::findings::{
    Factor, Findings, Mark as RowMark, MetricFinding, Row, SearchFinding, SearchStep, SearchVerdict, TrialFinding,
};
use analysis::group_by_key::grouped;
use analysis::number::drawable;
use analysis::{label, number};

const QUANTILES: [(&str, &str); 3] = [("latency_p50", "p50"), ("latency_p99", "p99"), ("latency_p999", "p99.9")];
const LINES_MAX: usize = 8;
/// Relative difference below which two rates count as equal.
const SAME: f64 = 0.01;

struct Line<'a> {
    row: &'a Row,
    points: Vec<Point<'a>>,
}

struct Point<'a> {
    rate_per_s: f64,
    /// Latencies by quantile, in the order of [`QUANTILES`].
    values: [Option<MetricFinding>; QUANTILES.len()],
    marks: BTreeSet<RowMark>,
    row: &'a Row,
    trials: usize,
}

/// Draws a panel per quantile with a line per contender. `None` without several rates, or if the study has this figure.
pub(super) fn over_rate(findings: &Findings, detail: Detail) -> Option<Drawing> {
    let rate = rate_factor(findings);
    if rate.is_some_and(|rate| is_drawn(findings, rate)) {
        return None;
    }
    let is_rate = |factor: &Factor| rate.is_some_and(|rate| rate.name == factor.name);
    let names = findings.factors.iter().filter(|factor| factor.varies() && !is_rate(factor));
    let names = names.map(|factor| factor.name.clone()).collect::<Vec<_>>();
    let mut lines = lines(findings, &names);
    let left_out = lines.len().saturating_sub(LINES_MAX);
    lines.truncate(LINES_MAX);
    let series = Colours::new(findings).of_rows(&lines.iter().map(|line| line.row).collect::<Vec<_>>());
    let points = || lines.iter().flat_map(|line| &line.points);
    // An interval over few trials may extend below zero; its bar ends at the frame.
    let ends = points().flat_map(|point| point.values.iter().flatten()).flat_map(|value| {
        let ends = value.estimate.map(|found| [found.low, found.high]).into_iter().flatten();
        ends.filter(|end| *end > 0.0).chain(value.mean)
    });
    let y = Axis::of_values(ends, "ns", "latency");
    let x = Axis::of_values(points().map(|point| point.rate_per_s), "1/s", "offered rate");
    let known = |place: &usize| points().any(|point| point.values[*place].is_some());
    let panel = |place: usize| {
        let layers = lines.iter().zip(&series).map(|(line, series)| {
            let marks = line.points.iter().filter_map(|point| mark(point, place, &y, detail)).collect();
            Layer::new(*series, Shape::Marks { marks, joined: true })
        });
        Panel::new(QUANTILES[place].1.to_owned(), x.clone(), y.clone(), layers.collect())
    };
    let panels = (0..QUANTILES.len()).filter(known).map(panel).collect::<Vec<_>>();
    let panels = Some(panels).filter(|panels| !panels.is_empty())?;
    let label = |line: &Line<'_>| (!names.is_empty()).then(|| label::label(&names, &line.row.factors));
    let key = |(line, series): (_, &usize)| Key::measured(*series, label(line).unwrap_or(super::ALL.to_owned()));
    let rest = ", where wider than the marker; none for a single trial; one that ends at the frame continues beyond it";
    let bars = bars(findings, findings.level, rest);
    let bounds = points().any(|point| point.values.iter().flatten().any(|value| value.at_least));
    let marks = points().flat_map(|point| &point.marks).map(|mark| mark.text()).collect::<BTreeSet<_>>();
    let hollow = marks.into_iter().chain(bounds.then_some("a lower bound")).collect::<Vec<_>>().join(" or ");
    Some(Drawing {
        caption: format!("Markers: means over the trials at a rate, including search trials. Bars: {bars}."),
        keys: lines.iter().zip(&series).map(key).collect(),
        hollow,
        panels,
        notes: super::left_out(left_out, "lines are not drawn").into_iter().collect(),
        ..Drawing::new("over-rate", "Latency over the offered rate")
    })
}

/// Returns the numeric factor that changes the offered rate most; `None` if none changes it.
fn rate_factor(findings: &Findings) -> Option<&Factor> {
    let rated = findings.rows.iter().filter_map(|row| Some((row, offered(row)?))).collect::<Vec<_>>();
    let spread = |factor: &Factor| {
        let rest = |row: &Row| {
            let rest = row.factors.iter().filter(|(name, _)| **name != factor.name);
            rest.map(|(_, level)| level.clone()).collect::<Vec<_>>()
        };
        let pairs = rated.iter().flat_map(|one| rated.iter().map(move |other| (one, other)));
        let alike = pairs.filter(|((one, _), (other, _))| one.idle == other.idle && rest(one) == rest(other));
        alike.map(|((_, one), (_, other))| one / other).fold(1.0, f64::max)
    };
    let spreads = findings.factors.iter().filter(|factor| factor.numeric && factor.varies());
    let spreads = spreads.map(|factor| (spread(factor), factor)).filter(|(spread, _)| *spread > 1.0 + SAME);
    spreads.max_by(|a, b| a.0.total_cmp(&b.0)).map(|(_, factor)| factor)
}

/// Whether a figure of the study shows latency over the factor whose levels are the rates.
fn is_drawn(findings: &Findings, rate: &Factor) -> bool {
    let has = |figure: &study::plan::Figure| {
        matches!(figure.kind, FigureKind::Line | FigureKind::Interaction)
            && figure.x.as_ref() == Some(&rate.name)
            && figure.y.as_ref().is_some_and(|y| y.starts_with("latency_"))
    };
    let is_rate = |row: &Row| {
        let level = row.factors.get(&rate.name).and_then(Level::as_f64);
        offered(row).zip(level).is_none_or(|(offered, level)| (offered / level - 1.0).abs() <= SAME)
    };
    findings.figures.iter().any(has) && findings.rows.iter().all(is_rate)
}

/// Whether a logarithmic axis can show the value.
fn is_positive(value: f64) -> bool {
    value > 0.0 && drawable(value)
}

/// Mean offered rate over the trials of a row, per second; `None` in a closed loop.
fn offered(row: &Row) -> Option<f64> {
    let measured = row.trials.iter().filter(|trial| trial.failed.is_none());
    let rates = measured.map(|trial| trial.offered_per_s).collect::<Option<Vec<_>>>()?;
    stats::interval::average(&rates).filter(|rate| is_positive(*rate))
}

/// Lines of points over the rate. `names` are the factors that tell lines apart.
fn lines<'a>(findings: &'a Findings, names: &[String]) -> Vec<Line<'a>> {
    let keyed = |row: &'a Row| {
        let key = names.iter().map(|name| row.factors.get(name)).collect::<Vec<_>>();
        let points = points(findings, row);
        (!points.is_empty()).then_some(((key, row.idle), (row, points)))
    };
    let line = |(_, rows): (_, Vec<(&'a Row, Vec<Point<'a>>)>)| {
        let row = rows[0].0;
        let mut points = rows.into_iter().flat_map(|(_, points)| points).collect::<Vec<_>>();
        points.sort_by(|a, b| a.rate_per_s.total_cmp(&b.rate_per_s));
        Line { row, points }
    };
    // Rows precede capacities, because a line takes the label of its first row.
    let rows = findings.rows.iter().chain(&findings.capacities);
    let has_several = |line: &Line<'_>| match line.points.as_slice() {
        [first, .., last] => last.rate_per_s > first.rate_per_s * (1.0 + SAME),
        _ => false,
    };
    grouped(rows.filter_map(keyed)).into_iter().map(line).filter(has_several).collect()
}

fn points<'a>(findings: &Findings, row: &'a Row) -> Vec<Point<'a>> {
    let Some(search) = &row.search else {
        let value = |(metric, _): (&str, &str)| {
            let found = row.metrics.get(metric).filter(|found| found.mean.is_some_and(is_positive))?;
            Some(MetricFinding { estimate: found.estimate.filter(is_drawable), ..found.clone() })
        };
        let (values, marks) = (QUANTILES.map(value), row.marks.iter().copied().collect());
        let point = |rate_per_s| Point { rate_per_s, values, marks, row, trials: row.n };
        return offered(row).map(point).into_iter().collect();
    };
    let rates = grouped(search.steps.iter().filter_map(|step| {
        let rate = step.rate_per_s.filter(|rate| is_positive(*rate))?;
        Some((rate, step.trial.as_ref().filter(|trial| trial.failed.is_none())?))
    }));
    let point = |(rate_per_s, trials): (f64, Vec<&TrialFinding>)| {
        let value = |(metric, _): (&str, &str)| {
            let values = trials.iter().filter_map(|trial| trial.values.get(metric)).collect::<Vec<_>>();
            let at_least = trials.iter().any(|trial| trial.at_least.contains(metric));
            let all = values.len() == trials.len();
            let mean = stats::interval::average(&values).filter(|mean| all && is_positive(*mean))?;
            let estimate =
                stats::interval::mean(&values, findings.level).filter(|found| !at_least && is_drawable(found));
            Some(MetricFinding { mean: Some(mean), estimate, at_least, ..MetricFinding::default() })
        };
        let marks = trials.iter().flat_map(|trial| trial.marks.iter().copied()).collect();
        Point { rate_per_s, values: QUANTILES.map(value), marks, row, trials: trials.len() }
    };
    rates.into_iter().map(point).collect()
}

fn mark(point: &Point<'_>, place: usize, y: &Axis, detail: Detail) -> Option<Mark> {
    let value = point.values[place].as_ref()?;
    let mean = value.mean?;
    let (bottom, top) = y.ends();
    let words = || {
        let shown = match value.estimate {
            Some(found) => number::estimate(&found, "ns"),
            None if value.at_least => number::at_least(mean, "ns"),
            None => format!("{}, no interval", number::quantity(mean, "ns")),
        };
        let rate = number::quantity(point.rate_per_s, "1/s");
        let trials = number::count(point.trials as u64, "trial");
        super::tip(QUANTILES[place].1, point.row, &format!("at {rate}: {shown} ({trials})"))
    };
    let bar = value.estimate.map(|found| (found.low.max(bottom), found.high.min(top)));
    let hollow = !point.marks.is_empty() || value.at_least;
    Some(Mark { bar, hollow, ..Mark::at(point.rate_per_s, mean, detail.tip(words)) })
}

const VERDICTS: [&str; 5] = ["holds", "fails", "undecided", "generator-bound", "says nothing about the objective"];

fn series(step: &SearchStep) -> usize {
    match step.verdict {
        SearchVerdict::Holds => 0,
        SearchVerdict::Fails => 1,
        SearchVerdict::Undecided | SearchVerdict::TooFew => 2,
        SearchVerdict::Generator => 3,
        SearchVerdict::Unknown => 4,
    }
}

pub(super) fn steps(findings: &Findings, detail: Detail) -> Option<Drawing> {
    let searches = findings.searches().filter(|(_, search)| search.steps.iter().any(|step| step.rate_per_s.is_some()));
    let searches = searches.collect::<Vec<_>>();
    let (_, first) = searches.first()?;
    let shown = || searches.iter().take(detail.panels);
    let rates = shown().flat_map(|(_, search)| search.steps.iter().filter_map(|step| step.rate_per_s));
    let y = Axis::of_values(rates, "1/s", "offered rate");
    let last = shown().map(|(_, search)| search.steps.len()).max().unwrap_or(1);
    let x = Axis::linear(0.0, last as f64, "", "step, in run order");
    let first_number = Colours::new(findings).others();
    let alone = searches.len() == 1;
    let panel = |(row, search): &(&Row, &SearchFinding)| {
        let title = if alone { String::new() } else { row.label.clone() };
        Panel::new(title, x.clone(), y.clone(), layers(search, first_number, detail))
    };
    let tried = shown().flat_map(|(_, search)| search.steps.iter().filter(|step| step.rate_per_s.is_some()));
    let used = tried.map(series).collect::<BTreeSet<_>>();
    let left_out = searches.len().saturating_sub(detail.panels);
    Some(Drawing {
        caption: "One marker per trial, each with a fresh server, by its own verdict. Dashed: the ends of the range \
                  found; between them the verdict is unknown."
            .to_owned(),
        keys: used.into_iter().map(|series| Key::measured(first_number + series, VERDICTS[series])).collect(),
        panels: shown().map(panel).collect(),
        notes: super::left_out(left_out, "panels are not drawn").into_iter().collect(),
        ..Drawing::new("search", format!("Search for the highest rate at which {}", first.objective))
    })
}

fn layers(search: &SearchFinding, first_number: usize, detail: Detail) -> Vec<Layer> {
    let ends = [search.low, search.high].into_iter().flatten();
    let mut layers = ends.map(|end| Layer::new(None, Shape::Rule(end.rate_per_s))).collect::<Vec<_>>();
    let mut marks = vec![Vec::new(); VERDICTS.len()];
    for (index, step) in search.steps.iter().enumerate() {
        let Some(rate_per_s) = step.rate_per_s else { continue };
        let words = || format!("{}: {}\n{}", serde_name(step.purpose), number::quantity(rate_per_s, "1/s"), step.why);
        marks[series(step)].push(Mark::at((index + 1) as f64, rate_per_s, detail.tip(words)));
    }
    let marks = (first_number..).zip(marks).filter(|(_, marks)| !marks.is_empty());
    layers.extend(marks.map(|(series, marks)| Layer::new(series, Shape::Marks { marks, joined: false })));
    layers
}
