//! The three charts of Whip (Waye, Chong and Dimoulas 2017) for any study: memory and store over requests, time of a request over requests,
//! bytes a request.

use study::plan::Figure as Wanted;

use super::{Detail, Drawing, Key, over, percent};
use crate::chart::{Axis, Layer, Panel, drawable};
use crate::findings::Findings;
use crate::over_requests::OverRequests;

/// Resident set over requests; where there is a store, its size thin and dashed.
pub(super) fn memory(findings: &Findings, wanted: &Wanted, detail: Detail) -> Drawing {
    let of_middles = findings.over_requests.iter().any(|found| found.what == "middle_rss");
    let whats = if of_middles { ["middle_rss", "middle_store"] } else { ["subject_rss", "subject_store"] };
    let lines = lines(findings, &whats, detail);
    let title = if of_middles { "Memory of the middle over requests" } else { "Memory of the subject over requests" };
    let stores = lines.iter().any(|line| line.dashed);
    let store = if stores { " Thin and dashed: size of the store." } else { "" };
    draw(findings, wanted, "memorychart", title, ("bytes", "memory"), &lines, store)
}

/// Time over requests: what middles took of a call for themselves, where they tell it; else the latency.
pub(super) fn throughput(findings: &Findings, wanted: &Wanted, detail: Detail) -> Drawing {
    let tells = findings.over_requests.iter().any(|found| found.what == "middle_time");
    let what = if tells { "middle_time" } else { "latency" };
    let lines = lines(findings, &[what, ""], detail);
    let title = if tells { "Time of the middle over requests" } else { "Latency over requests" };
    let width = lines.first().map_or(0.0, |line| line.found.requests_a_point);
    let note = format!(" Each point is the mean of {width:.0} requests.");
    draw(findings, wanted, "throughputchart", title, ("ns", "time a request"), &lines, &note)
}

/// Bytes a request that middles add: what they tell of their metadata, else what passes at both ends.
pub(super) fn network(findings: &Findings, wanted: &Wanted, detail: Detail) -> Drawing {
    let told = ["m1a_bytes_per_request", "m1b_bytes_per_request", "m2_bytes_per_request", "m3_bytes_per_request"];
    let seen = ["client_bytes_per_request", "subject_bytes_per_request"];
    let has = |name: &&str| findings.rows.iter().any(|row| row.metrics.contains_key(*name));
    let metrics = match told.iter().any(has) {
        true => told.iter().filter(|name| has(name)).collect::<Vec<_>>(),
        false => seen.iter().filter(|name| has(name)).collect(),
    };
    // Points that pass no middle have nothing to show, and no place.
    let mut shown = findings.clone();
    shown.rows.retain(|row| metrics.iter().any(|name| row.metrics.contains_key(**name)));
    let mut names = metrics.iter().map(|name| (**name).to_owned());
    let mut drawn = over::line(
        &shown,
        &Wanted {
            y: names.next(),
            y_more: names.collect(),
            x: wanted.x.clone().or(wanted.series.clone()),
            series: None,
            ..wanted.clone()
        },
        detail,
    );
    drawn.name = "networkchart".to_owned();
    drawn.title = wanted.title.clone().unwrap_or_else(|| "Bytes a request".to_owned());
    drawn
}

struct Line<'a> {
    found: &'a OverRequests,
    series: usize,
    label: String,
    dashed: bool,
}

/// The first of `whats` as lines, the second thin and dashed; one colour for one row.
fn lines<'a>(findings: &'a Findings, whats: &[&str; 2], detail: Detail) -> Vec<Line<'a>> {
    let mut rows: Vec<usize> = Vec::new();
    let wanted = findings.over_requests.iter().filter(|found| whats.contains(&found.what.as_str()));
    let line = |found: &'a OverRequests| {
        if !rows.contains(&found.row) {
            rows.push(found.row);
        }
        let series = rows.iter().position(|row| *row == found.row)?;
        let (label, dashed) = (findings.rows[found.row].label.clone(), found.what != whats[0]);
        (series < detail.panels).then_some(Line { found, series, label, dashed })
    };
    wanted.filter_map(line).collect()
}

fn draw(
    findings: &Findings,
    wanted: &Wanted,
    name: &str,
    title: &str,
    (unit, axis): (&str, &str),
    lines: &[Line<'_>],
    more: &str,
) -> Drawing {
    let points = || lines.iter().flat_map(|line| &line.found.points);
    let most = points().map(|point| point.requests).fold(1.0, f64::max);
    let values =
        points().flat_map(|point| [Some(point.mean), point.low, point.high]).flatten().filter(|v| drawable(*v));
    let high = values.fold(0.0, f64::max);
    let x = Axis::linear(0.0, most, "", "requests");
    let y = Axis::linear(0.0, if high > 0.0 { high } else { 1.0 }, unit, axis);
    let rows = lines.iter().map(|line| line.series + 1).max().unwrap_or(0);
    let of_line = |line: &Line<'_>| {
        let points = line.found.points.iter().map(|point| (point.requests, point.mean)).collect();
        if line.dashed {
            return vec![Layer::Simulated { series: rows + line.series, points }];
        }
        let band =
            line.found.points.iter().filter_map(|point| Some((point.requests, point.low?.max(0.0), point.high?)));
        vec![Layer::Band { series: line.series, points: band.collect() }, Layer::Curve { series: line.series, points }]
    };
    let layers = lines.iter().flat_map(of_line).collect();
    let key = |line: &Line<'_>| Key {
        series: if line.dashed { rows + line.series } else { line.series },
        label: if line.dashed { format!("{}, store", line.label) } else { line.label.clone() },
        simulated: line.dashed,
    };
    let band = match findings.quick {
        true => "Shaded: a quick look, which claims no level of confidence.".to_owned(),
        false => format!("Shaded: {} % intervals over trials.", percent(findings.level)),
    };
    let panel = Panel { title: String::new(), x, y, layers, slot: 0.0 };
    Drawing {
        name: name.to_owned(),
        title: wanted.title.clone().unwrap_or_else(|| title.to_owned()),
        caption: format!("Lines: means over trials, as far as the shortest goes. {band}{more}"),
        keys: lines.iter().map(key).collect(),
        hollow: String::new(),
        panels: if lines.is_empty() { Vec::new() } else { vec![panel] },
        notes: super::not_shown(findings),
    }
}
