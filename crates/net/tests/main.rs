//! Tests drivers with real sockets and the simulated network against one model.
//!
//! All in one binary, since each binary is linked and run separately. Tests that observe or change
//! the whole process are in other binaries.

mod behaviour;
mod harness;
mod model;
mod sim;
mod unix;
