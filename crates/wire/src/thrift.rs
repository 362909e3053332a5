//! Apache Thrift without generated code: an IDL file drives decoders and encoders.

pub mod idl;
mod schema;

pub use schema::{
    Annotation, Constant, Enum, EnumId, Field, Method, Requirement, Schema, Service, Struct, StructId, StructKind, Type,
};
