//! Journeys: a user's operations in sequence. Requests can use values from earlier replies. [`crate::keys::JOURNEY`]
//! declares the keys of journeys. A call fails if the reply does not belong to its operation, is an exception, has an
//! invalid status or lacks a needed value. A failed call ends the journey, because later steps depend on it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::group_by_key::distinct;

pub mod condition;
pub(crate) mod parse;
pub mod placeholders;
pub mod reply_path;

/// A user's sequence of operations.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Journey {
    /// Name of the journey in reports.
    pub name: String,
    /// Services that the journey calls, each a name with a default URL. The load must supply the URLs that are empty.
    pub targets: Vec<(String, String)>,
    /// Schemas that steps refer to by name.
    pub schemas: Vec<Schema>,
    /// Names with their templates, filled once per journey in this order.
    pub lets: Vec<(String, String)>,
    /// Calls in order, at least one.
    pub steps: Vec<Step>,
}

/// A Thrift IDL file or a WSDL file.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Schema {
    /// Name by which steps refer to the schema.
    pub name: String,
    /// File name as the journey gives it, such as `evernote.thrift`.
    pub file: String,
    /// Content of the file; empty for a built-in schema.
    #[serde(default)]
    pub text: String,
}

/// One or more calls of an operation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Step {
    /// Name of the operation in reports.
    pub operation: String,
    /// Line of the step in the journey file, from 1.
    pub line: u32,
    /// Template of the URL.
    pub url: String,
    /// The operation to call, with its encoding.
    pub call: Call,
    /// Whether the call is made only in a client's first journey and not counted.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub once: bool,
    /// Distribution of the pause after the previous response ([`crate::time_law::parse`]); empty for no pause.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub think: String,
    /// Number of times the call is made in a row.
    #[serde(default = "crate::one", skip_serializing_if = "is_one")]
    pub repeat: u32,
    /// Condition of each call, as [`condition::parse`] reads it; empty if every call is made.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub when: String,
    /// Header fields, whose values are templates.
    #[serde(default)]
    pub headers: Vec<(String, String)>,
    /// Names for values of the reply, each with the path of its value.
    #[serde(default)]
    pub take: Vec<(String, String)>,
    /// Paths into the reply, each with the value expected there.
    #[serde(default)]
    pub expect: Vec<(String, Argument)>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes it so")]
fn is_one(count: &u32) -> bool {
    *count == 1
}

/// An operation and its encoding.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "codec", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Call {
    /// A plain HTTP request. Its reply must be JSON if the step uses paths into the body.
    Rest {
        /// HTTP method, such as `GET`.
        method: String,
        /// Template of the body; `None` sends no body.
        body: Option<String>,
        /// Valid statuses; empty for 200 to 299.
        #[serde(default)]
        status: Vec<u16>,
    },
    /// A Thrift call in the binary protocol, sent in the body of a POST.
    Thrift {
        /// Name of the Thrift IDL in [`Journey::schemas`].
        schema: String,
        /// Service and method, written `Service.method`.
        method: String,
        /// Arguments by name, as a record.
        arguments: Argument,
    },
    /// A SOAP 1.1 call.
    Soap {
        /// Name of the WSDL in [`Journey::schemas`].
        schema: String,
        /// Name of the operation in the WSDL.
        operation: String,
        /// Arguments by name, as a record.
        arguments: Argument,
    },
}

impl Call {
    /// The root of paths into the reply.
    pub fn reply_root(&self) -> &'static str {
        if matches!(self, Call::Rest { .. }) { "body" } else { "result" }
    }
}

/// A value to send or to expect.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Argument {
    /// True or false.
    Flag(bool),
    /// An integer of 64 bits with a sign.
    Integer(i64),
    /// A number with a fraction.
    Number(f64),
    /// A string, which is a template.
    Text(String),
    /// A list of values.
    List(Vec<Argument>),
    /// A record of fields by name.
    Record(Vec<(String, Argument)>),
}

/// Name and TOML of each built-in journey, from "Whip: higher-order contracts for modern services" (ICFP'17).
pub const PRESETS: [(&str, &str); 3] = [
    ("evernote", include_str!("../journeys/evernote.toml")),
    ("chess", include_str!("../journeys/chess.toml")),
    ("twitter", include_str!("../journeys/twitter.toml")),
];

impl Journey {
    /// Names of the operations, each once, in the order of their first steps.
    pub fn operations(&self) -> Vec<&str> {
        distinct(self.steps.iter().map(|step| step.operation.as_str()))
    }

    /// Number of counted calls per journey if no condition skips a call.
    pub fn calls(&self) -> u64 {
        self.steps.iter().filter(|step| !step.once).map(|step| u64::from(step.repeat)).sum()
    }

    /// Schema files to read before the journey runs, relative to the journey file. Built-in schemas are not included.
    pub fn files(&self) -> impl Iterator<Item = &str> {
        let files = self.schemas.iter().filter(|schema| schema.text.is_empty()).map(|schema| schema.file.as_str());
        files.filter(|file| !OWN_SCHEMAS.contains(file))
    }
}

/// File names of the built-in schemas.
pub const OWN_SCHEMAS: [&str; 4] = ["evernote.thrift", "calculator.thrift", "chess.wsdl", "airline.wsdl"];
