/// Counts of operations since the last [`crate::Cache::reset_stats`], and its current memory. The six byte counts
/// from `key_bytes` and `fixed_bytes` for the bookkeeping add up exactly to its memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Gets that hit.
    pub hits: u64,
    /// Gets that missed.
    pub misses: u64,
    /// Attempted stores.
    pub stores: u64,
    /// Successful stores, including touches and increments that rewrote an item.
    pub stored: u64,
    /// Items deleted by request.
    pub deletes: u64,
    /// Items removed to make room.
    pub evictions: u64,
    /// Evictions due to an item's location, not the policy's choice.
    pub displaced: u64,
    /// Items found expired and removed.
    pub expired: u64,
    /// Stores refused for lack of room or a limit.
    pub refused: u64,
    /// Items moved to coalesce free space.
    pub moved: u64,
    /// Current items, including expired ones not yet found.
    pub items: u64,
    /// Bytes of keys.
    pub key_bytes: u64,
    /// Bytes of values.
    pub value_bytes: u64,
    /// Bytes of item headers and of rounding to 4 bytes.
    pub header_bytes: u64,
    /// Bytes of the index.
    pub index_bytes: u64,
    /// Bytes of policy state outside of items: sketch, ghosts.
    pub policy_bytes: u64,
    /// Free bytes between items.
    pub free_bytes: u64,
    /// Bytes of the shards' bookkeeping.
    pub fixed_bytes: u64,
}

impl Stats {
    /// All memory, in bytes.
    pub fn memory_bytes(&self) -> u64 {
        self.item_bytes() + self.free_bytes + self.fixed_bytes
    }

    /// Memory for items: keys, values, headers, index and policy state, in bytes.
    pub fn item_bytes(&self) -> u64 {
        self.key_bytes + self.value_bytes + self.header_bytes + self.index_bytes + self.policy_bytes
    }

    /// Bytes per item besides key and value: header, rounding, index and policy state, but not free space. `None`
    /// without items.
    pub fn overhead_bytes_per_item(&self) -> Option<f64> {
        let overhead = self.header_bytes + self.index_bytes + self.policy_bytes;
        (self.items > 0).then(|| overhead as f64 / self.items as f64)
    }
}
