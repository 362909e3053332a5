use config::Invalid;

use super::factors::Factor;
use crate::gate::{COMPARED, FailIf, Gate};
use crate::keys::words::UNDECIDED;
use crate::plan::TrialRule;
use crate::section::Section;

pub(super) fn read(top: &Section, factors: &[Factor], trials: &TrialRule) -> Option<Gate> {
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
    let of = match gate.has("of") {
        true => gate.choice("of", &names)?,
        false => match several().find(|factor| !factor.is_numeric()).or_else(|| several().next()) {
            Some(factor) => factor,
            None => {
                let hint = "add `[factors]` with `version = [\"old\", \"new\"]`".to_owned();
                top.mistake("gate", "`[gate]` needs a factor with two levels or more", hint);
                return None;
            }
        },
    };
    let words = of.levels.iter().map(|(level, _)| (level.to_string(), level)).collect::<Vec<_>>();
    let words = words.iter().map(|(word, level)| (word.as_str(), *level)).collect::<Vec<_>>();
    let base = if gate.has("base") { gate.choice("base", &words)? } else { words.first()?.1 };
    if of.levels.len() < 2 {
        let message = format!("`gate.of` is `{}`, which has one level: nothing to compare with the baseline", of.name);
        top.mistake("gate", message, None);
    }
    let stop = top.table.table("trials").and_then(|trials| trials.table("stop"));
    let metrics = match stop.is_some_and(|stop| stop.get("metric").is_some()) {
        true => vec![trials.metric.clone()],
        false => COMPARED.map(str::to_owned).to_vec(),
    };
    Some(Gate { of: of.name.clone(), base: base.clone(), fail_if, metrics, allow_errors, undecided, null: None })
}
