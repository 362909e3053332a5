//! Evaluates comparisons, `in`, arithmetic and calls of the language's functions.

use std::cmp::Ordering;

use super::{BYTES_A_STEP, NESTING_MAX, NoValue, Outcome, Run, Why};
use crate::functions::Function;
use crate::message_values::{Pairs, Value};
use crate::syntax::{Binary, Expr, ExprKind};
use crate::text_formats;

impl<'a> Run<'a> {
    pub(super) fn compare(&mut self, expr: &Expr, how: Binary, a: &'a Expr, b: &'a Expr) -> Outcome<bool> {
        let (left, right) = (self.needed(a)?, self.needed(b)?);
        let order = if let (Value::Int(left), Value::Int(right)) = (left, right) {
            Some(left.cmp(&right))
        } else if matches!(how, Binary::Equal | Binary::Unequal) {
            return Ok(self.equal(expr, left, right, 0)? == (how == Binary::Equal));
        } else {
            self.order(b, left, right)?
        };
        Ok(order.map_or(how == Binary::Unequal, |order| how.holds(order)))
    }

    pub(super) fn order(&mut self, at: &Expr, a: Value<'a>, b: Value<'a>) -> Outcome<Option<Ordering>> {
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

    fn order_bytes(&mut self, at: &Expr, a: &[u8], b: &[u8]) -> Outcome<Option<Ordering>> {
        self.charge_bytes(at, a.len().min(b.len()))?;
        Ok(Some(a.cmp(b)))
    }

    pub(super) fn equal(&mut self, at: &Expr, a: Value<'a>, b: Value<'a>, depth: u16) -> Outcome<bool> {
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
            _ if a.is_list() && b.is_list() && a.item_count() == b.item_count() => {
                for (left, right) in a.items().zip(b.items()) {
                    if !self.equal(at, left, right, depth + 1)? {
                        return Ok(false);
                    }
                }
                Ok(true)
            }
            _ => Ok(false),
        }
    }

    fn equal_maps(&mut self, at: &Expr, a: &'a Pairs<'a>, b: &'a Pairs<'a>, depth: u16) -> Outcome<bool> {
        if a.len() != b.len() {
            return Ok(false);
        }
        for (key, value) in a {
            let mut other = 0;
            while other < b.len() && !self.equal(at, key.value(), b[other].0.value(), depth + 1)? {
                other += 1;
            }
            if other == b.len() || !self.equal(at, value.value(), b[other].1.value(), depth + 1)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    pub(super) fn within(&mut self, expr: &Expr, item: &'a Expr, within: &'a Expr) -> Outcome<bool> {
        let item = self.needed(item)?;
        for other in self.items(within)?.items() {
            if self.equal(expr, item, other, 0)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    pub(super) fn arithmetic(&mut self, expr: &Expr, how: Binary, a: &'a Expr, b: &'a Expr) -> Outcome<Value<'a>> {
        let (left, right) = (self.needed(a)?, self.needed(b)?);
        match (left, right) {
            (Value::Int(left), Value::Int(right)) => {
                if right == 0 && matches!(how, Binary::Divided | Binary::Remainder) {
                    return self.stop(expr, Why::Impossible("division by zero"));
                }
                how.checked(left, right).map_or_else(|| self.stop(expr, Why::OVERFLOW), |value| Ok(Value::Int(value)))
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
                self.charge_bytes(expr, left.len() + right.len())?;
                let mut text = bumpalo::collections::String::with_capacity_in(left.len() + right.len(), self.bump);
                text.push_str(left);
                text.push_str(right);
                Ok(Value::Text(text.into_bump_str()))
            }
            _ if how == Binary::Plus && left.is_list() && right.is_list() => {
                self.charge(expr, (left.item_count() + right.item_count()) as u64)?;
                let items = left.items().chain(right.items());
                Ok(Value::List(bumpalo::collections::Vec::from_iter_in(items, self.bump).into_bump_slice()))
            }
            (Value::Text(_) | Value::List(_), other) if how == Binary::Plus => self.kind(b, left.kind(), other),
            (other, _) if how == Binary::Plus && !matches!(other, Value::Int(_) | Value::Float(_)) => {
                self.kind(a, "a number, text or a list", other)
            }
            (Value::Int(_) | Value::Float(_), other) => self.kind(b, "a number", other),
            (other, _) => self.kind(a, "a number", other),
        }
    }

    pub(super) fn call(&mut self, expr: &Expr, function: Function, arguments: &'a [Expr]) -> Outcome<Value<'a>> {
        let one = &arguments[0];
        match function {
            Function::Has => match self.value(one) {
                Ok(Value::Missing) => Ok(Value::Bool(false)),
                Ok(_) => Ok(Value::Bool(true)),
                Err(NoValue) if self.reason().why == Why::Missing => Ok(Value::Bool(false)),
                Err(NoValue) => Err(NoValue),
            },
            Function::ValueIs(test) => self.needed(one).map(|value| Value::Bool(test(value))),
            Function::TextIs(test) => {
                let text = self.text(one)?;
                self.charge_bytes(expr, text.len())?;
                Ok(Value::Bool(test(text)))
            }
            Function::TextsAre(test) => {
                let (text, part) = (self.text(one)?, self.text(&arguments[1])?);
                // The standard library's substring search is linear (two-way search).
                self.charge_bytes(expr, text.len() + part.len())?;
                Ok(Value::Bool(test(text, part)))
            }
            Function::Len => self.length(one),
            Function::Get => self.get(expr, one, &arguments[1], &arguments[2]),
            Function::Int | Function::Float => self.number(expr, one, matches!(function, Function::Float)),
            Function::Text => {
                let value = self.needed(one)?;
                self.shown(expr, value).map(Value::Text)
            }
            Function::Min | Function::Max => self.extreme(one, arguments, matches!(function, Function::Max)),
            Function::Lower => {
                let text = self.text(one)?;
                // Every byte is read, and the lower-case text can have three times as many bytes.
                self.charge_bytes(expr, 4 * text.len())?;
                let lower = text.chars().flat_map(char::to_lowercase);
                Ok(Value::Text(bumpalo::collections::String::from_iter_in(lower, self.bump).into_bump_str()))
            }
            Function::QueryParam => {
                let (url, name) = (self.text(one)?, self.text(&arguments[1])?);
                self.charge_bytes(expr, url.len())?;
                Ok(text_formats::query_param(url, name).map_or(Value::Missing, Value::Text))
            }
            Function::UrlHost => {
                let url = self.text(one)?;
                self.charge_bytes(expr, url.len())?;
                let host = text_formats::url_host(url).map(Value::Text);
                host.map_or_else(|| self.stop(expr, Why::Impossible("the text is not a URL with a host")), Ok)
            }
            Function::TimeMs => {
                let text = self.text(one)?;
                self.charge_bytes(expr, text.len())?;
                let time = text_formats::time_ms(text, false).map(Value::Int);
                time.map_or_else(|| self.stop(expr, Why::Impossible("the text is not a time in RFC 3339 format")), Ok)
            }
            Function::Matches | Function::Split => self.pattern(expr, function, one, &arguments[1]),
        }
    }

    fn length(&mut self, of: &'a Expr) -> Outcome<Value<'a>> {
        let value = self.needed(of)?;
        let length = match value {
            Value::Text(text) => {
                self.charge_bytes(of, text.len())?;
                text.chars().count()
            }
            Value::Bytes(bytes) => bytes.len(),
            Value::Array(_) | Value::Map(_) | Value::List(_) | Value::Tuple(_) => value.item_count(),
            other => return self.kind(of, "text, bytes, a list or a map", other),
        };
        Ok(Value::Int(length as i64))
    }

    fn get(&mut self, expr: &Expr, map: &'a Expr, key: &'a Expr, otherwise: &'a Expr) -> Outcome<Value<'a>> {
        match self.at(expr, map, key) {
            Ok(Value::Missing) => self.value(otherwise),
            Err(NoValue) if self.reason().why == Why::Missing => self.value(otherwise),
            found => found,
        }
    }

    fn number(&mut self, expr: &Expr, of: &'a Expr, float: bool) -> Outcome<Value<'a>> {
        match (self.needed(of)?, float) {
            (Value::Int(number), false) => Ok(Value::Int(number)),
            (Value::Int(number), true) => Ok(Value::Float(number as f64)),
            (Value::Float(number), true) => Ok(Value::Float(number)),
            (Value::Float(number), false) => {
                let whole = number.trunc();
                // The upper bound, 2^63, is excluded because it does not fit in an `i64`.
                let fits = whole >= i64::MIN as f64 && whole < -(i64::MIN as f64);
                if fits { Ok(Value::Int(whole as i64)) } else { self.stop(expr, Why::OVERFLOW) }
            }
            (Value::Text(text), float) => {
                self.charge_bytes(expr, text.len())?;
                let finite = |number: &f64| number.is_finite();
                let (number, why) = match float {
                    true => (text.parse().ok().filter(finite).map(Value::Float), "the text is not a number"),
                    false => (text.parse().ok().map(Value::Int), "the text is not a whole number"),
                };
                number.map_or_else(|| self.stop(expr, Why::Impossible(why)), Ok)
            }
            (other, _) => self.kind(of, "a number or numeric text", other),
        }
    }

    fn extreme(&mut self, expr: &Expr, operands: &'a [Expr], largest: bool) -> Outcome<Value<'a>> {
        let values = self.operands(expr, operands)?;
        let mut best = Value::Missing;
        for &value in values {
            if !matches!(value, Value::Int(_) | Value::Float(_)) {
                return self.kind(expr, "a number", value);
            }
            let is_better = |order: Ordering| if largest { order.is_gt() } else { order.is_lt() };
            if matches!(best, Value::Missing) || self.order(expr, value, best)?.is_some_and(is_better) {
                best = value;
            }
        }
        Ok(best)
    }

    fn pattern(&mut self, expr: &Expr, function: Function, of: &'a Expr, by: &'a Expr) -> Outcome<Value<'a>> {
        let text = self.text(of)?;
        let ExprKind::Pattern(pattern) = &by.kind else { unreachable!("patterns are compiled with the contract") };
        // Matching takes up to one step per byte and state. The pattern's length approximates the number of states.
        // Short repetitions can have more states, up to the memory limit of compiled patterns.
        let states = 1 + pattern.as_str().len() / BYTES_A_STEP;
        self.charge(expr, (text.len() * states) as u64)?;
        if matches!(function, Function::Matches) {
            return Ok(Value::Bool(pattern.is_match(text)));
        }
        let parts = pattern.split(text).map(Value::Text);
        Ok(Value::List(bumpalo::collections::Vec::from_iter_in(parts, self.bump).into_bump_slice()))
    }
}

/// Compares an integer with a float without rounding either. `None` for NaN.
fn int_to_float(int: i64, float: f64) -> Option<Ordering> {
    // Rounding the integer keeps the order unless both numbers become equal. The float is then whole.
    let rounded = (int as f64).partial_cmp(&float)?;
    Some(rounded.then_with(|| i128::from(int).cmp(&(float as i128))))
}
