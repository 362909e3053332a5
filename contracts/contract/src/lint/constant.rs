//! Constant expressions, and the bounds that several comparisons leave for a term.

use std::collections::BTreeMap;
use std::fmt;

use crate::print::expression;
use crate::syntax::{Binary, Expr, ExprKind, Quantifier};

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Constant {
    Bool(bool),
    Int(i64),
    Float(f64),
    Text(String),
}

impl fmt::Display for Constant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bool(value) => write!(f, "`{value}`"),
            Self::Int(value) => write!(f, "`{value}`"),
            Self::Float(value) => write!(f, "`{value:?}`"),
            Self::Text(value) => write!(f, "{value:?}"),
        }
    }
}

/// The constant value of an expression, or `None` if it depends on a message.
pub(super) fn constant(expr: &Expr) -> Option<Constant> {
    match &expr.kind {
        ExprKind::Bool(value) => Some(Constant::Bool(*value)),
        ExprKind::Int(value) => Some(Constant::Int(*value)),
        ExprKind::Float(value) => Some(Constant::Float(*value)),
        ExprKind::Text(value) => Some(Constant::Text(value.clone())),
        ExprKind::Not(of) => match constant(of)? {
            Constant::Bool(value) => Some(Constant::Bool(!value)),
            _ => None,
        },
        ExprKind::Minus(of) => match constant(of)? {
            Constant::Int(value) => value.checked_neg().map(Constant::Int),
            Constant::Float(value) => Some(Constant::Float(-value)),
            _ => None,
        },
        ExprKind::If(condition, yes, no) => match constant(condition)? {
            Constant::Bool(true) => constant(yes),
            _ => constant(no),
        },
        ExprKind::Let(_, _, body) => constant(body),
        ExprKind::Quantifier(each, _, within, body) => {
            let empty = matches!(&within.kind, ExprKind::List(items) if items.is_empty());
            match (each, constant(body)) {
                (Quantifier::All, Some(Constant::Bool(true))) => Some(Constant::Bool(true)),
                (Quantifier::Any, Some(Constant::Bool(false))) => Some(Constant::Bool(false)),
                (Quantifier::All, _) if empty => Some(Constant::Bool(true)),
                (Quantifier::Any, _) if empty => Some(Constant::Bool(false)),
                _ => None,
            }
        }
        ExprKind::Binary(operator, a, b) => binary(*operator, a, b),
        _ => None,
    }
}

fn binary(operator: Binary, a: &Expr, b: &Expr) -> Option<Constant> {
    let (left, right) = (constant(a), constant(b));
    if let Binary::And | Binary::Or = operator {
        let decides = Constant::Bool(operator == Binary::Or);
        if left.as_ref() == Some(&decides) || right.as_ref() == Some(&decides) {
            return Some(decides);
        }
        return left.and(right);
    }
    // A length is not negative.
    if let Some((_, interval)) = compared(operator, a, b)
        && let Some(term) = term_of(a, b)
        && is_length(term)
    {
        if Interval::LENGTH.meet(interval).whole().is_empty() {
            return Some(Constant::Bool(false));
        }
        let always = if interval.not { interval.least < 0 } else { interval.least <= 0 && interval.most == i128::MAX };
        if always {
            return Some(Constant::Bool(true));
        }
    }
    // `a == a` is not constant if `a` is from a message, since a missing value makes it unknown.
    let order = match (left?, right?) {
        (Constant::Int(a), Constant::Int(b)) => {
            let sum = match operator {
                Binary::Plus => a.checked_add(b),
                Binary::Minus => a.checked_sub(b),
                Binary::Times => a.checked_mul(b),
                _ => None,
            };
            if let Some(sum) = sum {
                return Some(Constant::Int(sum));
            }
            a.partial_cmp(&b)
        }
        (Constant::Float(a), Constant::Float(b)) => a.partial_cmp(&b),
        (Constant::Text(a), Constant::Text(b)) => {
            if operator == Binary::Plus {
                return Some(Constant::Text(a + &b));
            }
            a.partial_cmp(&b)
        }
        (Constant::Bool(a), Constant::Bool(b)) => a.partial_cmp(&b),
        _ => None,
    }?;
    let holds = match operator {
        Binary::Equal => order.is_eq(),
        Binary::Unequal => order.is_ne(),
        Binary::Less => order.is_lt(),
        Binary::LessEqual => order.is_le(),
        Binary::Greater => order.is_gt(),
        Binary::GreaterEqual => order.is_ge(),
        _ => return None,
    };
    Some(Constant::Bool(holds))
}

/// Why an operation on constants never has a value.
pub(super) enum Impossible {
    Overflow,
    ByZero,
}

/// Whether arithmetic on constants has no value.
pub(super) fn impossible(operator: Binary, a: &Expr, b: &Expr) -> Option<Impossible> {
    let divides = matches!(operator, Binary::Divided | Binary::Remainder);
    match (constant(a), constant(b)?) {
        // A float divided by zero is infinite, which is a value.
        (Some(Constant::Float(_)), Constant::Int(0)) => None,
        (_, Constant::Int(0)) if divides => Some(Impossible::ByZero),
        (Some(Constant::Int(a)), Constant::Int(b)) => {
            let holds = match operator {
                Binary::Plus => a.checked_add(b).is_some(),
                Binary::Minus => a.checked_sub(b).is_some(),
                Binary::Times => a.checked_mul(b).is_some(),
                Binary::Divided => a.checked_div(b).is_some(),
                // If the quotient overflows, so does the machine's remainder.
                Binary::Remainder => a.checked_rem(b).is_some(),
                _ => true,
            };
            (!holds).then_some(Impossible::Overflow)
        }
        _ => None,
    }
}

fn is_length(expr: &Expr) -> bool {
    match &expr.kind {
        ExprKind::Call(function, _) => function.text == "len",
        ExprKind::Quantifier(Quantifier::Count, ..) => true,
        _ => false,
    }
}

/// Numbers from `least` to `most`, both doubled: 6 is 3, and 7 is the open range from 3 to 4. With
/// `not`, all numbers except the one that both are.
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

    /// Excludes the ranges between integers.
    fn whole(self) -> Self {
        let odd = |bound: i128| bound & 1;
        Self { least: self.least + odd(self.least), most: self.most - odd(self.most), not: self.not }
    }

    fn is_empty(self) -> bool {
        self.least > self.most
    }
}

fn term_of<'e>(a: &'e Expr, b: &'e Expr) -> Option<&'e Expr> {
    match (constant(a), constant(b)) {
        (None, Some(Constant::Int(_))) => Some(a),
        (Some(Constant::Int(_)), None) => Some(b),
        _ => None,
    }
}

/// The term of a comparison with an integer, and the values it may have.
fn compared(operator: Binary, a: &Expr, b: &Expr) -> Option<(String, Interval)> {
    let term = term_of(a, b)?;
    let flipped = std::ptr::eq(term, b);
    let Some(Constant::Int(number)) = constant(if flipped { a } else { b }) else { return None };
    let number = 2 * i128::from(number);
    let interval = match (operator, flipped) {
        (Binary::Equal, _) => Interval { least: number, most: number, not: false },
        (Binary::Unequal, _) => Interval { least: number, most: number, not: true },
        (Binary::Less, false) | (Binary::Greater, true) => Interval { most: number - 1, ..Interval::ALL },
        (Binary::LessEqual, false) | (Binary::GreaterEqual, true) => Interval { most: number, ..Interval::ALL },
        (Binary::Greater, false) | (Binary::Less, true) => Interval { least: number + 1, ..Interval::ALL },
        (Binary::GreaterEqual, false) | (Binary::LessEqual, true) => Interval { least: number, ..Interval::ALL },
        _ => return None,
    };
    Some((expression(term), interval))
}

/// The values that several comparisons, which must all hold, leave for each term.
#[derive(Default)]
pub(super) struct Bounds {
    left: BTreeMap<String, Interval>,
    /// The required text of a term.
    texts: BTreeMap<String, String>,
}

impl Bounds {
    /// Adds the comparisons of an expression. Returns a term for which no value is left.
    pub(super) fn add(&mut self, expr: &Expr) -> Option<String> {
        let ExprKind::Binary(operator, a, b) = &expr.kind else { return None };
        if *operator == Binary::And {
            return self.add(a).or_else(|| self.add(b));
        }
        if let Some((term, interval)) = compared(*operator, a, b) {
            // Only lengths are known to be integers of at least 0.
            let whole = term_of(a, b).is_some_and(is_length);
            let start = if whole { Interval::LENGTH } else { Interval::ALL };
            let left = self.left.get(&term).copied().unwrap_or(start).meet(interval);
            let left = if whole { left.whole() } else { left };
            self.left.insert(term.clone(), left);
            return left.is_empty().then_some(term);
        }
        let (term, text) = match (operator, constant(a), constant(b)) {
            (Binary::Equal, Some(Constant::Text(text)), None) => (b, text),
            (Binary::Equal, None, Some(Constant::Text(text))) => (a, text),
            _ => return None,
        };
        let term = expression(term);
        let before = self.texts.insert(term.clone(), text.clone());
        before.filter(|before| *before != text).map(|_| term)
    }
}
