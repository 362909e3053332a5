//! Journeys: what a user of several operations does, step by step, with what replies say going into later requests.
//!
//! # The file
//!
//! TOML. Texts are templates: `{name}` is what stands behind a name; `{number}` the journey's number, from 0 and different for every journey of a load;
//! `{number*3}` so many times that; any other brace stands for itself.
//!
//! | key | what it is |
//! |---|---|
//! | `name` | the journey's name |
//! | `targets` | names for the services where the journey begins: `{ api = "https://127.0.0.1:8443" }`; `""` where whoever runs it must say |
//! | `schemas` | Thrift IDL or WSDL by name: `evernote.thrift`, `chess.wsdl` of quintain's own, or a file beside this one |
//! | `let` | texts that a journey makes once when it begins; here `{random:8}` is so many of `a-z0-9`, drawn for each journey |
//! | `[[step]]` | one call, in their order |
//! | `step.name` | the operation's name in reports; steps may share one. Else the method's or the operation's name, or the path |
//! | `step.url` | where: a template that comes to `http://host:port/path` or `https:...`, and may be what a reply said |
//! | `step.thrift` | `schema Service.method`: Thrift in the binary protocol, as the body of a POST |
//! | `step.soap` | `schema Operation`: SOAP 1.1 |
//! | `step.method` | REST: `GET` and so on; `GET` where none of the three is there |
//! | `step.body` | REST: the body, a template |
//! | `step.arguments` | Thrift and SOAP: by name. A text that is one template alone has the type of what stands behind the name |
//! | `step.headers` | header fields, their values templates |
//! | `step.take` | names for what the reply says: `{ store = "result[0].noteStoreUrl" }`; REST has `body` where the others have `result` |
//! | `step.expect` | what the reply must say: `{ "result.totalNotes" = 1, "count(result.notes)" = 1 }`, values templates; `status` of REST, else 200 to 299 |
//!
//! A reply that is no reply of its operation, throws, has another status, or lacks what is taken or expected is an error of the call, and ends the
//! journey: what would follow depends on it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub mod path;
mod read;
pub mod template;

pub use read::{TEXT_MAX_BYTES, parse};

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

/// The preset of that name.
pub fn preset(name: &str) -> Option<Journey> {
    let (_, text) = PRESETS.iter().find(|preset| preset.0 == name)?;
    Some(parse(text).expect("a test reads every preset"))
}

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
