//! Labels that distinguish design points in tables and figures.

use std::collections::BTreeMap;

use study::plan::{Level, Plan};

use crate::findings::{Factor, Row};

const ONLY_POINT: &str = "(single design point)";

/// Puts the row's label before `text`, unless the row is the only one.
pub fn about(row: &Row, text: &str) -> String {
    if row.label == ONLY_POINT { text.to_owned() } else { format!("{}: {text}", row.label) }
}

/// Returns the names of the factors with several levels, in study order.
pub fn varied(plan: &Plan) -> Vec<String> {
    plan.factors.iter().filter(|name| plan.levels(name).len() > 1).cloned().collect()
}

/// Lists the factors with a single level, which labels omit; empty if there are none.
pub fn throughout(factors: &[Factor]) -> String {
    let fixed = factors.iter().filter(|factor| factor.levels.len() == 1);
    let fixed = fixed.map(|factor| format!("{} = {}", factor.name, factor.levels[0])).collect::<Vec<_>>();
    if fixed.is_empty() { String::new() } else { format!(" All rows: {}.", fixed.join(", ")) }
}

/// Joins levels in factor order: strings unchanged, numbers and switches with the name of their factor.
pub fn label(factors: &[String], levels: &BTreeMap<String, Level>) -> String {
    let part = |name: &String| match levels.get(name)? {
        // The level of a switch cannot be understood without its name.
        Level::Text(word) if !matches!(word.as_str(), "true" | "false") => Some(word.clone()),
        level => Some(format!("{name} {level}")),
    };
    let parts = factors.iter().filter_map(part).collect::<Vec<_>>();
    if parts.is_empty() { ONLY_POINT.to_owned() } else { parts.join(", ") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels() {
        let levels = BTreeMap::from([
            ("server".to_owned(), Level::Text("go".to_owned())),
            ("cores".to_owned(), Level::Integer(2)),
        ]);
        let factors = ["server".to_owned(), "cores".to_owned()];
        assert_eq!(label(&factors, &levels), "go, cores 2");
        let switch = BTreeMap::from([("fill".to_owned(), Level::Text("true".to_owned()))]);
        assert_eq!(label(&["fill".to_owned()], &switch), "fill true");
        assert_eq!(label(&[], &BTreeMap::new()), ONLY_POINT);
    }
}
