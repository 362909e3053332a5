//! Trials in execution order, relative to the mean of their design point, to show drift.

use study::Metric;
use study::plan::Figure as Wanted;

use super::{Detail, Drawing, Grid, MARKS, left_out, metric_of, tip};
use crate::panel::{Axis, Layer, Mark, Panel};
use analysis::findings::Findings;
use analysis::number::{self, drawable};

pub(super) fn timeline(findings: &Findings, wanted: &Wanted, detail: Detail) -> Drawing {
    let metric = wanted.y.clone().unwrap_or_else(|| findings.metric.clone());
    let (unit, _) = metric_of(&metric);
    // One panel shows all design points by default, because the machine affects all points alike.
    let mut grid = Grid::new(findings, wanted, false, detail);
    grid.facets.retain(|factor| Some(&factor.name) == wanted.facet.as_ref());
    let (facets, more) = grid.facets();
    let labels = grid.series_labels();

    let mut all: Vec<Vec<(usize, Mark)>> = Vec::new();
    for facet in &facets {
        let mut marks = Vec::new();
        for row in &facet.rows {
            let (Some(series), Some(mean)) = (grid.series_of(row), row.mean(&metric)) else {
                continue;
            };
            for trial in &row.trials {
                let Some(value) = trial.values.get(&metric) else { continue };
                let y = (value / mean - 1.0) * 100.0;
                if drawable(y) {
                    let beside =
                        if trial.contended { "\nanother process ran on these CPUs before or after" } else { "" };
                    let (order, block, value) = (trial.order, trial.block, number::quantity(value, &unit));
                    let words = format!("trial {order}, block {block}: {value} ({y:+.1} %){beside}");
                    let tip = detail.tip(|| tip(&labels[&series], row, &words));
                    let hollow = !trial.marks.is_empty();
                    marks.push((series, Mark { hollow, ..Mark::at(f64::from(trial.order), y, tip) }));
                }
            }
        }
        all.push(marks);
    }
    let of_all = |pick: fn(&Mark) -> f64| all.iter().flatten().map(move |(_, mark)| pick(mark));
    let last = of_all(|mark| mark.x).fold(1.0, f64::max);
    let (low, high) = of_all(|mark| mark.y).fold((-1.0, 1.0), |(low, high): (f64, f64), y| (low.min(y), high.max(y)));
    let y = Axis::linear(low, high, "", "deviation from the mean of its point, %");
    let x = Axis::linear(0.0, last, "", "trial, in run order");
    let many = all.iter().map(Vec::len).sum::<usize>() > MARKS;

    let panel = |(facet, marks): (&super::Facet<'_>, &Vec<(usize, Mark)>)| {
        let own = |series: &usize| marks.iter().filter(|(of, _)| of == series).map(|(_, mark)| mark.clone()).collect();
        let layers = Layer::deviations(labels.keys().map(|series| (*series, own(series))), many);
        Panel::new(facet.title.clone(), x.clone(), y.clone(), layers)
    };
    let panels = facets.iter().zip(&all).map(panel).collect();
    let title = wanted.title.clone().unwrap_or_else(|| format!("Trials over time, by {}", Metric::noun_of(&metric)));
    let caption =
        "One marker per trial, as deviation from the mean of its design point. Order is random within a block, so a \
         slope or a step comes from the machine, not from a server."
            .to_owned();
    let left_out = left_out(more, "panels are not drawn");
    Drawing { name: format!("timeline-{metric}"), title, caption, ..grid.drawing(&facets, panels, left_out) }
}
