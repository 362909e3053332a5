//! The codecs that contracts are checked on: Thrift by IDL, SOAP by WSDL, REST by templates.

mod idl;
mod soap;
mod thrift;
