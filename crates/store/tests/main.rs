//! Tests of stores and run files, in one binary because linking takes longer than most tests.

mod run_file;
mod store;
