//! JSON Schemas of the machine-readable outputs, generated from their types.

use schemars::JsonSchema;
use schemars::generate::SchemaSettings;

use crate::workload_samples::WorkloadDrawn;
use analysis::findings::History;
use analysis::{FindReport, Findings, LoadReport};

/// Returns the stem and content of each file in schemas/ that this crate owns.
pub fn schemas() -> [(&'static str, String); 5] {
    [
        ("findings", text::<Findings>()),
        ("load", text::<LoadReport>()),
        ("find", text::<FindReport>()),
        ("workload", text::<WorkloadDrawn>()),
        ("history", text::<History>()),
    ]
}

fn text<T: JsonSchema>() -> String {
    let schema = SchemaSettings::default().for_serialize().into_generator().into_root_schema_for::<T>();
    let mut text = serde_json::to_string_pretty(&schema).expect("a schema is plain JSON");
    text.push('\n');
    text
}
