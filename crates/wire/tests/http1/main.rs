//! HTTP/1.1 by tables. A case is a name, the bytes of a stream, and in words what they mean; every case is read whole, cut in two at every
//! byte, byte by byte, and with a memo that has seen it before, and must mean the same each time.

mod compose;
mod properties;
mod requests;
mod responses;
mod streams;
