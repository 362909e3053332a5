//! The three charts of Whip (Waye, Chong and Dimoulas 2017) for any study: memory and store size over requests, time
//! per request over requests, and bytes per request.

use study::plan::{Figure as Wanted, FigureKind};

use super::series_colours::Colours;
use super::{Detail, Drawing, Key, bars, metric_over_factor};
use crate::panel::{Axis, Layer, Panel};
use analysis::findings::{Findings, OverRequests};
use analysis::group_by_key::distinct;
use analysis::number::drawable;

pub(super) fn memory(findings: &Findings, wanted: &Wanted, detail: Detail) -> Drawing {
    let of_proxies = findings.over_requests.iter().any(|found| found.what == "proxy_rss");
    let (whats, title) = match of_proxies {
        true => (["proxy_rss", "proxy_store"], "Proxy memory over requests"),
        false => (["subject_rss", "subject_store"], "Server memory over requests"),
    };
    let axes = [("Memory", "bytes", "resident set"), ("Store", "bytes", "keys, entries and names")];
    let title = wanted.title.clone().unwrap_or_else(|| title.to_owned());
    Drawing { name: "memorychart".to_owned(), title, ..draw(findings, &lines(findings, &whats, detail), &axes, "") }
}

pub(super) fn throughput(findings: &Findings, wanted: &Wanted, detail: Detail) -> Drawing {
    let tells = findings.over_requests.iter().any(|found| found.what == "proxy_time");
    let what = if tells { "proxy_time" } else { "latency" };
    let lines = lines(findings, &[what], detail);
    let title = if tells { "Proxy time over requests" } else { "Latency over requests" };
    let width = lines.first().map_or(0.0, |line| line.found.requests_a_point);
    let note = format!(" Each point is the mean of {width:.0} requests.");
    let title = wanted.title.clone().unwrap_or_else(|| title.to_owned());
    let drawing = draw(findings, &lines, &[("", "ns", "time per request")], &note);
    Drawing { name: "throughputchart".to_owned(), title, ..drawing }
}

/// Draws the bytes per request that proxies add: the metadata that they report, otherwise the traffic at both ends.
pub(super) fn network(findings: &Findings, wanted: &Wanted, detail: Detail) -> Drawing {
    let told = ["m1a_bytes_per_request", "m1b_bytes_per_request", "m2_bytes_per_request", "m3_bytes_per_request"];
    let seen = ["client_bytes_per_request", "subject_bytes_per_request"];
    let has = |name: &&str| findings.rows.iter().any(|row| row.metrics.contains_key(*name));
    let metrics = match told.iter().any(has) {
        true => told.iter().filter(|name| has(name)).collect::<Vec<_>>(),
        false => seen.iter().filter(|name| has(name)).collect(),
    };
    // Points without a proxy have none of these metrics and are omitted.
    let mut shown = findings.clone();
    shown.rows.retain(|row| metrics.iter().any(|name| row.metrics.contains_key(**name)));
    let mut names = metrics.iter().map(|name| (**name).to_owned());
    let title = Some(wanted.title.clone().unwrap_or_else(|| "Bytes per request".to_owned()));
    let x = wanted.x.clone().or(wanted.series.clone());
    let (y, y_more) = (names.next(), names.collect());
    let line = Wanted { kind: FigureKind::Line, title, x, y, y_more, series: None, ..wanted.clone() };
    Drawing { name: "networkchart".to_owned(), ..metric_over_factor::over(&shown, &line, detail) }
}

struct Line<'a> {
    found: &'a OverRequests,
    panel: usize,
    series: usize,
}

fn lines<'a>(findings: &'a Findings, whats: &[&str], detail: Detail) -> Vec<Line<'a>> {
    let found = || findings.over_requests.iter().filter(|found| whats.contains(&found.what.as_str()));
    let rows = distinct(found().map(|found| found.row));
    let series = Colours::new(findings).of_rows(&rows.iter().map(|row| &findings.rows[*row]).collect::<Vec<_>>());
    let line = |found: &'a OverRequests| {
        let panel = whats.iter().position(|what| *what == found.what)?;
        let place = rows.iter().position(|row| *row == found.row).filter(|place| *place < detail.panels)?;
        Some(Line { found, panel, series: series[place] })
    };
    found().filter_map(line).collect()
}

/// Creates a drawing without a name or title. `axes` has the title, unit and label of each panel.
fn draw(findings: &Findings, lines: &[Line<'_>], axes: &[(&str, &str, &str)], more: &str) -> Drawing {
    let band = bars(findings, findings.level, " over trials");
    let mut keys = Vec::<Key>::new();
    for line in lines {
        if keys.iter().all(|key| key.series != line.series) {
            let label = match findings.rows.len() {
                1 => super::ALL.to_owned(),
                _ => findings.rows[line.found.row].label.clone(),
            };
            keys.push(Key::measured(line.series, label));
        }
    }
    let panels = axes.iter().enumerate().filter_map(|(at, axis)| {
        let of_panel = lines.iter().filter(|line| line.panel == at).collect::<Vec<_>>();
        (!of_panel.is_empty()).then(|| panel(axis, &of_panel))
    });
    Drawing {
        caption: format!("Lines: means over trials, up to the end of the shortest. Shaded: {band}.{more}"),
        keys,
        panels: panels.collect(),
        notes: super::not_shown(findings),
        ..Drawing::default()
    }
}

fn panel((title, unit, axis): &(&str, &str, &str), lines: &[&Line<'_>]) -> Panel {
    let points = || lines.iter().flat_map(|line| &line.found.points);
    let most = points().map(|point| point.requests).fold(1.0, f64::max);
    let values =
        points().flat_map(|point| [Some(point.mean), point.low, point.high]).flatten().filter(|v| drawable(*v));
    let high = values.fold(0.0, f64::max);
    let layers = lines.iter().flat_map(|line| {
        let points = line.found.points.iter().map(|point| (point.requests, point.mean)).collect();
        let band =
            line.found.points.iter().filter_map(|point| Some((point.requests, point.low?.max(0.0), point.high?)));
        [Layer::Band { series: line.series, points: band.collect() }, Layer::Curve { series: line.series, points }]
    });
    Panel::new(
        (*title).to_owned(),
        Axis::linear(0.0, most, "", "requests"),
        Axis::linear(0.0, if high > 0.0 { high } else { 1.0 }, unit, axis),
        layers.collect(),
    )
}
