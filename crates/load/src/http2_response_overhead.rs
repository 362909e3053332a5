//! Overhead of HTTP/2 responses in addition to their bodies.

/// The overhead of one response; ordered protocols have none.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct StreamFacts {
    /// Size of the response's encoded heads and trailers, bytes.
    pub(crate) header_bytes: u64,
    /// Number of bytes of other responses that arrived between the request and the first byte of this response.
    pub(crate) bytes_ahead: u64,
    /// Number of gRPC messages in the response.
    pub(crate) messages: u64,
    /// Whether the body of the request waited for flow-control credit.
    pub(crate) has_stalled: bool,
}
