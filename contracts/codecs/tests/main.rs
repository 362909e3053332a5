//! Tests of the codecs: Thrift by IDL, SOAP by WSDL, and the assertions of the fuzz targets.

#[path = "../../../fuzz/codecs.rs"]
mod assertions;

mod idl;
mod properties;
mod soap;
mod thrift;
