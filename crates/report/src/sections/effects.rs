//! The section with effects of factors.

use analysis::effects::{change, source_name};
use analysis::enum_words_and_lists::serde_name;
use analysis::findings::{ChangeAt, EffectAnalysis, EffectChange, EffectScale, Effects, Findings};
use analysis::group_by_key::{distinct, grouped};
use analysis::number;
use study::plan::{Design, Level};

use crate::document::{Block, Head, Section, Table};

pub(crate) fn section(f: &Findings) -> Option<Section> {
    let mut section = Section::new("effects", "Effects of the factors");
    for effects in &f.effects {
        for sentence in &effects.sentences {
            let block = Block::Text(sentence.clone());
            // The terminal omits this note for studies that cannot be factorials on this machine.
            if effects.analyses.is_empty() { section.long(block) } else { section.all(block) }
        }
    }
    let tables = tables(f);
    let any = !tables.is_empty();
    tables.into_iter().for_each(|table| section.long(Block::Table(table)));
    if any {
        section.long(Block::Note(READING.to_owned()));
    }
    section.unless_empty()
}

const READING: &str = "Analysis of variance with replications (Jain 1991, chapters 17, 18 and 22): a replication is a \
                       trial with a fresh server, and the common effect of a block on all points is excluded from the \
                       error. As ratio: of logarithms, effects multiply. As difference: effects add. Intervals share \
                       one error term, that between trials of one point, and are not adjusted; p-values are adjusted \
                       for the effects tested together (Holm). By chance even a factor without effect has a small \
                       share: see its p-value.";

fn tables(findings: &Findings) -> Vec<Table> {
    let mut tables = Vec::new();
    for effects in &findings.effects {
        let Some(metric) = findings.metric_info(&effects.metric) else { continue };
        if effects.analyses.is_empty() {
            continue;
        }
        let of = metric.noun;
        let idle = match findings.effects.iter().any(|other| other.idle != effects.idle) {
            true => format!(", idle {}", serde_name(effects.idle)),
            false => String::new(),
        };
        let title = |what: &str| format!("{what} {of}{idle}");
        tables.push(variation(effects, title("Sources of variation:")));
        tables.extend(changes(effects, metric, title("Effect of each change on")).unless_empty());
    }
    tables
}

fn scale_name(scale: EffectScale) -> String {
    format!("as {}", serde_name(scale))
}

fn variation(effects: &Effects, title: String) -> Table {
    let mut heads = vec![Head::text("source"), Head::number("df")];
    for found in &effects.analyses {
        let scale = scale_name(found.scale);
        heads.extend(["share", "F", "p (Holm)"].map(|head| Head::number(format!("{head}, {scale}"))));
    }
    // With few trials, only one analysis may separate blocks, so lines are matched by name.
    let names = distinct(effects.analyses.iter().flat_map(|found| &found.sources).map(source_name));
    let row = |name: String| {
        let of = |found: &'_ EffectAnalysis| found.sources.iter().find(|source| source_name(source) == name).cloned();
        let df = effects.analyses.iter().find_map(of).map_or_else(String::new, |source| source.df.to_string());
        let mut row = vec![name.clone(), df];
        for found in effects.analyses.iter().map(of) {
            let source = found.as_ref();
            row.push(source.map_or_else(String::new, |source| number::percent(source.share)));
            row.push(source.and_then(|source| source.f).map_or_else(String::new, short));
            row.push(source.and_then(|source| source.p_adjusted).map_or_else(String::new, number::p_value));
        }
        row
    };
    Table::plain(title, heads, names.into_iter().map(row))
}

fn short(value: f64) -> String {
    if value >= 100.0 { format!("{value:.0}") } else { format!("{value:.2}") }
}

fn changes(effects: &Effects, metric: &study::Metric, title: String) -> Table {
    let heads = ["factor", "from", "to", "where"].map(Head::text).into_iter();
    let is_tested = |found: &EffectAnalysis| found.changes.iter().any(|change| change.p_adjusted.is_some());
    let scales = |found: &EffectAnalysis| {
        [Some(scale_name(found.scale)), is_tested(found).then(|| "p, adjusted".to_owned())].into_iter().flatten()
    };
    let heads = heads.chain(effects.analyses.iter().flat_map(scales).map(Head::number));
    let same =
        |a: &EffectChange, b: &EffectChange| (&a.factor, &a.from, &a.to, &a.at) == (&b.factor, &b.from, &b.to, &b.at);
    let all = effects.analyses.iter().flat_map(|analysis| &analysis.changes);
    let all = grouped(all.map(|found| ((&found.factor, &found.from, &found.to, &found.at), found)));
    let row = |wanted: &EffectChange| {
        let at = match (&wanted.at, effects.design) {
            (Some(ChangeAt { level: Level::Text(word), .. }), _) => word.clone(),
            (Some(at), _) => format!("{} {}", at.factor, at.level),
            (None, Design::Full) => "on average".to_owned(),
            (None, Design::OneAtATime) => "others at first level".to_owned(),
        };
        let mut row = vec![wanted.factor.clone(), wanted.from.to_string(), wanted.to.to_string(), at];
        for analysis in &effects.analyses {
            let found = analysis.changes.iter().find(|found| same(found, wanted));
            row.push(found.map_or_else(String::new, |found| change(analysis.scale, &found.change, metric.unit)));
            if is_tested(analysis) {
                row.push(found.and_then(|found| found.p_adjusted).map_or_else(String::new, number::p_value));
            }
        }
        row
    };
    Table::plain(title, heads, all.into_iter().map(|(_, found)| row(found[0])))
}
