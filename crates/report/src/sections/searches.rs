use analysis::display_names::serde_name;
use analysis::findings::{Findings, Row, SearchEnd, SearchFinding, SearchStep};
use analysis::number;
use study::record::Purpose;

use crate::document::{Head, Table};

pub(crate) fn table(findings: &Findings) -> Option<Table> {
    let found = findings.searches().collect::<Vec<_>>();
    let (_, first) = found.first()?;
    let same = found.iter().all(|(_, search)| search.objective == first.objective);
    let end = |end: Option<SearchEnd>, missing: &Option<String>| match (end, missing) {
        (Some(end), _) if end.confirmed => number::quantity(end.rate_per_s, "1/s"),
        (Some(end), _) => format!("{} (not confirmed)", number::quantity(end.rate_per_s, "1/s")),
        (None, Some(why)) => why.clone(),
        (None, None) => "unknown".to_owned(),
    };
    let rows = found.iter().map(|(row, search)| {
        let mut cells = vec![row.label.clone(), end(search.low, &search.no_low), end(search.high, &search.no_high)];
        cells.extend((!same).then(|| search.objective.clone()));
        cells.extend([search.trials.to_string(), search.ended.clone()]);
        cells
    });
    let mut heads = vec![Head::text("design point"), Head::number("holds"), Head::number("fails at")];
    heads.extend((!same).then(|| Head::text("objective")));
    heads.extend([Head::number("trials"), Head::text("stop reason")]);
    let title =
        if same { format!("The highest rate at which {}", first.objective) } else { "The highest rate".to_owned() };
    Some(Table::plain(title, heads, rows))
}

pub(crate) fn steps(findings: &Findings) -> Vec<(String, Table)> {
    let table = |(row, search): (&Row, &SearchFinding)| {
        let line = |step: &SearchStep| {
            let offered = step.rate_per_s.map_or("a closed loop".to_owned(), |rate| number::quantity(rate, "1/s"));
            vec![
                step.order.to_string(),
                serde_name(step.purpose),
                offered,
                if step.purpose == Purpose::Pilot { String::new() } else { step.verdict.text().to_owned() },
                step.why.clone(),
            ]
        };
        let heads = [Head::number("trial"), Head::text("for"), Head::number("offered")];
        let heads = heads.into_iter().chain(["verdict", "because"].map(Head::text));
        (format!("Steps of the search: {}", row.label), Table::plain("", heads, search.steps.iter().map(line)))
    };
    findings.searches().map(table).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use analysis::analyze;
    use fixtures as example;

    #[test]
    fn a_search_has_its_range_and_its_steps() {
        let (run, records) = example::capacity();
        let findings = analyze(&run, &records);
        insta::assert_snapshot!(table(&findings).unwrap().text(), @r"
        The highest rate at which p99 < 5ms and errors < 0.1%
        design point | holds | fails at | trials | stop reason
        capacity | 64.1 k/s | 69.9 k/s | 12 | both ends confirmed
        ");
        insta::assert_snapshot!(steps(&findings)[0].1.text(), @r"
        
        trial | for | offered | verdict | because
        0 | pilot | a closed loop |  | a closed loop reached 69.9 k/s
        1 | bracket | 34.9 k/s | holds | 99 % of the offered rate achieved
        2 | bracket | 69.9 k/s | fails | p99 17.06 ms
        3 | bisect | 49.4 k/s | holds | p99 908 µs
        4 | bisect | 58.8 k/s | holds | p99 1.545 ms
        5 | bisect | 64.1 k/s | holds | p99 2.91 ms
        6 | repeat | 64.1 k/s | holds | p99 2.81 ms
        7 | repeat | 64.1 k/s | holds | p99 2.89 ms
        8 | repeat | 69.9 k/s | fails | p99 17.03 ms
        9 | repeat | 69.9 k/s | fails | p99 17.36 ms
        10 | confirm | 64.1 k/s | holds | p99 2.87 ms
        11 | confirm | 64.1 k/s | holds | p99 2.82 ms
        ");
        // The study's own tables omit the capacity, which is not a design point.
        insta::assert_snapshot!(crate::sections::tables::table(&findings, &findings.tables[0]).text(), @"
        P99 latency
        load | n | p99 | limited by
        20 | 12 | 338 ±7 µs | neither
        50 | 12 | 508 ±9 µs | neither (11/12)
        80 | 12 | 987 ±17 µs | neither
        ");
    }
}
