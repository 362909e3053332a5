//! The section with comparisons of contenders and trends.

use analysis::effects::change;
use analysis::enum_words_and_lists::serde_name;
use analysis::findings::{ComparedPlace, Comparison, Difference, EffectScale, Findings, Trend};
use analysis::number::{p_value, percent};

use crate::document::{Block, Head, Section, Table};

/// Maximum total number of rows in the tables of metrics other than the main one; the JSON has all pairs.
const ROWS_MAX: usize = 200;

pub(crate) fn section(f: &Findings) -> Option<Section> {
    let mut section = Section::new("comparisons", "Comparisons");
    let (headlines, others) = f.comparisons.iter().partition::<Vec<_>, _>(|found| found.headline);
    headlines.iter().for_each(|found| section.long(Block::Table(table(f, found))));
    if !f.trends.is_empty() {
        section.long(Block::Table(trends(f)));
    }
    let others = others.into_iter().map(|found| table(f, found)).filter(|table| !table.rows.is_empty());
    let mut left = ROWS_MAX;
    let others = others.map_while(|table| {
        left = left.checked_sub(table.rows.len())?;
        Some(Block::Table(table))
    });
    let others = others.collect::<Vec<_>>();
    if !others.is_empty() {
        section.long(Block::Fold("By other metrics".to_owned(), others));
    }
    if !section.blocks.is_empty() {
        section.long(Block::Note(READING.to_owned()));
    }
    section.unless_empty()
}

const READING: &str = "Block by block: the typical ratio (Hodges and Lehmann) with the exact interval of Wilcoxon's \
                       signed-rank test, next to the ratio of geometric means with Student's t interval. p is \
                       adjusted for all comparisons by one metric (Holm). In each group the best by typical ratios is \
                       compared with all others; the JSON has every pair.";

fn table(f: &Findings, found: &Comparison) -> Table {
    let placed = found.places.iter().any(|place| !place.label.is_empty());
    let heads = placed.then_some("at").into_iter().chain(["best", "other"]).map(Head::text).chain(difference_heads());
    let of_place = |place: &ComparedPlace| {
        let of_pair = |pair: &Difference| {
            let best = place.best.filter(|best| [pair.a, pair.b].contains(best))?;
            let other = if pair.a == best { pair.b } else { pair.a };
            let mut cells = if placed { vec![place.label.clone()] } else { Vec::new() };
            cells.extend([contender(f, found, best), contender(f, found, other)]);
            cells.extend(difference(pair, pair.a == best));
            Some(cells)
        };
        place.pairs.iter().filter_map(of_pair).collect::<Vec<_>>()
    };
    let rows = found.places.iter().flat_map(of_place);
    let name = study::Metric::noun_of(&found.metric);
    let several = f.comparisons.iter().any(|other| other.idle != found.idle);
    let idle = if several { format!(", idle {}", serde_name(found.idle)) } else { String::new() };
    let name = analysis::enum_words_and_lists::capitalised(name);
    Table::plain(format!("{name}, compared with the best{idle}"), heads, rows)
}

fn contender(f: &Findings, found: &Comparison, row: usize) -> String {
    let row = f.rows.get(row);
    row.and_then(|row| Some(row.factors.get(&found.factor)?.to_string())).unwrap_or_default()
}

fn trends(f: &Findings) -> Table {
    let placed = f.trends.iter().any(|trend| !trend.label.is_empty());
    let heads = ["metric", "from", "to"].into_iter().chain(placed.then_some("at")).map(Head::text);
    let row = |trend: &Trend| {
        let name = study::Metric::noun_of(&trend.metric);
        let mut cells =
            vec![name.to_owned(), format!("{} {}", trend.factor, trend.from), format!("{} {}", trend.factor, trend.to)];
        cells.extend(placed.then(|| trend.label.clone()));
        cells.extend(difference(&trend.change, true));
        cells
    };
    Table::plain("From the first to the last level", heads.chain(difference_heads()), f.trends.iter().map(row))
}

fn difference_heads() -> impl Iterator<Item = Head> {
    let numbers = ["typical change", "change of the mean", "blocks", "p (Holm)"].map(Head::number);
    numbers.into_iter().chain([Head::text("shown")])
}

/// Cells of a difference, which compare b with a if `forward`, otherwise a with b.
fn difference(found: &Difference, forward: bool) -> [String; 5] {
    let ratio = |ratio: Option<analysis::findings::Estimate>| {
        let Some(ratio) = ratio else { return "–".to_owned() };
        let ratio = if forward { ratio } else { ratio.inverse() };
        change(EffectScale::Ratio, &ratio, "1")
    };
    let shown = match (found.shown, found.could_show) {
        (true, _) => "yes".to_owned(),
        (false, Some(size)) => format!("no; about {} would have been", percent(size)),
        (false, None) => "no".to_owned(),
    };
    [ratio(found.ratio), ratio(found.mean_ratio), found.blocks.to_string(), p_value(found.p_adjusted), shown]
}
