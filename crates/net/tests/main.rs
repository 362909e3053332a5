//! Tests of drivers with real sockets and of the simulated network, in one binary, because each binary is linked and
//! run separately. Tests that observe or change the whole process have their own binaries.

mod behaviour;
mod driver_model;
mod harness;
mod sim;
mod unix_sockets;
