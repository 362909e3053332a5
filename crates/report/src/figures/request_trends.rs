//! The three charts of Whip (Waye, Chong and Dimoulas 2017) for any study: memory and store size over requests, time
//! per request over requests, and bytes per request.

use study::plan::{Figure as Wanted, FigureKind};

use super::{Colours, Detail, Drawing, Key, bars, metric_over_factor};
use crate::panel::{Axis, Layer, Panel, Shape};
use analysis::enum_words_and_lists::serde_name;
use analysis::findings::{Findings, OverRequests};
use analysis::group_by_key::distinct;
use analysis::number::drawable;

/// Draws memory and store size, or time per request, over requests: of proxies if there are any, else of the server.
pub(super) fn over_requests(findings: &Findings, wanted: &Wanted, detail: Detail) -> Drawing {
    let is_memory = wanted.kind == FigureKind::MemoryChart;
    let of_proxies = if is_memory { "proxy_rss" } else { "proxy_time" };
    let of_proxies = findings.over_requests.iter().any(|found| found.what == of_proxies);
    let (whats, title) = match (is_memory, of_proxies) {
        (true, true) => (vec!["proxy_rss", "proxy_store"], "Proxy memory over requests"),
        (true, false) => (vec!["subject_rss", "subject_store"], "Server memory over requests"),
        (false, true) => (vec!["proxy_time"], "Proxy time over requests"),
        (false, false) => (vec!["latency"], "Latency over requests"),
    };
    let axes = match is_memory {
        true => vec![("Memory", "bytes", "resident set"), ("Store", "bytes", "keys, entries and names")],
        false => vec![("", "ns", "time per request")],
    };
    let found = || findings.over_requests.iter().filter(|found| whats.contains(&found.what.as_str()));
    let all = distinct(found().map(|found| found.row));
    let series = Colours::new(findings).of_rows(&all.iter().map(|row| &findings.rows[*row]).collect::<Vec<_>>());
    let shown = all.into_iter().zip(series).take(detail.panels).collect::<Vec<_>>();
    let series_of = |found: &OverRequests| Some(shown.iter().find(|(row, _)| *row == found.row)?.1);
    let lines = found().filter_map(|found| Some((found, series_of(found)?))).collect::<Vec<_>>();
    let label = |row: usize| if findings.rows.len() == 1 { super::ALL } else { &findings.rows[row].label };
    let panels = whats.iter().zip(axes).filter_map(|(what, axis)| {
        let of_panel = lines.iter().copied().filter(|(found, _)| found.what == *what).collect::<Vec<_>>();
        (!of_panel.is_empty()).then(|| panel(axis, &of_panel))
    });
    let band = bars(findings, findings.level, " over trials");
    let width = lines.first().map_or(0.0, |(found, _)| found.requests_a_point);
    let more = if is_memory { String::new() } else { format!(" Each point is the mean of {width:.0} requests.") };
    Drawing {
        caption: format!("Lines: means over trials, up to the end of the shortest. Shaded: {band}.{more}"),
        keys: shown.iter().map(|(row, series)| Key::measured(*series, label(*row))).collect(),
        panels: panels.collect(),
        notes: super::not_shown(findings),
        ..Drawing::new(serde_name(wanted.kind), wanted.title.as_deref().unwrap_or(title))
    }
}

/// Draws the bytes per request that proxies add: the metadata that they report, otherwise the traffic at both ends.
pub(super) fn network(findings: &Findings, wanted: &Wanted, detail: Detail) -> Drawing {
    let told = ["m1a_bytes_per_request", "m1b_bytes_per_request", "m2_bytes_per_request", "m3_bytes_per_request"];
    let seen = ["client_bytes_per_request", "subject_bytes_per_request"];
    let has = |name: &&str| findings.rows.iter().any(|row| row.metrics.contains_key(*name));
    let metrics = if told.iter().any(has) { told.as_slice() } else { &seen };
    let metrics = metrics.iter().copied().filter(has).collect::<Vec<_>>();
    // Points without a proxy have none of these metrics and are omitted.
    let mut shown = findings.clone();
    shown.rows.retain(|row| metrics.iter().any(|name| row.metrics.contains_key(*name)));
    let mut names = metrics.iter().map(|name| (*name).to_owned());
    let title = Some(wanted.title.clone().unwrap_or_else(|| "Bytes per request".to_owned()));
    let x = wanted.x.clone().or(wanted.series.clone());
    let (y, y_more) = (names.next(), names.collect());
    let line = Wanted { kind: FigureKind::Line, title, x, y, y_more, series: None, ..wanted.clone() };
    Drawing { name: "networkchart".to_owned(), ..metric_over_factor::over(&shown, &line, detail) }
}

fn panel((title, unit, axis): (&str, &str, &str), lines: &[(&OverRequests, usize)]) -> Panel {
    let points = || lines.iter().flat_map(|(found, _)| &found.points);
    let most = points().map(|point| point.requests).fold(1.0, f64::max);
    let values = points().flat_map(|point| [Some(point.mean), point.low, point.high]).flatten();
    let high = values.filter(|value| drawable(*value)).fold(0.0, f64::max);
    let layers = lines.iter().flat_map(|&(found, series)| {
        let line = found.points.iter().map(|point| (point.requests, point.mean)).collect();
        let band = found.points.iter().filter_map(|point| Some((point.requests, point.low?.max(0.0), point.high?)));
        [Layer::new(series, Shape::Band(band.collect())), Layer::new(series, Shape::Curve(line))]
    });
    let (x, y) = (Axis::linear(0.0, most, "", "requests"), if high > 0.0 { high } else { 1.0 });
    Panel::new(title.to_owned(), x, Axis::linear(0.0, y, unit, axis), layers.collect())
}
