//! Data file of volley's plot: `server clients cores mean stddev num_samples`, with times in µs.

use study::plan::Level;
use study::record::{Measurement, Record, Run};

use crate::merge_histograms;

/// Returns one line per measured design point, in plan order, with its trials combined. With volley's own stop rule,
/// the numbers match volley's output; otherwise they are the mean and deviation of all latencies.
pub fn volley(run: &Run, records: &[Record]) -> String {
    let mut out = String::new();
    for point in 0..run.plan.points.len() {
        let trials = records.iter().filter(|record| record.point == point);
        let trials = trials.filter_map(|record| Some((record, record.measurement()?))).collect::<Vec<_>>();
        let Some((record, measurement)) = trials.first() else { continue };
        let all = trials.iter().map(|(_, measurement)| *measurement);
        let Some((mean_us, stddev_us, samples)) = together(all) else { continue };
        let server = server(run, point);
        let (clients, cores) = (measurement.clients, record.subject.cpus.len());
        out += &format!("{server} {clients} {cores} {mean_us:.2} {stddev_us:.2} {samples}\n");
    }
    out
}

/// Combines measurements: means weighted by samples, and variances pooled by samples, as volley pools its clients.
fn together<'a>(measurements: impl Iterator<Item = &'a Measurement> + Clone) -> Option<(f64, f64, u64)> {
    let volley = measurements.clone().map(|measurement| measurement.volley).collect::<Option<Vec<_>>>();
    let Some(parts) = volley else {
        let all = merge_histograms::merge(measurements.map(|measurement| measurement.latency()))?;
        return Some((all.mean()? / 1e3, all.stddev()? / 1e3, all.len()));
    };
    let samples = crate::number::total(parts.iter().map(|part| part.samples));
    let weighted = |value: fn(&study::record::Volley) -> f64| {
        parts.iter().map(|part| value(part) * part.samples as f64).sum::<f64>() / samples as f64
    };
    let (mean_us, variance) = (weighted(|part| part.mean_us), weighted(|part| part.stddev_us.powi(2)));
    (samples > 0).then(|| (mean_us, variance.sqrt(), samples))
}

/// Names the server of a point in a single word, since spaces separate the columns.
fn server(run: &Run, point: usize) -> String {
    let factors = &run.plan.points[point].factors;
    let words =
        run.plan.factors.iter().filter_map(|name| factors.get(name)).find(|level| matches!(level, Level::Text(_)));
    let server = factors.get("server").or(words).map_or(run.plan.study.clone(), Level::to_string);
    server.split_whitespace().collect::<Vec<_>>().join("-")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::example;
    use insta::assert_snapshot;
    use study::record::{Outcome, Volley};

    #[test]
    fn one_line_per_measured_point() {
        let (run, records) = example::volley();
        assert_snapshot!(volley(&run, &records), @r"
        c-epoll 40 1 572.59 229.57 139668
        c-epoll 80 1 1100.17 439.06 145293
        c-epoll 40 2 357.94 144.09 223425
        c-epoll 80 2 696.85 279.67 229492
        go 40 1 776.61 315.83 90083
        go 80 1 1503.66 607.35 106302
        go 40 2 486.97 196.64 164219
        rust-tokio 40 1 714.70 293.24 111869
        rust-tokio 80 1 1364.26 546.58 117153
        rust-tokio 40 2 438.60 175.71 182330
        ");
    }

    #[test]
    fn volleys_own_numbers_are_pooled() {
        let (run, mut records) = example::volley();
        records.retain(|record| record.point == 0);
        records.truncate(2);
        for (record, (mean_us, stddev_us, samples)) in records.iter_mut().zip([(10.0, 3.0, 1_000), (13.0, 6.0, 2_000)])
        {
            let Outcome::Measured(measurement) = &mut record.outcome else { unreachable!() };
            measurement.volley = Some(Volley { mean_us, stddev_us, samples, rounds: 1 });
        }
        // (10 + 2·13)/3 = 12; sqrt((9 + 2·36)/3) = 5.196
        assert_eq!(volley(&run, &records), "c-epoll 40 1 12.00 5.20 3000\n");
    }

    #[test]
    fn server_is_one_word() {
        let (mut run, records) = example::volley();
        run.plan.points[0].factors.insert("server".to_owned(), Level::Text("my server\n".to_owned()));
        assert!(volley(&run, &records).starts_with("my-server 40 1 "));
    }
}
