//! The level of a factor: a whole number, a number with a fraction, or a string.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A value of a factor.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum Level {
    /// A whole number.
    Integer(i64),
    /// A number with a fraction.
    Number(f64),
    /// A word or any other string.
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
    /// The level as a number, for an axis. Accepts numbers and strings with a unit, such as `2k`; otherwise `None`.
    pub fn as_f64(&self) -> Option<f64> {
        match self {
            Level::Integer(value) => Some(*value as f64),
            Level::Number(value) => Some(*value),
            Level::Text(text) => {
                let has_unit = text.ends_with(|last: char| last.is_ascii_alphabetic());
                let number = config::units::bytes(text.strip_suffix("/s").unwrap_or(text)).ok();
                number.filter(|_| has_unit).map(|number| number as f64)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_with_a_unit_are_numbers() {
        for (text, number) in [
            ("1k", Some(1e3)),
            ("2.5M", Some(2.5e6)),
            ("64KiB", Some(65_536.0)),
            ("50k/s", Some(5e4)),
            ("10", None),
            ("k", None),
            ("go", None),
            ("v2", None),
            ("100ms", None),
        ] {
            assert_eq!(Level::Text(text.to_owned()).as_f64(), number, "{text}");
        }
    }
}
