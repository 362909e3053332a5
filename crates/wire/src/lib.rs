//! Codecs between bytes and messages, without sockets or clocks. Each reads one message at a time:
//! [`pingpong`], [`http1`], [`http2`], [`memcached`], [`resp`], [`cache_http`].

mod block_reader;
pub mod cache_http;
pub mod detect_client;
pub mod http1;
pub mod http2;
pub mod memcached;
pub mod number;
pub mod pingpong;
pub mod resp;
