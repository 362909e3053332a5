//! Reads `design` and `[effects]`: measured combinations of levels, and metrics of reported effects.

use crate::keys::words::DESIGNS;
use crate::plan::EffectsPlan;
use crate::section::Section;

pub(super) fn read(top: &Section) -> EffectsPlan {
    let metrics = top.section("effects").and_then(|effects| {
        effects.check();
        effects.choices("metrics")
    });
    let metrics = metrics.map(|metrics| metrics.into_iter().map(str::to_owned).collect());
    EffectsPlan { design: top.choice("design", DESIGNS).unwrap_or_default(), metrics }
}
