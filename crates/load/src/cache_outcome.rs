//! The outcome of a cache request, and the causes of misses.

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct CacheOutcome {
    pub(crate) class: Class,
    /// Length of the value in bytes; after a miss, the length that a SET would store.
    pub(crate) bytes: u32,
    pub(crate) cause: Cause,
    pub(crate) refused: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Class {
    GetHit,
    GetMiss,
    Set,
    Delete,
    Fill,
    Rewrite,
    /// Not a request of a cache load.
    #[default]
    Plain,
}

/// Why a GET missed; see [`study::record::MissCauses`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Cause {
    Compulsory,
    Invalidation,
    Expiry,
    Refused,
    #[default]
    Capacity,
}

impl Cause {
    pub(crate) fn count_in(self, causes: &mut study::record::MissCauses) -> &mut u64 {
        match self {
            Cause::Compulsory => &mut causes.compulsory,
            Cause::Invalidation => &mut causes.invalidation,
            Cause::Expiry => &mut causes.expiry,
            Cause::Refused => &mut causes.refused,
            Cause::Capacity => &mut causes.capacity,
        }
    }
}
