//! Journeys have their own engine, with one thread per client. A client uses several servers and learns of some on the
//! way. It needs each reply to compose its next request and verifies the whole reply. A worker's hot path has one
//! address and composes nothing, so little could be shared, and blocking threads are simplest. Counting and the phases
//! of a load are shared: [`Recorder`](crate::recorder::Recorder), [`PhaseTracker`](crate::phase_tracker::PhaseTracker)
//! and [`Coordinator`](crate::coordinator::Coordinator).
//!
//! - A journey that started before measuring is warm-up to its end, so only whole journeys are measured.
//! - Latency runs from the write of a request to the end of its reply. Connections are opened on first use of an
//!   endpoint and kept. Connecting and resolving an endpoint are not part of the latency.
//! - The content of a journey depends only on the seed and its number, not on the client that runs it.

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
pub(crate) use self::sessions::{Plan, Sessions};
