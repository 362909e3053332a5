//! Journeys: programs of calls, in which a request needs values of earlier replies. The content of a journey depends only
//! on the seed and its number, not on the client that runs it. Two engines run them:
//!
//! - [`Sessions`], in the workers' loop, if every call goes to one server.
//! - [`run`], with a blocking thread per client, if a client uses several servers or learns of some on the way, because a
//!   worker has one address. A journey that started before measuring is then warm-up to its end. Connections are opened
//!   on first use of an endpoint and kept; connecting and resolving are not part of the latency. Counting and the phases
//!   of a load are shared: [`Recorder`](crate::recorder::Recorder), [`PhaseTracker`](crate::phase_tracker::PhaseTracker)
//!   and [`Coordinator`](crate::coordinator::Coordinator).

mod client;
mod connection;
mod cookies;
mod engine;
mod program;
mod reply;
mod resolver;
mod sessions;
#[cfg(test)]
mod tests;
mod values;

pub(crate) use self::engine::run;
pub(crate) use self::program::Program;
pub(crate) use self::sessions::{MESSAGE_BYTES_MAX, Plan, Sessions};
