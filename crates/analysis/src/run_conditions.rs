//! Conditions that a run's absolute values depend on: its period, the machine's speed and other processes on its CPUs.

use study::record::{Probe, Record};

use crate::findings::{MedianRange, Probed, ProbedTrial, Row, Scope, States};
use crate::number::{count, percent, quantity};

/// Share of unseen starts, from 0 to 1, above which the scope sentence gives only the number of starts.
const UNSEEN_MAX: f64 = 0.4;

/// Describes a run's period and coverage; `None` if nothing was measured.
pub(crate) fn scope(started: &[&str], rows: &[Row], level: f64) -> Option<Scope> {
    let starts = rows.iter().map(|row| row.n).filter(|n| *n > 0);
    let (fewest, most) = (starts.clone().min()?, starts.max()?);
    let (from, until) = (started.iter().min()?, started.iter().max()?);
    let unseen_share = stats::stop_rule::unseen_share(u32::try_from(fewest).unwrap_or(u32::MAX), 1.0 - level);
    let times = period(from, until);
    let (from, until) = ((*from).to_owned(), (*until).to_owned());
    let starts = if fewest == most { count(most as u64, "start") } else { format!("{fewest} to {most} starts") };
    let unseen = format!(": behavior of fewer than {} of starts may not have shown up", percent(unseen_share));
    let unseen = if unseen_share > UNSEEN_MAX { "" } else { &unseen };
    let sentence = format!("Absolute values are from this run, {times}; {starts} per row{unseen}");
    Some(Scope { from, until, starts_min: fewest, unseen_share, times, sentence })
}

fn period(from: &str, until: &str) -> String {
    let parts = |text: &str| {
        let (date, time) = text.strip_suffix('Z')?.split_once('T')?;
        Some((date.to_owned(), time.get(..5)?.to_owned()))
    };
    match (parts(from), parts(until)) {
        (Some(from), Some(until)) if from == until => format!("{} {} UTC", from.0, from.1),
        (Some(from), Some(until)) if from.0 == until.0 => format!("{} {} to {} UTC", from.0, from.1, until.1),
        (Some(from), Some(until)) => format!("{} {} to {} {} UTC", from.0, from.1, until.0, until.1),
        _ => format!("{from} to {until}"),
    }
}

const ALARM: f64 = 0.05;

/// Tests whether consecutive trials are similar in `metric`, except in searches, where a trial determines the next.
pub(crate) fn states(metric: &str, rows: &[Row], seed: u64) -> Option<States> {
    let rows = rows.iter().filter(|row| row.search.is_none()).enumerate();
    let trials = rows.flat_map(|(row, found)| found.trials.iter().map(move |trial| (row, trial)));
    // Lower bounds are ranked like values: the test shuffles them with the other values.
    let trials = trials.filter_map(|(row, trial)| Some((trial.order, row, trial.values.get(metric)?)));
    let mut trials = trials.collect::<Vec<_>>();
    trials.sort_by_key(|(order, ..)| *order);
    let in_order = trials.into_iter().map(|(_, row, value)| (row, value)).collect::<Vec<_>>();
    let p = stats::speed_change_test::p_value(&in_order, seed)?;
    let alarm = p <= ALARM;
    let sentence = if alarm {
        format!(
            "the machine changed speed during this run (p = {p:.3}): comparisons are still valid, absolute values hold \
             only for this run"
        )
    } else {
        format!(
            "neighbouring trials are no more alike in {} than by chance (p = {p:.2}); that does not prove that the \
             machine's speed was constant",
            study::Metric::noun_of(metric)
        )
    };
    Some(States { p, alarm, sentence })
}

pub(crate) fn contended(record: &Record) -> bool {
    record.probes.all().any(Probe::is_contended)
}

pub(crate) fn of_trial(record: &Record) -> Option<ProbedTrial> {
    let Record { order, probes, .. } = record;
    (!probes.is_empty()).then(|| ProbedTrial { order: *order, contended: contended(record), probes: probes.clone() })
}

pub(crate) fn probes(trials: Vec<ProbedTrial>) -> Option<Probed> {
    let all = || trials.iter().flat_map(|trial| trial.probes.all());
    let cpu_ns_median = MedianRange::of(all().map(|probe| probe.cpu_ns as f64))?.median;
    let worst = all().map(Probe::lost).max_by(f64::total_cmp);
    let flagged = trials.iter().filter(|trial| trial.contended).count();
    let of = count(trials.len() as u64, "trial");
    let sentence = format!("median CPU time {}, before and after {of}", quantity(cpu_ns_median, "ns"));
    let warning = worst.filter(|_| flagged > 0).map(|worst| {
        let share = percent(worst);
        format!(
            "other processes used these CPUs around {flagged} of {of}, for up to {share} of the time: the trials are \
             flagged and kept"
        )
    });
    Some(Probed { cpu_ns_median, trials, sentence, warning })
}

#[cfg(test)]
mod tests {
    use study::record::{Outcome, Probes};

    use super::*;
    use crate::{analyze, example};

    #[test]
    fn formats_periods() {
        let table = [
            ("2026-11-20T21:05:07Z", "2026-11-20T21:31:59Z", "2026-11-20 21:05 to 21:31 UTC"),
            ("2026-11-20T21:05:07Z", "2026-11-20T21:05:09Z", "2026-11-20 21:05 UTC"),
            ("2026-11-20T23:59:07Z", "2026-11-21T00:01:00Z", "2026-11-20 23:59 to 2026-11-21 00:01 UTC"),
            ("", "TäZ", " to TäZ"),
        ];
        for (from, until, expected) in table {
            assert_eq!(period(from, until), expected);
        }
    }

    #[test]
    fn states_the_share_of_unseen_starts() {
        let (run, mut records) = example::volley();
        let sentence = |records: &[Record]| analyze(&run, records).scope.map(|scope| scope.sentence);
        assert_eq!(
            sentence(&records).as_deref(),
            Some(
                "Absolute values are from this run, 2026-11-20 21:05 to 21:07 UTC; 7 to 8 starts per row: behavior of fewer \
                 than 35 % of starts may not have shown up"
            )
        );
        records.retain(|record| record.point == 0);
        assert!(sentence(&records).unwrap().contains("8 starts per row: behavior of fewer than 31 % of starts"));
        records.truncate(3);
        assert!(sentence(&records).unwrap().ends_with("; 3 starts per row"));
        assert_eq!(sentence(&[]), None);
    }

    fn found(speed: impl Fn(u32) -> f64) -> crate::Findings {
        let (run, mut records) = example::volley();
        for record in &mut records {
            let speed = speed(record.order);
            if let Outcome::Measured(measured) = &mut record.outcome {
                measured.service.sum *= speed;
            }
        }
        analyze(&run, &records)
    }

    #[test]
    fn speed_changes_give_one_warning() {
        let spells = found(|order| if order % 30 < 10 { 1.3 } else { 1.0 });
        let states = spells.states.as_ref().unwrap();
        assert!(states.alarm && states.p <= ALARM, "{states:?}");
        assert!(states.sentence.ends_with("absolute values hold only for this run"), "{states:?}");
        assert_eq!(spells.warnings.iter().filter(|warning| warning.text == states.sentence).count(), 1);
        let even = found(|_| 1.0);
        let states = even.states.as_ref().unwrap();
        assert!(!states.alarm && states.sentence.contains("does not prove"), "{states:?}");
        assert!(even.warnings.iter().all(|warning| warning.text != states.sentence));
    }

    #[test]
    fn few_trials_and_searches_are_not_tested() {
        let (run, records) = example::volley();
        assert_eq!(analyze(&run, &records[..6]).states, None);
        let mut rows = analyze(&run, &records).rows;
        assert!(states("throughput", &rows, 1).is_some());
        let (run, records) = example::capacity();
        let search = analyze(&run, &records).capacities.remove(0).search;
        rows.iter_mut().for_each(|row| row.search = search.clone());
        assert_eq!(states("throughput", &rows, 1), None);
    }

    fn record(order: u32, before: &[(u64, u64)], after: &[(u64, u64)]) -> Record {
        let probes = |times: &[(u64, u64)]| {
            let numbered = (0..).zip(times);
            numbered.map(|(cpu, &(wall_ns, cpu_ns))| Probe { cpu, wall_ns, cpu_ns }).collect()
        };
        let probes = Probes { before: probes(before), after: probes(after) };
        Record { order, probes, ..example::volley().1.remove(0) }
    }

    #[test]
    fn flags() {
        // Each row: times before and after the trial, as (wall time, CPU time), and whether another process used a CPU.
        type Times = &'static [(u64, u64)];
        let table: [(Times, Times, bool); 6] = [
            (&[(100, 100), (100, 100)], &[(100, 99)], false),
            (&[(110, 100)], &[(109, 100)], false),
            (&[(111, 100)], &[(100, 100)], true),
            (&[(100, 100)], &[(100, 100), (250, 100)], true),
            (&[], &[], false),
            (&[(100, 0)], &[], true),
        ];
        for (before, after, expected) in table {
            assert_eq!(contended(&record(0, before, after)), expected, "{before:?} {after:?}");
        }
    }

    #[test]
    fn median_uses_cpu_time_and_one_warning_is_given() {
        let records = [
            record(0, &[(8_000, 8_000)], &[(8_200, 8_100)]),
            record(1, &[(16_000, 8_000)], &[(9_000, 9_000)]),
            record(2, &[], &[]),
        ];
        let of = |records: &[Record]| probes(records.iter().filter_map(of_trial).collect());
        let found = of(&records).unwrap();
        assert_eq!(found.cpu_ns_median, 8_050.0);
        assert_eq!(found.sentence, "median CPU time 8.05 µs, before and after 2 trials");
        let trials = found.trials.iter().map(|trial| (trial.order, trial.contended)).collect::<Vec<_>>();
        assert_eq!(trials, [(0, false), (1, true)]);
        assert_eq!(
            found.warning.as_deref(),
            Some(
                "other processes used these CPUs around 1 of 2 trials, for up to 50 % of the time: the trials are flagged and kept"
            )
        );
        assert_eq!(of(&records[..1]).unwrap().warning, None);
        assert_eq!(of(&records[2..]), None);
    }

    #[test]
    fn old_records_have_no_probes() {
        let (run, records) = example::volley();
        let mut old = serde_json::to_value(&records[0]).unwrap();
        old.as_object_mut().unwrap().remove("probes");
        let old = serde_json::from_value::<Record>(old).unwrap();
        assert!(old.probes.is_empty() && !records[0].probes.is_empty());
        assert_eq!(analyze(&run, &[old]).probes, None);
    }
}
