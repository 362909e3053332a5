use super::factors::Factor;
use crate::keys::words::QUESTIONS;
use crate::plan::{Asked, AskedKind};
use crate::proxy::{DIRECT, THROUGH};
use crate::section::Section;

pub(super) fn read(top: &Section, factors: &[Factor]) -> Option<Asked> {
    let answer = top.section("answer")?;
    answer.check();
    let kind = answer.choice("asks", QUESTIONS);
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
