//! Tests drivers with real sockets and the simulated network against one model.
//!
//! These tests share one binary, since each binary is linked and run separately. Tests that observe or change the whole
//! process have their own.

mod behaviour;
mod driver_model;
mod harness;
mod sim;
mod unix_sockets;
