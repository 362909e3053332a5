//! What a cache did and holds.

/// What a cache did since it was made, and what it holds. The six fields of bytes from `key_bytes` on, except that
/// `fixed_bytes` holds the bookkeeping, add up to the memory of the cache exactly.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Gets that found an item.
    pub hits: u64,
    /// Gets that found none.
    pub misses: u64,
    /// Stores tried, whatever became of them.
    pub stores: u64,
    /// Those after which the item was there; touches and increments that laid it out anew count, too.
    pub stored: u64,
    /// Items deleted by request.
    pub deletes: u64,
    /// Items removed to make room.
    pub evictions: u64,
    /// Of those, the ones removed for where they lay and not by the evictor's choice.
    pub displaced: u64,
    /// Items found expired and removed.
    pub expired: u64,
    /// Stores refused for want of room or for a limit.
    pub refused: u64,
    /// Items moved to join free space.
    pub moved: u64,
    /// Items there are, those included that have expired and were not looked at since.
    pub items: u64,
    /// Bytes of keys.
    pub key_bytes: u64,
    /// Bytes of values.
    pub value_bytes: u64,
    /// Bytes of headers of items and of their rounding to 4 bytes.
    pub header_bytes: u64,
    /// Bytes of the index.
    pub index_bytes: u64,
    /// Bytes of policy state beside the items: sketch, ghosts.
    pub policy_bytes: u64,
    /// Bytes between items that no item has.
    pub free_bytes: u64,
    /// Bytes of the shards' own bookkeeping.
    pub fixed_bytes: u64,
}

impl Stats {
    /// All memory, in bytes.
    pub fn memory_bytes(&self) -> u64 {
        self.key_bytes
            + self.value_bytes
            + self.header_bytes
            + self.index_bytes
            + self.policy_bytes
            + self.free_bytes
            + self.fixed_bytes
    }

    /// Bytes an item takes beyond its key and value: header, rounding, index and policy state; `None` without items. Free space
    /// is not in it, it may be filled yet.
    pub fn overhead_bytes_per_item(&self) -> Option<f64> {
        let overhead = self.header_bytes + self.index_bytes + self.policy_bytes;
        (self.items > 0).then(|| overhead as f64 / self.items as f64)
    }

    /// The sum with another shard's.
    pub(crate) fn plus(&self, other: &Stats) -> Stats {
        Stats {
            hits: self.hits + other.hits,
            misses: self.misses + other.misses,
            stores: self.stores + other.stores,
            stored: self.stored + other.stored,
            deletes: self.deletes + other.deletes,
            evictions: self.evictions + other.evictions,
            displaced: self.displaced + other.displaced,
            expired: self.expired + other.expired,
            refused: self.refused + other.refused,
            moved: self.moved + other.moved,
            items: self.items + other.items,
            key_bytes: self.key_bytes + other.key_bytes,
            value_bytes: self.value_bytes + other.value_bytes,
            header_bytes: self.header_bytes + other.header_bytes,
            index_bytes: self.index_bytes + other.index_bytes,
            policy_bytes: self.policy_bytes + other.policy_bytes,
            free_bytes: self.free_bytes + other.free_bytes,
            fixed_bytes: self.fixed_bytes + other.fixed_bytes,
        }
    }
}
