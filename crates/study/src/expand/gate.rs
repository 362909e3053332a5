//! `[gate]`: a baseline and what its candidates must not be.

use super::factors::Factor;
use crate::gate::{COMPARED, FailIf, Gate};
use crate::keys::words::UNDECIDED;
use crate::section::Section;

/// What the table says; `None` only where a mistake was reported.
///
/// `metric`: the one that `trials.stop` names.
pub(crate) fn read(top: &Section, factors: &[Factor], metric: Option<&str>) -> Option<Option<Gate>> {
    if !top.has("gate") {
        return Some(None);
    }
    let gate = top.section("gate")?;
    gate.check_keys();
    let fail_if = if gate.has("fail_if") { fail_if(&gate).map(Some) } else { Some(None) };
    let undecided = gate.choice("undecided", UNDECIDED);
    let allow_errors = gate.fraction("allow_errors");
    let names = factors.iter().map(|factor| (factor.name.as_str(), factor)).collect::<Vec<_>>();
    let is_word = |factor: &&Factor| factor.levels.iter().any(|(level, _)| level.as_f64().is_none());
    let several = |factor: &&Factor| factor.levels.len() > 1;
    let of = match gate.has("of") {
        true => gate.choice("of", &names)?,
        false => match factors.iter().filter(several).find(is_word).or_else(|| factors.iter().find(several)) {
            Some(factor) => factor,
            None => {
                let hint = "add `[factors]` with `version = [\"old\", \"new\"]`".to_owned();
                top.mistake("gate", "`[gate]` needs a factor with two levels or more", hint);
                return None;
            }
        },
    };
    let levels = of.levels.iter().map(|(level, _)| (level.to_string(), level)).collect::<Vec<_>>();
    let base = match gate.has("base") {
        false => levels.first()?.1.clone(),
        true => {
            let words = levels.iter().map(|(word, level)| (word.as_str(), *level)).collect::<Vec<_>>();
            gate.choice("base", &words)?.clone()
        }
    };
    if of.levels.len() < 2 {
        let message = format!("`gate.of` is `{}`, which has one level: nothing to hold against the baseline", of.name);
        top.mistake("gate", message, None);
        return None;
    }
    let metrics = match metric {
        Some(metric) => vec![metric.to_owned()],
        None => COMPARED.map(str::to_owned).to_vec(),
    };
    let (fail_if, undecided, allow_errors) = (fail_if?, undecided?, allow_errors?);
    Some(Some(Gate { of: of.name.clone(), base, fail_if, metrics, allow_errors, undecided, null: None }))
}

fn fail_if(gate: &Section) -> Option<FailIf> {
    FailIf::parse(&gate.text("fail_if")?)
        .map_err(|errors| {
            errors.into_iter().for_each(|error| {
                gate.mistake("fail_if", format!("`gate.fail_if`: {}", error.message), error.hint);
            });
        })
        .ok()
}
