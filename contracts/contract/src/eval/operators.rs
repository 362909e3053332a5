//! Evaluates comparisons, `in` and arithmetic.

use std::cmp::Ordering;

use super::{Items, NESTING_MAX, Outcome, Run, Why};
use crate::compiled_code::Id;
use crate::message_values::{Node, Value};
use crate::syntax::Binary;

impl<'a> Run<'a> {
    pub(super) fn compare(&mut self, id: Id, how: Binary, a: Id, b: Id) -> Outcome<bool> {
        let (left, right) = (self.needed(a)?, self.needed(b)?);
        let order = if let (Value::Int(left), Value::Int(right)) = (left, right) {
            Some(left.cmp(&right))
        } else if matches!(how, Binary::Equal | Binary::Unequal) {
            return Ok(self.equal(id, left, right, 0)? == (how == Binary::Equal));
        } else {
            self.order(b, left, right)?
        };
        Ok(order.map_or(how == Binary::Unequal, |order| how.holds(order)))
    }

    pub(super) fn order(&mut self, at: Id, a: Value<'a>, b: Value<'a>) -> Outcome<Option<Ordering>> {
        match (a, b) {
            (Value::Int(a), Value::Int(b)) => Ok(Some(a.cmp(&b))),
            (Value::Int(a), Value::Float(b)) => Ok(int_to_float(a, b)),
            (Value::Float(a), Value::Int(b)) => Ok(int_to_float(b, a).map(Ordering::reverse)),
            (Value::Float(a), Value::Float(b)) => Ok(a.partial_cmp(&b)),
            (Value::Text(a), Value::Text(b)) => self.order_bytes(at, a.as_bytes(), b.as_bytes()),
            (Value::Bytes(a), Value::Bytes(b)) => self.order_bytes(at, a, b),
            (Value::Int(_) | Value::Float(_), other) => self.kind(at, "a number", other),
            (Value::Text(_), other) => self.kind(at, "text", other),
            (Value::Bytes(_), other) => self.kind(at, "bytes", other),
            (other, _) => self.kind(at, "a number or text", other),
        }
    }

    fn order_bytes(&mut self, at: Id, a: &[u8], b: &[u8]) -> Outcome<Option<Ordering>> {
        self.charge_bytes(at, a.len().min(b.len()))?;
        Ok(Some(a.cmp(b)))
    }

    pub(super) fn equal(&mut self, at: Id, a: Value<'a>, b: Value<'a>, depth: u16) -> Outcome<bool> {
        if depth > NESTING_MAX {
            return self.stop(at, Why::DEPTH);
        }
        self.charge(at, 1)?;
        match (a, b) {
            (Value::Missing, _) | (_, Value::Missing) => self.stop(at, Why::Missing),
            (Value::Opaque | Value::Malformed(_), _) | (_, Value::Opaque | Value::Malformed(_)) => {
                self.stop(at, Why::Opaque)
            }
            (Value::Bool(a), Value::Bool(b)) => Ok(a == b),
            (Value::Int(_) | Value::Float(_), Value::Int(_) | Value::Float(_))
            | (Value::Text(_), Value::Text(_))
            | (Value::Bytes(_), Value::Bytes(_)) => Ok(self.order(at, a, b)? == Some(Ordering::Equal)),
            (Value::Map(a), Value::Map(b)) => self.equal_maps(at, a, b, depth),
            (Value::Tuple(_), other) | (other, Value::Tuple(_)) if !matches!(other, Value::Tuple(_)) => Ok(false),
            _ => match (Items::of_list(a), Items::of_list(b)) {
                (Some(left), Some(right)) if left.len() == right.len() => {
                    for (left, right) in left.iter().zip(right.iter()) {
                        if !self.equal(at, left, right, depth + 1)? {
                            return Ok(false);
                        }
                    }
                    Ok(true)
                }
                _ => Ok(false),
            },
        }
    }

    fn equal_maps(&mut self, at: Id, a: Node<'a>, b: Node<'a>, depth: u16) -> Outcome<bool> {
        if a.len() != b.len() {
            return Ok(false);
        }
        for position in 0..a.len() {
            let (key, value) = (a.key(position), a.at(position));
            let mut other = 0;
            while other < b.len() && !self.equal(at, key, b.key(other), depth + 1)? {
                other += 1;
            }
            if other == b.len() || !self.equal(at, value, b.at(other), depth + 1)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    pub(super) fn within(&mut self, id: Id, item: Id, within: Id) -> Outcome<bool> {
        let item = self.needed(item)?;
        for other in self.items(within)?.iter() {
            if self.equal(id, item, other, 0)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    pub(super) fn arithmetic(&mut self, id: Id, how: Binary, a: Id, b: Id) -> Outcome<Value<'a>> {
        let (left, right) = (self.needed(a)?, self.needed(b)?);
        match (left, right) {
            (Value::Int(left), Value::Int(right)) => {
                if right == 0 && matches!(how, Binary::Divided | Binary::Remainder) {
                    return self.stop(id, Why::Impossible("division by zero"));
                }
                how.checked(left, right).map_or_else(|| self.stop(id, Why::OVERFLOW), |value| Ok(Value::Int(value)))
            }
            (Value::Int(_) | Value::Float(_), Value::Int(_) | Value::Float(_)) => {
                let float = |value| match value {
                    Value::Int(number) => number as f64,
                    Value::Float(number) => number,
                    _ => unreachable!("both are numbers"),
                };
                let (left, right) = (float(left), float(right));
                Ok(Value::Float(match how {
                    Binary::Plus => left + right,
                    Binary::Minus => left - right,
                    Binary::Times => left * right,
                    Binary::Divided => left / right,
                    _ => left % right,
                }))
            }
            (Value::Text(left), Value::Text(right)) if how == Binary::Plus => {
                self.charge_bytes(id, left.len() + right.len())?;
                let mut text = bumpalo::collections::String::with_capacity_in(left.len() + right.len(), self.bump);
                text.push_str(left);
                text.push_str(right);
                Ok(Value::Text(text.into_bump_str()))
            }
            _ if how == Binary::Plus => match (Items::of_list(left), Items::of_list(right)) {
                (Some(first), Some(second)) => {
                    self.charge(id, (first.len() + second.len()) as u64)?;
                    let items = first.iter().chain(second.iter());
                    Ok(Value::List(bumpalo::collections::Vec::from_iter_in(items, self.bump).into_bump_slice()))
                }
                _ => match left {
                    Value::Int(_) | Value::Float(_) => self.kind(b, "a number", right),
                    Value::Text(_) | Value::List(_) => self.kind(b, left.kind(), right),
                    other => self.kind(a, "a number, text or a list", other),
                },
            },
            (Value::Int(_) | Value::Float(_), other) => self.kind(b, "a number", other),
            (other, _) => self.kind(a, "a number", other),
        }
    }
}

/// Compares an integer with a float without rounding either. `None` for NaN.
fn int_to_float(int: i64, float: f64) -> Option<Ordering> {
    // Rounding the integer keeps the order unless both numbers become equal. The float is then whole.
    let rounded = (int as f64).partial_cmp(&float)?;
    Some(rounded.then_with(|| i128::from(int).cmp(&(float as i128))))
}
