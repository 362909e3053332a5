//! Merges warnings into one line per kind, with a count and the merged warnings as details.

use study::WarningKind;
use study::record::Record;

use crate::findings::{Row, Warning};
use crate::label::about;
use crate::number::count;

pub(crate) fn of_trials(some: usize, all: usize) -> String {
    if some == all { String::new() } else { format!(" ({some} of {all} trials)") }
}

pub(crate) fn of_row(records: &[&Record]) -> Vec<Warning> {
    let told = records.iter().flat_map(|record| record.warnings.iter().map(move |warning| (*record, warning)));
    let groups = grouped(told.map(|(record, warning)| (warning.kind, warning.text.clone(), record)));
    let one = |group: Vec<(WarningKind, String, &Record)>| {
        // A trial may have two warnings of one kind, for example for two threads.
        let mut trials = group.iter().map(|(.., record)| record.order).collect::<Vec<_>>();
        trials.dedup();
        let detail = |(_, text, record): &(_, String, &Record)| format!("block {}: {text}", record.block);
        let text = common(&group) + &of_trials(trials.len(), records.len());
        let details = if is_same(&group) { Vec::new() } else { group.iter().map(detail).collect() };
        Warning { kind: group[0].0, text, trials: trials.len(), details }
    };
    groups.into_iter().map(one).collect()
}

pub(crate) fn of_report<'a>(rows: impl Iterator<Item = &'a Row> + Clone) -> Vec<Warning> {
    let all = rows.clone().map(|row| row.trials.len()).sum::<usize>();
    let told = rows.flat_map(|row| row.warnings.iter().map(move |warning| (row, warning)));
    let counted = |row: &Row, warning: &Warning| of_trials(warning.trials, row.trials.len());
    let told = told.map(|(row, warning)| {
        let text = warning.text.strip_suffix(&counted(row, warning)).unwrap_or(&warning.text);
        (warning.kind, text.to_owned(), (row, warning))
    });
    let one = |group: Vec<(WarningKind, String, (&Row, &Warning))>| {
        let kind = group[0].0;
        if let [(.., (row, warning))] = group.as_slice() {
            return Warning { text: about(row, &warning.text), ..(*warning).clone() };
        }
        let trials = group.iter().map(|(.., (_, warning))| warning.trials).sum();
        let of = match trials {
            0 => String::new(),
            trials if trials == all => format!(" in all {all} trials"),
            trials => format!(" in {trials} of {all} trials"),
        };
        let points = count(group.len() as u64, "design point");
        let detail = |(.., (row, warning)): &(_, _, (&Row, &Warning))| about(row, &warning.text);
        let details = group.iter().map(detail).collect();
        Warning { text: format!("{}{of} ({points})", common(&group)), details, kind, trials }
    };
    grouped(told).into_iter().map(one).collect()
}

fn grouped<T>(all: impl Iterator<Item = (WarningKind, String, T)>) -> Vec<Vec<(WarningKind, String, T)>> {
    let key = |kind: WarningKind, text: &str| (kind, kind.text().is_none().then(|| text.to_owned()));
    let groups = crate::group_by_key::grouped(all.map(|(kind, text, from)| (key(kind, &text), (kind, text, from))));
    groups.into_iter().map(|(_, group)| group).collect()
}

fn is_same<T>(group: &[(WarningKind, String, T)]) -> bool {
    group.iter().all(|(_, text, _)| *text == group[0].1)
}

fn common<T>(group: &[(WarningKind, String, T)]) -> String {
    let words = group[0].0.text().filter(|_| !is_same(group));
    words.map_or_else(|| group[0].1.clone(), str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{analyze, example};

    fn lines(edit: impl Fn(&mut Record)) -> Vec<Warning> {
        let (run, mut records) = example::volley();
        records.iter_mut().for_each(|record| {
            record.warnings.clear();
            edit(record);
        });
        analyze(&run, &records).warnings
    }

    fn of_kind(warnings: &[Warning], kind: WarningKind) -> Vec<&Warning> {
        warnings.iter().filter(|warning| warning.kind == kind).collect()
    }

    #[test]
    fn one_kind_in_several_rows_is_one_line() {
        let found = lines(|record| {
            if record.point < 2 && record.block < 3 {
                let segments = format!("{} TCP segments retransmitted", record.block + 2);
                record.warnings = vec![WarningKind::Retransmits.says(segments)];
            }
        });
        let [line] = of_kind(&found, WarningKind::Retransmits)[..] else { panic!("{found:?}") };
        assert!(line.text.starts_with("TCP segments retransmitted in 6 of "), "{line:?}");
        assert!(line.text.ends_with(" trials (2 design points)") && line.trials == 6, "{line:?}");
        assert!(line.details[0].ends_with(": TCP segments retransmitted (3 of 8 trials)"), "{line:?}");
    }

    #[test]
    fn warning_of_a_single_row_names_the_row() {
        let found = lines(|record| {
            if record.point == 0 && record.block < 3 {
                let segments = format!("{} segments sent again", record.block + 2);
                record.warnings = vec![WarningKind::Retransmits.says(segments)];
            }
        });
        let [line] = of_kind(&found, WarningKind::Retransmits)[..] else { panic!("{found:?}") };
        assert!(line.text.ends_with(": TCP segments retransmitted (3 of 8 trials)"), "{line:?}");
        assert_eq!(line.details.len(), 3);
        assert_eq!(line.details[1], "block 1: 3 segments sent again");
    }

    #[test]
    fn kinds_without_text_merge_only_equal_warnings() {
        let found = lines(|record| {
            let text = if record.point < 3 { "a thing" } else { "another thing" };
            record.warnings = vec![WarningKind::Other.says(text)];
        });
        let texts = of_kind(&found, WarningKind::Other).into_iter().map(|warning| warning.text.as_str());
        let texts = texts.collect::<Vec<_>>();
        assert!(texts.len() == 2 && texts[0].starts_with("a thing in ") && texts[1].starts_with("another thing in "));
    }

    #[test]
    fn two_warnings_in_a_trial_count_one_trial() {
        let found = lines(|record| {
            if record.point == 0 && record.block == 0 {
                let waited = |worker| WarningKind::GeneratorWaited.says(format!("worker {worker} waited"));
                record.warnings = vec![waited(0), waited(1)];
            }
        });
        let [line] = of_kind(&found, WarningKind::GeneratorWaited)[..] else { panic!("{found:?}") };
        assert!(line.text.ends_with(" (1 of 8 trials)") && line.details.len() == 2, "{line:?}");
    }
}
