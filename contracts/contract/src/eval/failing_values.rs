//! Finds the values that made a clause fail.

use super::{Env, Run, Scratch};
use crate::clause::{Clause, Id, Op};
use crate::message_values::Value;
use crate::syntax::Quantifier;

const VALUES_MAX: usize = 8;

type TakePart<'t> = &'t mut dyn FnMut(String, Value<'_>);

/// Passes each part of the message that made a clause fail, such as `result.users[3].id`, to `take` once, in the order
/// of the text. A conjunction contributes only its false sides, and a loop only its first deciding item.
pub(crate) fn guilty(clause: &Clause, env: Env<'_>, scratch: &mut Scratch, take: TakePart<'_>) {
    scratch.run(&clause.code, env, |run| {
        let names = vec![None; usize::from(clause.code.locals)];
        Look { run, clause, names, seen: Vec::new(), take }.fails(clause.root);
    });
}

struct Look<'a, 't> {
    run: Run<'a>,
    clause: &'t Clause,
    /// The names of the items in local variables. `None` for values that are not part of the message.
    names: Vec<Option<String>>,
    seen: Vec<String>,
    take: TakePart<'t>,
}

impl Look<'_, '_> {
    /// Reports the parts that made an expression false. Recursion is bounded by [`crate::DEPTH_MAX`].
    fn fails(&mut self, id: Id) {
        match self.run.code.ops[id as usize] {
            Op::And { a, b } => {
                for side in [a, b] {
                    if !matches!(self.run.truth(side), Ok(true)) {
                        self.fails(side);
                    }
                }
            }
            Op::Or { a, b } => {
                self.fails(a);
                self.fails(b);
            }
            Op::If { condition, yes, no } => {
                self.reads(condition);
                let taken = if matches!(self.run.truth(condition), Ok(true)) { yes } else { no };
                self.fails(taken);
            }
            Op::Let { local, value, body } => {
                self.bind(local, value);
                self.fails(body);
            }
            Op::Quantifier { each: Quantifier::All, local, within, body } => {
                let count = self.run.items(within).map_or(0, Value::item_count);
                for at in 0..count {
                    // The items are rebuilt in each iteration, because evaluating an item may reuse the run's memory.
                    let Ok(items) = self.run.items(within) else { return };
                    self.run.locals[usize::from(local)] = items.item(at);
                    if matches!(self.run.truth(body), Ok(false)) {
                        self.names[usize::from(local)] = self.name(within).map(|of| format!("{of}[{at}]"));
                        return self.fails(body);
                    }
                }
                self.reads(within);
            }
            _ => self.reads(id),
        }
    }

    fn reads(&mut self, id: Id) {
        if let Some(name) = self.name(id) {
            let value = self.run.value(id).unwrap_or(Value::Missing);
            if self.seen.len() < VALUES_MAX && !self.seen.contains(&name) {
                (self.take)(name.clone(), value);
                self.seen.push(name);
            }
            return;
        }
        match self.run.code.ops[id as usize] {
            Op::Field { of, .. } | Op::Not(of) | Op::Minus(of) | Op::Pattern { of, .. } => self.reads(of),
            Op::At { of: a, at: b }
            | Op::Compare { a, b, .. }
            | Op::Arithmetic { a, b, .. }
            | Op::And { a, b }
            | Op::Or { a, b }
            | Op::In { item: a, within: b } => {
                self.reads(a);
                self.reads(b);
            }
            Op::If { condition, yes, no } => [condition, yes, no].into_iter().for_each(|part| self.reads(part)),
            Op::Quantifier { within, .. } => self.reads(within),
            Op::Let { local, value, body } => {
                self.bind(local, value);
                self.reads(body);
            }
            Op::List { first, count } | Op::Tuple { first, count } | Op::Call { first, count, .. } => {
                for at in first..first + count {
                    self.reads(self.run.code.operands[at as usize]);
                }
            }
            _ => {}
        }
    }

    /// The name of a part of the message. `None` for other values.
    fn name(&self, id: Id) -> Option<String> {
        match self.run.code.ops[id as usize] {
            Op::Param(_) | Op::Outcome | Op::Receiver => Some(self.written(id)?.to_owned()),
            Op::Local(local) => self.names[usize::from(local)].clone(),
            Op::Field { of, name } => Some(format!("{}.{}", self.name(of)?, self.run.code.texts[name as usize])),
            Op::At { of, at } => match self.run.code.ops[at as usize] {
                Op::Int(_) | Op::Text(_) => Some(format!("{}[{}]", self.name(of)?, self.written(at)?)),
                _ => None,
            },
            _ => None,
        }
    }

    fn written(&self, id: Id) -> Option<&str> {
        self.clause.written(self.run.code.spans[id as usize])
    }

    fn bind(&mut self, local: u16, value: Id) {
        self.names[usize::from(local)] = self.name(value);
        self.run.locals[usize::from(local)] = self.run.value(value).unwrap_or(Value::Missing);
    }
}
