//! The section with the verdicts of a gate.

use analysis::effects::change;
use analysis::findings::{EffectScale, Findings, GateFinding, GateTest, GateVerdict};
use analysis::gate::duration;
use analysis::number::{count, p_value, percent, quantity};
use study::Metric;
use study::gate::Bound;

use crate::document::{Block, Cell, Head, Room, Section, Table, Tone};

pub(crate) fn section(f: &Findings) -> Option<Section> {
    let found = f.gate.as_ref()?;
    let mut section = Section::new("gate", "Against the baseline");
    section.all(Block::Table(table(f, found)));
    section.all(Block::Note(cost(f, found)));
    section.long(Block::Note(READING.to_owned()));
    section.unless_empty()
}

const READING: &str = "Pair by pair: the typical ratio (Hodges and Lehmann) with the interval of Wilcoxon's signed-rank test at the level of \
                       the last look of the run. The values of the two sides come from the same pairs and differ by that ratio; for \
                       errors they are mean shares. All looks and all conditions share one error; each further metric has its own.";

fn table(f: &Findings, found: &GateFinding) -> Table {
    let tests = || found.tests.iter().chain(&found.null).chain(&found.also);
    let placed = tests().any(|test| !test.label.is_empty());
    let several = tests().any(|test| test.candidate != found.tests.first().map_or("", |test| &test.candidate));
    let mut heads = vec![Head::text("metric")];
    heads.extend(placed.then(|| Head::text("at")));
    heads.extend(several.then(|| Head::text(found.factor.as_str())));
    let one = if several { "candidate" } else { found.tests.first().map_or("candidate", |test| &test.candidate) };
    heads.extend([
        Head::number(found.base.as_str()).room(Room::Drop),
        Head::number(one).room(Room::Drop),
        Head::number("change").hint("typical ratio of the pairs, less one"),
        Head::number("pairs").room(Room::Drop),
        Head::number("p").hint("one-sided").room(Room::Long),
        Head::text("verdict"),
    ]);
    let row = |test: &GateTest, kind: Kind| {
        let noun = if test.is_about_errors() { "errors" } else { Metric::noun_of(&test.metric) };
        let unit = f.unit(&test.metric);
        let value = |value: Option<f64>| match value {
            None => "–".to_owned(),
            Some(share) if test.is_about_errors() => percent(share),
            Some(value) => quantity(value, unit),
        };
        let mut cells = vec![Cell::new(noun)];
        cells.extend(placed.then(|| Cell::new(test.label.as_str())));
        cells.extend(several.then(|| Cell::new(test.candidate.as_str())));
        let (text, tone) = verdict(found, test, kind);
        cells.extend([
            Cell::new(value(test.base_value)),
            Cell::new(value(test.candidate_value)),
            Cell::new(changed(test, unit)),
            Cell::new(test.pairs.to_string()),
            Cell::new(test.p.map_or("–".to_owned(), p_value)),
            Cell::new(text).tone(tone),
        ]);
        cells
    };
    let tests = [(&found.tests, Kind::Asked), (&found.null, Kind::Null), (&found.also, Kind::Also)];
    let rows = tests.into_iter().flat_map(|(tests, kind)| tests.iter().map(move |test| (test, kind)));
    let rows = rows.map(|(test, kind)| row(test, kind)).collect();
    Table { title: format!("Against {}", found.base), heads, rows, below: Vec::new() }
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

fn verdict(found: &GateFinding, test: &GateTest, kind: Kind) -> (String, Tone) {
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
    match kind {
        Kind::Also => (format!("{text} (also tested)"), tone),
        _ => (text, tone),
    }
}

fn cost(f: &Findings, found: &GateFinding) -> String {
    let trials = f.rows.iter().map(|row| row.trials.len() as u64).sum::<u64>();
    let limits = f.rows.iter().filter_map(|row| {
        let limit = row.limited_by.as_ref()?;
        Some(format!("{} by {}", row.label, analysis::enum_words_and_lists::limit_word(limit.limit)))
    });
    let limits = limits.collect::<Vec<_>>();
    let limits = if limits.is_empty() { String::new() } else { format!(" Limited: {}.", limits.join(", ")) };
    format!("{} in {}, builds not counted.{limits}", count(trials, "trial"), duration(found.cost_ns))
}
