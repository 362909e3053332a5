//! Journeys: a user's sequence of operations, with values from replies used in later requests. [`crate::keys::JOURNEY`]
//! declares the keys of a journey file. A call fails if the reply is not a reply of its operation, is an exception, has
//! another status, or lacks a value that is taken or expected. The journey then ends, as later steps depend on it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub mod condition;
pub(crate) mod parse;
pub mod placeholders;
pub mod reply_path;

/// The sequence of operations of a user.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Journey {
    /// Name of the journey in reports.
    pub name: String,
    /// Services where the journey begins: a name and its default URL. An empty URL must be supplied.
    pub targets: Vec<(String, String)>,
    /// Schemas by name.
    pub schemas: Vec<Schema>,
    /// Names and their templates, filled once per journey, in this order.
    pub lets: Vec<(String, String)>,
    /// Calls in order, at least one.
    pub steps: Vec<Step>,
}

/// A Thrift IDL file or a WSDL.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Schema {
    /// Name by which steps refer to the schema.
    pub name: String,
    /// The file as named: `evernote.thrift`.
    pub file: String,
    /// Its text; empty for a built-in schema.
    #[serde(default)]
    pub text: String,
}

/// One call.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Step {
    /// The operation's name in reports.
    pub operation: String,
    /// Its line in the file, from 1.
    pub line: u32,
    /// Template of the URL.
    pub url: String,
    /// Operation to call.
    pub call: Call,
    /// Whether it is called only in a client's first journey, and not counted.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub once: bool,
    /// Law of the pause since the response before it, as [`crate::time_law::parse`] reads it; empty
    /// if there is none.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub think: String,
    /// Number of calls in a row.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub repeat: u32,
    /// Condition of each call, as [`condition::parse`] reads it; empty if there is none.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub when: String,
    /// Header fields, values are templates.
    #[serde(default)]
    pub headers: Vec<(String, String)>,
    /// Names for values of the reply, each with its path.
    #[serde(default)]
    pub take: Vec<(String, String)>,
    /// Paths into the reply, each with its expected value.
    #[serde(default)]
    pub expect: Vec<(String, Argument)>,
}

fn one() -> u32 {
    1
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes it so")]
fn is_one(count: &u32) -> bool {
    *count == 1
}

/// An operation and its encoding.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "codec", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Call {
    /// An HTTP request as written; replies are JSON.
    Rest {
        /// HTTP method, `GET` and so on.
        method: String,
        /// Template of the body, if any.
        body: Option<String>,
        /// Valid statuses; 200 to 299 if empty.
        #[serde(default)]
        status: Vec<u16>,
    },
    /// Thrift, binary protocol, in the body of a POST.
    Thrift {
        /// Name of the schema.
        schema: String,
        /// `Service.method`.
        method: String,
        /// Arguments by name.
        arguments: Argument,
    },
    /// SOAP 1.1.
    Soap {
        /// Name of the schema.
        schema: String,
        /// The operation's name.
        operation: String,
        /// Arguments by name.
        arguments: Argument,
    },
}

/// A value to send or to expect.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Argument {
    /// True or false.
    Flag(bool),
    /// An integer.
    Integer(i64),
    /// A number with a fraction.
    Number(f64),
    /// A template.
    Text(String),
    /// A list.
    List(Vec<Argument>),
    /// Fields by name.
    Record(Vec<(String, Argument)>),
}

/// Built-in journeys, name and text: the case studies of "Whip: higher-order contracts for modern services" (ICFP'17).
pub const PRESETS: [(&str, &str); 3] = [
    ("evernote", include_str!("../journeys/evernote.toml")),
    ("chess", include_str!("../journeys/chess.toml")),
    ("twitter", include_str!("../journeys/twitter.toml")),
];

impl Journey {
    /// Names of the operations without duplicates, in the order of their first steps.
    pub fn operations(&self) -> Vec<&str> {
        let mut names = Vec::<&str>::new();
        for step in &self.steps {
            if !names.contains(&step.operation.as_str()) {
                names.push(&step.operation);
            }
        }
        names
    }

    /// Number of calls that count, if none is skipped.
    pub fn calls(&self) -> u64 {
        self.steps.iter().filter(|step| !step.once).map(|step| u64::from(step.repeat)).sum()
    }

    /// Schema files to read before the journey can run, relative to its file. Built-in schemas are not included.
    pub fn files(&self) -> impl Iterator<Item = &str> {
        self.schemas
            .iter()
            .filter(|schema| schema.text.is_empty() && !OWN_SCHEMAS.contains(&schema.file.as_str()))
            .map(|schema| schema.file.as_str())
    }
}

/// File names of the built-in schemas.
pub const OWN_SCHEMAS: [&str; 4] = ["evernote.thrift", "calculator.thrift", "chess.wsdl", "airline.wsdl"];
