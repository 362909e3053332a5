//! Conditions of a step, such as `{stock} > 0` or `{role} == admin`.

/// A comparison of two templates.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Condition {
    /// Template to the left of the relation.
    pub left: String,
    /// Relation that must hold between the two sides.
    pub relation: Relation,
    /// Template to the right of the relation.
    pub right: String,
}

/// A relation between two strings, compared as numbers if both are numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Relation {
    /// `==`, between numbers or strings.
    Equal,
    /// `!=`, between numbers or strings.
    Unequal,
    /// `<=`, between numbers only.
    AtMost,
    /// `>=`, between numbers only.
    AtLeast,
    /// `<`, between numbers only.
    Below,
    /// `>`, between numbers only.
    Above,
}

/// 2^53. All integers of smaller magnitude are exact as `f64`.
const INTEGERS_END: f64 = 9_007_199_254_740_992.0;

const RELATIONS: [(&str, Relation); 6] = [
    (" == ", Relation::Equal),
    (" != ", Relation::Unequal),
    (" <= ", Relation::AtMost),
    (" >= ", Relation::AtLeast),
    (" < ", Relation::Below),
    (" > ", Relation::Above),
];

/// Parses a condition, whose sides may be in quotes. Fails unless a relation with spaces around it separates them.
pub fn parse(text: &str) -> Result<Condition, String> {
    let found = RELATIONS.iter().filter_map(|(sign, relation)| Some((text.find(sign)?, sign.len(), *relation)));
    let none = || format!("`{}` has no `==`, `!=`, `<`, `<=`, `>` or `>=` between spaces", text.escape_debug());
    let (at, length, relation) = found.min_by_key(|found| found.0).ok_or_else(none)?;
    let side = |text: &str| {
        let text = text.trim();
        text.strip_prefix('"').and_then(|text| text.strip_suffix('"')).unwrap_or(text).to_owned()
    };
    Ok(Condition { left: side(&text[..at]), relation, right: side(&text[at + length..]) })
}

impl Relation {
    /// Whether the relation holds. Fails if the relation is an order, such as `<`, and a side is not a number.
    pub fn holds(self, left: &str, right: &str) -> Result<bool, String> {
        let number = |text: &str| text.parse::<f64>().ok().filter(|number| number.is_finite());
        let numbers = number(left).zip(number(right));
        let ordered = || {
            let wrong = if number(left).is_none() { left } else { right };
            numbers.ok_or_else(|| format!("`{}` is not a number", wrong.escape_debug()))
        };
        // Long integers, such as IDs, are compared as strings: as numbers, neighbors would be equal.
        let is_exact = |number: f64| number.abs() < INTEGERS_END;
        let is_equal = match numbers {
            Some((left, right)) if is_exact(left) && is_exact(right) => left == right,
            _ => left == right,
        };
        Ok(match self {
            Relation::Equal => is_equal,
            Relation::Unequal => !is_equal,
            Relation::AtMost => ordered().map(|(left, right)| left <= right)?,
            Relation::AtLeast => ordered().map(|(left, right)| left >= right)?,
            Relation::Below => ordered().map(|(left, right)| left < right)?,
            Relation::Above => ordered().map(|(left, right)| left > right)?,
        })
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
