//! Codecs: bytes to messages and back. No socket, no clock.

pub mod http1;
pub mod memcached;
mod number;
pub mod pingpong;
