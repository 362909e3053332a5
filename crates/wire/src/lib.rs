//! Codecs: bytes to messages and back. No socket, no clock.

pub mod pingpong;
