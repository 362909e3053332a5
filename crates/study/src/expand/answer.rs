//! `[answer]`: what is asked.

use super::factors::Factor;
use crate::keys::words::QUESTIONS;
use crate::plan::{Asked, AskedKind};
use crate::proxy::{DIRECT, THROUGH};
use crate::section::Section;

/// What the table says; `None` only where a mistake was reported.
pub(crate) fn read(top: &Section, factors: &[Factor]) -> Option<Option<Asked>> {
    if !top.has("answer") {
        return Some(None);
    }
    let answer = top.section("answer")?;
    answer.check_keys();
    answer.required("asks");
    let kind = answer.choice("asks", QUESTIONS);
    let names = factors.iter().map(|factor| (factor.name.as_str(), factor)).collect::<Vec<_>>();
    let of = if answer.has("of") { Some(answer.choice("of", &names)?) } else { None };
    let kind = kind?;
    let mistake = match (kind, of) {
        (AskedKind::Added, _) => {
            let through = factors.iter().any(|factor| factor.name == THROUGH);
            (!through).then(|| format!("needs `{DIRECT}`, a level of the factor `{THROUGH}`, as the baseline"))
        }
        (AskedKind::Best, None) if factors.is_empty() => Some("no factor with levels to compare".into()),
        (AskedKind::Growth, Some(factor)) if !is_numeric(factor) => {
            Some(format!("growth with `{}` is undefined: its levels are words", factor.name))
        }
        (AskedKind::Growth, None) if !factors.iter().any(is_numeric) => {
            Some("no factor with numeric levels to grow with".into())
        }
        _ => None,
    };
    if let Some(mistake) = mistake {
        answer.mistake("asks", mistake, None);
        return None;
    }
    let default = match kind {
        AskedKind::Added => factors.iter().find(|factor| factor.name == THROUGH),
        AskedKind::Growth => factors.iter().find(|factor| is_numeric(factor)),
        AskedKind::Best => factors.iter().find(|factor| !is_numeric(factor)).or(factors.first()),
        AskedKind::Capacity | AskedKind::Effects | AskedKind::Values | AskedKind::Gate => None,
    };
    Some(Some(Asked { kind, factor: of.or(default).map(|factor| factor.name.clone()) }))
}

fn is_numeric(factor: &Factor) -> bool {
    factor.levels.iter().all(|(level, _)| level.as_f64().is_some())
}
