//! JSON Schemas of stored and exchanged data, generated from the types.

use schemars::{JsonSchema, schema_for};

use crate::generator_messages::{Heard, Told};
use crate::keys;
use crate::node_messages::{Order, Said};
use crate::verification::Verification;
use crate::{LoadSpec, Measurement, Plan, Record, Run};

/// Name, without the file's extension, and content of each schema in schemas/ that belongs to this crate.
pub fn schemas() -> [(&'static str, String); 11] {
    [
        ("run", text::<Run>()),
        ("record", text::<Record>()),
        ("plan", text::<Plan>()),
        ("load-spec", text::<LoadSpec>()),
        ("measurement", text::<Measurement>()),
        ("generator-told", text::<Told>()),
        ("generator-heard", text::<Heard>()),
        ("node-order", text::<Order>()),
        ("node-said", text::<Said>()),
        ("verification", text::<Vec<Verification>>()),
        ("study", pretty(&keys::schema())),
    ]
}

fn text<T: JsonSchema>() -> String {
    pretty(schema_for!(T).as_value())
}

fn pretty(schema: &serde_json::Value) -> String {
    let mut text = serde_json::to_string_pretty(schema).expect("a schema is plain JSON");
    text.push('\n');
    text
}
