//! Table tests of HTTP/1.1. A case is a name, the bytes of a stream, and its meaning in words. The
//! meaning must not depend on how the stream is split, nor on a memo that already has the head.

mod compose;
mod describe_stream;
mod properties;
mod requests;
mod responses;
