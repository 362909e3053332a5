//! Drivers of real sockets and of the simulated network, held to one model.
//!
//! One binary: each more would be linked, and run, on its own. Those apart watch or change what is a whole process's.

mod behaviour;
mod harness;
mod model;
mod sim;
mod unix;
