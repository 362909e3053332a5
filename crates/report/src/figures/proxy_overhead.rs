//! Overhead of proxies: differences from `direct` by block, with intervals.

use study::Metric;
use study::plan::Figure as Wanted;
use study::process_plan::THROUGH;

use super::{Colours, Detail, Drawing, Key, bars, metric_of, place_of};
use crate::panel::{Axis, Layer, Mark, Panel, Shape};
use analysis::findings::{Added, AddedMetric, Findings};
use analysis::group_by_key::grouped;
use analysis::number::drawable;
use analysis::proxy_overhead;

pub(super) fn added(findings: &Findings, wanted: &Wanted, detail: Detail) -> Drawing {
    let mut metrics = vec![wanted.y.clone().unwrap_or_else(|| "latency_p50".to_owned())];
    metrics.extend(wanted.y_more.iter().cloned());
    let colours = Colours::new(findings);
    let through = findings.factors.iter().find(|factor| factor.name == THROUGH);
    let rows = grouped(findings.added.iter().map(|found| (found.through.as_str(), &findings.rows[found.row])));
    let series = rows.into_iter().enumerate().map(|(index, (name, rows))| {
        let place = through.and_then(|factor| place_of(factor, rows[0])).unwrap_or(index);
        (colours.number(colours.first_of(through), place, rows[0]), name)
    });
    let series = series.collect::<Vec<_>>();
    let panel = |metric: &String| panel(findings, metric, &series, detail);
    let panels = metrics.iter().filter_map(panel).take(detail.panels).collect::<Vec<_>>();
    let bars = bars(findings, findings.level, " over blocks");
    Drawing {
        caption: format!(
            "Markers: mean over blocks of the trial through the proxy minus the direct trial. Bars: {bars}."
        ),
        keys: series.iter().map(|(series, label)| Key::measured(*series, *label)).collect(),
        panels,
        notes: super::not_shown(findings),
        ..Drawing::new(format!("added-{}", metrics[0]), wanted.title.as_deref().unwrap_or("Proxy overhead"))
    }
}

fn panel(findings: &Findings, metric: &str, series: &[(usize, &str)], detail: Detail) -> Option<Panel> {
    let (unit, text) = metric_of(metric);
    let all = findings.added.iter().filter_map(|found| Some((found, found.metric(metric)?))).collect::<Vec<_>>();
    let points = all.iter().filter(|(_, found)| drawable(point(found))).collect::<Vec<_>>();
    let points = Some(points).filter(|points| !points.is_empty())?;
    let ends = |found: &AddedMetric| found.difference.map_or([point(found); 2], |found| [found.low, found.high]);
    let ends = points.iter().flat_map(|(_, found)| ends(found)).filter(|value| drawable(*value));
    let (low, high) = ends.fold((0.0, 0.0), |(low, high): (f64, f64), value| (low.min(value), high.max(value)));
    let values = Axis::linear(low, if high > low { high } else { low + 1.0 }, &unit, &format!("added {text}"));
    let place = |found: &Added| if found.place.is_empty() { String::new() } else { format!(", {}", found.place) };
    let name = |found: &Added| format!("{}{}", found.through, place(found));
    let names = points.iter().map(|(found, _)| name(found)).collect::<Vec<_>>();
    let layers = series.iter().map(|(series, through)| {
        let of_it = points.iter().enumerate().filter(|(_, (found, _))| found.through == *through);
        let marks = of_it.map(|(slot, (found, metric))| {
            let change = |difference| format!("\n{}", proxy_overhead::change(difference, &unit, findings.quick));
            let tip = detail.tip(|| name(found) + &metric.difference.as_ref().map(change).unwrap_or_default());
            let bar = metric.difference.map(|difference| (difference.low, difference.high));
            Mark { bar, hollow: findings.rows[found.row].is_marked(), ..Mark::at(point(metric), slot as f64, tip) }
        });
        Layer::new(*series, Shape::Marks { marks: marks.collect(), joined: false })
    });
    Some(Panel {
        slot: 25.0,
        ..Panel::new(Metric::heading_of(metric).to_owned(), values, Axis::slots(&names, ""), layers.collect())
    })
}

fn point(found: &AddedMetric) -> f64 {
    found.difference.map_or(found.through - found.direct, |difference| difference.point)
}
