//! Evaluates the probes before and after each trial. They flag trials; no value is adjusted.

use study::record::{Probe, Record};

use crate::findings::{Probed, ProbedTrial};
use crate::number::{count, percent, quantity};

pub(crate) fn contended(record: &Record) -> bool {
    record.probes.all().any(Probe::is_contended)
}

pub(crate) fn of_trial(record: &Record) -> Option<ProbedTrial> {
    let Record { order, probes, .. } = record;
    (!probes.is_empty()).then(|| ProbedTrial { order: *order, contended: contended(record), probes: probes.clone() })
}

/// `trials` are in execution order.
pub(crate) fn probes(trials: Vec<ProbedTrial>) -> Option<Probed> {
    let cpu_ns = trials.iter().flat_map(|trial| trial.probes.all()).map(|probe| probe.cpu_ns as f64);
    let mut cpu_ns = cpu_ns.collect::<Vec<_>>();
    cpu_ns.sort_by(f64::total_cmp);
    let cpu_ns_median = stats::quantile(&cpu_ns, 0.5)?;
    let worst = trials.iter().flat_map(|trial| trial.probes.all()).map(Probe::lost).max_by(f64::total_cmp);
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
    use super::*;
    use crate::{analyze, example};
    use study::record::Probes;

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
        // (before, after), each (wall time, CPU time) -> whether another process used a CPU
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
