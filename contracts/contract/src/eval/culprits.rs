//! Which values made a clause fail: what a report shows first.

use super::{Env, Run, Scratch};
use crate::code::{Code, Id, Op};
use crate::syntax::Quantifier;
use crate::tape::Value;

/// Most values that are given.
const VALUES_MAX: usize = 8;

/// What a clause that fails reads of the message: `result.users[3].id`, with its value. Of a conjunction only what does not hold, of items
/// only the first that decides. Each once, in the order of the text, given to `take`.
///
/// `text` and `start`: the clause and its first byte in the contract, which names of values are read from.
pub(crate) fn guilty(
    code: &Code,
    root: Id,
    (text, start): (&str, u32),
    env: Env<'_>,
    steps: u64,
    scratch: &mut Scratch,
    take: &mut dyn FnMut(String, Value<'_>),
) {
    {
        let names = vec![None; usize::from(code.locals)];
        let run = Run::new(code, env, steps, &scratch.bump);
        let mut look = Look { run, text, start, names, seen: Vec::new(), take };
        look.fails(root);
    }
    scratch.bump.reset();
}

struct Look<'a, 't> {
    run: Run<'a>,
    text: &'t str,
    start: u32,
    /// What local values are parts of, where that has a name.
    names: Vec<Option<String>>,
    seen: Vec<String>,
    take: &'t mut dyn FnMut(String, Value<'_>),
}

impl Look<'_, '_> {
    /// Gives what made an expression false. Expressions nest at most [`crate::DEPTH_MAX`] deep, so this does.
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
                self.names[usize::from(local)] = self.name(value);
                self.run.locals[usize::from(local)] = self.run.value(value).unwrap_or(Value::Missing);
                self.fails(body);
            }
            Op::Quantifier { each: Quantifier::All, local, within, body } => {
                let count = self.run.items(within).map_or(0, |items| items.len());
                for at in 0..count {
                    // Made anew for each item, as what is asked of items may use the memory of the run.
                    let Ok(items) = self.run.items(within) else { return };
                    self.run.locals[usize::from(local)] = items.at(at);
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

    /// Gives all that an expression reads.
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
                self.names[usize::from(local)] = self.name(value);
                self.run.locals[usize::from(local)] = self.run.value(value).unwrap_or(Value::Missing);
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

    /// What a part of the message is called; `None`: it is no part of the message, or one without a name.
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
        let span = self.run.code.spans[id as usize];
        let from = span.start.checked_sub(self.start)? as usize;
        self.text.get(from..from + span.range().len())
    }
}
