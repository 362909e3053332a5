//! The period of a run, and the kinds of starts that it may have missed.

use crate::findings::{Row, Scope};
use crate::number::percent;

/// Largest share of unseen starts that is worth a sentence.
const UNSEEN_MAX: f64 = 0.4;

/// `started`: start of the first and the last trial, UTC, RFC 3339.
pub(crate) fn scope(started: Option<(String, String)>, rows: &[Row], level: f64) -> Option<Scope> {
    let starts = rows.iter().map(|row| row.n).filter(|n| *n > 0);
    let (fewest, most) = (starts.clone().min()?, starts.max()?);
    let (from, until) = started?;
    let unseen_share = stats::stop_rule::unseen_share(u32::try_from(fewest).unwrap_or(u32::MAX), 1.0 - level);
    let times = period(&from, &until);
    let starts = match (fewest, most) {
        (1, 1) => "1 start".to_owned(),
        (fewest, most) if fewest == most => format!("{most} starts"),
        (fewest, most) => format!("{fewest} to {most} starts"),
    };
    let sentence = format!(
        "Absolute values are from this run, {times}; {starts} per row{}",
        // With few starts, their number says enough.
        if unseen_share > UNSEEN_MAX {
            String::new()
        } else {
            format!(": behavior of fewer than {} of starts may not have shown up", percent(unseen_share))
        }
    );
    Some(Scope { from, until, starts_min: fewest, unseen_share, times, sentence })
}

/// A common date appears once: `2026-11-20 21:05 to 21:31 UTC`.
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

#[cfg(test)]
mod tests {
    use study::record::Record;

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
}
