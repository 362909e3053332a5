//! What an operation on a cache came to.

/// What an operation on a cache came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CacheOutcome {
    pub(crate) class: Class,
    /// Of the value: of a miss, of the one that a SET would have had.
    pub(crate) bytes: u32,
    /// Of a miss.
    pub(crate) cause: Cause,
    /// A SET that was not stored.
    pub(crate) refused: bool,
}

impl CacheOutcome {
    /// No operation on a cache.
    pub(crate) const NOTHING: CacheOutcome =
        CacheOutcome { class: Class::Plain, bytes: 0, cause: Cause::Capacity, refused: false };
}

/// Operations by what they are and come to, each with latencies of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Class {
    GetHit,
    GetMiss,
    Set,
    Delete,
    Fill,
    Rewrite,
    /// None of a cache.
    Plain,
}

impl Class {
    /// Classes of caches.
    pub(crate) const COUNT: usize = 6;

    /// Whether an answer caused it: it is no operation of the workload, and in no timetable.
    #[inline]
    pub(crate) fn is_caused(self) -> bool {
        matches!(self, Class::Fill | Class::Rewrite)
    }
}

/// Why a GET missed; [`study::record::MissCauses`] says what each means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cause {
    Compulsory,
    Invalidation,
    Expiry,
    Refused,
    Capacity,
}
