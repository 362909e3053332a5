//! Tests of servers on real sockets, in one binary because linking takes longer than most tests.

mod cache_linearizability;
mod http;
