//! Flags trials and rows, judged over the whole report, without removing or correcting any of them.

use std::collections::BTreeMap;

use stats::growth_in_trials::Series;
use stats::outliers;
use stats::steady_start_test::{self, Steady};
use study::WarningKind;
use study::record::Record;

use crate::findings::{Row, SteadyFinding, TrialFinding, Warning};
use crate::value;

/// Names of the metrics checked for outliers; the others depend on them or carry little information.
const OUTLIERS_IN: [&str; 3] = ["throughput", "latency_mean", "latency_p99"];

pub(crate) fn halves(row: &Row, records: &[&Record]) -> Series {
    let places = records.iter().map(|record| (record.order, *record)).collect::<BTreeMap<_, _>>();
    let of_row = row.trials.iter().filter_map(|trial| Some(value::series(places.get(&trial.order)?.measurement()?)));
    steady_start_test::halves(&of_row.collect::<Vec<_>>())
}

/// Flags rows without a steady state. By chance, at most a share `error` of reports has a flag.
pub(crate) fn steady(rows: &mut [Row], halves: &[Series], error: f64) {
    for (row, Steady { reached, change: growth }) in rows.iter_mut().zip(steady_start_test::judge(halves, error)) {
        let (Some(reached), Some(log)) = (reached, growth.change) else { continue };
        let change = log.exp();
        row.steady = Some(SteadyFinding { reached, change, p_adjusted: growth.p_change });
        if !reached {
            let [point, low, high] = [change.point, change.low, change.high].map(|ratio| (ratio - 1.0) * 100.0);
            let change = format!("{point:+.1} % [{low:+.1}, {high:+.1}]");
            let text = format!("no steady state: the second half of a trial differs from the first by {change}");
            row.warnings.push(Warning::new(WarningKind::NotSteady, text, row.n));
        }
    }
}

/// Flags outlying trials. By chance, at most a share `error` of reports has a flag.
pub(crate) fn outliers(rows: &mut [Row], error: f64) {
    let values = |row: &Row, metric: &str| row.trials.iter().map(|trial| trial.known(metric)).collect::<Vec<_>>();
    let groups = rows.iter().flat_map(|row| OUTLIERS_IN.map(|metric| values(row, metric))).collect::<Vec<_>>();
    let mut found = outliers::outliers(&groups, error).into_iter();
    for row in rows {
        for (metric, trials) in OUTLIERS_IN.into_iter().zip(&mut found) {
            trials.into_iter().for_each(|trial| row.trials[trial].outlier_in.push(metric.to_owned()));
        }
        let flagged = row.trials.iter().filter(|trial| !trial.outlier_in.is_empty()).collect::<Vec<_>>();
        let metrics = |trial: &TrialFinding| trial.outlier_in.join(", ");
        let text = match flagged.as_slice() {
            [] => continue,
            [one] => {
                format!("the trial in block {} is an outlier in {}: flagged, not removed", one.block, metrics(one))
            }
            several => {
                let blocks = several.iter().map(|trial| trial.block.to_string()).collect::<Vec<_>>().join(", ");
                format!("{} trials are outliers (blocks {blocks}): flagged, not removed", several.len())
            }
        };
        row.warnings.push(Warning::new(WarningKind::Outlier, text, flagged.len()));
    }
}

#[cfg(test)]
mod tests {
    use study::record::Outcome;

    use super::*;
    use crate::{Findings, analyze, example};

    fn found(edit: impl Fn(&mut Record)) -> Findings {
        let (run, mut records) = example::volley();
        records.iter_mut().for_each(edit);
        analyze(&run, &records)
    }

    fn slower(record: &mut Record, factor: impl Fn(usize) -> f64) {
        let Outcome::Measured(measurement) = &mut record.outcome else { return };
        let windows = measurement.windows.len();
        for (at, window) in measurement.windows.iter_mut().enumerate() {
            window.latency.sum *= factor(at * 100 / windows);
        }
    }

    fn of_kind(findings: &Findings, kind: WarningKind) -> Vec<String> {
        let warnings = findings.warnings.iter().filter(|warning| warning.kind == kind);
        warnings.map(|warning| warning.text.clone()).collect()
    }

    #[test]
    fn slow_start_of_all_trials_is_flagged() {
        let even = found(|_| ());
        assert_eq!(of_kind(&even, WarningKind::NotSteady), [""; 0]);
        assert!(even.rows.iter().any(|row| row.steady.is_some_and(|steady| steady.reached)));
        let slow = found(|record| {
            if record.point == 2 {
                slower(record, |percent| if percent < 40 { 1.5 } else { 1.0 });
            }
        });
        let [line] = of_kind(&slow, WarningKind::NotSteady).try_into().unwrap();
        assert!(line.contains(": no steady state: the second half of a trial differs from the first by -2"), "{line}");
        let flagged = slow.rows.iter().filter(|row| row.steady.is_some_and(|steady| !steady.reached));
        assert_eq!(flagged.map(|row| row.point).collect::<Vec<_>>(), [2]);
    }

    #[test]
    fn one_changing_trial_does_not_flag_the_row() {
        let one = found(|record| {
            if record.block == 3 {
                slower(record, |percent| if percent < 50 { 2.0 } else { 1.0 });
            }
        });
        assert_eq!(of_kind(&one, WarningKind::NotSteady), [""; 0]);
    }

    #[test]
    fn outliers_are_flagged_but_kept() {
        let findings = found(|record| {
            if let (2 | 5, 5, Outcome::Measured(measurement)) = (record.point, record.block, &mut record.outcome) {
                measurement.requests *= 3;
            }
        });
        let [line] = of_kind(&findings, WarningKind::Outlier).try_into().unwrap();
        assert_eq!(
            line, "outliers (flagged, not removed) in 3 of 88 trials (3 design points)",
            "one is in the example"
        );
        let row = findings.rows.iter().find(|row| row.point == 2).unwrap();
        let flagged = row.trials.iter().filter(|trial| !trial.outlier_in.is_empty()).collect::<Vec<_>>();
        assert_eq!(flagged.iter().map(|trial| trial.block).collect::<Vec<_>>(), [5]);
        let values = row.trials.iter().map(|trial| trial.values.get("throughput").unwrap()).collect::<Vec<_>>();
        assert_eq!(row.metrics["throughput"].mean, stats::interval::average(&values), "with the outlier");
    }
}
