//! Workloads, and loads on real sockets, in one binary because linking takes longer than most tests.

mod laws;
mod seam;
