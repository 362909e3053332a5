//! Measured miss ratio over cache capacity, with simulated curves as thin dashed lines behind it.

use std::collections::BTreeSet;

use study::plan::Figure as Wanted;

use super::{Colours, Detail, Drawing, Face, Key, bars};
use crate::panel::{Axis, Layer, Mark, Panel, Shape};
use analysis::findings::{Findings, MissRatioCurve, MissRatioPoint, MissRatios};
use analysis::group_by_key::distinct;
use analysis::miss_ratio::capacity;
use analysis::number::{self, quantity};

pub(super) fn miss_ratio(findings: &Findings, index: usize, wanted: &Wanted, detail: Detail) -> Drawing {
    let found = || findings.miss_ratios.iter().filter(|found| found.figure == index);
    let colours = Colours::new(findings);
    let factor = findings.factors.iter().find(|factor| Some(&factor.name) == wanted.series.as_ref());
    let number = |curve: &MissRatioCurve| colours.of(factor, &findings.rows[curve.points.first()?.row]);
    let curves = found().flat_map(|panel| &panel.curves);
    let labels = distinct(curves.filter_map(|curve| Some((number(curve)?, curve.label.as_str()))));
    let policies = distinct(found().flat_map(|panel| &panel.policies).map(|policy| policy.name.as_str()));
    let behind = labels.iter().map(|(series, _)| series + 1).max().unwrap_or(0).max(colours.others());
    let measured = || found().flat_map(|panel| panel.curves.iter().flat_map(|curve| &curve.points));
    let simulated = || found().flat_map(|panel| panel.policies.iter().flat_map(|policy| &policy.points));
    let ends = |point: &MissRatioPoint| point.estimate.map_or(point.miss_ratio, |estimate| estimate.high);
    let most = measured().map(ends).chain(simulated().map(|point| point.miss_ratio)).fold(0.0, f64::max);
    let y = Axis::linear(0.0, most.clamp(0.01, 1.0), "1", "miss ratio");
    let capacities = measured().map(|point| point.capacity_bytes).chain(simulated().map(|point| point.capacity_bytes));
    let levels = capacities.collect::<BTreeSet<_>>().into_iter();
    let levels = levels.map(|bytes| (bytes as f64, capacity(bytes))).collect::<Vec<_>>();
    let x = match levels.as_slice() {
        [_, _, ..] => Axis::levels(&levels, "cache size", 0.04),
        one => Axis::linear(0.0, one.first().map_or(1.0, |(bytes, _)| *bytes), "bytes", "cache size"),
    };
    let panel = |found: &MissRatios| {
        let simulated = found.policies.iter().filter_map(|policy| {
            let place = policies.iter().position(|name| *name == policy.name)?;
            let points = policy.points.iter().map(|point| (point.capacity_bytes as f64, point.miss_ratio)).collect();
            Some(Layer::new(behind + place, Shape::Simulated(points)))
        });
        let before = found.curves.iter().filter_map(|curve| {
            let series = number(curve)?;
            let marks = curve.points.iter().map(|point| mark(findings, curve, point, detail)).collect();
            Some(Layer::new(series, Shape::Marks { marks, joined: true }))
        });
        let label = shares(found).map(|range| format!("{}: {range} of the footprint", x.label));
        let x = Axis { label: label.unwrap_or_else(|| x.label.clone()), ..x.clone() };
        Panel::new(found.panel.clone(), x, y.clone(), simulated.chain(before).collect())
    };
    let all = found().count();
    let panels = found().take(detail.panels).map(panel).collect::<Vec<_>>();
    let mut keys = labels.iter().map(|(series, label)| Key::measured(*series, *label)).collect::<Vec<_>>();
    let simulated = |(place, name): (usize, &&str)| Key::measured(behind + place, format!("{name}, simulated"));
    keys.extend(policies.iter().enumerate().map(|policy| Key { face: Face::Simulated, ..simulated(policy) }));
    let left_out = super::left_out(all - panels.len(), "panels are not drawn; the table has their numbers");
    let own_notes = distinct(found().flat_map(|found| found.notes.iter().cloned()));
    let bars = bars(findings, wanted.interval, ", where wider than the marker");
    let title = || format!("Miss ratio by {}", wanted.x.as_deref().unwrap_or("cache size"));
    Drawing {
        caption: format!(
            "Markers: means over trials; bars: {bars}. Thin, dashed: policies simulated on the operations of the trials."
        ),
        keys,
        hollow: super::hollow(measured().flat_map(|point| &findings.rows[point.row].marks)),
        panels,
        notes: left_out.into_iter().chain(super::not_shown(findings)).chain(own_notes).collect(),
        ..Drawing::new("miss-ratio", wanted.title.clone().unwrap_or_else(title))
    }
}

fn shares(found: &MissRatios) -> Option<String> {
    let shares = found.curves.iter().flat_map(|curve| curve.points.iter().filter_map(|point| point.footprint_share));
    let (low, high) = shares.fold((f64::INFINITY, 0.0_f64), |(low, high), share| (low.min(share), high.max(share)));
    (low <= high).then(|| format!("{} to {}", number::percent(low), number::percent(high)))
}

fn mark(findings: &Findings, curve: &MissRatioCurve, point: &MissRatioPoint, detail: Detail) -> Mark {
    let row = &findings.rows[point.row];
    let words = || {
        let mut text = match point.estimate {
            Some(estimate) => format!("miss ratio {:.4} ± {:.4}", estimate.point, estimate.half_width()),
            None => format!("miss ratio {:.4}, no interval", point.miss_ratio),
        };
        let of_footprint = |share| format!("\ncache size {} of the footprint", number::percent(share));
        text.extend(point.footprint_share.map(of_footprint));
        text.extend(point.memory_bytes.map(|bytes| format!("\n{} of memory used", quantity(bytes, "bytes"))));
        let deviates = if point.strays { ": deviates" } else { "" };
        let simulated = point.simulated.zip(curve.policy.as_ref());
        text.extend(simulated.map(|(ratio, policy)| format!("\nsimulated {policy} {ratio:.4}{deviates}")));
        super::tip(&curve.label, row, &text)
    };
    let bar = point.estimate.map(|estimate| (estimate.low.max(0.0), estimate.high.min(1.0)));
    Mark { bar, hollow: row.is_marked(), ..Mark::at(point.capacity_bytes as f64, point.miss_ratio, detail.tip(words)) }
}
