//! Outcomes of cache operations.

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CacheOutcome {
    pub(crate) class: Class,
    /// Length of the value; for a miss, of the value that a SET would store.
    pub(crate) bytes: u32,
    /// Why the GET missed, for [`Class::GetMiss`].
    pub(crate) cause: Cause,
    /// Whether a SET was not stored.
    pub(crate) refused: bool,
}

impl CacheOutcome {
    /// The outcome of a request that is not a cache operation.
    pub(crate) const NOTHING: CacheOutcome =
        CacheOutcome { class: Class::Plain, bytes: 0, cause: Cause::Capacity, refused: false };
}

/// Operations by type and outcome. Each class has its own latencies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Class {
    GetHit,
    GetMiss,
    Set,
    Delete,
    Fill,
    Rewrite,
    /// Not a cache operation.
    Plain,
}

impl Class {
    pub(crate) const COUNT: usize = 6;

    /// Whether a response caused the request. It is then not an operation of the workload and not
    /// in a schedule.
    #[inline]
    pub(crate) fn is_caused(self) -> bool {
        matches!(self, Class::Fill | Class::Rewrite)
    }
}

/// Why a GET missed; see [`study::record::MissCauses`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cause {
    Compulsory,
    Invalidation,
    Expiry,
    Refused,
    Capacity,
}
