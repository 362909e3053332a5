//! Reads `design` and `[effects]`: which combinations of levels are measured, and the metrics in
//! which effects are reported.

use crate::keys::words::DESIGNS;
use crate::plan::EffectsPlan;
use crate::section::Section;

/// An empty list of metrics disables the report of effects.
pub(super) fn read(top: &Section) -> EffectsPlan {
    let metrics = top.section("effects").and_then(|effects| {
        effects.check();
        effects.choices("metrics")
    });
    let metrics = metrics.map(|metrics| metrics.into_iter().map(str::to_owned).collect());
    EffectsPlan { design: top.choice("design", DESIGNS).unwrap_or_default(), metrics }
}
