//! The binary: flags, messages, exit codes; the verbs in a row.
fn main() {}
