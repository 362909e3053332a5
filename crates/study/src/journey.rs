//! Journeys: what a user of several operations does, step by step, with what replies say going into later requests.
//!
//! [`crate::keys::JOURNEY`] has the keys of its file.
//!
//! A reply that is no reply of its operation, throws, has another status, or lacks what is taken or expected is an error of the call, and ends the
//! journey: what would follow depends on it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub mod path;
pub mod template;

/// What a user does, step by step.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Journey {
    /// Its name.
    pub name: String,
    /// Services where it begins: a name and the URL where none else is given; empty: it must be.
    pub targets: Vec<(String, String)>,
    /// Schemas by name.
    pub schemas: Vec<Schema>,
    /// Names and the templates that they stand for, made once for each journey, in this order.
    pub lets: Vec<(String, String)>,
    /// Calls, one at least, in their order.
    pub steps: Vec<Step>,
}

/// A Thrift IDL file or a WSDL.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Schema {
    /// What steps call it.
    pub name: String,
    /// The file as it was named: `evernote.thrift`.
    pub file: String,
    /// Its text; empty for one of quintain's own.
    #[serde(default)]
    pub text: String,
}

/// One call.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Step {
    /// The operation's name in reports.
    pub operation: String,
    /// Where it stands in the file, from 1.
    pub line: u32,
    /// Template of the URL.
    pub url: String,
    /// What is called.
    pub call: Call,
    /// Header fields, values are templates.
    #[serde(default)]
    pub headers: Vec<(String, String)>,
    /// Names for what the reply says, each with its path.
    #[serde(default)]
    pub take: Vec<(String, String)>,
    /// Paths into the reply, each with what must stand there.
    #[serde(default)]
    pub expect: Vec<(String, Argument)>,
}

/// What is called, and how.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "codec", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Call {
    /// An HTTP request as it is written, replies are JSON.
    Rest {
        /// `GET` and so on.
        method: String,
        /// Template of the body; `None`: none.
        #[serde(default)]
        body: Option<String>,
        /// Right statuses; empty: 200 to 299.
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

/// A value that is sent or expected.
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

/// The journeys that quintain brings along, as the benchmark of Whip has them: name and text. Source: the case studies of "Whip: higher-order contracts for
/// modern services" (ICFP 2017).
pub const PRESETS: [(&str, &str); 3] = [
    ("evernote", include_str!("../journeys/evernote.toml")),
    ("chess", include_str!("../journeys/chess.toml")),
    ("twitter", include_str!("../journeys/twitter.toml")),
];

impl Journey {
    /// Names of the operations, each once, in the order of the first step that has it.
    pub fn operations(&self) -> Vec<&str> {
        let mut names = Vec::<&str>::new();
        for step in &self.steps {
            if !names.contains(&step.operation.as_str()) {
                names.push(&step.operation);
            }
        }
        names
    }

    /// Files that are to be read before it can be run, relative to its own: schemas that are not quintain's.
    pub fn files(&self) -> impl Iterator<Item = &str> {
        self.schemas
            .iter()
            .filter(|schema| schema.text.is_empty() && !OWN_SCHEMAS.contains(&schema.file.as_str()))
            .map(|schema| schema.file.as_str())
    }
}

/// Schemas that quintain brings along, by the names of their files.
pub const OWN_SCHEMAS: [&str; 4] = ["evernote.thrift", "calculator.thrift", "chess.wsdl", "airline.wsdl"];
