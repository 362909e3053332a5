//! `design` and `[effects]`: which combinations of levels are measured, and in which metrics the effects of the factors are looked for.

use crate::node::Value;
use crate::plan::{Design, EffectsPlan};
use crate::section::Section;

const DESIGNS: [(&str, Design); 2] = [("full", Design::Full), ("one-at-a-time", Design::OneAtATime)];

/// What a study says of both; `None` only where a mistake was reported.
pub(crate) fn read(top: &Section) -> Option<EffectsPlan> {
    let design = match top.has("design") {
        true => top.choice("design", "design", &DESIGNS),
        false => Some(Design::Full),
    };
    let metrics = if top.has("effects") { metrics(&top.section("effects")?).map(Some) } else { Some(None) };
    Some(EffectsPlan { design: design?, metrics: metrics? })
}

/// The metrics that the table names; an empty list asks for none.
fn metrics(effects: &Section) -> Option<Vec<String>> {
    effects.only(&["metrics"]);
    effects.required("metrics", "[\"throughput\", \"latency_p95\"]");
    match &effects.table.get("metrics")?.node.value {
        Value::List(items) if items.is_empty() => Some(Vec::new()),
        Value::List(items) => {
            let metrics = super::tables::metrics(effects, "metrics", items)?;
            Some(metrics.into_iter().map(|metric| metric.name.to_owned()).collect())
        }
        other => {
            let hint = "write `metrics = [\"throughput\"]`; an empty list asks for no effects".to_owned();
            effects.mistake("metrics", format!("`effects.metrics` is a list of metrics, not {}", other.kind()), hint);
            None
        }
    }
}
