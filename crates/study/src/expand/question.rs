//! Reads the question of a study: `[answer]`, `design`, `[effects]` and `[gate]`.

use config::Invalid;

use super::factor_levels::Factor;
use crate::gate::{COMPARED, FailIf, Gate, UNDECIDED};
use crate::plan::{Asked, AskedKind, EffectsPlan, TrialRule};
use crate::process_plan::{DIRECT, THROUGH};
use crate::section_at_design_point::{Section, named};

pub(super) fn answer(top: &Section, factors: &[Factor]) -> Option<Asked> {
    let answer = top.section("answer")?;
    answer.check();
    let kind = named(&answer, "asks");
    let names = factors.iter().map(|factor| (factor.name.as_str(), factor)).collect::<Vec<_>>();
    let of = answer.choice("of", &names);
    let kind = kind?;
    let default = match kind {
        AskedKind::Added => factors.iter().find(|factor| factor.name == THROUGH),
        AskedKind::Growth => factors.iter().find(|factor| factor.is_numeric()),
        AskedKind::Best => factors.iter().find(|factor| !factor.is_numeric()).or(factors.first()),
        AskedKind::Capacity | AskedKind::Effects | AskedKind::Values | AskedKind::Gate => None,
    };
    let mistake = match (kind, of) {
        (AskedKind::Added, _) if default.is_none() => {
            Some(format!("needs `{DIRECT}`, a level of the factor `{THROUGH}`, as the baseline"))
        }
        (AskedKind::Best, None) if default.is_none() => Some("no factor with levels to compare".to_owned()),
        (AskedKind::Growth, Some(factor)) if !factor.is_numeric() => {
            Some(format!("growth with `{}` is undefined: its levels are words", factor.name))
        }
        (AskedKind::Growth, None) if default.is_none() => Some("no factor with numeric levels to grow with".to_owned()),
        _ => None,
    };
    if let Some(mistake) = mistake {
        answer.mistake("asks", mistake, None);
    }
    Some(Asked { kind, factor: of.or(default).map(|factor| factor.name.clone()) })
}

pub(super) fn effects(top: &Section) -> EffectsPlan {
    let metrics = top.section("effects").and_then(|effects| {
        effects.check();
        effects.choices("metrics")
    });
    let metrics = metrics.map(|metrics| metrics.into_iter().map(str::to_owned).collect());
    EffectsPlan { design: named(top, "design").unwrap_or_default(), metrics }
}

pub(super) fn gate(top: &Section, factors: &[Factor], trials: &TrialRule) -> Option<Gate> {
    let gate = top.section("gate")?;
    gate.check_keys();
    let fail_if = gate.text("fail_if").and_then(|text| {
        let report = |error: Invalid| gate.report.invalid(gate.place_of("fail_if"), error.of("`gate.fail_if`"));
        FailIf::parse(&text).map_err(|errors| errors.into_iter().for_each(report)).ok()
    });
    let undecided = gate.choice("undecided", UNDECIDED).unwrap_or_default();
    let allow_errors = gate.fraction("allow_errors").unwrap_or_default();
    let names = factors.iter().map(|factor| (factor.name.as_str(), factor)).collect::<Vec<_>>();
    let several = || factors.iter().filter(|factor| factor.levels.len() > 1);
    let default = several().find(|factor| !factor.is_numeric()).or_else(|| several().next());
    let lacks_factor = !gate.has("of") && default.is_none();
    let hint = "add `[factors]` with `version = [\"old\", \"new\"]`";
    top.rule(lacks_factor, "gate", "`[gate]` needs a factor with two levels or more", hint);
    let of = if gate.has("of") { gate.choice("of", &names)? } else { default? };
    let words = of.levels.iter().map(|(level, _)| (level.to_string(), level)).collect::<Vec<_>>();
    let words = words.iter().map(|(word, level)| (word.as_str(), *level)).collect::<Vec<_>>();
    let base = if gate.has("base") { gate.choice("base", &words)? } else { words.first()?.1 };
    let message = format!("`gate.of` is `{}`, which has one level: nothing to compare with the baseline", of.name);
    top.rule(of.levels.len() < 2, "gate", message, None);
    let stop = top.table.table("trials").and_then(|trials| trials.table("stop"));
    let has_metric = stop.is_some_and(|stop| stop.get("metric").is_some());
    let metrics = if has_metric { vec![trials.metric.clone()] } else { COMPARED.map(str::to_owned).to_vec() };
    Some(Gate { of: of.name.clone(), base: base.clone(), fail_if, metrics, allow_errors, undecided, null: None })
}
