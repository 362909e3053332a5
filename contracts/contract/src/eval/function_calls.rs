//! Evaluates calls of the language's functions.

use std::cmp::Ordering;

use super::{BYTES_A_STEP, NoValue, Outcome, Run, Why};
use crate::compiled_code::Id;
use crate::functions::Function;
use crate::message_values::Value;
use crate::text_formats;

impl<'a> Run<'a> {
    pub(super) fn call(&mut self, id: Id, function: Function, first: u32, count: u32) -> Outcome<Value<'a>> {
        let argument = |run: &Self, at: u32| run.code.operands[(first + at) as usize];
        let one = argument(self, 0);
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
                self.charge_bytes(id, text.len())?;
                Ok(Value::Bool(test(text)))
            }
            Function::TextsAre(test) => {
                let (text, part) = (self.text(one)?, self.text(argument(self, 1))?);
                // The standard library's substring search is linear (two-way search).
                self.charge_bytes(id, text.len() + part.len())?;
                Ok(Value::Bool(test(text, part)))
            }
            Function::Len => self.length(one),
            Function::Get => self.get(id, one, argument(self, 1), argument(self, 2)),
            Function::Int | Function::Float => self.number(id, one, matches!(function, Function::Float)),
            Function::Text => {
                let value = self.needed(one)?;
                self.shown(id, value).map(Value::Text)
            }
            Function::Min | Function::Max => self.extreme(one, first, count, matches!(function, Function::Max)),
            Function::Lower => {
                let text = self.text(one)?;
                // Every byte is read, and the lower-case text can have three times as many bytes.
                self.charge_bytes(id, 4 * text.len())?;
                let lower = text.chars().flat_map(char::to_lowercase);
                Ok(Value::Text(bumpalo::collections::String::from_iter_in(lower, self.bump).into_bump_str()))
            }
            Function::QueryParam => {
                let (url, name) = (self.text(one)?, self.text(argument(self, 1))?);
                self.charge_bytes(id, url.len())?;
                Ok(text_formats::query_param(url, name).map_or(Value::Missing, Value::Text))
            }
            Function::UrlHost => {
                let url = self.text(one)?;
                self.charge_bytes(id, url.len())?;
                text_formats::url_host(url)
                    .map_or_else(|| self.stop(id, Why::NotA("URL with a host")), |host| Ok(Value::Text(host)))
            }
            Function::TimeMs => {
                let text = self.text(one)?;
                self.charge_bytes(id, text.len())?;
                let time = text_formats::time_ms(text, false);
                time.map_or_else(|| self.stop(id, Why::NotA("time in RFC 3339 format")), |time| Ok(Value::Int(time)))
            }
            Function::Matches | Function::Split => unreachable!("these are operations of their own"),
        }
    }

    fn length(&mut self, of: Id) -> Outcome<Value<'a>> {
        let length = match self.needed(of)? {
            Value::Text(text) => {
                self.charge_bytes(of, text.len())?;
                text.chars().count()
            }
            Value::Bytes(bytes) => bytes.len(),
            Value::Array(node) | Value::Map(node) => node.len(),
            Value::List(items) | Value::Tuple(items) => items.len(),
            other => return self.kind(of, "text, bytes, a list or a map", other),
        };
        Ok(Value::Int(length as i64))
    }

    fn get(&mut self, id: Id, map: Id, key: Id, otherwise: Id) -> Outcome<Value<'a>> {
        let found = match self.at(id, map, key) {
            Err(NoValue) if self.reason().why == Why::Missing => Value::Missing,
            other => other?,
        };
        match found {
            Value::Missing => self.value(otherwise),
            found => Ok(found),
        }
    }

    fn number(&mut self, id: Id, of: Id, float: bool) -> Outcome<Value<'a>> {
        match (self.needed(of)?, float) {
            (Value::Int(number), false) => Ok(Value::Int(number)),
            (Value::Int(number), true) => Ok(Value::Float(number as f64)),
            (Value::Float(number), true) => Ok(Value::Float(number)),
            (Value::Float(number), false) => {
                let whole = number.trunc();
                // The upper bound, 2^63, is excluded because it does not fit in an `i64`.
                let fits = whole >= i64::MIN as f64 && whole < -(i64::MIN as f64);
                if fits { Ok(Value::Int(whole as i64)) } else { self.stop(id, Why::OVERFLOW) }
            }
            (Value::Text(text), float) => {
                self.charge_bytes(id, text.len())?;
                let (number, wanted) = match float {
                    true => (text.parse().ok().filter(|number: &f64| number.is_finite()).map(Value::Float), "number"),
                    false => (text.parse().ok().map(Value::Int), "whole number"),
                };
                number.map_or_else(|| self.stop(id, Why::NotA(wanted)), Ok)
            }
            (other, _) => self.kind(of, "a number or numeric text", other),
        }
    }

    fn extreme(&mut self, id: Id, first: u32, count: u32, largest: bool) -> Outcome<Value<'a>> {
        let values = self.operands(id, first, count)?;
        let mut best = Value::Missing;
        for &value in values {
            if !matches!(value, Value::Int(_) | Value::Float(_)) {
                return self.kind(id, "a number", value);
            }
            let is_better = |order: Ordering| if largest { order.is_gt() } else { order.is_lt() };
            if matches!(best, Value::Missing) || self.order(id, value, best)?.is_some_and(is_better) {
                best = value;
            }
        }
        Ok(best)
    }

    pub(super) fn pattern(&mut self, id: Id, splits: bool, of: Id, pattern: u32) -> Outcome<Value<'a>> {
        let text = self.text(of)?;
        let pattern = &self.code.patterns[pattern as usize];
        // Matching takes up to one step per byte and state. The pattern's length approximates the number of states.
        // Short repetitions can have more states, up to the memory limit of compiled patterns.
        let states = 1 + pattern.as_str().len() / BYTES_A_STEP;
        self.charge(id, (text.len() * states) as u64)?;
        if !splits {
            return Ok(Value::Bool(pattern.is_match(text)));
        }
        let parts = pattern.split(text).map(Value::Text);
        Ok(Value::List(bumpalo::collections::Vec::from_iter_in(parts, self.bump).into_bump_slice()))
    }
}
