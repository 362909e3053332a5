//! Conditions of a step, such as `{stock} > 0` or `{role} == admin`.

use std::cmp::Ordering;

/// A comparison of two templates.
#[derive(Clone, Debug)]
pub struct Condition {
    /// Template to the left of the relation.
    pub left: String,
    /// Relation that must hold between the two sides.
    pub relation: Relation,
    /// Template to the right of the relation.
    pub right: String,
}

/// A relation between two strings, compared as numbers if both are numbers.
#[derive(Clone, Copy, Debug)]
pub struct Relation {
    sign: &'static str,
    /// Whether only numbers can be compared.
    is_order: bool,
    accepts: fn(Ordering) -> bool,
}

/// 2^53. All integers of smaller magnitude are exact as `f64`.
const INTEGERS_END: f64 = 9_007_199_254_740_992.0;

const RELATIONS: [Relation; 6] = [
    Relation { sign: " == ", is_order: false, accepts: Ordering::is_eq },
    Relation { sign: " != ", is_order: false, accepts: Ordering::is_ne },
    Relation { sign: " <= ", is_order: true, accepts: Ordering::is_le },
    Relation { sign: " >= ", is_order: true, accepts: Ordering::is_ge },
    Relation { sign: " < ", is_order: true, accepts: Ordering::is_lt },
    Relation { sign: " > ", is_order: true, accepts: Ordering::is_gt },
];

/// Parses a condition, whose sides may be in quotes. Fails unless a relation with spaces around it separates them.
pub fn parse(text: &str) -> Result<Condition, String> {
    let found = RELATIONS.into_iter().filter_map(|relation| Some((text.find(relation.sign)?, relation)));
    let none = || format!("`{}` has no `==`, `!=`, `<`, `<=`, `>` or `>=` between spaces", text.escape_debug());
    let (at, relation) = found.min_by_key(|found| found.0).ok_or_else(none)?;
    let side = |text: &str| {
        let text = text.trim();
        text.strip_prefix('"').and_then(|text| text.strip_suffix('"')).unwrap_or(text).to_owned()
    };
    Ok(Condition { left: side(&text[..at]), relation, right: side(&text[at + relation.sign.len()..]) })
}

impl Relation {
    /// Whether the relation holds. Fails if the relation is an order, such as `<`, and a side is not a number.
    pub fn holds(self, left: &str, right: &str) -> Result<bool, String> {
        let number = |text: &str| text.parse::<f64>().ok().filter(|number| number.is_finite());
        // Long integers, such as IDs, are equal only as strings: as numbers, neighbors would be equal.
        let is_exact = |number: f64| number.abs() < INTEGERS_END;
        let compared = match (number(left), number(right)) {
            (Some(left), Some(right)) if self.is_order || is_exact(left) && is_exact(right) => {
                left.partial_cmp(&right).unwrap_or(Ordering::Equal)
            }
            (None, _) if self.is_order => return Err(format!("`{}` is not a number", left.escape_debug())),
            (_, None) if self.is_order => return Err(format!("`{}` is not a number", right.escape_debug())),
            _ => left.cmp(right),
        };
        Ok((self.accepts)(compared))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: Result<bool, &str>) {
        let held = parse(text).and_then(|condition| condition.relation.holds(&condition.left, &condition.right));
        assert_eq!(held, expected.map_err(str::to_owned), "{text}");
    }

    #[test]
    fn compares_numbers_and_texts() {
        for (text, holds) in [
            ("2 > 10", false),
            ("2 < 10", true),
            ("5.0 == 5", true),
            ("5 >= 5", true),
            ("6 <= 5", false),
            ("admin == admin", true),
            ("a == \"a\"", true),
            ("a b != a", true),
            (" == \"\"", true),
            ("7 != \"\"", true),
            ("nan == nan", true),
            ("a=b == a=b", true),
            ("9007199254740993 == 9007199254740992", false),
            ("9007199254740993 != 9007199254740993", false),
        ] {
            check(text, Ok(holds));
        }
    }

    #[test]
    fn rejects_conditions_without_meaning() {
        check("a > 1", Err("`a` is not a number"));
        check("1 < ", Err("`` is not a number"));
        check("a", Err("`a` has no `==`, `!=`, `<`, `<=`, `>` or `>=` between spaces"));
        check("a==b", Err("`a==b` has no `==`, `!=`, `<`, `<=`, `>` or `>=` between spaces"));
    }
}
