//! Codecs for the protocols that contracts are checked on: [`thrift`] by an IDL file, [`soap`] by a WSDL, [`json`] and
//! [`rest`]. Each codec reads a message through views and composes one from a [`value::Value`], without sockets or
//! clocks.

pub mod built_in_schemas;
pub mod json;
pub mod mistake;
pub mod rest_path_and_query;
pub mod soap;
pub mod thrift;
pub mod value;
