//! Codecs without sockets or clocks: [`pingpong`], [`http1`], [`http2`], [`memcached`], [`resp`], [`cache_http`].

pub mod cache_http;
pub mod decimal;
pub mod detect_cache_protocol;
pub mod http1;
pub mod http2;
mod line_and_block_reader;
pub mod memcached;
pub mod pingpong;
pub mod resp;
