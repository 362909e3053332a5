//! The section with effects of factors.

use analysis::effects::{change, source_name};
use analysis::enum_words_and_lists::serde_name;
use analysis::findings::{ChangeAt, EffectAnalysis, EffectChange, EffectSource, Effects, Findings};
use analysis::group_by_key::{distinct, grouped};
use analysis::number;
use study::plan::{Design, Level};

use crate::document::{Block, Columns, Head, Section, Table};

pub(crate) fn write(f: &Findings, section: &mut Section) {
    for effects in &f.effects {
        let sentences = effects.sentences.iter().cloned().map(Block::Text);
        // The terminal omits these notes for studies that cannot be factorials on this machine.
        if effects.analyses.is_empty() { section.long(sentences) } else { section.all(sentences) }
    }
    let tables = tables(f);
    let reading = (!tables.is_empty()).then(|| Block::Note(READING.to_owned()));
    section.long(tables.into_iter().map(Block::Table).chain(reading));
}

const READING: &str = "Analysis of variance with replications (Jain 1991, chapters 17, 18 and 22): a replication is a \
                       trial with a fresh server, and the common effect of a block on all points is excluded from the \
                       error. As ratio: of logarithms, effects multiply. As difference: effects add. Intervals share \
                       one error term, that between trials of one point, and are not adjusted; p-values are adjusted \
                       for the effects tested together (Holm). By chance even a factor without effect has a small \
                       share: see its p-value.";

fn tables(findings: &Findings) -> Vec<Table> {
    let mut tables = Vec::new();
    for effects in findings.effects.iter().filter(|effects| !effects.analyses.is_empty()) {
        let Some(metric) = findings.metric_info(&effects.metric) else { continue };
        let several = findings.effects.iter().any(|other| other.idle != effects.idle);
        let idle = if several { format!(", idle {}", serde_name(effects.idle)) } else { String::new() };
        tables.push(variation(effects).plain(format!("Sources of variation: {}{idle}", metric.noun)));
        let changes = changes(effects, metric).plain(format!("Effect of each change on {}{idle}", metric.noun));
        tables.extend(changes.unless_empty());
    }
    tables
}

fn variation(effects: &Effects) -> Columns<String> {
    fn source<'a>(found: &'a EffectAnalysis, name: &str) -> Option<&'a EffectSource> {
        found.sources.iter().find(|source| source_name(source) == name)
    }
    // With few trials, only one analysis may separate blocks, so lines are matched by name.
    let names = distinct(effects.analyses.iter().flat_map(|found| &found.sources).map(source_name));
    let df = |name: &String| effects.analyses.iter().find_map(|found| Some(source(found, name)?.df.to_string()));
    let table =
        Columns::of(names).text("source", |name| name.clone()).number("df", |name| df(name).unwrap_or_default());
    effects.analyses.iter().fold(table, |table, found| {
        let head = |what: &str| Head::number(format!("{what}, as {}", serde_name(found.scale)));
        let cell = |name: &String, text: fn(&EffectSource) -> Option<String>| {
            source(found, name).and_then(text).unwrap_or_default()
        };
        table
            .column(head("share"), |name| cell(name, |source| Some(number::percent(source.share))))
            .column(head("F"), |name| {
                cell(name, |source| source.f.map(|f| if f >= 100.0 { format!("{f:.0}") } else { format!("{f:.2}") }))
            })
            .column(head("p (Holm)"), |name| cell(name, |source| source.p_adjusted.map(number::p_value)))
    })
}

fn changes<'a>(effects: &'a Effects, metric: &study::Metric) -> Columns<&'a EffectChange> {
    let key = |found: &'a EffectChange| (&found.factor, &found.from, &found.to, &found.at);
    let all = effects.analyses.iter().flat_map(|analysis| &analysis.changes);
    let all = grouped(all.map(|found| (key(found), found)));
    let at = |found: &EffectChange| match (&found.at, effects.design) {
        (Some(ChangeAt { level: Level::Text(word), .. }), _) => word.clone(),
        (Some(at), _) => format!("{} {}", at.factor, at.level),
        (None, Design::Full) => "on average".to_owned(),
        (None, Design::OneAtATime) => "others at first level".to_owned(),
    };
    let table = Columns::of(all.into_iter().map(|(_, found)| found[0]))
        .text("factor", |found| found.factor.as_str())
        .text("from", |found| found.from.to_string())
        .text("to", |found| found.to.to_string())
        .text("where", |found| at(found));
    effects.analyses.iter().fold(table, |table, analysis| {
        let found = |wanted: &&'a EffectChange| analysis.changes.iter().find(|found| key(found) == key(wanted));
        let is_tested = analysis.changes.iter().any(|change| change.p_adjusted.is_some());
        let size = |found: &EffectChange| change(analysis.scale, &found.change, metric.unit);
        let p = |found: &EffectChange| found.p_adjusted.map(number::p_value);
        table
            .number(&format!("as {}", serde_name(analysis.scale)), |row| found(row).map(size).unwrap_or_default())
            .when(is_tested, |table| table.number("p, adjusted", |row| found(row).and_then(p).unwrap_or_default()))
    })
}
