//! The section with comparisons of contenders and trends.

use analysis::effects::change;
use analysis::enum_words_and_lists::{capitalised, serde_name};
use analysis::findings::{Comparison, Difference, EffectScale, Estimate, Findings};
use analysis::number::{p_value, percent};

use crate::document::{Block, Columns, Section, Table};

/// Maximum total number of rows in the tables of metrics other than the main one; the JSON has all pairs.
const ROWS_MAX: usize = 200;

pub(crate) fn write(f: &Findings, section: &mut Section) {
    let (headlines, others) = f.comparisons.iter().partition::<Vec<_>, _>(|found| found.headline);
    section.long(headlines.into_iter().map(|found| Block::Table(table(f, found))));
    section.long(trends(f).unless_empty().map(Block::Table));
    let others = others.into_iter().map(|found| table(f, found)).filter(|table| !table.rows.is_empty());
    let mut left = ROWS_MAX;
    let others = others.map_while(|table| {
        left = left.checked_sub(table.rows.len())?;
        Some(Block::Table(table))
    });
    let others = others.collect::<Vec<_>>();
    section.long((!others.is_empty()).then(|| Block::Fold("By other metrics".to_owned(), others)));
    section.long((!section.blocks.is_empty()).then(|| Block::Note(READING.to_owned())));
}

const READING: &str = "Block by block: the typical ratio (Hodges and Lehmann) with the exact interval of Wilcoxon's \
                       signed-rank test, next to the ratio of geometric means with Student's t interval. p is \
                       adjusted for all comparisons by one metric (Holm). In each group the best by typical ratios is \
                       compared with all others; the JSON has every pair.";

fn table(f: &Findings, found: &Comparison) -> Table {
    let placed = found.places.iter().any(|place| !place.label.is_empty());
    let pairs = found.places.iter().flat_map(|place| place.pairs.iter().map(move |pair| (place, pair)));
    let pairs = pairs.filter_map(|(place, pair)| {
        let best = place.best.filter(|best| [pair.a, pair.b].contains(best))?;
        Some((place, pair, best, if pair.a == best { pair.b } else { pair.a }))
    });
    let contender = |row: usize| {
        let row = f.rows.get(row);
        row.and_then(|row| Some(row.factors.get(&found.factor)?.to_string())).unwrap_or_default()
    };
    let several = f.comparisons.iter().any(|other| other.idle != found.idle);
    let idle = if several { format!(", idle {}", serde_name(found.idle)) } else { String::new() };
    let name = capitalised(study::Metric::noun_of(&found.metric));
    let table = Columns::of(pairs)
        .when(placed, |table| table.text("at", |(place, ..)| place.label.as_str()))
        .text("best", |(_, _, best, _)| contender(*best))
        .text("other", |(.., other)| contender(*other));
    difference(table, |(_, pair, best, _)| (*pair, pair.a == *best))
        .plain(format!("{name}, compared with the best{idle}"))
}

fn trends(f: &Findings) -> Table {
    let placed = f.trends.iter().any(|trend| !trend.label.is_empty());
    let table = Columns::of(&f.trends)
        .text("metric", |trend| study::Metric::noun_of(&trend.metric))
        .text("from", |trend| format!("{} {}", trend.factor, trend.from))
        .text("to", |trend| format!("{} {}", trend.factor, trend.to))
        .when(placed, |table| table.text("at", |trend| trend.label.as_str()));
    difference(table, |trend| (&trend.change, true)).plain("From the first to the last level")
}

/// Adds the columns of a difference, which compare b with a if the second value is true, otherwise a with b.
fn difference<T>(table: Columns<T>, of: impl Fn(&T) -> (&Difference, bool)) -> Columns<T> {
    let ratio = |row: &T, pick: fn(&Difference) -> Option<Estimate>| {
        let (found, forward) = of(row);
        let ratio = pick(found).map(|ratio| if forward { ratio } else { ratio.inverse() });
        ratio.map_or("–".to_owned(), |ratio| change(EffectScale::Ratio, &ratio, "1"))
    };
    let shown = |found: &Difference| match (found.shown, found.could_show) {
        (true, _) => "yes".to_owned(),
        (false, Some(size)) => format!("no; about {} would have been", percent(size)),
        (false, None) => "no".to_owned(),
    };
    table
        .number("typical change", |row| ratio(row, |found| found.ratio))
        .number("change of the mean", |row| ratio(row, |found| found.mean_ratio))
        .number("blocks", |row| of(row).0.blocks.to_string())
        .number("p (Holm)", |row| p_value(of(row).0.p_adjusted))
        .text("shown", |row| shown(of(row).0))
}
