//! The section with the verdicts of a gate.

use analysis::effects::change;
use analysis::enum_words_and_lists::limit_word;
use analysis::findings::{EffectScale, Findings, GateFinding, GateTest, GateVerdict, Row};
use analysis::gate::duration;
use analysis::number::{count, p_value, percent, quantity};
use study::Metric;
use study::gate::Bound;

use crate::document::{Block, Cell, Columns, Head, Room, Section, Table, Tone};

pub(crate) fn write(f: &Findings, section: &mut Section) {
    let Some(found) = &f.gate else { return };
    section.all([Block::Table(table(f, found))]);
    section.all([Block::Note(cost(f, found))]);
    section.long([Block::Note(READING.to_owned())]);
}

const READING: &str = "Pair by pair: the typical ratio (Hodges and Lehmann) with the interval of Wilcoxon's signed-rank test at the level of \
                       the last look of the run. The values of the two sides come from the same pairs and differ by that ratio; for \
                       errors they are mean shares. All looks and all conditions share one error; each further metric has its own.";

fn table(f: &Findings, found: &GateFinding) -> Table {
    let tests = [(&found.tests, Kind::Asked), (&found.null, Kind::Null), (&found.also, Kind::Also)];
    let tests = tests.into_iter().flat_map(|(tests, kind)| tests.iter().map(move |test| (test, kind)));
    let placed = tests.clone().any(|(test, _)| !test.label.is_empty());
    let first = found.tests.first().map(|test| &*test.candidate);
    let several = tests.clone().any(|(test, _)| Some(&*test.candidate) != first);
    let one = first.filter(|_| !several).unwrap_or("candidate");
    let value = |test: &GateTest, value: Option<f64>| match value {
        None => "–".to_owned(),
        Some(share) if test.is_about_errors() => percent(share),
        Some(value) => quantity(value, f.unit(&test.metric)),
    };
    let head = |head: &str| Head::number(head).room(Room::Drop);
    let change = Head::number("change").hint("typical ratio of the pairs, less one");
    let p = Head::number("p").hint("one-sided").room(Room::Long);
    let table = Columns::of(tests)
        .text("metric", |(test, _)| if test.is_about_errors() { "errors" } else { Metric::noun_of(&test.metric) })
        .when(placed, |table| table.text("at", |(test, _)| test.label.as_str()))
        .when(several, |table| table.text(&found.factor, |(test, _)| test.candidate.as_str()))
        .column(head(&found.base), |(test, _)| value(test, test.base_value))
        .column(head(one), |(test, _)| value(test, test.candidate_value))
        .column(change, |(test, _)| changed(test, f.unit(&test.metric)))
        .column(head("pairs"), |(test, _)| test.pairs.to_string())
        .column(p, |(test, _)| test.p.map_or("–".to_owned(), p_value))
        .text("verdict", |(test, kind)| verdict(found, test, *kind));
    table.titled(format!("Against {}", found.base))
}

#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Asked,
    Also,
    Null,
}

fn changed(test: &GateTest, unit: &str) -> String {
    let points = |share: f64| format!("{:+.2}", share * 100.0);
    match (&test.ratio, &test.value, &test.difference) {
        (Some(ratio), ..) => change(EffectScale::Ratio, ratio, "1"),
        (_, Some(value), _) if test.is_about_errors() => format!("[{}, {}]", percent(value.low), percent(value.high)),
        (_, Some(value), _) => format!("[{}, {}]", quantity(value.low, unit), quantity(value.high, unit)),
        (.., Some(difference)) if difference.low == 0.0 && difference.high == 0.0 => "–".to_owned(),
        (.., Some(difference)) => {
            let [point, low, high] = [difference.point, difference.low, difference.high].map(points);
            format!("{point} points [{low}, {high}]")
        }
        _ => "–".to_owned(),
    }
}

fn verdict(found: &GateFinding, test: &GateTest, kind: Kind) -> Cell {
    let metric = Metric::named(&test.metric);
    let limit = test.bound.zip(metric).filter(|_| found.fail_if.is_some()).map(|(bound, metric)| match bound {
        Bound::Factor(factor) => (format!("worse by more than {}", percent((factor - 1.0).abs())), bound),
        Bound::Absolute(_) => (format!("beyond {}", bound.text(metric)), bound),
        Bound::Excess(0.0) => ("more errors".to_owned(), bound),
        Bound::Excess(_) => (format!("more than {}", bound.text(metric)), bound),
    });
    let (text, tone) = match (test.verdict, kind, limit) {
        (GateVerdict::NoVerdict, ..) => ("none".to_owned(), Tone::Muted),
        (GateVerdict::Undecided, _, None) if test.p.is_none() => ("not compared".to_owned(), Tone::Muted),
        (GateVerdict::Undecided, _, None) => ("no difference shown".to_owned(), Tone::Plain),
        (GateVerdict::Undecided, _, Some((limit, _))) => (format!("undecided: {limit}?"), Tone::Warning),
        (GateVerdict::Worse | GateVerdict::NotWorse, Kind::Null, _) => ("a false alarm".to_owned(), Tone::Warning),
        (GateVerdict::Worse, _, None) => ("worse".to_owned(), Tone::Bad),
        (GateVerdict::Worse, _, Some((limit, _))) => (format!("fails: {limit}"), Tone::Bad),
        (GateVerdict::NotWorse, _, None) => ("better".to_owned(), Tone::Good),
        (GateVerdict::NotWorse, _, Some((_, Bound::Excess(_)))) => ("passes".to_owned(), Tone::Good),
        (GateVerdict::NotWorse, _, Some((limit, _))) => (format!("passes: not {limit}"), Tone::Good),
    };
    Cell::from(if kind == Kind::Also { text + " (also tested)" } else { text }).tone(tone)
}

fn cost(f: &Findings, found: &GateFinding) -> String {
    let trials = f.rows.iter().map(|row| row.trials.len() as u64).sum::<u64>();
    let limit = |row: &Row| Some(format!("{} by {}", row.label, limit_word(row.limited_by.as_ref()?.limit)));
    let limits = f.rows.iter().filter_map(limit).collect::<Vec<_>>();
    let limits = if limits.is_empty() { String::new() } else { format!(" Limited: {}.", limits.join(", ")) };
    format!("{} in {}, builds not counted.{limits}", count(trials, "trial"), duration(found.cost_ns))
}
