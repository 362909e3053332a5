//! `[[table]]`: what to show beside the table that every report has.

use config::nearest::suggestion;
use config::node::{Node, Value};

use crate::metric::{METRICS, Metric};
use crate::plan::{Table, TableKind};
use crate::section::Section;

/// The tables; `None` only where a mistake was reported.
pub(crate) fn read(top: &Section) -> Option<Vec<Table>> {
    let tables = top.tables("table", "each `[[table]]`").into_iter().map(|table| one(&table?)).collect::<Vec<_>>();
    tables.into_iter().collect()
}

fn one(table: &Section) -> Option<Table> {
    table.check_keys();
    let title = table.given("title", table.text("title"));
    let (kind, metrics) = match table.one_of(&["metric", "metrics"])? {
        "metric" => {
            let known = METRICS.iter().map(|metric| (metric.name, metric)).collect::<Vec<_>>();
            (TableKind::Statistics, table.choice("metric", &known).map(|metric| vec![metric]))
        }
        _ => {
            let items = match table.table.get("metrics").map(|entry| &entry.node.value) {
                Some(Value::List(items)) => items.as_slice(),
                _ => {
                    let hint = "write `metrics = [\"throughput\", \"latency_p99\"]`, or `metric` for one".to_owned();
                    table.mistake("metrics", "`table.metrics` must be a list of metrics", hint);
                    return None;
                }
            };
            (TableKind::Metrics, metrics(table, "metrics", items))
        }
    };
    let metrics = metrics?.into_iter().map(|metric| metric.name.to_owned()).collect();
    Some(Table { kind, metrics, title: title? })
}

/// The metrics that a list names, each once; `None` only where a mistake was reported.
pub(crate) fn metrics(section: &Section, key: &str, items: &[Node]) -> Option<Vec<&'static Metric>> {
    if items.is_empty() {
        section.mistake(key, format!("`{}.{key}` names no metric", section.name), None);
        return None;
    }
    let mut all = Vec::<&'static Metric>::new();
    let mut fine = true;
    for item in items {
        let mut mistake = |message: String, hint: Option<String>| {
            section.report.mistake(item.place, message, hint);
            fine = false;
        };
        match &item.value {
            Value::Text(name) => match Metric::named(name) {
                Some(metric) if all.contains(&metric) => mistake(format!("duplicate metric `{name}`"), None),
                Some(metric) => all.push(metric),
                None => {
                    let hint = suggestion(name, METRICS.iter().map(|metric| metric.name));
                    mistake(format!("unknown metric `{}`", name.escape_debug()), Some(hint));
                }
            },
            other => mistake(format!("a metric is a name, not {}", other.kind()), None),
        }
    }
    fine.then_some(all)
}
