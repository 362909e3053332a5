//! `design` and `[effects]`: which combinations of levels are measured, and in which metrics the effects of the factors are looked for.

use config::node::Value;

use crate::keys::words::DESIGNS;
use crate::plan::EffectsPlan;
use crate::section::Section;

/// What a study says of both; `None` only where a mistake was reported.
pub(crate) fn read(top: &Section) -> Option<EffectsPlan> {
    let design = top.choice("design", DESIGNS);
    let metrics = if top.has("effects") { metrics(&top.section("effects")?).map(Some) } else { Some(None) };
    Some(EffectsPlan { design: design?, metrics: metrics? })
}

/// The metrics that the table names; an empty list asks for none.
fn metrics(effects: &Section) -> Option<Vec<String>> {
    effects.check_keys();
    effects.required("metrics");
    match &effects.table.get("metrics")?.node.value {
        Value::List(items) if items.is_empty() => Some(Vec::new()),
        Value::List(items) => {
            let metrics = super::tables::metrics(effects, "metrics", items)?;
            Some(metrics.into_iter().map(|metric| metric.name.to_owned()).collect())
        }
        other => {
            let hint = "write `metrics = [\"throughput\"]`; an empty list means no effects".to_owned();
            effects.mistake(
                "metrics",
                format!("`effects.metrics` must be a list of metrics, not {}", other.kind()),
                hint,
            );
            None
        }
    }
}
