//! Apache Thrift, driven by an IDL file instead of generated code: binary and compact protocol, framed and unframed.
//! ```
//! use codecs::thrift::{Framing, Header, Limits, Message, MessageKind, Protocol, compose_message, idl};
//! use codecs::value::Value;
//! let text = "service Adder { i32 add(1: i32 a, 2: i32 b) }";
//! let schema = idl::parse("adder.thrift", text, &mut |path| Err(format!("{path} not found"))).unwrap();
//! let add = schema.service("Adder").unwrap().method("add").unwrap();
//! let header = Header { name: "add", kind: MessageKind::Call, sequence: 7, is_strict: true };
//! let arguments = Value::record([("a", Value::Integer(2)), ("b", Value::Integer(3))]);
//! let bytes = compose_message(Protocol::Compact, Framing::Unframed, &header, &schema, add.arguments, &arguments).unwrap();
//! let message = Message::decode(Protocol::Compact, &bytes, &Limits::DEFAULT).unwrap();
//! let arguments = message.arguments(&schema, add);
//! assert_eq!((message.header.sequence, arguments.get("b").and_then(|b| b.as_i64())), (7, Some(3)));
//! ```
//! # How a message is read
//! [`detect`] finds protocol and framing from a connection's first bytes. [`MessageReader`] finds each message's end.
//! [`Message::decode`] checks structure and limits once and allocates nothing. A [`View`] then reads values in place.
//! # Choices that the protocols leave open
//! - **A field whose type differs from the schema's** counts as absent; Apache Thrift's libraries also skip it.
//! - **A repeated field** has its last value, as in those libraries.
//! - **A bool** is 0 or 1; in the compact protocol, an element of a list, set or map may also be 2. Other bytes fail, as
//!   readers disagree.
//! - **Numbers** of the compact protocol may have leading zero groups. Numbers wider than their type are rejected.
//! - **Enums** keep a number that has no member.

mod check_structure;
mod compose;
mod cursor;
pub mod idl;
mod message_and_framing;
mod schema;
mod value_view;

pub use compose::{compose_application_exception, compose_message};
pub use cursor::{Limits, Protocol, WireType};
pub use message_and_framing::{
    Detected, Framing, Header, Message, MessageKind, MessageReader, Outcome, Progress, detect,
};
pub use schema::{Enum, EnumId, Field, Method, Requirement, Schema, Service, Struct, StructId, StructKind, Type};
pub use value_view::View;

pub use crate::mistake::DecodeError;
pub use crate::value::ComposeError;
