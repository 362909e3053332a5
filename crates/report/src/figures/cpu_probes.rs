//! CPU speed over the run, measured by a fixed piece of work before and after each trial.

use std::collections::BTreeMap;

use super::{Detail, Drawing, Key, MARKS};
use crate::panel::{Axis, Layer, Mark, Panel};
use analysis::findings::Findings;
use analysis::number::{self, drawable};

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
    let all = || marks.values().flatten();
    let last = all().map(|mark| mark.x).fold(1.0, f64::max);
    let (low, high) = all().fold((-WIDTH, WIDTH), |(low, high), mark| (mark.y.min(low), mark.y.max(high)));
    let many = all().count() > MARKS;
    let hollow = if all().any(|mark| mark.hollow) { "another process ran on this CPU" } else { "" };
    let x = Axis::linear(0.0, last, "", "trial, in run order");
    let y = Axis::linear(low, high, "", "CPU time, deviation from the median, %");
    let label = |(series, cpu): (usize, &u32)| Key::measured(series, format!("CPU {cpu}"));
    let keys = marks.keys().enumerate().map(label).collect();
    let layers = Layer::deviations(marks.into_values().enumerate(), many);
    let median = number::quantity(probed.cpu_ns_median, "ns");
    Some(Drawing {
        name: "probes".to_owned(),
        title: "CPU speed over the run".to_owned(),
        caption: format!(
            "CPU time of one fixed piece of work before and after each trial, as deviation from the median ({median}): \
             lower is faster. No value is adjusted for it."
        ),
        keys,
        hollow: hollow.to_owned(),
        panels: vec![Panel::new(String::new(), x, y, layers)],
        ..Drawing::default()
    })
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
        let marks = drawing.panels[0].layers.iter().flat_map(|layer| match layer {
            Layer::Marks { marks, .. } => marks.as_slice(),
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
