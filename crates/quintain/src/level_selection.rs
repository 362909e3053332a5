//! Selection of levels on the command line, such as `server=go,clients=40`, and of the two levels to compare.

use analysis::history::Levels;
use study::{Level, Plan};

use crate::cli::key_value;
use crate::command_result::{Result, usage};

pub(crate) fn parse(text: &str) -> Result<Levels, &str> {
    text.split(',').map(|part| key_value(part).map_err(|_| part)).collect()
}

pub(crate) fn check_sides(words: [&str; 2], sides: [&Levels; 2]) -> Result<()> {
    let [base, head] = sides;
    for (word, side) in words.into_iter().zip(sides) {
        let twice = side.iter().enumerate().find(|(at, (name, _))| side[..*at].iter().any(|(other, _)| other == name));
        if let Some((_, (name, _))) = twice {
            return Err(usage(format!("`{word}` has two levels of `{name}`")));
        }
    }
    let missing = |side: &Levels, of: &Levels| of.iter().find(|(name, _)| level(side, name).is_none()).cloned();
    if let Some((name, level)) = missing(base, head).or_else(|| missing(head, base)) {
        let hint =
            format!("both sides name the same factors; hold one that does not differ with `--set {name}={level}`");
        let text = format!("`{}` and `{}` are levels of different factors", words[0], words[1]);
        return Err(usage(text).hint(hint));
    }
    let differs = base.iter().any(|(name, of_base)| level(head, name) != Some(of_base));
    if differs { Ok(()) } else { Err(usage(format!("`{}` twice: nothing to compare", words[0]))) }
}

fn level<'l>(side: &'l Levels, factor: &str) -> Option<&'l String> {
    side.iter().find(|(name, _)| name == factor).map(|(_, level)| level)
}

/// Name of the factor that replaces several factors. Its levels describe whole design points.
const DESIGN_POINT: &str = "design point";

/// Keeps only the design points at `base` and `head`. Returns the factor in which they differ and its two levels. If
/// they differ in several factors, one new factor replaces them. Fails if a level is unknown.
pub(crate) fn keep_sides(plan: &mut Plan, base: &Levels, head: &Levels) -> Result<(String, [Level; 2])> {
    let sides = [known(plan, base)?, known(plan, head)?];
    for side in &sides {
        if !plan.points.iter().any(|point| is_at(&point.factors, side)) {
            let text = format!("no design point of `{}` is at `{}`", plan.study, joined(side));
            return Err(usage(text).hint(format!("`quintain check {}` lists them", plan.study)));
        }
    }
    plan.points.retain(|point| sides.iter().any(|side| is_at(&point.factors, side)));
    let differing = |side: &Side, other: &Side| side.iter().filter(|level| !other.contains(level)).cloned().collect();
    let differing: [Side; 2] = [differing(&sides[0], &sides[1]), differing(&sides[1], &sides[0])];
    if let [base, head] = &differing
        && let ([(factor, base)], [(_, head)]) = (base.as_slice(), head.as_slice())
    {
        return Ok((factor.clone(), [base.clone(), head.clone()]));
    }
    let levels = differing.each_ref().map(|side| Level::Text(joined(side)));
    let is_gone = |name: &String| differing[0].iter().any(|(gone, _)| gone == name);
    for point in &mut plan.points {
        let side = usize::from(!is_at(&point.factors, &sides[0]));
        point.factors.retain(|name, _| !is_gone(name));
        point.factors.insert(DESIGN_POINT.to_owned(), levels[side].clone());
    }
    plan.factors.retain(|name| !is_gone(name));
    plan.factors.insert(0, DESIGN_POINT.to_owned());
    // A figure that uses a removed factor could not be drawn.
    plan.figures.retain(|figure| ![&figure.x, &figure.series, &figure.facet].into_iter().flatten().any(is_gone));
    Ok((DESIGN_POINT.to_owned(), levels))
}

type Side = Vec<(String, Level)>;

fn is_at(factors: &std::collections::BTreeMap<String, Level>, side: &Side) -> bool {
    side.iter().all(|(name, level)| factors.get(name) == Some(level))
}

fn joined(side: &Side) -> String {
    side.iter().map(|(name, level)| format!("{name}={level}")).collect::<Vec<_>>().join(",")
}

fn known(plan: &Plan, side: &Levels) -> Result<Side> {
    let find = |(factor, word): &(String, String)| {
        let levels = plan.levels(factor);
        if levels.is_empty() {
            let hint = config::nearest::suggestion(factor, plan.factors.iter().map(String::as_str));
            return Err(usage(format!("`{factor}` is not a factor of `{}`", plan.study)).hint(hint));
        }
        let found = levels.iter().find(|level| level.to_string() == *word);
        found.map(|level| (factor.clone(), (*level).clone())).ok_or_else(|| {
            let words = levels.iter().map(ToString::to_string).collect::<Vec<_>>();
            let text = format!("`{word}` is not a level of `{factor}` in `{}`", plan.study);
            usage(text).hint(config::nearest::suggestion(word, words.iter().map(String::as_str)))
        })
    };
    let mut levels = side.iter().map(find).collect::<Result<Side, _>>()?;
    levels.sort_by_key(|(name, _)| plan.factors.iter().position(|factor| factor == name));
    Ok(levels)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sides() {
        let check = |base: &str, head: &str, expected: &str| {
            let sides = [base, head].map(|word| parse(word).unwrap());
            let found = check_sides([base, head], [&sides[0], &sides[1]]);
            assert_eq!(found.err().map(|problem| problem.to_string()).unwrap_or_default(), expected);
        };
        check("server=a", "server=b", "");
        check("server=a,clients=40", "clients = 80, server = a", "");
        check("server=a", "cores=1", "`server=a` and `cores=1` are levels of different factors");
        check("server=a", "server=b,cores=1", "`server=a` and `server=b,cores=1` are levels of different factors");
        check("server=a,cores=1", "cores=1,server=a", "`server=a,cores=1` twice: nothing to compare");
        check("server=a,server=b", "server=c", "`server=a,server=b` has two levels of `server`");
        assert_eq!(parse("server=a,clients"), Err("clients"));
        assert_eq!(parse("=a"), Err("=a"));
        assert_eq!(parse(""), Err(""));
    }
}
