//! Computes the latency of each operation of a journey, or kind of request, by design point.

use study::record::{Histogram, JourneyMeasurement, Measurement, OperationMeasurement, Record};

use crate::findings::{OperationFinding, OverTrials, RowOperations};
use crate::merge_histograms;
use crate::number::total;

/// One entry per journey. The row index is set once all rows are known.
pub(crate) fn operations(records: &[&Record], level: f64) -> Vec<RowOperations> {
    let measured = records.iter().filter_map(|record| record.measurement()).collect::<Vec<_>>();
    let names = crate::group::distinct(measured.iter().flat_map(|one| &one.journeys).map(|one| one.name.as_str()));
    let of_journey = |name: &&str| {
        let journeys = measured.iter().filter_map(|one| one.journeys.iter().find(|journey| journey.name == **name));
        row(&journeys.collect::<Vec<_>>(), &[], level)
    };
    let of_mix = || row(&[], &measured, level);
    if names.is_empty() { of_mix().into_iter().collect() } else { names.iter().filter_map(of_journey).collect() }
}

fn row(journeys: &[&JourneyMeasurement], mixes: &[&Measurement], level: f64) -> Option<RowOperations> {
    let of_mixes = mixes.iter().map(|measured| &measured.by_request[..]);
    let of_trials = journeys.iter().map(|journey| &journey.operations[..]).chain(of_mixes).collect::<Vec<_>>();
    let names = crate::group::distinct(of_trials.iter().copied().flatten().map(|operation| operation.name.as_str()));
    (!names.is_empty()).then(|| RowOperations {
        row: 0,
        journey: journeys.first().map(|journey| journey.name.clone()),
        completed: total(journeys.iter().map(|journey| journey.completed)),
        abandoned: total(journeys.iter().map(|journey| journey.abandoned)),
        operations: names.into_iter().map(|name| operation(name, &of_trials, level)).collect(),
    })
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
    OperationFinding {
        name: name.to_owned(),
        requests: total(present().map(|operation| operation.requests)),
        errors: total(present().map(|operation| operation.errors)),
        latency_mean: over(&|operation| operation.service.mean()),
        latency_p50: quantile(0.5, |operation| Some(&operation.service)),
        latency_p99: quantile(0.99, |operation| Some(&operation.service)),
        first_byte_p50: quantile(0.5, |operation| operation.first_byte.as_ref()),
    }
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
}
