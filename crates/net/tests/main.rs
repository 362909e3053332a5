//! Tests drivers with real sockets and the simulated network against one model.
//!
//! One binary, since each is linked and run separately, except for tests that observe or change the whole process.

mod behaviour;
mod driver_model;
mod harness;
mod sim;
mod unix_sockets;
