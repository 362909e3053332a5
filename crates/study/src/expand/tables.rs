use crate::plan::{Table, TableKind};
use crate::section::Section;

pub(super) fn read(top: &Section) -> Vec<Table> {
    top.tables("table", "each `[[table]]`").iter().flatten().filter_map(table).collect()
}

fn table(table: &Section) -> Option<Table> {
    table.check_keys();
    let title = table.text("title");
    let (kind, metrics) = match table.one_of(&["metric", "metrics"])? {
        "metric" => (TableKind::Statistics, table.word("metric").into_iter().collect()),
        _ => (TableKind::Metrics, metrics(table, "metrics")),
    };
    Some(Table { kind, metrics: metrics.into_iter().map(str::to_owned).collect(), title })
}

pub(super) fn metrics(section: &Section, key: &str) -> Vec<&'static str> {
    let metrics = section.choices(key);
    if metrics.as_ref().is_some_and(Vec::is_empty) {
        section.mistake(key, format!("`{}.{key}` names no metric", section.name), None);
    }
    metrics.unwrap_or_default()
}
