//! Apache Thrift without generated code: an IDL file drives decoders and encoders. Binary and compact protocol, framed and unframed.
//!
//! ```
//! use codecs::thrift::{Framing, Header, Limits, Message, MessageKind, Protocol, compose_message, idl};
//! use codecs::value::Value;
//!
//! let text = "service Adder { i32 add(1: i32 a, 2: i32 b) }";
//! let schema = idl::parse("adder.thrift", text, &mut |path| Err(format!("{path} is not to be had"))).unwrap();
//! let add = schema.service("Adder").unwrap().method("add").unwrap();
//!
//! let mut bytes = Vec::new();
//! let header = Header { name: "add", kind: MessageKind::Call, sequence: 7, is_strict: true };
//! let arguments = Value::record([("a", Value::Integer(2)), ("b", Value::Integer(3))]);
//! compose_message(&mut bytes, Protocol::Compact, Framing::Unframed, &header, &schema, add.arguments, &arguments).unwrap();
//!
//! let message = Message::decode(Protocol::Compact, &bytes, &Limits::DEFAULT).unwrap();
//! let arguments = message.arguments(&schema, add);
//! assert_eq!((message.header.sequence, arguments.get("b").and_then(|b| b.as_i64())), (7, Some(3)));
//! ```
//!
//! # How a message is read
//!
//! [`detect`] tells protocol and framing from a connection's first bytes. [`MessageReader`] says where each message ends. [`Message::decode`] walks
//! through its structure once, with every limit, and allocates nothing. A [`View`] then gets fields and elements where they lie: what nobody asks
//! for is skipped, and what the schema does not know is no error.
//!
//! # Where the protocols leave a choice
//!
//! - **A field whose type is not the schema's** is as absent as one that is missing: the libraries of Apache Thrift skip it, too.
//! - **A field that is there twice** has its last value, as for them.
//! - **A bool** is 0 or 1, of the compact protocol's elements 1, 2 or 0. Readers differ on other bytes, so they are refused.
//! - **Numbers** of the compact protocol may have leading zero groups; those wider than their type are refused.
//! - **Enums** whose number has no member keep the number.

mod compose;
mod cursor;
mod error;
pub mod idl;
mod message;
mod schema;
mod view;
mod walk;

pub use compose::{ComposeError, compose_application_exception, compose_message};
pub use cursor::{Protocol, WireType};
pub use error::{DecodeError, Fault, Limits};
pub use message::{
    ApplicationException, Detected, Framing, Header, Message, MessageKind, MessageReader, Outcome, Progress, detect,
};
pub use schema::{
    Constant, Enum, EnumId, Field, Method, Requirement, Schema, Service, Struct, StructId, StructKind, Type,
};
pub use view::View;
