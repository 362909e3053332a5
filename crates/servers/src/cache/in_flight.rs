//! A bound on the memory of large values that are on their way.

use std::sync::atomic::{AtomicUsize, Ordering};

/// Bytes reserved for unfinished requests and unsent answers, over all connections and threads. Requests reserve what
/// they announce before it arrives, so that a value is either received whole or refused at its first bytes.
#[derive(Debug)]
pub(super) struct InFlight {
    bytes: AtomicUsize,
    max: usize,
}

impl InFlight {
    /// A bound of `max` bytes.
    pub(super) fn new(max: usize) -> InFlight {
        InFlight { bytes: AtomicUsize::new(0), max }
    }

    /// Whether nothing more may be reserved.
    #[inline]
    pub(super) fn is_exhausted(&self) -> bool {
        self.bytes.load(Ordering::Relaxed) >= self.max
    }

    /// Changes a reservation to `bytes`, however much is reserved. An answer that has been made must be kept.
    pub(super) fn set(&self, reserved: &mut usize, bytes: usize) {
        if bytes > *reserved {
            self.bytes.fetch_add(bytes - *reserved, Ordering::Relaxed);
        } else if bytes < *reserved {
            self.bytes.fetch_sub(*reserved - bytes, Ordering::Relaxed);
        }
        *reserved = bytes;
    }

    /// Changes a reservation to `bytes` and returns true, or leaves it if the bound would be exceeded.
    pub(super) fn try_set(&self, reserved: &mut usize, bytes: usize) -> bool {
        let more = bytes.saturating_sub(*reserved);
        if more > 0 && self.bytes.fetch_add(more, Ordering::Relaxed) + more > self.max {
            self.bytes.fetch_sub(more, Ordering::Relaxed);
            return false;
        }
        if more > 0 {
            *reserved = bytes;
        } else {
            self.set(reserved, bytes);
        }
        true
    }

    /// Bytes that are reserved.
    #[cfg(test)]
    pub(super) fn bytes(&self) -> usize {
        self.bytes.load(Ordering::Relaxed)
    }

    /// The bound.
    #[cfg(test)]
    pub(super) fn max(&self) -> usize {
        self.max
    }
}
