//! How fast the processors were over the run, by the fixed piece of work before and after each trial.

use std::collections::BTreeMap;

use super::{Detail, Drawing, Key, MARKS};
use crate::chart::{Axis, Layer, Mark, Panel, drawable};
use crate::findings::Findings;
use crate::number;

/// `None` where fewer than two trials have it: nothing is over time then.
pub(super) fn probes(findings: &Findings, detail: Detail) -> Option<Drawing> {
    let probed = findings.probes.as_ref().filter(|probed| probed.trials.len() > 1)?;
    let mut marks = BTreeMap::<u32, Vec<Mark>>::new();
    for trial in &probed.trials {
        for (when, aside, probes) in [("before", 0.0, &trial.probes.before), ("after", 0.5, &trial.probes.after)] {
            for probe in probes.iter().filter(|probe| drawable(probe.cpu_ns as f64)) {
                let words = format!(
                    "processor {}, {when} trial {}: {} of CPU time in {}",
                    probe.cpu,
                    trial.order,
                    number::quantity(probe.cpu_ns as f64, "ns"),
                    number::quantity(probe.wall_ns as f64, "ns")
                );
                marks.entry(probe.cpu).or_default().push(Mark {
                    x: f64::from(trial.order) + aside,
                    y: probe.cpu_ns as f64,
                    aside: 0.0,
                    bar: None,
                    hollow: probe.is_contended(),
                    tip: if detail.tips { words } else { String::new() },
                });
            }
        }
    }
    let all = || marks.values().flatten();
    let last = all().map(|mark| mark.x).fold(1.0, f64::max);
    let many = all().count() > MARKS;
    let hollow = if all().any(|mark| mark.hollow) { "another process had the processor, too" } else { "" };
    let x = Axis::linear(0.0, last, "", "trial, in the order they ran");
    let y = Axis::of_values(all().map(|mark| mark.y), "ns", "CPU time");
    let label = |(series, cpu): (usize, &u32)| Key { series, label: format!("processor {cpu}"), simulated: false };
    let keys = marks.keys().enumerate().map(label).collect();
    let mut layers = vec![Layer::Rule(probed.cpu_ns_median)];
    for (series, marks) in marks.into_values().enumerate() {
        if many {
            layers.extend(Layer::dust(series, &marks, 0.0));
        } else {
            layers.push(Layer::Marks { series, marks, joined: false, aside: 0.0 });
        }
    }
    Some(Drawing {
        name: "probes".to_owned(),
        title: "Speed of the processors over the run".to_owned(),
        caption: format!(
            "CPU time of one fixed piece of work before and after each trial: lower is faster. Dashed: the median, {}. No value is adjusted by \
             it.",
            number::quantity(probed.cpu_ns_median, "ns")
        ),
        keys,
        hollow: hollow.to_owned(),
        panels: vec![Panel { title: String::new(), x, y, layers, slot: 0.0 }],
        notes: Vec::new(),
    })
}
