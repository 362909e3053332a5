//! Prints expressions in a canonical form. Parsing the text yields the same tree.

use crate::syntax::{Binary, Expr, ExprKind, Quantifier};

/// The text of an expression.
pub fn expression(expr: &Expr) -> String {
    at_least(expr, 0)
}

/// Binding strength: 0 for `let` and `?:`, 1 to 5 for operators, 6 for prefix signs, 7 for the rest.
fn strength(expr: &Expr) -> u8 {
    match &expr.kind {
        ExprKind::Let(..) | ExprKind::If(..) => 0,
        ExprKind::Binary(operator, ..) => operator.sign().1,
        ExprKind::Not(_) | ExprKind::Minus(_) => 6,
        _ => 7,
    }
}

fn at_least(expr: &Expr, least: u8) -> String {
    let text = kind(&expr.kind);
    if strength(expr) < least { format!("({text})") } else { text }
}

pub(crate) fn kind(kind: &ExprKind) -> String {
    let list = |items: &[Expr]| items.iter().map(expression).collect::<Vec<_>>().join(", ");
    match kind {
        ExprKind::Bool(value) => value.to_string(),
        ExprKind::Int(number) => number.to_string(),
        // Debug keeps the point or the exponent, so the number stays a float.
        ExprKind::Float(number) => format!("{number:?}"),
        ExprKind::Text(text) => quoted(text),
        ExprKind::Name(name) => name.clone(),
        ExprKind::Field(of, field) => {
            // `1.a` would be read as a number and a rest.
            format!("{}.{}", at_least(of, 7), field.text)
        }
        ExprKind::Index(of, at) => format!("{}[{}]", at_least(of, 7), expression(at)),
        ExprKind::Call(function, arguments) => format!("{}({})", function.text, list(arguments)),
        ExprKind::Quantifier(each, name, within, body) => {
            let word = Quantifier::WORDS.iter().find(|(_, known)| known == each).expect("every one has a word").0;
            format!("{word}({} in {} : {})", name.text, expression(within), expression(body))
        }
        ExprKind::Not(of) => format!("!{}", at_least(of, 6)),
        ExprKind::Minus(of) => format!("-{}", at_least(of, 6)),
        ExprKind::Binary(operator, left, right) => {
            let (sign, strength) = operator.sign();
            // A left operand of the same strength needs no parentheses, except in comparisons, which do not chain.
            let left_least = if strength == Binary::COMPARISON { strength + 1 } else { strength };
            format!("{} {sign} {}", at_least(left, left_least), at_least(right, strength + 1))
        }
        ExprKind::If(condition, yes, no) => {
            format!("{} ? {} : {}", at_least(condition, 1), expression(yes), expression(no))
        }
        ExprKind::List(items) => format!("[{}]", list(items)),
        ExprKind::Tuple(items) if items.len() == 1 => format!("({},)", expression(&items[0])),
        ExprKind::Tuple(items) => format!("({})", list(items)),
        ExprKind::Let(name, value, body) => {
            format!("let {} = {}; {}", name.text, expression(value), expression(body))
        }
    }
}

fn quoted(text: &str) -> String {
    let escaped = text.chars().map(|character| match character {
        '"' | '\\' => format!("\\{character}"),
        control if control.is_control() => control.escape_default().to_string(),
        other => other.to_string(),
    });
    format!("\"{}\"", escaped.collect::<String>())
}
