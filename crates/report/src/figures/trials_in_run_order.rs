//! Trials in execution order, to show drift: relative to the mean of their design point, and the CPU speed around them.

use std::collections::BTreeMap;

use study::Metric;
use study::plan::Figure as Wanted;

use super::{Detail, Drawing, Facet, Grid, Key, MARKS, left_out, metric_of, tip};
use crate::panel::{Axis, Layer, Mark, Panel, Shape};
use analysis::findings::Findings;
use analysis::number::{self, drawable};

type Series = BTreeMap<usize, Vec<Mark>>;

pub(super) fn timeline(findings: &Findings, wanted: &Wanted, detail: Detail) -> Drawing {
    let metric = wanted.y.clone().unwrap_or_else(|| findings.metric.clone());
    let (unit, _) = metric_of(&metric);
    // One panel shows all design points by default, because the machine affects all points alike.
    let mut grid = Grid::new(findings, wanted, false, detail);
    grid.facets.retain(|factor| Some(&factor.name) == wanted.facet.as_ref());
    let (facets, more) = grid.facets();
    let labels = grid.series_labels();

    let of_facet = |facet: &Facet<'_>| {
        let mut marks = Series::new();
        for row in &facet.rows {
            let Some((series, mean)) = grid.series_of(row).zip(row.mean(&metric)) else { continue };
            for trial in &row.trials {
                let Some(value) = trial.values.get(&metric) else { continue };
                let y = (value / mean - 1.0) * 100.0;
                if drawable(y) {
                    let beside =
                        if trial.contended { "\nanother process ran on these CPUs before or after" } else { "" };
                    let (order, block, value) = (trial.order, trial.block, number::quantity(value, &unit));
                    let words = format!("trial {order}, block {block}: {value} ({y:+.1} %){beside}");
                    let tip = detail.tip(|| tip(&labels[&series], row, &words));
                    let mark = Mark { hollow: !trial.marks.is_empty(), ..Mark::at(f64::from(trial.order), y, tip) };
                    marks.entry(series).or_default().push(mark);
                }
            }
        }
        (facet.title.clone(), marks)
    };
    let panels = deviations(facets.iter().map(of_facet).collect(), 1.0, "deviation from the mean of its point, %");
    let title = wanted.title.clone().unwrap_or_else(|| format!("Trials over time, by {}", Metric::noun_of(&metric)));
    let caption =
        "One marker per trial, as deviation from the mean of its design point. Order is random within a block, so a \
         slope or a step comes from the machine, not from a server."
            .to_owned();
    let notes = [left_out(more, "panels are not drawn"), None];
    Drawing { name: format!("timeline-{metric}"), title, caption, ..grid.drawing(&facets, panels, notes) }
}

/// Minimum half-range in percent, so that a steady machine looks steady.
const WIDTH: f64 = 5.0;

pub(super) fn probes(findings: &Findings, detail: Detail) -> Option<Drawing> {
    let probed = findings.probes.as_ref().filter(|probed| probed.trials.len() > 1)?;
    let mut marks = BTreeMap::<u32, Vec<Mark>>::new();
    for trial in &probed.trials {
        for (when, aside, probes) in [("before", 0.0, &trial.probes.before), ("after", 0.5, &trial.probes.after)] {
            for probe in probes {
                let y = (probe.cpu_ns as f64 / probed.cpu_ns_median - 1.0) * 100.0;
                if !drawable(y) {
                    continue;
                }
                let [used, wall] = [probe.cpu_ns, probe.wall_ns].map(|ns| number::quantity(ns as f64, "ns"));
                let (cpu, order) = (probe.cpu, trial.order);
                let words = || format!("CPU {cpu}, {when} trial {order}: {used} of CPU time in {wall} ({y:+.1} %)");
                let tip = detail.tip(words);
                let mark = Mark { hollow: probe.is_contended(), ..Mark::at(f64::from(trial.order) + aside, y, tip) };
                marks.entry(probe.cpu).or_default().push(mark);
            }
        }
    }
    let hollow = if marks.values().flatten().any(|mark| mark.hollow) { "another process ran on this CPU" } else { "" };
    let label = |(series, cpu): (usize, &u32)| Key::measured(series, format!("CPU {cpu}"));
    let keys = marks.keys().enumerate().map(label).collect();
    let series = marks.into_values().enumerate().collect();
    let median = number::quantity(probed.cpu_ns_median, "ns");
    Some(Drawing {
        caption: format!(
            "CPU time of one fixed piece of work before and after each trial, as deviation from the median ({median}): \
             lower is faster. No value is adjusted for it."
        ),
        keys,
        hollow: hollow.to_owned(),
        panels: deviations(vec![(String::new(), series)], WIDTH, "CPU time, deviation from the median, %"),
        ..Drawing::new("probes", "CPU speed over the run")
    })
}

/// Draws deviations in percent of trials in run order, on common axes that show at least `least` percent.
fn deviations(panels: Vec<(String, Series)>, least: f64, label: &str) -> Vec<Panel> {
    let all = || panels.iter().flat_map(|(_, series)| series).flat_map(|(_, marks)| marks);
    let last = all().map(|mark| mark.x).fold(1.0, f64::max);
    let (low, high) = all().fold((-least, least), |(low, high), mark| (mark.y.min(low), mark.y.max(high)));
    let (x, y) = (Axis::linear(0.0, last, "", "trial, in run order"), Axis::linear(low, high, "", label));
    let is_many = all().count() > MARKS;
    let layers = |(series, marks): (usize, Vec<Mark>)| match is_many {
        true => Layer::dust(series, &marks, 0.0).collect(),
        false => vec![Layer::new(series, Shape::Marks { marks, joined: false })],
    };
    let panel = |(title, series): (String, Series)| {
        let layers = [Layer::new(None, Shape::Rule(0.0))].into_iter().chain(series.into_iter().flat_map(layers));
        Panel::new(title, x.clone(), y.clone(), layers.collect())
    };
    panels.into_iter().map(panel).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use analysis::analyze;
    use fixtures as example;

    #[test]
    fn marks_probes_hollow_if_another_process_ran() {
        let (run, records) = example::volley();
        let findings = analyze(&run, &records);
        let drawing = probes(&findings, Detail::FULL).unwrap();
        let labels = drawing.keys.iter().map(|key| key.label.as_str()).collect::<Vec<_>>();
        assert_eq!(labels, ["CPU 0", "CPU 1"]);
        assert_eq!(drawing.hollow, "another process ran on this CPU");
        let marks = drawing.panels[0].layers.iter().flat_map(|layer| match &layer.shape {
            Shape::Marks { marks, .. } => marks.as_slice(),
            _ => &[],
        });
        let marks = marks.collect::<Vec<_>>();
        assert_eq!(marks.len(), 4 * 88);
        let hollow = marks.iter().filter(|mark| mark.hollow).collect::<Vec<_>>();
        assert!(hollow.len() == 1 && hollow[0].x == 41.5, "{hollow:?}");
        assert!(hollow[0].tip.starts_with("CPU 1, after trial 41: 8.2"), "{}", hollow[0].tip);
        assert!(marks.iter().all(|mark| mark.y.abs() < WIDTH), "none is far from the median");
        assert!(probes(&analyze(&run, &records[..1]), Detail::FULL).is_none());
    }
}
