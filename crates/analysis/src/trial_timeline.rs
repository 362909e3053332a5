//! Timeline of one trial of a row on one clock: responses, latencies and errors by window; CPU and memory by sample.

use study::Metric;
use study::record::{Measurement, Record, Sample, SubjectUse, Window};

use crate::findings::{Column, InsideTrial, Process, Role, Row, TrialFinding};
use crate::{merge_histograms, number};

/// Maximum number of rows with a timeline. Timelines are shown side by side.
pub const ROWS_MAX: usize = 12;
/// Maximum number of columns of a trial (a column merges adjacent windows), and of samples of a process.
pub const COLUMNS_MAX: usize = 120;
/// Number of latency bands per octave. Each band is about a fifth wider than the one below.
pub const BANDS_AN_OCTAVE: f64 = 4.0;

/// Returns the timeline of a row; `None` without windows. The row index is set once all rows are known.
pub(crate) fn inside(row: &Row, metric: &str, records: &[&Record]) -> Option<InsideTrial> {
    let (chosen, metric) = chosen(&row.trials, metric)?;
    let record = records.iter().find(|record| record.order == chosen.order)?;
    let measurement = record.measurement()?;
    let (columns, processes) = (columns(measurement), processes(record, measurement));
    let (order, block, metric) = (chosen.order, chosen.block, metric.to_owned());
    let duration_ns = measurement.duration_ns;
    (!columns.is_empty()).then_some(InsideTrial { row: 0, order, block, metric, duration_ns, columns, processes })
}

/// Selects the median trial by a metric, or by throughput if none has the metric; of two middle trials, the earlier.
fn chosen<'a>(trials: &'a [TrialFinding], metric: &'a str) -> Option<(&'a TrialFinding, &'a str)> {
    let of = |metric: &'a str| {
        let value = |trial: &'a TrialFinding| Some((trial.values.get(metric)?, trial));
        let mut values = trials.iter().filter(|trial| trial.failed.is_none()).filter_map(value).collect::<Vec<_>>();
        values.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.order.cmp(&b.1.order)));
        let upper = values.len() / 2;
        let lower = values.len().checked_sub(1)? / 2;
        Some((values[lower..=upper].iter().map(|(_, trial)| *trial).min_by_key(|trial| trial.order)?, metric))
    };
    of(metric).or_else(|| of("throughput"))
}

fn columns(measurement: &Measurement) -> Vec<Column> {
    let (window_ns, duration_ns) = (measurement.window_ns, measurement.duration_ns);
    let each = measurement.windows.len().div_ceil(COLUMNS_MAX).max(1);
    let column = |(index, windows): (usize, &[Window])| {
        let at = |window: usize| (window as u64).checked_mul(window_ns).map(|ns| ns.min(duration_ns));
        let (from_ns, to_ns) = (at(index * each)?, at(index * each + windows.len()).unwrap_or(duration_ns));
        let latency = merge_histograms::merge(windows.iter().map(|window| &window.latency));
        let quantile = |q: f64, least: u64| latency.as_ref().filter(|all| all.len() >= least)?.quantile(q);
        let (p50_ns, p99_ns) = (quantile(0.5, 1), quantile(0.99, 100));
        let bands = latency.as_ref().map_or_else(Vec::new, bands);
        let requests = number::total(windows.iter().map(|window| window.requests));
        let errors = number::total(windows.iter().map(|window| window.errors));
        (to_ns > from_ns).then_some(Column { from_ns, to_ns, requests, errors, bands, p50_ns, p99_ns })
    };
    measurement.windows.chunks(each).enumerate().filter_map(column).collect()
}

/// Counts latencies by band. Each bucket counts at its midpoint, since buckets are narrower than bands.
fn bands(latency: &stats::Histogram) -> Vec<(u16, u64)> {
    let mut bands: Vec<(u16, u64)> = Vec::new();
    for (low, high, count) in latency.iter_buckets() {
        let midpoint = low as f64 + (high as f64 - low as f64) / 2.0;
        let band = (midpoint.max(1.0).log2() * BANDS_AN_OCTAVE) as u16;
        match bands.last_mut().filter(|(last, _)| *last == band) {
            Some((_, sum)) => *sum = sum.saturating_add(count),
            None => bands.push((band, count)),
        }
    }
    bands
}

/// Returns the lower end of a band, ns; `band` may be fractional.
pub fn band_ns(band: f64) -> f64 {
    (band / BANDS_AN_OCTAVE).exp2()
}

fn processes(record: &Record, measurement: &Measurement) -> Vec<Process> {
    let proxies = record.proxies.iter().map(|proxy| (Role::Proxy, proxy.name.as_str(), &proxy.used));
    let looked_at = std::iter::once((Role::Server, "", &record.subject)).chain(proxies);
    let looked_at = looked_at.map(|(role, name, used)| process(role, name, used, measurement.duration_ns));
    let busy_ns = number::total(measurement.workers.iter().map(|worker| worker.cpu_ns)) as f64;
    let cpus_mean = number::ratio(busy_ns, measurement.duration_ns as f64).filter(|_| !measurement.workers.is_empty());
    let (cpus, rss_bytes) = (Vec::new(), Vec::new());
    let generator = Process { role: Role::Generator, name: String::new(), cpus, cpus_mean, rss_bytes };
    looked_at.chain([generator]).collect()
}

fn process(role: Role, name: &str, used: &SubjectUse, duration_ns: u64) -> Process {
    let since = |sample: &Sample| sample.at_ns.checked_sub(used.measured_from_ns).filter(|ns| *ns <= duration_ns);
    // Older stores do not record when measuring began, so their samples are left out.
    let known = used.samples.iter().filter(|_| used.measured_from_ns > 0);
    let looks = known.filter_map(|sample| Some((since(sample)? as f64, sample))).collect::<Vec<_>>();
    let looks = looks.iter().step_by(looks.len().div_ceil(COLUMNS_MAX).max(1)).collect::<Vec<_>>();
    let cpus = looks.windows(2).filter_map(|two| {
        let [(before_ns, before), (after_ns, after)] = two else { return None };
        let busy_ns = after.cpu_ns.checked_sub(before.cpu_ns)? as f64;
        let cpus = busy_ns / (after_ns - before_ns);
        cpus.is_finite().then_some((before_ns + (after_ns - before_ns) / 2.0, cpus))
    });
    let cpus_mean = number::ratio(used.cpu_ns(), used.measured_ns as f64).filter(|mean| mean.is_finite());
    let rss_bytes = looks.iter().map(|(ns, sample)| (*ns, sample.rss_bytes as f64)).collect();
    Process { role, name: name.to_owned(), cpus: cpus.collect(), cpus_mean, rss_bytes }
}

/// Describes how the shown trials were selected.
pub fn rule(found: &[InsideTrial]) -> String {
    let mut metrics = found.iter().map(|trial| Metric::noun_of(&trial.metric)).collect::<Vec<_>>();
    metrics.dedup();
    let metrics = metrics.join(" or ");
    format!("Each panel shows the trial with the median {metrics} of its design point.")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::findings::MetricValues;
    use crate::{Findings, analyze, example};
    use study::record::{Outcome, Run};

    fn volley(edit: impl FnOnce(&mut Run, &mut Vec<Record>)) -> (Findings, Vec<Record>) {
        let (mut run, mut records) = example::volley();
        records.retain(|record| record.point == 0);
        edit(&mut run, &mut records);
        (analyze(&run, &records), records)
    }

    fn measurement(record: &mut Record) -> &mut Measurement {
        match &mut record.outcome {
            Outcome::Measured(measurement) => measurement,
            Outcome::Failed(_) => unreachable!("all trials of the first point are measured"),
        }
    }

    #[test]
    fn selects_the_earlier_median_trial() {
        let trial = |order, value: Option<f64>, failed: bool| {
            let mut values = MetricValues::default();
            value.into_iter().for_each(|value| values.insert("latency_mean", value));
            let failed = failed.then(|| "signal 9".to_owned());
            TrialFinding { order, values, failed, ..volley(|_, _| ()).0.rows[0].trials[0].clone() }
        };
        let all = [trial(7, Some(5.0), false), trial(2, Some(1.0), false), trial(4, Some(9.0), false)];
        let order = |trials: &[TrialFinding], metric| chosen(trials, metric).map(|(trial, _)| trial.order);
        assert_eq!(order(&all, "latency_mean"), Some(7));
        let even = [all.as_slice(), &[trial(3, Some(4.0), false)]].concat();
        assert_eq!(order(&even, "latency_mean"), Some(3), "of 4 and 5 the earlier");
        let broken = [even.as_slice(), &[trial(0, Some(0.0), true), trial(1, None, false)]].concat();
        assert_eq!(order(&broken, "latency_mean"), Some(3), "failed trials and those without a value do not count");
        assert_eq!(order(&all, "latency_p99"), None, "nor is there throughput");
        assert_eq!(order(&[], "latency_mean"), None);
    }

    #[test]
    fn falls_back_to_throughput() {
        let (findings, _) = volley(|run, _| run.plan.trials.metric = "hit_ratio".to_owned());
        assert_eq!(findings.inside[0].metric, "throughput");
        assert!(rule(&findings.inside).contains("the median throughput"));
    }

    #[test]
    fn columns_contain_all_windows() {
        let (findings, records) = volley(|_, records| {
            for record in records {
                let measurement = measurement(record);
                let many = measurement.windows.iter().cycle().take(250).cloned().collect();
                (measurement.windows, measurement.window_ns) = (many, 1_000_000);
                measurement.windows[17].errors = 3;
            }
        });
        let found = &findings.inside[0];
        let record = records.iter().find(|record| record.order == found.order).unwrap();
        let windows = &record.measurement().unwrap().windows;
        assert_eq!(found.columns.len(), 84, "three windows each: 125 of two would be too many");
        let sum = |of: fn(&Column) -> u64| found.columns.iter().map(of).sum::<u64>();
        assert_eq!(sum(|column| column.requests), windows.iter().map(|window| window.requests).sum::<u64>());
        assert_eq!(sum(|column| column.bands.iter().map(|band| band.1).sum()), sum(|column| column.requests));
        assert_eq!((sum(|column| column.errors), found.columns[5].errors), (3, 3));
        assert!(found.columns.windows(2).all(|two| two[0].to_ns == two[1].from_ns));
        assert_eq!((found.columns[0].from_ns, found.columns[83].to_ns), (0, 250_000_000));
        for column in &found.columns {
            let (p50, p99) = (column.p50_ns.unwrap(), column.p99_ns.unwrap_or(f64::MAX));
            assert!(p50 < p99);
            let at_or_below = column.bands.iter().filter(|band| band_ns(f64::from(band.0)) <= p50);
            let below = at_or_below.map(|band| band.1).sum::<u64>();
            assert!(2 * below >= column.requests, "half of the latencies are at p50 or below");
        }
    }

    #[test]
    fn processes_use_the_clock_of_windows() {
        let (findings, _) = volley(|_, records| {
            for record in records {
                let sample = |at_ms: u64| Sample {
                    at_ns: at_ms * 1_000_000,
                    cpu_ns: at_ms.saturating_sub(100) * 2_000_000,
                    rss_bytes: 1_000 * at_ms,
                    ..Sample::default()
                };
                record.subject.measured_from_ns = 60_000_000;
                record.subject.samples = (0..100).map(|at| sample(10 * at)).collect();
            }
        });
        let [server, generator] = findings.inside[0].processes.as_slice() else { panic!("{:?}", findings.inside[0]) };
        assert_eq!((server.role, generator.role), (Role::Server, Role::Generator));
        assert_eq!(
            (server.rss_bytes.first(), server.rss_bytes.last()),
            (Some(&(0.0, 60_000.0)), Some(&(250e6, 310_000.0)))
        );
        assert_eq!(server.cpus.len(), 25);
        assert_eq!((server.cpus[3], server.cpus[4]), ((35e6, 0.0), (45e6, 2.0)));
        assert!(generator.cpus.is_empty() && (generator.cpus_mean.unwrap() - 0.71).abs() < 1e-6);
    }

    #[test]
    fn older_stores_have_no_sample_clock() {
        let (findings, _) =
            volley(|_, records| records.iter_mut().for_each(|record| record.subject.measured_from_ns = 0));
        assert!(
            findings.inside[0].processes.iter().all(|process| process.cpus.is_empty() && process.rss_bytes.is_empty())
        );
        assert!(!findings.inside[0].columns.is_empty());
    }

    #[test]
    fn limits_rows_and_samples() {
        let (run, mut records) = example::sweep();
        for record in &mut records {
            let sample =
                |at: u64| Sample { at_ns: 400_000_000 + at * 100_000, cpu_ns: at * 50_000, ..Sample::default() };
            (record.subject.measured_from_ns, record.subject.samples) = (400_000_000, (0..1_000).map(sample).collect());
        }
        let findings = analyze(&run, &records);
        assert!(findings.rows.len() > ROWS_MAX && findings.inside.len() == ROWS_MAX);
        let looks = findings.inside.iter().flat_map(|found| &found.processes).map(|process| process.rss_bytes.len());
        assert_eq!(looks.max(), Some(112), "each ninth of a thousand");
    }

    #[test]
    fn impossible_windows_are_left_out() {
        let (findings, _) = volley(|_, records| {
            records.iter_mut().for_each(|record| measurement(record).window_ns = u64::MAX);
        });
        assert_eq!(findings.inside[0].columns.len(), 1, "the first window is as long as the trial");
        let (findings, _) =
            volley(|_, records| records.iter_mut().for_each(|record| measurement(record).window_ns = 0));
        assert_eq!(findings.inside, []);
        let (findings, _) = volley(|_, records| {
            for window in records.iter_mut().flat_map(|record| &mut measurement(record).windows) {
                window.latency.count += 1;
            }
        });
        assert!(findings.inside[0].columns.iter().all(|column| column.bands.is_empty() && column.p50_ns.is_none()));
    }
}
