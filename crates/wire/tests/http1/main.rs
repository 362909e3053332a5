//! Table tests: a case has a name, a stream, and its meaning in words, for any split and with known or unknown heads.

mod compose;
mod describe_stream;
mod properties;
mod requests;
mod responses;
