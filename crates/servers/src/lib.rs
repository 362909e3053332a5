//! Reference servers, one event loop for each thread: `pingpong`, `calibrate`, `http`, `cache`, and hostile ones to test
//! generators with.
//!
//! All of them listen in the first thread, which hands each new connection to the thread that has the fewest and works
//! itself. What they do with a connection is a [`Handler`].

mod cache;
mod calibrate;
mod hostile;
mod http;
mod pingpong;
mod pool;
mod response_head;
mod timers;

pub use cache::{CacheLimits, CacheProtocol, CacheServer, CacheShared};
pub use calibrate::{Calibrate, Log, Pauses};
pub use hostile::{Hostile, Kind};
pub use http::{Http, HttpLimits};
pub use pingpong::Pingpong;
pub use pool::{Handler, Listen, Next, ServeError, Shutdown, serve};
