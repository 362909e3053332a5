//! A shard: its memory, index, policy state and all operations on items.

use rapidhash::v3::{RapidSecrets, rapidhash_v3_seeded};

use crate::arena_allocator::{Memory, NO_BLOCK};
use crate::config_and_errors::{Config, Item, Meta, Mode, Refusal};
use crate::eviction_policy_names::Evictor;
use crate::index::{Index, SLOTS_STEP, Slot, TAG_BITS};
use crate::item_queue::Queue;
use crate::stats::Stats;
use crate::{evicted_key_use_table, s3_fifo_ghosts, use_counter};

// The owner bits in a block's first word hold the length of the key and these flags. The second word is the length of
// the value. Optional parts follow: links (2 words), expiry (1 word of seconds or 2 of milliseconds), flags (1) and
// version (2). Key and value come last.
const KEY_MASK: u32 = 0xffff;
const EXPIRES: u32 = 1 << 16;
const FLAGS: u32 = 1 << 17;
const VERSION: u32 = 1 << 18;
/// Marks an expiry of two words in milliseconds, which is not a whole second below 2^32 s. Implies [`EXPIRES`].
const WIDE: u32 = 1 << 22;
const LAYOUT: u32 = EXPIRES | WIDE | FLAGS | VERSION;
/// Marks an item in the main queue of S3-FIFO.
const MAIN: u32 = 1 << 19;
/// Position of the bits that count uses since the queue last checked the item: up to 3, or 1 for `clock` and `sieve`.
const USES_SHIFT: u32 = 20;
const USES: u32 = 3 << USES_SHIFT;

/// Number of items among which `density` chooses a victim, in adjacent slots of about 10 cache lines.
const SAMPLE: u32 = 64;
/// Maximum number of attempts to draw a taken slot. At least half the slots are taken unless many items were deleted.
const STARTS: u32 = 16;
/// Number of accesses per item after which `density` has halved all uses. Slow fading suits fixed popularity; fast
/// fading suits drift. Hit ratios of the workloads H1, H5 and H6 (one seed) were .853, .777 and .867 with 3, and
/// .8645, .782 and .8555 with 5; H5 and H6 had .7775 and .842 with 7.
const FADE: u64 = 5;
/// Number of slots checked for expired items before each eviction.
const EXPIRY_LOOK: u32 = 8;
/// Divisor of the arena's size. If an allocation would leave at least this share free, `clear_run` makes room for it.
const SLACK_SHARE: u32 = 64;
#[derive(Clone, Copy)]
pub(crate) struct Key<'k> {
    pub(crate) bytes: &'k [u8],
    tag: u32,
}

impl<'k> Key<'k> {
    pub(crate) fn new(bytes: &'k [u8], hash: u64) -> Key<'k> {
        Key { bytes, tag: hash as u32 & ((1 << TAG_BITS) - 1) }
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Leaving {
    Evicted,
    /// Evicted because of the item's location, not by the policy's choice.
    Displaced,
    Expired,
    Deleted,
    /// Removed because the key's new item is about to be stored or was refused. Does not count as a deletion.
    Replaced,
}

/// Policy state that an item keeps when it is stored again.
#[derive(Clone, Copy)]
struct Past {
    uses: u32,
    owner_bits: u32,
}

pub(crate) struct Shard {
    pub(crate) memory: Memory,
    pub(crate) index: Index,
    evictor: Evictor,
    /// Number of words at the start of each used block: header, length of the value and, for policies with queues, links.
    fixed_words: u32,
    secrets: RapidSecrets,
    queues: [Queue; 2],
    hand: u32,
    has_evicted: bool,
    ghost_count: u32,
    fade_debt: u64,
    fade_hand: u32,
    expiry_hand: u32,
    random: u64,
    values_bytes_cap: Option<u64>,
    versions: Option<u64>,
    pub(crate) stats: Stats,
}

impl Shard {
    pub(crate) fn new(
        words: u32,
        config: &Config,
        secrets: RapidSecrets,
        values_bytes_cap: Option<u64>,
        seed: u64,
    ) -> Shard {
        let slots = 2 * SLOTS_STEP;
        let evictor = config.evictor;
        let extra = evictor.words_per_two_slots();
        Shard {
            memory: Memory::new(words, Index::words(slots, extra)),
            index: Index::new(words, slots, extra),
            evictor,
            fixed_words: if evictor.queues() { 4 } else { 2 },
            secrets,
            queues: [Queue::EMPTY; 2],
            hand: NO_BLOCK,
            has_evicted: false,
            ghost_count: 0,
            fade_debt: 0,
            fade_hand: 0,
            expiry_hand: 0,
            random: seed | 1,
            values_bytes_cap,
            versions: config.versions.then_some(0),
            stats: Stats::default(),
        }
    }

    fn header_words(&self, owner_bits: u32) -> u32 {
        self.fixed_words
            + expiry_words(owner_bits)
            + u32::from(owner_bits & FLAGS != 0)
            + if owner_bits & VERSION != 0 { 2 } else { 0 }
    }

    fn words_for(&self, owner_bits: u32, value_bytes: u32) -> u32 {
        self.header_words(owner_bits) + ((owner_bits & KEY_MASK) + value_bytes).div_ceil(4)
    }

    pub(crate) fn block_words(&self, block: u32) -> u32 {
        self.words_for(self.memory.owner_bits(block), self.memory.at(block + 1))
    }

    /// The position of an item's key, in bytes.
    fn key_start(&self, block: u32, owner_bits: u32) -> usize {
        4 * (block + self.header_words(owner_bits)) as usize
    }

    fn key_bytes(&self, block: u32) -> &[u8] {
        let bits = self.memory.owner_bits(block);
        let start = self.key_start(block, bits);
        &bytemuck::cast_slice(&self.memory.words)[start..start + (bits & KEY_MASK) as usize]
    }

    fn value(&self, block: u32) -> &[u8] {
        let bits = self.memory.owner_bits(block);
        let start = self.key_start(block, bits) + (bits & KEY_MASK) as usize;
        &bytemuck::cast_slice(&self.memory.words)[start..start + self.memory.at(block + 1) as usize]
    }

    fn key(&self, block: u32) -> Key<'_> {
        let bytes = self.key_bytes(block);
        Key::new(bytes, rapidhash_v3_seeded(bytes, &self.secrets))
    }

    fn expiry_word(&self, block: u32) -> u32 {
        block + self.fixed_words
    }

    fn expires_ms(&self, block: u32) -> u64 {
        let bits = self.memory.owner_bits(block);
        if bits & EXPIRES == 0 {
            return 0;
        }
        let word = self.expiry_word(block);
        let low = u64::from(self.memory.at(word));
        if bits & WIDE == 0 { low * 1000 } else { low | u64::from(self.memory.at(word + 1)) << 32 }
    }

    fn set_expires_ms(&mut self, block: u32, expires_ms: u64) {
        let word = self.expiry_word(block);
        if self.memory.owner_bits(block) & WIDE == 0 {
            self.memory.set(word, (expires_ms / 1000) as u32);
        } else {
            self.memory.set(word, expires_ms as u32);
            self.memory.set(word + 1, (expires_ms >> 32) as u32);
        }
    }

    fn is_expired(&self, block: u32, now_ms: u64) -> bool {
        let expires_ms = self.expires_ms(block);
        expires_ms != 0 && expires_ms <= now_ms
    }

    fn version(&self, block: u32) -> u64 {
        let bits = self.memory.owner_bits(block);
        if bits & VERSION == 0 {
            return 0;
        }
        let word = block + self.header_words(bits) - 2;
        u64::from(self.memory.at(word)) | u64::from(self.memory.at(word + 1)) << 32
    }

    fn item(&self, block: u32) -> Item<'_> {
        let bits = self.memory.owner_bits(block);
        let flags = if bits & FLAGS == 0 { 0 } else { self.memory.at(self.expiry_word(block) + expiry_words(bits)) };
        let meta = Meta { flags, expires_ms: self.expires_ms(block) };
        Item { value: self.value(block), meta, version: self.version(block) }
    }

    fn find(&self, key: Key<'_>) -> Option<u32> {
        self.index.find(&self.memory, key.tag, |_, block| self.key_bytes(block) == key.bytes)
    }

    fn slot_of(&self, block: u32) -> u32 {
        let found = self.index.find(&self.memory, self.key(block).tag, |_, other| other == block);
        found.expect("every block of the arena has a slot")
    }

    fn find_live(&mut self, key: Key<'_>, now_ms: u64) -> Option<u32> {
        let at = self.find(key)?;
        let slot = self.index.slot(&self.memory, at);
        if slot.expires && self.is_expired(slot.block, now_ms) {
            self.leave(at, Leaving::Expired);
            return None;
        }
        Some(at)
    }

    pub(crate) fn get(&mut self, key: Key<'_>, now_ms: u64) -> Option<Item<'_>> {
        self.fade();
        let Some(at) = self.find_live(key, now_ms) else {
            self.stats.misses += 1;
            if self.evictor == Evictor::Density {
                let random = self.draw();
                let (table, slots) = self.policy_table();
                evicted_key_use_table::count(table, slots, key.tag, random);
            }
            return None;
        };
        self.stats.hits += 1;
        let block = self.used(at);
        Some(self.item(block))
    }

    pub(crate) fn peek(&self, key: Key<'_>, now_ms: u64) -> Option<Item<'_>> {
        let block = self.index.slot(&self.memory, self.find(key)?).block;
        (!self.is_expired(block, now_ms)).then(|| self.item(block))
    }

    pub(crate) fn store(
        &mut self,
        mode: Mode,
        key: Key<'_>,
        value: &[u8],
        meta: Meta,
        now_ms: u64,
        value_bytes_max: usize,
    ) -> Result<u64, Refusal> {
        self.fade();
        self.stats.stores += 1;
        let found = self.find_live(key, now_ms);
        match (mode, found) {
            (Mode::Set, _) | (Mode::Add, None) | (Mode::Replace, Some(_)) => {}
            (Mode::Add, Some(at)) => {
                // A failed add counts as a use, as in memcached.
                self.used(at);
                return Err(Refusal::NotStored);
            }
            (Mode::Replace | Mode::Append | Mode::Prepend, None) => return Err(Refusal::NotStored),
            (Mode::Append | Mode::Prepend, Some(at)) => {
                let item = self.item(self.index.slot(&self.memory, at).block);
                let meta = item.meta;
                let joined = if mode == Mode::Append { [item.value, value] } else { [value, item.value] };
                let bytes = joined[0].len() + joined[1].len();
                if bytes > value_bytes_max {
                    return Err(Refusal::ValueTooLong { bytes, limit: value_bytes_max });
                }
                let joined = joined.concat();
                return self.put(key, &joined, meta, now_ms, Some(at));
            }
            (Mode::Cas(_), _) if self.versions.is_none() => return Err(Refusal::NoVersions),
            (Mode::Cas(_), None) => return Err(Refusal::NotFound),
            (Mode::Cas(asked), Some(at)) => {
                let found = self.version(self.index.slot(&self.memory, at).block);
                if found != asked {
                    return Err(Refusal::Exists { asked, found });
                }
            }
        }
        self.put(key, value, meta, now_ms, found)
    }

    /// Removes the item of a key. Returns whether there was one.
    pub(crate) fn remove(&mut self, key: Key<'_>, now_ms: u64, why: Leaving) -> bool {
        self.find_live(key, now_ms).map(|at| self.leave(at, why)).is_some()
    }

    pub(crate) fn expire(&mut self, key: Key<'_>, expires_ms: u64, now_ms: u64, is_use: bool) -> Result<bool, Refusal> {
        let Some(at) = self.find_live(key, now_ms) else { return Ok(false) };
        let block = if is_use { self.used(at) } else { self.index.slot(&self.memory, at).block };
        let item = self.item(block);
        let meta = Meta { expires_ms, ..item.meta };
        let (has, needs) = (self.memory.owner_bits(block), expiry_bits(expires_ms));
        if has & EXPIRES == needs & EXPIRES && has & WIDE >= needs & WIDE {
            if expires_ms != 0 {
                self.set_expires_ms(block, expires_ms);
            }
            return Ok(true);
        }
        // The expiry changes the length of the block, so the value is copied and stored again.
        let value = item.value.to_vec();
        let version = self.version(block);
        self.put(key, &value, meta, now_ms, Some(at))?;
        if let Some(at) = self.find(key) {
            self.set_version(self.index.slot(&self.memory, at).block, version);
        }
        Ok(true)
    }

    pub(crate) fn update<R>(
        &mut self,
        key: Key<'_>,
        now_ms: u64,
        value_bytes_max: usize,
        change: impl FnOnce(Item<'_>) -> (Option<Vec<u8>>, R),
    ) -> Result<Option<R>, Refusal> {
        let Some(at) = self.find_live(key, now_ms) else { return Ok(None) };
        let block = self.used(at);
        let item = self.item(block);
        let meta = item.meta;
        let (value, answer) = change(item);
        if let Some(value) = value {
            if value.len() > value_bytes_max {
                return Err(Refusal::ValueTooLong { bytes: value.len(), limit: value_bytes_max });
            }
            self.put(key, &value, meta, now_ms, Some(at))?;
        }
        Ok(Some(answer))
    }

    fn set_version(&mut self, block: u32, version: u64) {
        let bits = self.memory.owner_bits(block);
        if bits & VERSION != 0 {
            let word = block + self.header_words(bits) - 2;
            self.memory.set(word, version as u32);
            self.memory.set(word + 1, (version >> 32) as u32);
        }
    }

    pub(crate) fn clear(&mut self) {
        self.index.clear(&mut self.memory);
        self.memory.clear();
        self.queues = [Queue::EMPTY; 2];
        self.hand = NO_BLOCK;
        self.has_evicted = false;
        self.ghost_count = 0;
        self.fade_debt = 0;
        self.stats.key_bytes = 0;
        self.stats.value_bytes = 0;
    }

    fn put(&mut self, key: Key<'_>, value: &[u8], meta: Meta, now_ms: u64, found: Option<u32>) -> Result<u64, Refusal> {
        let mut bits = key.bytes.len() as u32 | expiry_bits(meta.expires_ms);
        bits |= if meta.flags != 0 { FLAGS } else { 0 };
        bits |= if self.versions.is_some() { VERSION } else { 0 };
        let words = self.words_for(bits, value.len() as u32);
        let version = self.versions.as_mut().map_or(0, |last| {
            *last += 1;
            *last
        });

        let mut past = None;
        if let Some(at) = found {
            let block = self.used(at);
            let old = self.memory.owner_bits(block);
            let old_value_bytes = u64::from(self.memory.at(block + 1));
            let grows = (value.len() as u64).saturating_sub(old_value_bytes);
            let fits = self.values_bytes_cap.is_none_or(|cap| self.stats.value_bytes + grows <= cap);
            if fits && self.block_words(block) == words && old & LAYOUT == bits & LAYOUT {
                self.stats.value_bytes = self.stats.value_bytes - old_value_bytes + value.len() as u64;
                self.write(block, bits, key.bytes, value, meta, version);
                self.stats.stored += 1;
                return Ok(version);
            }
            past = Some(Past { uses: self.index.slot(&self.memory, at).uses, owner_bits: old });
            self.leave(at, Leaving::Replaced);
        }
        let full = Refusal::Full(0);
        while self.values_bytes_cap.is_some_and(|cap| self.stats.value_bytes + value.len() as u64 > cap) {
            if !self.evict(now_ms) {
                return Err(full);
            }
        }
        while self.index.is_full() {
            if !self.grow_index() && !self.evict(now_ms) {
                return Err(full);
            }
        }
        let Some(block) = self.reserve(words, now_ms) else { return Err(full) };
        self.memory.set_owner_bits(block, bits);
        self.write(block, bits, key.bytes, value, meta, version);
        let uses = self.enter(block, words, key.tag, past);
        self.stats.stored += 1;
        self.stats.key_bytes += key.bytes.len() as u64;
        self.stats.value_bytes += value.len() as u64;
        let class = size_class(words);
        let slot = Slot { block, uses, tag: key.tag, expires: meta.expires_ms != 0, class };
        self.index.insert(&mut self.memory, slot);
        Ok(version)
    }

    /// Writes an item into its block, except the policy's bits.
    fn write(&mut self, block: u32, bits: u32, key: &[u8], value: &[u8], meta: Meta, version: u64) {
        self.memory.set(block + 1, value.len() as u32);
        if bits & EXPIRES != 0 {
            self.set_expires_ms(block, meta.expires_ms);
        }
        let word = self.expiry_word(block) + expiry_words(bits);
        if bits & FLAGS != 0 {
            self.memory.set(word, meta.flags);
        }
        self.set_version(block, version);
        let word = block + self.header_words(bits);
        let end = word as usize + (key.len() + value.len()).div_ceil(4);
        let bytes: &mut [u8] = bytemuck::cast_slice_mut(&mut self.memory.words[word as usize..end]);
        bytes[..key.len()].copy_from_slice(key);
        bytes[key.len()..key.len() + value.len()].copy_from_slice(value);
    }

    /// Allocates a block of `words` words, evicting items until it fits. `None` if no item can be evicted.
    fn reserve(&mut self, words: u32, now_ms: u64) -> Option<u32> {
        loop {
            if let Some(block) = self.memory.allocate(words) {
                return Some(block);
            }
            if let Some(slots) = self.index.shrunk() {
                self.resize_index(slots);
                let words = Index::words(slots, self.evictor.words_per_two_slots());
                self.memory.extend(self.memory.words.len() as u32 - words - 1);
                continue;
            }
            let free = self.memory.free_words;
            if free >= words
                && let Some(block) = self.join(words)
            {
                return Some(block);
            }
            let is_slack = free >= words + self.memory.arena_words() / SLACK_SHARE;
            if is_slack && self.evictor != Evictor::None && self.clear_run(words) {
                continue;
            }
            if !self.evict(now_ms) {
                return None;
            }
        }
    }

    /// Enlarges one of the largest free blocks to `words` words by moving items, and allocates it. `None` on failure.
    fn join(&mut self, words: u32) -> Option<u32> {
        for choice in 0..4 {
            // The list is queried again, because the previous choice may have moved items into this block.
            let block = self.memory.largest()[choice];
            if block == NO_BLOCK {
                break;
            }
            let mut size = self.memory.take(block);
            // The block is marked as used, so that no freed neighbor joins it.
            self.memory.carve(block, size, size);
            while size < words {
                let above = block + size;
                if above == self.memory.end {
                    break;
                }
                let moving = self.block_words(above);
                let Some(to) = self.memory.allocate(moving) else { break };
                self.relocate(above, to, moving);
                size += moving;
                if !self.memory.is_used(block + size) {
                    size += self.memory.take(block + size);
                }
                self.memory.carve(block, size, size);
            }
            if size >= words {
                self.memory.carve(block, size, words);
                return Some(block);
            }
            self.memory.release(block, size);
        }
        None
    }

    fn relocate(&mut self, from: u32, to: u32, words: u32) {
        let at = self.slot_of(from);
        let bits = self.memory.owner_bits(from);
        self.memory.words.copy_within(from as usize + 1..(from + words) as usize, to as usize + 1);
        self.memory.set_owner_bits(to, bits);
        let slot = self.index.slot(&self.memory, at);
        self.index.set_slot(&mut self.memory, at, Slot { block: to, ..slot });
        if self.evictor.queues() {
            self.queues[usize::from(bits & MAIN != 0)].moved(&mut self.memory, to);
            if self.hand == from {
                self.hand = to;
            }
        }
        self.stats.moved += 1;
    }

    /// Evicts items above one of the largest free blocks until the block has `words` words. Returns false on failure.
    fn clear_run(&mut self, words: u32) -> bool {
        for choice in 0..4 {
            let block = self.memory.largest()[choice];
            while block != NO_BLOCK && self.memory.free_size(block) < words {
                let above = block + self.memory.free_size(block);
                if above == self.memory.end {
                    break;
                }
                let at = self.slot_of(above);
                self.leave(at, Leaving::Displaced);
            }
            if block == NO_BLOCK || self.memory.free_size(block) >= words {
                return block != NO_BLOCK;
            }
        }
        false
    }

    fn grow_index(&mut self) -> bool {
        let slots = self.index.wanted().max(self.index.slots + SLOTS_STEP);
        let words = u64::from(Index::words(slots, self.evictor.words_per_two_slots()));
        let all = self.memory.words.len() as u64;
        if words + 64 > all {
            return false;
        }
        let end = (all - words - 1) as u32;
        if self.evictor != Evictor::None {
            // Evicts the items in the words that the index needs, including an item that is only partly in these words.
            let mut leaving = Vec::new();
            let mut below = (0, NO_BLOCK);
            for at in 0..self.index.slots {
                let Slot { tag, block, .. } = self.index.slot(&self.memory, at);
                if block >= end {
                    leaving.push((tag, block));
                } else if block > below.1 {
                    below = (tag, block);
                }
            }
            if below.1 != NO_BLOCK && below.1 + self.block_words(below.1) > end {
                leaving.push(below);
            }
            for (tag, block) in leaving {
                let at = self.index.find(&self.memory, tag, |_, other| other == block);
                self.leave(at.expect("it had a slot just now"), Leaving::Displaced);
            }
        }
        if !self.memory.shorten(end) {
            return false;
        }
        self.resize_index(slots);
        true
    }

    fn resize_index(&mut self, slots: u32) {
        let (last, live) = (self.ghost_count, self.ghosts_live());
        match self.evictor {
            Evictor::Density => self.index.resize(&mut self.memory, slots, evicted_key_use_table::stretch),
            Evictor::S3Fifo => self.index.resize(&mut self.memory, slots, |old, old_slots, new, slots| {
                s3_fifo_ghosts::stretch(old, old_slots, new, slots, last, live);
            }),
            _ => self.index.resize(&mut self.memory, slots, |_, _, _, _| ()),
        }
        self.fade_hand = 0;
        self.expiry_hand = 0;
    }

    fn policy_table(&mut self) -> (&mut [u32], u32) {
        (&mut self.memory.words[self.index.extra() as usize..], self.index.slots)
    }

    fn used(&mut self, at: u32) -> u32 {
        let slot = self.index.slot(&self.memory, at);
        let block = slot.block;
        let bits = self.memory.owner_bits(block);
        match self.evictor {
            Evictor::None | Evictor::Fifo => {}
            Evictor::Lru => {
                self.queues[0].remove(&mut self.memory, block, 0);
                self.queues[0].push(&mut self.memory, block, 0);
            }
            Evictor::Clock | Evictor::Sieve => self.memory.set_owner_bits(block, bits | 1 << USES_SHIFT),
            Evictor::S3Fifo => {
                if bits & USES != USES {
                    self.memory.set_owner_bits(block, bits + (1 << USES_SHIFT));
                }
            }
            Evictor::Density => {
                let random = self.draw();
                self.index.set_slot(&mut self.memory, at, Slot { uses: use_counter::more(slot.uses, random), ..slot });
            }
        }
        block
    }

    /// Registers a new item with the policy and returns the initial uses of its slot.
    fn enter(&mut self, block: u32, words: u32, tag: u32, past: Option<Past>) -> u32 {
        if self.evictor == Evictor::Density {
            let (table, slots) = self.policy_table();
            let level = past.map_or_else(|| evicted_key_use_table::recall(table, slots, tag), |past| past.uses);
            return level.max(use_counter::ONE);
        }
        if !self.evictor.queues() {
            return 0;
        }
        let kept = past.map_or(0, |past| past.owner_bits & (MAIN | USES));
        let mut bits = self.memory.owner_bits(block) | kept;
        if self.evictor == Evictor::S3Fifo && past.is_none() {
            let (live, last) = (self.ghosts_live(), self.ghost_count);
            let (table, slots) = self.policy_table();
            let is_ghost = s3_fifo_ghosts::remove(table, slots, tag, last, live);
            // Before the first eviction, items beyond the small queue's share go to the main queue.
            let [small, main] = [self.queues[0].words, self.queues[1].words];
            let is_small_full = match self.values_bytes_cap {
                None => small >= u64::from(self.memory.arena_words()) / 10,
                // The limit in words is estimated from the items so far.
                Some(cap) => small > 0 && small * 10 * self.stats.value_bytes >= (small + main) * cap,
            };
            if is_ghost || (!self.has_evicted && is_small_full) {
                bits |= MAIN;
            }
        }
        self.memory.set_owner_bits(block, bits);
        self.queues[usize::from(bits & MAIN != 0)].push(&mut self.memory, block, words);
        0
    }

    fn leave(&mut self, at: u32, why: Leaving) {
        let slot = self.index.slot(&self.memory, at);
        let block = slot.block;
        let bits = self.memory.owner_bits(block);
        let words = self.block_words(block);
        match why {
            Leaving::Evicted => self.stats.evictions += 1,
            Leaving::Displaced => {
                self.stats.evictions += 1;
                self.stats.displaced += 1;
            }
            Leaving::Expired => self.stats.expired += 1,
            Leaving::Deleted => self.stats.deletes += 1,
            Leaving::Replaced => {}
        }
        self.stats.key_bytes -= u64::from(bits & KEY_MASK);
        self.stats.value_bytes -= u64::from(self.memory.at(block + 1));
        if self.evictor.queues() {
            if self.hand == block {
                self.hand = Queue::newer(&self.memory, block);
            }
            self.queues[usize::from(bits & MAIN != 0)].remove(&mut self.memory, block, words);
        }
        if self.evictor == Evictor::Density && matches!(why, Leaving::Evicted | Leaving::Displaced) {
            let random = self.draw();
            let (table, slots) = self.policy_table();
            evicted_key_use_table::remember(table, slots, slot.tag, slot.uses, random);
        }
        self.index.remove(&mut self.memory, at);
        self.memory.release(block, words);
    }

    /// Evicts an expired item in the next [`EXPIRY_LOOK`] slots, or else the policy's choice. Returns false on failure.
    fn evict(&mut self, now_ms: u64) -> bool {
        if self.index.items == 0 {
            return false;
        }
        for _ in 0..EXPIRY_LOOK {
            self.expiry_hand = self.index.after(self.expiry_hand);
            let slot = self.index.slot(&self.memory, self.expiry_hand);
            if slot.expires && slot.block != NO_BLOCK && self.is_expired(slot.block, now_ms) {
                self.leave(self.expiry_hand, Leaving::Expired);
                return true;
            }
        }
        let at = match self.evictor {
            Evictor::None => return false,
            Evictor::Density => self.least_dense(),
            Evictor::Fifo | Evictor::Lru => self.slot_of(self.queues[0].oldest),
            Evictor::Clock => {
                while self.spare(0) {}
                self.slot_of(self.queues[0].oldest)
            }
            Evictor::Sieve => self.sieve(),
            Evictor::S3Fifo => self.s3_fifo(),
        };
        self.leave(at, Leaving::Evicted);
        true
    }

    /// If the oldest item was used, decrements its use count and makes it the newest. Returns whether it was used.
    fn spare(&mut self, queue: usize) -> bool {
        let block = self.queues[queue].oldest;
        let bits = self.memory.owner_bits(block);
        if bits & USES == 0 {
            return false;
        }
        self.memory.set_owner_bits(block, bits - (1 << USES_SHIFT));
        self.queues[queue].remove(&mut self.memory, block, 0);
        self.queues[queue].push(&mut self.memory, block, 0);
        true
    }

    fn sieve(&mut self) -> u32 {
        let mut block = if self.hand == NO_BLOCK { self.queues[0].oldest } else { self.hand };
        loop {
            let bits = self.memory.owner_bits(block);
            if bits & USES == 0 {
                break;
            }
            self.memory.set_owner_bits(block, bits & !USES);
            block = Queue::newer(&self.memory, block);
            if block == NO_BLOCK {
                block = self.queues[0].oldest;
            }
        }
        self.hand = block;
        self.slot_of(block)
    }

    fn s3_fifo(&mut self) -> u32 {
        self.has_evicted = true;
        let [small, main] = [self.queues[0].words, self.queues[1].words];
        if main * 10 <= (main + small) * 9 {
            while self.queues[0].oldest != NO_BLOCK {
                let block = self.queues[0].oldest;
                let bits = self.memory.owner_bits(block);
                let at = self.slot_of(block);
                if (bits & USES) >> USES_SHIFT < 2 {
                    self.ghost_count = self.ghost_count.wrapping_add(1);
                    let (number, live) = (self.ghost_count, self.ghosts_live());
                    let tag = self.index.slot(&self.memory, at).tag;
                    let (table, slots) = self.policy_table();
                    s3_fifo_ghosts::insert(table, slots, tag, number, live);
                    return at;
                }
                let words = self.block_words(block);
                self.queues[0].remove(&mut self.memory, block, words);
                self.memory.set_owner_bits(block, (bits & !USES) | MAIN);
                self.queues[1].push(&mut self.memory, block, words);
            }
        }
        while self.spare(1) {}
        self.slot_of(self.queues[1].oldest)
    }

    fn ghosts_live(&self) -> u32 {
        (u64::from(self.index.items) * 9 / 10) as u32
    }

    /// Draws 64 random bits (Marsaglia's xorshift64).
    fn draw(&mut self) -> u64 {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        self.random
    }

    /// Finds the slot with the fewest uses per byte among [`SAMPLE`] adjacent taken slots. Starting at a random taken
    /// slot gives all items equal weight. Starting at any random slot would evict items after empty stretches more
    /// often. These stretches would grow and the other slots would crowd: 7.4 instead of 2.7 slots from their homes
    /// on average in the test below. A set in the example `speed` would take 7.5 us instead of 1.0.
    fn least_dense(&mut self) -> u32 {
        let mut at = self.draw_slot();
        for _ in 0..STARTS {
            if self.index.slot(&self.memory, at).block != NO_BLOCK {
                break;
            }
            at = self.draw_slot();
        }
        let mut best = (i32::MAX, at);
        let mut wanted = SAMPLE.min(self.index.items);
        while wanted > 0 {
            let slot = self.index.slot(&self.memory, at);
            if slot.block != NO_BLOCK {
                let mut score = use_counter::score(slot.uses) - 16 * slot.class as i32;
                if slot.class == 15 {
                    // The last class has no upper size limit, so the score also depends on the size.
                    score -= 32 * (self.block_words(slot.block) / 1024).max(1).ilog2() as i32;
                }
                if score < best.0 {
                    best = (score, at);
                }
                wanted -= 1;
            }
            at = self.index.after(at);
        }
        best.1
    }

    fn draw_slot(&mut self) -> u32 {
        (((self.draw() >> 32) * u64::from(self.index.slots)) >> 32) as u32
    }

    /// Halves the uses of all slots and evicted keys, one after another, once per [`FADE`] accesses per item.
    fn fade(&mut self) {
        if self.evictor != Evictor::Density {
            return;
        }
        self.fade_debt += u64::from(self.index.slots);
        let period = FADE * u64::from(self.index.items.max(64));
        while self.fade_debt >= period {
            self.fade_debt -= period;
            let hand = self.fade_hand;
            self.fade_hand = self.index.after(hand);
            let slot = self.index.slot(&self.memory, hand);
            if slot.block != NO_BLOCK {
                self.index.set_slot(&mut self.memory, hand, Slot { uses: use_counter::half(slot.uses), ..slot });
            }
            evicted_key_use_table::halve(self.policy_table().0, hand);
        }
    }

    pub(crate) fn add_stats(&self, sum: &mut Stats) {
        let Stats { key_bytes, value_bytes, .. } = self.stats;
        let extra = Index::words(self.index.slots, self.evictor.words_per_two_slots()) - 2 * self.index.slots;
        let used = u64::from(self.memory.arena_words() - self.memory.free_words) * 4;
        let index_bytes = u64::from(self.index.slots) * 8;
        let policy_bytes = u64::from(extra) * 4;
        let free_bytes = u64::from(self.memory.free_words) * 4;
        sum.hits += self.stats.hits;
        sum.misses += self.stats.misses;
        sum.stores += self.stats.stores;
        sum.stored += self.stats.stored;
        sum.deletes += self.stats.deletes;
        sum.evictions += self.stats.evictions;
        sum.displaced += self.stats.displaced;
        sum.expired += self.stats.expired;
        sum.refused += self.stats.refused;
        sum.moved += self.stats.moved;
        sum.items += u64::from(self.index.items);
        sum.key_bytes += key_bytes;
        sum.value_bytes += value_bytes;
        sum.header_bytes += used - key_bytes - value_bytes;
        sum.index_bytes += index_bytes;
        sum.policy_bytes += policy_bytes;
        sum.free_bytes += free_bytes;
        sum.fixed_bytes += self.memory.words.len() as u64 * 4 - used - free_bytes - index_bytes - policy_bytes;
    }

    pub(crate) fn reset_stats(&mut self) {
        let Stats { key_bytes, value_bytes, .. } = self.stats;
        self.stats = Stats { key_bytes, value_bytes, ..Stats::default() };
    }

    pub(crate) fn audit(&self) {
        let used = self.memory.audit(|block| self.block_words(block));
        self.index.audit(&self.memory);
        let (mut key_bytes, mut value_bytes) = (0, 0);
        for &block in &used {
            let key = self.key(block);
            let at = self.find(key).unwrap_or_else(|| panic!("block {block} is not in the index"));
            let slot = self.index.slot(&self.memory, at);
            let described = (block, self.expires_ms(block) != 0, size_class(self.block_words(block)));
            assert_eq!((slot.block, slot.expires, slot.class), described, "the slot of a key, and its block");
            key_bytes += key.bytes.len() as u64;
            value_bytes += u64::from(self.memory.at(block + 1));
        }
        assert_eq!(used.len(), self.index.items as usize, "blocks, and slots");
        let counted = (self.stats.key_bytes, self.stats.value_bytes);
        assert_eq!((key_bytes, value_bytes), counted, "bytes of keys and values, and their counters");
        let cap = self.values_bytes_cap.unwrap_or(u64::MAX);
        assert!(value_bytes <= cap, "{value_bytes} bytes of values exceed the limit of {cap}");
        if self.evictor.queues() {
            let mut count = 0;
            for (number, queue) in self.queues.iter().enumerate() {
                let blocks = queue.audit(&self.memory);
                let words: u64 = blocks.iter().map(|&block| u64::from(self.block_words(block))).sum();
                assert_eq!(words, queue.words, "words in queue {number}, and their counter");
                let is_here = |block: &u32| usize::from(self.memory.owner_bits(*block) & MAIN != 0) == number;
                assert!(blocks.iter().all(is_here), "an item of the other queue in queue {number}");
                count += blocks.len();
            }
            assert_eq!(count, used.len(), "items in queues, and items");
            assert!(self.hand == NO_BLOCK || used.contains(&self.hand), "the hand points to no item");
        }
    }
}

fn expiry_bits(expires_ms: u64) -> u32 {
    match expires_ms {
        0 => 0,
        ms if ms.is_multiple_of(1000) && ms / 1000 <= u64::from(u32::MAX) => EXPIRES,
        _ => EXPIRES | WIDE,
    }
}

fn expiry_words(owner_bits: u32) -> u32 {
    u32::from(owner_bits & EXPIRES != 0) + u32::from(owner_bits & WIDE != 0)
}

/// The class of a block's length, one per half octave: 0 up to 11 words, 15 from 1,536 words (6 KiB) on.
fn size_class(words: u32) -> u32 {
    let log = words.max(8).ilog2();
    (2 * log + (words.max(8) >> (log - 1) & 1) - 6).min(15)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// After 30 evictions per item, slots are as far from their homes as expected by chance. With linear probing and
    /// load `a` the mean is `a / (2 (1 - a))` (Knuth, The Art of Computer Programming, volume 3, section 6.4).
    #[test]
    fn eviction_does_not_crowd_the_index() {
        for evictor in [Evictor::Fifo, Evictor::Density] {
            let config = Config { evictor, ..Config::new(1 << 20) };
            let mut shard = Shard::new(1 << 18, &config, RapidSecrets::seed(1), None, 1);
            let mut number = 0_u64;
            while shard.stats.evictions < 30 * u64::from(shard.index.items.max(1)) {
                let key = number.to_le_bytes();
                let key = Key::new(&key, rapidhash_v3_seeded(&key, &shard.secrets));
                let value = &[0; 400][..100 + 100 * (number % 4) as usize];
                shard.store(Mode::Set, key, value, Meta::default(), 0, 1000).unwrap();
                number += 1;
            }
            let load = f64::from(shard.index.items) / f64::from(shard.index.slots);
            let by_chance = load / (2.0 * (1.0 - load));
            let mean = shard.index.mean_distance(&shard.memory);
            assert!(mean < 1.5 * by_chance, "{evictor}: {mean:.2} at load {load:.3}, by chance {by_chance:.2}");
        }
    }
}
