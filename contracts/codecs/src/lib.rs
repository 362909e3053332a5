//! Codecs of what contracts are checked on: [`thrift`] by an IDL file, [`soap`] by a WSDL, [`json`] and [`rest`]. Each gives views of what lies in
//! a message, and composes messages of a [`value::Value`]. No socket, no clock.

pub mod json;
pub mod mistake;
pub mod rest;
pub mod schemas;
pub mod soap;
pub mod thrift;
pub mod value;
