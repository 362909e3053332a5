/// Overhead of one response of an unordered protocol.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct StreamFacts {
    /// Size of its encoded heads and trailers.
    pub(crate) header_bytes: u64,
    /// Bytes of other responses between the request and the first byte of this one.
    pub(crate) bytes_ahead: u64,
    /// Whether the request's body waited for credit.
    pub(crate) has_stalled: bool,
}
