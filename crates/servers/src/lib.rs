//! Reference servers with one event loop per thread. A [`Handler`] serves the connections of a thread.

mod cache;
mod connections;
mod delay_queue;
mod event_loops;
mod hostile;
mod hostile_http2;
mod http;
mod known_delays;
mod pingpong;
mod response_head;
mod tls;

pub use cache::{CacheLimits, CacheProtocol, CacheServer, CacheShared};
pub use event_loops::{
    Handler, Listen, ServeError, Shutdown, serve, serve_cache, serve_calibrate, serve_hostile, serve_http, serve_https,
    serve_pingpong,
};
pub use hostile::{Hostile, Kind};
pub use hostile_http2::Http2Fault;
pub use http::{Http, HttpLimits};
pub use known_delays::{Calibrate, Pauses};
pub use pingpong::Pingpong;
pub use tls::{Tls, http_protocols};
