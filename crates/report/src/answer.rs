//! The answer to the question of a study, as far as the intervals give one.

use std::collections::{BTreeMap, BTreeSet};

use study::plan::Level;

use crate::findings::{Findings, Mark, MetricInfo, Row, Scalability, SearchEnd};
use crate::number;
use crate::row::label;

/// At most so many places are named in a sentence.
const NAMED: usize = 3;

/// Sentences, the most important first.
///
/// Contenders are the levels of the first factor of words, or of the first factor where all are numbers. They are ranked by
/// the metric of the stop rule at each combination of the other factors. A contender leads where its interval lies apart
/// from those of all others; else no difference is shown. Marked rows take no part.
pub(crate) fn answer(findings: &Findings) -> Vec<String> {
    let mut sentences = Vec::new();
    let ranked = |row: &&Row| is_ranked(row, &findings.metric);
    match (findings.metric_info(&findings.metric), contender(findings)) {
        (Some(metric), Some(factor)) if findings.rows.iter().filter(ranked).count() > 1 => {
            sentences.extend(ranking(findings, metric, factor));
        }
        _ => sentences.extend(findings.rows.iter().filter(ranked).map(|row| alone(findings, row))),
    }
    if sentences.is_empty() && findings.searches().next().is_none() {
        let is_there = |row: &&Row| row.estimate(&findings.metric).is_some();
        let why = match findings.rows.iter().find(is_there).map(Row::is_about_others) {
            Some(true) => "is about the subject",
            Some(false) => "is of a subject that went on answering",
            None if findings.rows.iter().any(|row| row.is_at_least(&findings.metric)) => "is more than a lower bound",
            None => "has an interval",
        };
        sentences.push(format!("No answer: {} of no design point {why}.", findings.metric));
    }
    sentences.extend(bears_most(findings));
    sentences.extend(findings.searches().map(|(row, search)| format!("{}: {}.", row.label, search.sentence)));
    // A law that was not fitted is worth a sentence where points were there and had to be left out.
    let told = |found: &&Scalability| found.fit.is_some() || found.points.iter().any(|point| point.left_out.is_some());
    sentences.extend(findings.scalability.iter().filter(told).map(|found| found.sentence.clone()));
    sentences.extend(findings.added.iter().take(NAMED).map(|found| found.sentence.clone()));
    sentences.extend(findings.miss_ratios.iter().flat_map(|found| found.sentences.iter().take(NAMED)).cloned());
    // Of the metric that the study is about, what matters most, where it is about the subject alone.
    let effects = findings.effects.iter().find(|effects| effects.metric == findings.metric && effects.marked.is_none());
    sentences.extend(
        effects.into_iter().flat_map(|effects| effects.sentences.iter().take(effects.shown.min(NAMED)).cloned()),
    );
    // Where most numbers are about something else, that is the answer.
    let measured = findings.rows.iter().filter(|row| row.n > 0).count();
    let marked = || findings.rows.iter().filter(|row| row.is_about_others() && row.n > 0);
    if marked().count() * 2 > measured {
        let kinds = marked().flat_map(|row| &row.marks).filter(|mark| **mark != Mark::Hung).map(|mark| mark.text());
        let kinds = kinds.collect::<BTreeSet<_>>();
        let kinds = kinds.into_iter().collect::<Vec<_>>().join(" or ");
        let all = number::count(measured as u64, "design point");
        let first = format!("At {} of {all} the numbers are not about the subject: {kinds}.", marked().count());
        sentences.insert(0, first);
    }
    let marked = marked().map(|row| {
        let marks = row.marks.iter().map(|mark| mark.text()).collect::<Vec<_>>().join(", ");
        format!("{} ({marks})", row.label)
    });
    sentences.extend(listed("Not ranked, because the numbers are not about the subject: ", marked.collect()));
    let hung = findings.rows.iter().filter(|row| !row.is_about_others() && row.hung() > 0).map(|row| {
        let trials = number::count(row.n as u64, "trial");
        format!("{} (hung in {} of {trials})", row.label, row.hung())
    });
    sentences.extend(listed("Not ranked, because the subject stopped answering: ", hung.collect()));
    sentences.extend(at_least(findings));
    let without = findings.rows.iter().filter(|row| row.n == 0);
    let without = without.map(|row| format!("{} ({})", row.label, row.state.word())).collect::<Vec<_>>();
    if without.len() == findings.rows.len() {
        let reason = findings.rows.iter().find_map(|row| row.state.reason()).unwrap_or("there is no design point");
        return vec![format!("No answer: no trial was measured ({reason}).")];
    }
    sentences.extend(listed("Without numbers: ", without));
    sentences
}

/// Points whose metric is only known to be at least something: neither the lowest nor equal to another.
fn at_least(findings: &Findings) -> Option<String> {
    let metric = findings.metric_info(&findings.metric)?;
    let unknown = findings.rows.iter().filter(|row| !row.is_marked() && row.is_at_least(&metric.name));
    let shown = unknown.filter_map(|row| {
        let mean = number::quantity(row.metrics.get(&metric.name)?.mean?, &metric.unit);
        Some(format!("{} ({} at least {mean})", row.label, noun(metric)))
    });
    listed("Not ranked, because requests still waited for an answer at the end: ", shown.collect())
}

/// What a search has found is a range, told in a sentence of its own; the metrics of its row are those at one end of it.
fn is_ranked(row: &Row, metric: &str) -> bool {
    !row.is_marked() && row.search.is_none() && row.estimate(metric).is_some()
}

/// Which of the subjects that were searched bears the highest rate, as far as their ranges lie apart; where one factor alone varies.
fn bears_most(findings: &Findings) -> Option<String> {
    if findings.factors.iter().filter(|factor| factor.levels.len() > 1).count() != 1 {
        return None;
    }
    let ranges = findings.rows.iter().filter_map(|row| {
        let search = row.search.as_ref()?;
        let sure = |end: Option<SearchEnd>| end.filter(|end| end.confirmed).map(|end| end.rate_per_s);
        Some((row, sure(search.low)?, sure(search.high)))
    });
    let mut ranges = ranges.collect::<Vec<_>>();
    ranges.sort_by(|a, b| b.1.total_cmp(&a.1));
    let (&(first, low_per_s, _), rest) = ranges.split_first().filter(|(_, rest)| !rest.is_empty())?;
    let near = rest.iter().filter(|(_, _, high)| high.is_none_or(|high_per_s| high_per_s > low_per_s));
    let near = near.map(|(row, _, _)| row.label.as_str()).collect::<Vec<_>>();
    if !near.is_empty() {
        return Some(format!(
            "No difference in the rate that is borne shown between {} and {}.",
            first.label,
            near.join(" and ")
        ));
    }
    let next = rest.iter().max_by(|a, b| a.2.unwrap_or(0.0).total_cmp(&b.2.unwrap_or(0.0)))?;
    let rate = |rate_per_s| number::quantity(rate_per_s, "1/s");
    let numbers = format!("{} against less than {}", rate(low_per_s), rate(next.2?));
    Some(format!("{} bears the highest rate: at least {numbers} of {}.", first.label, next.0.label))
}

fn listed(start: &str, items: Vec<String>) -> Option<String> {
    (!items.is_empty()).then(|| format!("{start}{}.", some_of(&items)))
}

/// The first few, and how many more.
fn some_of(items: &[String]) -> String {
    let rest = items.len().saturating_sub(NAMED);
    // Not `and 1 more`, which is as long as the one.
    if rest < 2 {
        return items.join("; ");
    }
    format!("{}; and {rest} more", items[..NAMED].join("; "))
}

fn contender(findings: &Findings) -> Option<&str> {
    let varied = || findings.factors.iter().filter(|factor| factor.levels.len() > 1);
    varied().find(|factor| !factor.numeric).or_else(|| varied().next()).map(|factor| factor.name.as_str())
}

/// One point, without anything to compare with.
fn alone(findings: &Findings, row: &Row) -> String {
    let parts = ["throughput", "latency_mean", "latency_p99"].into_iter().filter_map(|name| {
        let metric = findings.metric_info(name)?;
        Some(format!("{} {}", noun(metric), number::estimate(row.estimate(name)?, &metric.unit)))
    });
    format!("{}: {}.", row.label, parts.collect::<Vec<_>>().join(", "))
}

/// How a metric is called within a sentence.
fn noun(metric: &MetricInfo) -> String {
    match (metric.name.as_str(), metric.text.strip_suffix(" of the latency")) {
        ("throughput", _) => "throughput".to_owned(),
        (_, Some(quantile)) => format!("{quantile} latency"),
        _ => metric.text.clone(),
    }
}

/// What one combination of the other factors shows.
struct Place<'a> {
    label: String,
    /// Best first.
    rows: Vec<&'a Row>,
}

fn ranking(findings: &Findings, metric: &MetricInfo, factor: &str) -> Vec<String> {
    let places = places(findings, metric, factor);
    let name = |row: &Row| label(&[factor.to_owned()], &row.factors);
    let shown =
        |row: &Row| row.estimate(&metric.name).map_or(String::new(), |found| number::estimate(found, &metric.unit));
    let best = format!("the {} {}", if metric.higher_is_better { "highest" } else { "lowest" }, noun(metric));
    let mut leads = BTreeMap::<String, Vec<Lead>>::new();
    let mut undecided = Vec::new();
    for place in &places {
        let [first, second, ..] = place.rows.as_slice() else { continue };
        let near = place.rows.iter().skip(1).filter(|row| overlaps(first, row, &metric.name)).collect::<Vec<_>>();
        if near.is_empty() {
            let numbers = format!("{} against {}", shown(first), shown(second));
            let lead = Lead { place: place.label.clone(), next: name(second), numbers };
            leads.entry(name(first)).or_default().push(lead);
        } else {
            let names = std::iter::once(name(first)).chain(near.into_iter().map(|row| name(row)));
            undecided.push(format!("{}{}", names.collect::<Vec<_>>().join(" and "), at(&place.label)));
        }
    }
    let compared = undecided.len() + leads.values().map(Vec::len).sum::<usize>();
    let mut leads = leads.into_iter().collect::<Vec<_>>();
    leads.sort_by_key(|(_, places)| std::cmp::Reverse(places.len()));
    let mut sentences = Vec::new();
    for (leader, leads) in &leads {
        sentences.extend(leading(leader, &best, leads, compared));
    }
    sentences.extend(listed(&format!("No difference in {} shown between ", noun(metric)), undecided));
    let alone = places.iter().filter_map(|place| match place.rows.as_slice() {
        [row] => Some(format!("{}: {}", row.label, shown(row))),
        _ => None,
    });
    sentences.extend(listed("Nothing to compare with: ", alone.collect()));
    sentences
}

/// One comparison that has a leader.
struct Lead {
    /// Where; empty where there is one place only.
    place: String,
    /// Who comes next.
    next: String,
    /// Of the leader, and of the next.
    numbers: String,
}

/// Who leads, in a sentence that can be read at once; the numbers of several comparisons have a sentence of their own.
fn leading(leader: &str, best: &str, leads: &[Lead], compared: usize) -> Vec<String> {
    if let ([lead], 1) = (leads, compared) {
        return vec![format!("{leader} has {best}: {} of {}{}.", lead.numbers, lead.next, at(&lead.place))];
    }
    let share = match leads.len() {
        all if all == compared => format!("in all {all} comparisons"),
        some => format!("in {some} of {compared} comparisons"),
    };
    let mut nexts = leads.iter().map(|lead| lead.next.as_str()).collect::<Vec<_>>();
    nexts.sort_unstable();
    nexts.dedup();
    let (first, details) = match nexts.as_slice() {
        [next] => (format!("{leader} has {best} {share}; {next} comes next."), false),
        _ => (format!("{leader} has {best} {share}."), true),
    };
    let details = leads.iter().map(|lead| {
        let next = if details { format!(" of {}", lead.next) } else { String::new() };
        if lead.place.is_empty() {
            format!("{}{next}", lead.numbers)
        } else {
            format!("{}: {}{next}", lead.place, lead.numbers)
        }
    });
    vec![first, format!("At {}.", some_of(&details.collect::<Vec<_>>()))]
}

fn at(label: &str) -> String {
    if label.is_empty() { String::new() } else { format!(" at {label}") }
}

fn places<'a>(findings: &'a Findings, metric: &MetricInfo, factor: &str) -> Vec<Place<'a>> {
    let others =
        findings.factors.iter().map(|factor| factor.name.clone()).filter(|name| name != factor).collect::<Vec<_>>();
    // Only what is varied tells places apart.
    let varied = findings.factors.iter().filter(|other| other.name != factor && other.levels.len() > 1);
    let varied = varied.map(|factor| factor.name.clone()).collect::<Vec<_>>();
    let mut places = Vec::<(_, Place<'a>)>::new();
    for row in findings.rows.iter().filter(|row| is_ranked(row, &metric.name)) {
        let levels = others.iter().filter_map(|name| row.factors.get(name)).collect::<Vec<&Level>>();
        let key = (levels, row.idle);
        match places.iter_mut().find(|(known, _)| *known == key) {
            Some((_, place)) => place.rows.push(row),
            None => {
                let label = if varied.is_empty() { String::new() } else { label(&varied, &row.factors) };
                places.push((key, Place { label, rows: vec![row] }));
            }
        }
    }
    let point = |row: &Row| row.estimate(&metric.name).map_or(0.0, |found| found.point);
    for (_, place) in &mut places {
        place.rows.sort_by(|a, b| match metric.higher_is_better {
            true => point(b).total_cmp(&point(a)),
            false => point(a).total_cmp(&point(b)),
        });
    }
    places.into_iter().map(|(_, place)| place).collect()
}

fn overlaps(a: &Row, b: &Row, metric: &str) -> bool {
    match (a.estimate(metric), b.estimate(metric)) {
        (Some(a), Some(b)) => a.low <= b.high && b.low <= a.high,
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use crate::{analyze, example};
    use insta::assert_snapshot;
    use study::record::{Record, Run};

    fn answer_to(edit: impl FnOnce(&mut Run, &mut Vec<Record>)) -> String {
        let (mut run, mut records) = example::volley();
        edit(&mut run, &mut records);
        analyze(&run, &records).answer.join("\n")
    }

    #[test]
    fn who_leads_where_and_what_is_left_out() {
        assert_snapshot!(answer_to(|_, _| ()), @r"
        c-epoll has the lowest mean latency in all 3 comparisons; rust-tokio comes next.
        At cores 1, clients 40: 573 ±11 µs against 719 ±55 µs; cores 1, clients 80: 1.100 ±0.014 ms against 1.364 ±0.009 ms; cores 2, clients 40: 358 ±3 µs against 439 ±9 µs.
        Not ranked, because the numbers are not about the subject: c-epoll, cores 2, clients 80 (generator-bound).
        Without numbers: go, cores 2, clients 80 (failed); rust-tokio, cores 2, clients 80 (unrunnable).
        ");
    }

    #[test]
    fn one_point_is_just_described() {
        let only = |run: &mut Run, records: &mut Vec<Record>| {
            run.plan.points.truncate(1);
            records.retain(|record| record.point == 0);
        };
        assert_snapshot!(answer_to(only), @"c-epoll, cores 1, clients 40: throughput 69.8 ±1.3 k/s, mean latency 573 ±11 µs, p99 latency 1.280 ±0.033 ms.");
    }

    #[test]
    fn numbers_compete_where_there_are_no_words() {
        let only = |run: &mut Run, records: &mut Vec<Record>| {
            run.plan.points.truncate(3);
            records.retain(|record| record.point < 3);
        };
        assert_snapshot!(answer_to(only), @r"
        cores 2 has the lowest mean latency: 358 ±3 µs against 573 ±11 µs of cores 1 at clients 40.
        Nothing to compare with: cores 1, clients 80: 1.100 ±0.014 ms.
        ");
    }

    #[test]
    fn overlap_is_no_difference() {
        // The same trials under two names cannot differ.
        let twins = |run: &mut Run, records: &mut Vec<Record>| {
            run.plan.points = vec![run.plan.points[0].clone(), run.plan.points[4].clone()];
            records.retain(|record| record.point == 0);
            let twins = records.iter().map(|record| Record { point: 1, ..record.clone() }).collect::<Vec<_>>();
            records.extend(twins);
        };
        assert_snapshot!(answer_to(twins), @"No difference in mean latency shown between c-epoll and go.");
    }

    #[test]
    fn nothing_measured_is_no_answer() {
        assert_snapshot!(answer_to(|_, records| records.clear()), @"No answer: no trial was measured (no trial has ended).");
        assert_snapshot!(answer_to(|_, records| records.retain(|record| record.block == 0)), @r"
        No answer: latency_mean of no design point has an interval.
        Not ranked, because the numbers are not about the subject: c-epoll, cores 2, clients 80 (generator-bound).
        Without numbers: go, cores 2, clients 80 (failed); rust-tokio, cores 2, clients 80 (unrunnable).
        ");
    }

    #[test]
    fn a_capacity_is_told_and_takes_no_part_in_comparisons() {
        let (run, records) = example::capacity();
        assert_snapshot!(analyze(&run, &records).answer.join("\n"), @r"
        load 20 has the lowest p99 latency: 340 ±9 µs against 500 ±8 µs of load 50.
        capacity: holds 64.1 k/s, fails at 69.9 k/s: p99 < 5ms and errors < 0.1%; 12 trials.
        ");
    }

    #[test]
    fn ranges_of_searches_are_ranked_where_they_lie_apart() {
        let (run, records) = example::capacity();
        let mut findings = analyze(&run, &records);
        let capacity = findings.capacities.remove(0);
        let named = |name: &str, factor: f64| {
            let mut row = capacity.clone();
            row.label = name.to_owned();
            row.factors.insert("server".to_owned(), study::plan::Level::Text(name.to_owned()));
            let search = row.search.as_mut().unwrap();
            for end in [&mut search.low, &mut search.high].into_iter().flatten() {
                end.rate_per_s *= factor;
            }
            row
        };
        findings.rows = vec![named("a", 1.0), named("b", 1.5)];
        findings.factors.retain(|factor| factor.name == "server");
        findings.factors[0].levels =
            vec![study::plan::Level::Text("a".to_owned()), study::plan::Level::Text("b".to_owned())];
        let first = |findings: &crate::Findings| super::answer(findings).remove(0);
        assert_snapshot!(first(&findings), @"b bears the highest rate: at least 96.1 k/s against less than 69.9 k/s of a.");
        findings.rows[1] = named("b", 1.001);
        assert_snapshot!(first(&findings), @"No difference in the rate that is borne shown between b and a.");
        findings.rows[1].search.as_mut().unwrap().high = None;
        assert_snapshot!(first(&findings), @"No difference in the rate that is borne shown between b and a.");
    }

    fn with(point: usize, trials: usize, edit: impl Fn(&mut study::record::Measurement)) -> crate::Findings {
        let (run, mut records) = example::volley();
        for record in records.iter_mut().filter(|record| record.point == point).take(trials) {
            let study::record::Outcome::Measured(measurement) = &mut record.outcome else { unreachable!() };
            edit(measurement);
        }
        analyze(&run, &records)
    }

    #[test]
    fn a_subject_that_hung_once_is_named_and_not_ranked() {
        use crate::silence::tests::{MS, leave};
        let findings = with(0, 1, |measurement| leave(measurement, &[200 * MS; 40], &[], 200 * MS));
        let told = findings.answer.iter().find(|sentence| sentence.contains("stopped answering"));
        let expected =
            "Not ranked, because the subject stopped answering: c-epoll, cores 1, clients 40 (hung in 1 of 8 trials).";
        assert_eq!(told.map(String::as_str), Some(expected));
        assert!(
            findings.answer[0].starts_with("c-epoll has the lowest mean latency in 2 of 3"),
            "{:?}",
            findings.answer
        );
        assert!(findings.rows[0].estimate("latency_mean").is_none(), "its mean is only at least something");
        let text = crate::terminal(&findings, &crate::Style::PLAIN);
        assert!(
            text.contains("* the subject hung") && text.contains("Without an answer when a trial ended: 40 in flight"),
            "{text}"
        );
        let page = crate::html(&findings).unwrap();
        assert!(page.contains("40 in flight") && page.contains("≥ "), "the page tells it too");
        let json = crate::json(&findings).unwrap();
        assert!(json.contains(r#""at_least": true"#) && json.contains(r#""hung""#));
    }

    #[test]
    fn a_lower_bound_takes_no_part_in_a_ranking() {
        use crate::silence::tests::{MS, leave};
        // One frozen connection, in one trial: nothing else looks strange.
        let findings = with(0, 1, |measurement| leave(measurement, &[4_000 * MS], &[], MS));
        let told = findings.answer.iter().find(|sentence| sentence.contains("still waited")).unwrap();
        assert!(told.contains("c-epoll, cores 1, clients 40 (mean latency at least "), "{told}");
        assert!(
            findings.answer[0].starts_with("c-epoll has the lowest mean latency in 2 of 3"),
            "{:?}",
            findings.answer
        );
        let found = &findings.rows[0].metrics["latency_mean"];
        assert!(found.at_least && found.estimate.is_none() && found.mean.is_some());
        assert!(crate::markdown(&findings).contains("| ≥ "), "{}", crate::markdown(&findings));
        let csv = crate::csv(&findings);
        assert!(csv.lines().nth(1).unwrap().ends_with(",latency_mean,281,0,"), "{csv}");
        assert!(findings.rows[0].estimate("latency_p50").is_some(), "its median is known");
    }
}
