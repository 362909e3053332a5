//! The memory budget for complete messages, across all connections (`limits.bodies`).

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Bytes per message that the budget does not count, so that small messages are always checked.
pub(crate) const FREE_BYTES: usize = 16 << 10;

pub(crate) struct Budget {
    used_bytes: AtomicUsize,
    peak_bytes: AtomicUsize,
    max_bytes: usize,
}

impl Budget {
    pub(crate) fn new(max_bytes: usize) -> Arc<Self> {
        Arc::new(Self { used_bytes: AtomicUsize::new(0), peak_bytes: AtomicUsize::new(0), max_bytes })
    }

    /// Returns the number of bytes by which use has fallen below its peak since this was last called.
    pub(crate) fn take_fall(&self) -> usize {
        let used = self.used_bytes.load(Ordering::Relaxed);
        self.peak_bytes.swap(used, Ordering::Relaxed).saturating_sub(used)
    }

    pub(crate) fn share(self: &Arc<Self>) -> Share {
        Share { budget: self.clone(), bytes: 0 }
    }
}

/// The part of a budget that one message uses. Dropping a share returns its bytes.
pub(crate) struct Share {
    budget: Arc<Budget>,
    bytes: usize,
}

impl Share {
    /// Resizes the share to `bytes` in total. Returns false and changes nothing if the budget has no room.
    #[must_use]
    pub(crate) fn resize(&mut self, bytes: usize) -> bool {
        let bytes = bytes.saturating_sub(FREE_BYTES);
        if let Some(more) = bytes.checked_sub(self.bytes) {
            let fits = |used: usize| used.checked_add(more).filter(|used| more == 0 || *used <= self.budget.max_bytes);
            let updated = self.budget.used_bytes.fetch_update(Ordering::Relaxed, Ordering::Relaxed, fits);
            let Ok(before) = updated else { return false };
            self.budget.peak_bytes.fetch_max(before + more, Ordering::Relaxed);
        } else {
            self.budget.used_bytes.fetch_sub(self.bytes - bytes, Ordering::Relaxed);
        }
        self.bytes = bytes;
        true
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        self.budget.used_bytes.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_stay_within_the_budget_and_are_returned() {
        let budget = Budget::new(100_000);
        let (mut one, mut two) = (budget.share(), budget.share());
        assert!(one.resize(FREE_BYTES + 60_000) && !two.resize(FREE_BYTES + 40_001) && two.resize(FREE_BYTES + 40_000));
        assert!(budget.share().resize(FREE_BYTES), "small messages are free");
        assert!(one.resize(FREE_BYTES + 10_000) && two.resize(FREE_BYTES + 90_000));
        drop((one, two));
        assert_eq!((budget.take_fall(), budget.take_fall()), (100_000, 0));
        assert_eq!(budget.used_bytes.load(Ordering::Relaxed), 0);
    }
}
