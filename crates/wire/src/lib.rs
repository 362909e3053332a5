//! Codecs: bytes to messages and back. No socket, no clock.
//!
//! Those of servers that are measured read one request or answer at a time: [`pingpong`], [`http1`], [`memcached`], [`resp`], [`cache_http`]. Those that
//! contracts are checked on are driven by a schema and give views of what lies in a message: [`thrift`] by an IDL file, [`soap`] by a WSDL, [`json`] and
//! [`rest`]. A [`value::Value`] is what these compose messages of.

pub mod cache_http;
pub mod detect;
pub mod http1;
pub mod memcached;
pub mod number;
pub mod pingpong;
pub mod resp;
