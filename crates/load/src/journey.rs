//! Journeys: an engine of its own beside the pipelined one, with a thread for each client.
//!
//! A client of a journey has several servers and learns of some on the way, waits for each reply before it knows its next request, and verifies all of
//! it. That is little like a worker's hot path, which has one address and composes nothing; and a thread that blocks is the plainest way to write it down.
//! What it counts, and when measuring begins and ends, is the same: [`Recorder`](crate::recorder::Recorder),
//! [`PhaseTracker`](crate::phase_tracker::PhaseTracker) and [`Coordinator`](crate::coordinator::Coordinator).
//!
//! - A journey that began before measuring is warm-up to its end, so what is measured are whole journeys.
//! - Latency is from the write of a request to the end of its reply. Connections are opened when an endpoint is first met and kept; opening one, and asking
//!   where an endpoint is to be dialled, is no part of it.
//! - What a journey says follows from seed and number of the journey alone, whichever client makes it.

mod client;
mod connection;
mod dial;
mod engine;
mod escape;
mod program;
mod reply;
#[cfg(test)]
mod tests;
mod values;

pub(crate) use self::engine::run;
pub(crate) use self::program::Program;
