//! Limits the memory of incomplete requests and unsent responses.

use std::sync::atomic::{AtomicUsize, Ordering};

/// Memory for incomplete requests and unsent responses of all threads. A request reserves its announced size first, so
/// a value is received whole or refused at its first bytes.
pub(super) struct InFlight {
    bytes: AtomicUsize,
    max: usize,
}

impl InFlight {
    pub(super) fn new(max: usize) -> InFlight {
        InFlight { bytes: AtomicUsize::new(0), max }
    }

    pub(super) fn is_exhausted(&self) -> bool {
        self.bytes.load(Ordering::Relaxed) >= self.max
    }

    /// Changes a reservation to `bytes`, even beyond the bound, because a finished response must be kept.
    pub(super) fn set(&self, reserved: &mut usize, bytes: usize) {
        if bytes > *reserved {
            self.bytes.fetch_add(bytes - *reserved, Ordering::Relaxed);
        } else if bytes < *reserved {
            self.bytes.fetch_sub(*reserved - bytes, Ordering::Relaxed);
        }
        *reserved = bytes;
    }

    /// Changes a reservation to `bytes` if the bound allows it. Returns whether it does.
    pub(super) fn try_set(&self, reserved: &mut usize, bytes: usize) -> bool {
        let before = *reserved;
        self.set(reserved, bytes);
        let fits = bytes <= before || self.bytes.load(Ordering::Relaxed) <= self.max;
        if !fits {
            self.set(reserved, before);
        }
        fits
    }

    #[cfg(test)]
    pub(super) fn bytes(&self) -> usize {
        self.bytes.load(Ordering::Relaxed)
    }

    #[cfg(test)]
    pub(super) fn max(&self) -> usize {
        self.max
    }
}
