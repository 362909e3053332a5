//! Codecs for the protocols whose messages are checked: [`thrift`], driven by an IDL file; [`soap`], driven by a WSDL;
//! and REST, with [`json`] and [`rest_path_and_query`]. Thrift and SOAP messages are read in place through views. All
//! messages are composed from a [`value::Value`]. No codec uses sockets or a clock.

pub mod built_in_schemas;
pub mod json;
pub mod mistake;
pub mod rest_path_and_query;
pub mod soap;
pub mod thrift;
pub mod value;
