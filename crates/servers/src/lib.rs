//! Reference servers, one event loop for each thread: `pingpong`, `calibrate`, and hostile ones to test generators with.
//!
//! All of them listen in the first thread, which hands new connections to all threads in turn and works itself. What
//! they do with a connection is a [`Handler`].

mod calibrate;
mod hostile;
mod pingpong;
mod pool;

pub use calibrate::{Calibrate, Log, Pauses};
pub use hostile::{Hostile, Kind};
pub use pingpong::Pingpong;
pub use pool::{Handler, Listen, Next, ServeError, Shutdown, serve};
