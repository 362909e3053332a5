//! The codecs that contracts are checked on: Thrift by IDL, SOAP by WSDL, REST by templates.

#[path = "../../../fuzz/codecs.rs"]
mod bodies;

mod idl;
mod properties;
mod soap;
mod thrift;
