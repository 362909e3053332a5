//! Converts stored and exchanged types to and from JSON. Only this crate compiles Serde's code for them.

use crate::generator_messages::{Heard, Told};
use crate::node_messages::{Order, Said};
use crate::plan::Plan;
use crate::record::{Calibration, Record, Run};
use crate::spec::LoadSpec;

/// Whether a field has its default value, which is left out of the JSON.
pub fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

pub(crate) fn one() -> u32 {
    1
}

/// A type that is stored or exchanged as JSON.
pub trait Json: Sized {
    /// Parses a value. Fails if the JSON is malformed or does not match this type.
    fn from_json(text: &str) -> serde_json::Result<Self>;

    /// Serializes the value as one line; NaN and infinity become `null`. Fails if serde does.
    fn to_json(&self) -> serde_json::Result<String>;
}

macro_rules! json {
    ($($name:ty)*) => {
        $(impl Json for $name {
            fn from_json(text: &str) -> serde_json::Result<Self> {
                serde_json::from_str(text)
            }

            fn to_json(&self) -> serde_json::Result<String> {
                serde_json::to_string(self)
            }
        })*
    };
}

json! { Calibration Heard LoadSpec Order Plan Record Run Said Told }
