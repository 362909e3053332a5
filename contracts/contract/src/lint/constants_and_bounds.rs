//! Finds expressions with a constant value, and bounds that exclude each other.

use std::collections::BTreeMap;

use crate::syntax::{Binary, Expr, ExprKind, Quantifier};

/// The constant value of an expression, as a literal. `None` if the value may depend on a message.
pub(super) fn constant(expr: &Expr) -> Option<ExprKind> {
    use ExprKind::{Bool, Float, Int};
    match &expr.kind {
        literal @ (Bool(_) | Int(_) | Float(_) | ExprKind::Text(_)) => Some(literal.clone()),
        ExprKind::Not(of) => is_true(of).map(|value| Bool(!value)),
        ExprKind::Minus(of) => match constant(of)? {
            Int(value) => value.checked_neg().map(Int),
            Float(value) => Some(Float(-value)),
            _ => None,
        },
        ExprKind::If(condition, yes, no) => constant(if is_true(condition)? { yes } else { no }),
        ExprKind::Let(_, _, body) => constant(body),
        ExprKind::Quantifier(each, _, within, body) => {
            // The loop's result if no item decides it.
            let undecided = match each {
                Quantifier::All => true,
                Quantifier::Any => false,
                Quantifier::Count => return None,
            };
            (is_empty(within) || is_true(body) == Some(undecided)).then_some(Bool(undecided))
        }
        ExprKind::Binary(operator, a, b) => binary(*operator, a, b),
        _ => None,
    }
}

pub(super) fn is_true(expr: &Expr) -> Option<bool> {
    if let ExprKind::Bool(value) = constant(expr)? { Some(value) } else { None }
}

pub(super) fn is_empty(expr: &Expr) -> bool {
    matches!(&expr.kind, ExprKind::List(items) if items.is_empty())
}

fn binary(operator: Binary, a: &Expr, b: &Expr) -> Option<ExprKind> {
    use ExprKind::{Bool, Float, Int, Text};
    let (left, right) = (constant(a), constant(b));
    if let Binary::And | Binary::Or = operator {
        let decides = operator == Binary::Or;
        let is_decided = [&left, &right].into_iter().any(|side| matches!(side, Some(Bool(value)) if *value == decides));
        return if is_decided { Some(Bool(decides)) } else { left.and(right) };
    }
    // A length is never negative.
    if let Some((_, interval)) = compared(operator, a, b).filter(|(term, _)| is_length(term)) {
        if Interval::LENGTH.meet(interval).whole().is_empty() {
            return Some(Bool(false));
        }
        let always = if interval.not { interval.least < 0 } else { interval.least <= 0 && interval.most == i128::MAX };
        if always {
            return Some(Bool(true));
        }
    }
    // `a == a` is not constant if `a` is from a message, since a missing value makes it unknown.
    let order = match (left?, right?) {
        (Int(a), Int(b)) if !operator.is_comparison() => return operator.checked(a, b).map(Int),
        (Text(a), Text(b)) if operator == Binary::Plus => return Some(Text(a + &b)),
        (Int(a), Int(b)) => a.partial_cmp(&b),
        (Float(a), Float(b)) => a.partial_cmp(&b),
        (Text(a), Text(b)) => a.partial_cmp(&b),
        (Bool(a), Bool(b)) => a.partial_cmp(&b),
        _ => None,
    };
    order.filter(|_| operator.is_comparison()).map(|order| Bool(operator.holds(order)))
}

fn is_length(expr: &Expr) -> bool {
    match &expr.kind {
        ExprKind::Call(function, _) => function.text == "len",
        ExprKind::Quantifier(Quantifier::Count, ..) => true,
        _ => false,
    }
}

/// The numbers from `least` to `most`, stored doubled to allow for bounds between integers: 6 means 3, and 7 means 3.5.
/// With `not`, all numbers except `least`, which then equals `most`.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Interval {
    least: i128,
    most: i128,
    not: bool,
}

impl Interval {
    const ALL: Self = Self { least: i128::MIN, most: i128::MAX, not: false };
    const LENGTH: Self = Self { least: 0, ..Self::ALL };

    fn meet(self, other: Self) -> Self {
        if other.not {
            let at = other.least;
            return match (self.least == at, self.most == at) {
                (true, _) => Self { least: at + 1, ..self },
                (_, true) => Self { most: at - 1, ..self },
                _ => self,
            };
        }
        if self.not {
            return other.meet(self);
        }
        Self { least: self.least.max(other.least), most: self.most.min(other.most), not: false }
    }

    /// Rounds both bounds inwards to integers.
    fn whole(self) -> Self {
        let odd = |bound: i128| bound & 1;
        Self { least: self.least + odd(self.least), most: self.most - odd(self.most), not: self.not }
    }

    fn is_empty(self) -> bool {
        self.least > self.most
    }
}

/// The term compared with an integer, and the values that satisfy the comparison. `None` for other expressions.
fn compared<'e>(operator: Binary, a: &'e Expr, b: &'e Expr) -> Option<(&'e Expr, Interval)> {
    let (term, number, flipped) = match (constant(a), constant(b)) {
        (None, Some(ExprKind::Int(number))) => (a, number, false),
        (Some(ExprKind::Int(number)), None) => (b, number, true),
        _ => return None,
    };
    let number = 2 * i128::from(number);
    let interval = match (operator, flipped) {
        (Binary::Equal | Binary::Unequal, _) => {
            Interval { least: number, most: number, not: operator == Binary::Unequal }
        }
        (Binary::Less, false) | (Binary::Greater, true) => Interval { most: number - 1, ..Interval::ALL },
        (Binary::LessEqual, false) | (Binary::GreaterEqual, true) => Interval { most: number, ..Interval::ALL },
        (Binary::Greater, false) | (Binary::Less, true) => Interval { least: number + 1, ..Interval::ALL },
        (Binary::GreaterEqual, false) | (Binary::LessEqual, true) => Interval { least: number, ..Interval::ALL },
        _ => return None,
    };
    Some((term, interval))
}

/// The values of each term that satisfy all comparisons.
#[derive(Default)]
pub(super) struct Bounds {
    /// Intervals by term. Here and in `texts`, each key is a term printed without locations.
    left: BTreeMap<String, Interval>,
    texts: BTreeMap<String, String>,
}

impl Bounds {
    /// Adds the comparisons of an expression. Returns the first term for which no value is left.
    pub(super) fn add<'e>(&mut self, expr: &'e Expr) -> Option<&'e Expr> {
        let ExprKind::Binary(operator, a, b) = &expr.kind else { return None };
        if *operator == Binary::And {
            return self.add(a).or_else(|| self.add(b));
        }
        if let Some((term, interval)) = compared(*operator, a, b) {
            // Only lengths are known to be integers of at least 0.
            let whole = is_length(term);
            let start = if whole { Interval::LENGTH } else { Interval::ALL };
            let bounds = self.left.entry(term.without_place()).or_insert(start);
            let left = bounds.meet(interval);
            let left = if whole { left.whole() } else { left };
            *bounds = left;
            return left.is_empty().then_some(term);
        }
        let (term, text) = match (operator, constant(a), constant(b)) {
            (Binary::Equal, Some(ExprKind::Text(text)), None) => (b, text),
            (Binary::Equal, None, Some(ExprKind::Text(text))) => (a, text),
            _ => return None,
        };
        let before = self.texts.insert(term.without_place(), text.clone());
        before.is_some_and(|before| before != text).then_some(term)
    }
}
