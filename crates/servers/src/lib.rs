//! Reference servers with one event loop per thread. The first thread accepts and hands each connection to the thread
//! with the fewest, which may be itself. A [`Handler`] serves the connections.

mod cache;
mod calibrate;
mod connections;
mod delay_queue;
mod hostile;
mod http;
mod pingpong;
mod pool;
mod response_head;
mod timers;

pub use cache::{CacheLimits, CacheProtocol, CacheServer, CacheShared};
pub use calibrate::{Calibrate, Pauses};
pub use hostile::{Hostile, Kind};
pub use http::{Http, HttpLimits};
pub use pingpong::Pingpong;
pub use pool::{
    Handler, Listen, Next, ServeError, Shutdown, serve, serve_cache, serve_calibrate, serve_hostile, serve_http,
    serve_pingpong,
};
