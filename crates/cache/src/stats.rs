//! Counts of operations and the memory of a cache.

/// Counts of a cache's operations since the last [`crate::Cache::reset_stats`], and its current memory. The seven
/// byte counts from `key_bytes` to `fixed_bytes` add up exactly to that memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Gets that found an item.
    pub hits: u64,
    /// Gets that found no item.
    pub misses: u64,
    /// Attempted stores, whether successful or not.
    pub stores: u64,
    /// Successful stores, including touches and increments that rewrote an item.
    pub stored: u64,
    /// Items deleted by request.
    pub deletes: u64,
    /// Items removed to make room, including displaced ones.
    pub evictions: u64,
    /// Evictions because of an item's location, not by the policy's choice.
    pub displaced: u64,
    /// Items that were found expired and removed.
    pub expired: u64,
    /// Stores refused for lack of room or because of a limit.
    pub refused: u64,
    /// Items moved to coalesce free space.
    pub moved: u64,
    /// Current items, including expired ones not yet found.
    pub items: u64,
    /// Bytes of the keys of all items.
    pub key_bytes: u64,
    /// Bytes of the values of all items.
    pub value_bytes: u64,
    /// Bytes of item headers and of rounding to 4 bytes.
    pub header_bytes: u64,
    /// Bytes of the index, 8 per slot.
    pub index_bytes: u64,
    /// Bytes of policy state outside of items, such as a sketch or ghosts.
    pub policy_bytes: u64,
    /// Free bytes between items.
    pub free_bytes: u64,
    /// Bytes of the shards' bookkeeping, which is the rest of the memory.
    pub fixed_bytes: u64,
}

impl Stats {
    /// All memory of the cache in bytes, including free memory and bookkeeping.
    pub fn memory_bytes(&self) -> u64 {
        self.item_bytes() + self.free_bytes + self.fixed_bytes
    }

    /// Memory for items in bytes: keys, values, headers, index and policy state.
    pub fn item_bytes(&self) -> u64 {
        self.key_bytes + self.value_bytes + self.header_bytes + self.index_bytes + self.policy_bytes
    }

    /// Bytes per item for header, rounding, index and policy state, without free space. `None` if there are no items.
    pub fn overhead_bytes_per_item(&self) -> Option<f64> {
        let overhead = self.header_bytes + self.index_bytes + self.policy_bytes;
        (self.items > 0).then(|| overhead as f64 / self.items as f64)
    }
}
