//! What a factor may be set to.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// One value of a factor.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum Level {
    /// A whole number.
    Integer(i64),
    /// A fraction.
    Number(f64),
    /// A word.
    Text(String),
}

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Level::Integer(value) => value.fmt(f),
            Level::Number(value) => value.fmt(f),
            Level::Text(value) => value.fmt(f),
        }
    }
}

impl Level {
    /// As a number, for an axis.
    pub fn as_f64(&self) -> Option<f64> {
        match self {
            Level::Integer(value) => Some(*value as f64),
            Level::Number(value) => Some(*value),
            Level::Text(_) => None,
        }
    }
}
