//! Computes the latency of each operation of a journey, kind of request, or stage of a changing rate, by design point.

use study::load_shape::{self, Stage};
use study::record::{Histogram, JourneyMeasurement, Measurement, OperationMeasurement, Record, Window};

use crate::findings::{OperationFinding, OverTrials, RowOperations};
use crate::group_by_key::distinct;
use crate::number::total;
use crate::{load_report, merge_histograms};

/// Computes one entry per journey of a row. The row index is set once all rows are known.
pub(crate) fn operations(records: &[&Record], level: f64) -> Vec<RowOperations> {
    let measured = records.iter().filter_map(|record| record.measurement()).collect::<Vec<_>>();
    let names = distinct(measured.iter().flat_map(|one| &one.journeys).map(|one| one.name.as_str()));
    let of_journey = |name: &&str| {
        let journeys = measured.iter().filter_map(|one| one.journeys.iter().find(|journey| journey.name == **name));
        row(&journeys.collect::<Vec<_>>(), Vec::new(), level)
    };
    let mut found = names.iter().filter_map(of_journey).collect::<Vec<_>>();
    if names.is_empty() {
        found.extend(row(&[], measured.iter().map(|measured| &measured.by_request[..]).collect(), level));
    }
    found.extend(by_stage(&measured, level));
    found
}

const RAMP_PARTS_MAX: usize = 10;

/// Computes the results per stage of a changing rate, with ramps split into parts; `None` if the rate does not change.
fn by_stage(measured: &[&Measurement], level: f64) -> Option<RowOperations> {
    let of_trials = measured.iter().map(|measurement| {
        let stages = load_report::stage_windows(measurement).into_iter().flat_map(|(stage, windows)| {
            let most = if stage.from == stage.to { 1 } else { RAMP_PARTS_MAX };
            load_report::stage_parts(stage, windows, most).collect::<Vec<_>>()
        });
        stages.enumerate().map(|(at, (stage, windows))| stage_measurement(at + 1, stage, windows)).unzip()
    });
    let of_trials = of_trials.collect::<Vec<(Vec<f64>, Vec<OperationMeasurement>)>>();
    let mut found = row(&[], of_trials.iter().map(|(_, stages)| stages.as_slice()).collect(), level)?;
    for (at, operation) in found.operations.iter_mut().enumerate() {
        let rate = |(rates, stages): &(Vec<f64>, Vec<OperationMeasurement>)| {
            stages.get(at).filter(|stage| stage.name == operation.name).map(|_| rates[at])
        };
        operation.rate_per_s = Some(OverTrials::new(of_trials.iter().map(rate).collect(), level));
    }
    Some(found)
}

fn stage_measurement(nth: usize, stage: Stage, windows: &[Window]) -> (f64, OperationMeasurement) {
    let latency = merge_histograms::merge(windows.iter().map(|window| &window.latency)).unwrap_or_default();
    let requests = total(windows.iter().map(|window| window.requests));
    let errors = total(windows.iter().map(|window| window.errors));
    let name = format!("{nth}: {}", load_shape::text(&[stage]));
    let measured = OperationMeasurement { name, requests, errors, service: (&latency).into(), first_byte: None };
    (requests as f64 / (stage.duration_ns as f64 / 1e9), measured)
}

fn row(journeys: &[&JourneyMeasurement], mixes: Vec<&[OperationMeasurement]>, level: f64) -> Option<RowOperations> {
    let of_trials = journeys.iter().map(|journey| &journey.operations[..]).chain(mixes).collect::<Vec<_>>();
    let names = distinct(of_trials.iter().copied().flatten().map(|operation| operation.name.as_str()));
    let journey = journeys.first().map(|journey| journey.name.clone());
    let completed = total(journeys.iter().map(|journey| journey.completed));
    let abandoned = total(journeys.iter().map(|journey| journey.abandoned));
    let operations = names.into_iter().map(|name| operation(name, &of_trials, level)).collect::<Vec<_>>();
    (!operations.is_empty()).then_some(RowOperations { row: 0, journey, completed, abandoned, operations })
}

fn operation(name: &str, of_trials: &[&[OperationMeasurement]], level: f64) -> OperationFinding {
    let trials = of_trials.iter().map(|operations| operations.iter().find(|operation| operation.name == name));
    let trials = trials.collect::<Vec<_>>();
    let present = || trials.iter().flatten();
    // A mean over only the trials with enough calls would be biased.
    let over = |value: &dyn Fn(&OperationMeasurement) -> Option<f64>| {
        let values = trials.iter().map(|trial| value((*trial)?).filter(|value| value.is_finite()));
        OverTrials::new(values.collect::<Option<Vec<_>>>(), level)
    };
    let quantile = |q: f64, of: fn(&OperationMeasurement) -> Option<&Histogram>| {
        over(&|operation| {
            let times = merge_histograms::from_record(of(operation)?)?;
            times.quantile(q).filter(|_| times.len() >= stats::order_statistics::samples_needed(q, level))
        })
    };
    let (name, requests) = (name.to_owned(), total(present().map(|operation| operation.requests)));
    let errors = total(present().map(|operation| operation.errors));
    let latency_mean = over(&|operation| operation.service.mean());
    let [latency_p50, latency_p99] = [0.5, 0.99].map(|q| quantile(q, |operation| Some(&operation.service)));
    let first_byte_p50 = quantile(0.5, |operation| operation.first_byte.as_ref());
    let rate_per_s = None;
    OperationFinding { name, requests, errors, latency_mean, latency_p50, latency_p99, first_byte_p50, rate_per_s }
}

#[cfg(test)]
mod tests {
    use study::record::Outcome;

    use super::*;
    use crate::{analyze, example};

    fn histogram(values: &[u64]) -> study::record::Histogram {
        let mut histogram = stats::Histogram::with_precision(stats::Histogram::WINDOW_PRECISION);
        values.iter().for_each(|value| histogram.record(*value));
        (&histogram).into()
    }

    #[test]
    fn each_operation_is_listed() {
        let (run, mut records) = example::volley();
        let findings = analyze(&run, &records);
        assert_eq!(findings.operations.len(), 0, "no journey");
        for record in records.iter_mut().filter(|record| record.point == 1) {
            let mean = 1000 + u64::from(record.block);
            let Outcome::Measured(measurement) = &mut record.outcome else { continue };
            let one = |name: &str, values: &[u64], errors| OperationMeasurement {
                name: name.to_owned(),
                requests: values.len() as u64,
                errors,
                service: histogram(values),
                first_byte: (name == "look").then(|| histogram(&[500; 400])),
            };
            let visit = JourneyMeasurement { name: "visit".to_owned(), completed: 3, ..JourneyMeasurement::default() };
            let shop = JourneyMeasurement {
                name: "shop".to_owned(),
                completed: 10,
                abandoned: 1,
                operations: vec![one("look", &[mean; 400], 0), one("pay", &[5000; 10], 1), one("leave", &[], 0)],
                ..JourneyMeasurement::default()
            };
            let operations = vec![one("look", &[7], 0)];
            measurement.journeys = vec![shop, JourneyMeasurement { operations, ..visit }];
        }
        let findings = analyze(&run, &records);
        let [found, visit] = findings.operations.as_slice() else { panic!("{:?}", findings.operations) };
        assert_eq!((found.journey.as_deref(), found.completed, found.abandoned), (Some("shop"), 80, 8));
        assert_eq!((visit.journey.as_deref(), visit.row, visit.completed), (Some("visit"), found.row, 24));
        assert_eq!(visit.operations[0].requests, 8);
        assert_eq!(found.operations[0].rate_per_s, None, "no stages");
        let look = &found.operations[0];
        assert_eq!((look.requests, look.errors, look.latency_mean.mean), (3200, 0, Some(1003.5)));
        let estimate = look.latency_mean.estimate.unwrap();
        assert!(estimate.low < 1003.5 && 1003.5 < estimate.high && estimate.n == 8, "{estimate:?}");
        assert!(look.latency_p99.estimate.is_some());
        assert_eq!(look.first_byte_p50.mean, Some(500.0));
        let pay = &found.operations[1];
        assert_eq!((pay.latency_mean.mean, pay.errors), (Some(5000.0), 8));
        assert_eq!((pay.latency_p50.mean.is_some(), pay.latency_p99), (true, OverTrials::default()), "too few for p99");
        assert_eq!(found.operations[2].latency_mean, OverTrials::default());
    }
    #[test]
    fn each_stage_is_listed_with_the_rate_that_it_achieved() {
        let (run, mut records) = example::volley();
        for record in records.iter_mut().filter(|record| record.point == 1) {
            let Outcome::Measured(measurement) = &mut record.outcome else { continue };
            measurement.window_ns = 100_000_000;
            measurement.shape = load_shape::parse("100 for 200ms, 0..200 over 1s").unwrap();
            let window = |at: u64| Window {
                requests: if at < 2 { 10 } else { 2 * (at - 2) + 1 },
                errors: u64::from(at == 11),
                latency: histogram(&[1000 * (at + 1) + u64::from(record.block); 40]),
            };
            measurement.windows = (0..12).map(window).collect();
        }
        let findings = analyze(&run, &records);
        let [found] = findings.operations.as_slice() else { panic!("{:?}", findings.operations) };
        let stages = &found.operations;
        assert_eq!((stages.len(), stages[0].name.as_str()), (11, "1: 100 for 0.2s"));
        assert_eq!(stages[10].name, "11: 180..200 over 0.1s");
        let rate = |at: usize| stages[at].rate_per_s.unwrap().mean;
        assert_eq!((rate(0), rate(1), rate(10)), (Some(100.0), Some(10.0), Some(190.0)));
        assert_eq!((stages[10].errors, stages[0].requests), (8, 160));
        assert_eq!(stages[10].latency_mean.mean, Some(12_003.5));
        // The windows differ by design, so they show neither a steady state nor the best length of a trial.
        let row = &findings.rows[found.row];
        assert!(row.steady.is_none() && row.metrics["throughput"].best_trial_s.is_none());
    }
}
