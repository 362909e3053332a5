//! Table tests: a case has a name, a stream, and its meaning in words, which must hold for any split and `Memo`.

mod compose;
mod describe_stream;
mod properties;
mod requests;
mod responses;
