use crate::findings::{Row, States};

/// p-value up to which a run is reported to have met several states.
const ALARM: f64 = 0.05;

/// Tests whether consecutive trials are similar in `metric`. Excludes searches, whose trials determine the next.
pub(crate) fn states(metric: &str, rows: &[Row], seed: u64) -> Option<States> {
    let rows = rows.iter().filter(|row| row.search.is_none()).enumerate();
    let trials = rows.flat_map(|(row, found)| found.trials.iter().map(move |trial| (row, trial)));
    // Lower bounds are ranked like values: the test shuffles them with the others.
    let trials = trials.filter_map(|(row, trial)| Some((trial.order, row, *trial.values.get(metric)?)));
    let mut trials = trials.collect::<Vec<_>>();
    trials.sort_by_key(|(order, ..)| *order);
    let in_order = trials.into_iter().map(|(_, row, value)| (row, value)).collect::<Vec<_>>();
    let p = stats::speed_states::p_value(&in_order, seed)?;
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{analyze, example};
    use study::record::Outcome;

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
}
