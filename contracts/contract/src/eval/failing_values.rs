//! Finds the values that made a clause fail.

use super::{Env, Run, Scratch};
use crate::clause::Clause;
use crate::message_values::Value;
use crate::syntax::{Binary, Expr, ExprKind, Local, Quantifier};

const VALUES_MAX: usize = 8;

type TakePart<'t> = &'t mut dyn FnMut(String, Value<'_>);

/// Passes each part of the message that made a clause fail, such as `result.users[3].id`, to `take` once, in the order
/// of the text. A conjunction contributes only its false sides, and a loop only its first deciding item.
pub(crate) fn guilty(clause: &Clause, env: Env<'_>, scratch: &mut Scratch, take: TakePart<'_>) {
    let (run, names) = (scratch.start(clause.locals, env), vec![None; usize::from(clause.locals)]);
    Look { run, clause, names, seen: Vec::new(), take }.fails(&clause.expr);
}

struct Look<'a, 't> {
    run: Run<'a>,
    clause: &'a Clause,
    /// The names of the items in local variables. `None` for values that are not part of the message.
    names: Vec<Option<String>>,
    seen: Vec<String>,
    take: TakePart<'t>,
}

impl<'a> Look<'a, '_> {
    /// Reports the parts that made an expression false. Recursion is bounded by [`crate::DEPTH_MAX`].
    fn fails(&mut self, expr: &'a Expr) {
        match &expr.kind {
            ExprKind::Binary(Binary::And, a, b) => {
                for side in [a, b] {
                    if !matches!(self.run.truth(side), Ok(true)) {
                        self.fails(side);
                    }
                }
            }
            ExprKind::Binary(Binary::Or, a, b) => {
                self.fails(a);
                self.fails(b);
            }
            ExprKind::If(condition, yes, no) => {
                self.reads(condition);
                let taken = if matches!(self.run.truth(condition), Ok(true)) { yes } else { no };
                self.fails(taken);
            }
            ExprKind::Let(local, value, body) => {
                self.bind(local, value);
                self.fails(body);
            }
            ExprKind::Quantifier(Quantifier::All, local, within, body) => {
                let count = self.run.items(within).map_or(0, Value::item_count);
                for at in 0..count {
                    // The items are rebuilt in each iteration, because evaluating an item may reuse the run's memory.
                    let Ok(items) = self.run.items(within) else { return };
                    self.run.locals[usize::from(local.at)] = items.item(at);
                    if matches!(self.run.truth(body), Ok(false)) {
                        self.names[usize::from(local.at)] = self.name(within).map(|of| format!("{of}[{at}]"));
                        return self.fails(body);
                    }
                }
                self.reads(within);
            }
            _ => self.reads(expr),
        }
    }

    fn reads(&mut self, expr: &'a Expr) {
        if let Some(name) = self.name(expr) {
            let value = self.run.value(expr).unwrap_or(Value::Missing);
            if self.seen.len() < VALUES_MAX && !self.seen.contains(&name) {
                (self.take)(name.clone(), value);
                self.seen.push(name);
            }
            return;
        }
        match &expr.kind {
            ExprKind::Quantifier(_, _, within, _) => self.reads(within),
            ExprKind::Let(local, value, body) => {
                self.bind(local, value);
                self.reads(body);
            }
            _ => expr.parts().into_iter().for_each(|part| self.reads(part)),
        }
    }

    /// The name of a part of the message. `None` for other values.
    fn name(&self, expr: &Expr) -> Option<String> {
        match &expr.kind {
            ExprKind::Param(_) | ExprKind::Outcome | ExprKind::Receiver => {
                self.clause.written(expr.span).map(str::to_owned)
            }
            ExprKind::Local(at) => self.names[usize::from(*at)].clone(),
            ExprKind::Field(of, name) => Some(format!("{}.{}", self.name(of)?, name.text)),
            ExprKind::Index(of, at) if matches!(at.kind, ExprKind::Int(_) | ExprKind::Text(_)) => {
                Some(format!("{}[{}]", self.name(of)?, self.clause.written(at.span)?))
            }
            _ => None,
        }
    }

    fn bind(&mut self, local: &Local, value: &'a Expr) {
        self.names[usize::from(local.at)] = self.name(value);
        self.run.locals[usize::from(local.at)] = self.run.value(value).unwrap_or(Value::Missing);
    }
}
