//! Codecs: bytes to messages and back. No socket, no clock.

pub mod cache_http;
pub mod detect;
pub mod http1;
pub mod memcached;
pub mod mistake;
pub mod number;
pub mod pingpong;
pub mod resp;
pub mod soap;
pub mod thrift;
pub mod value;
