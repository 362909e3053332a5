//! A queue of items, linked through words 2 and 3 of their blocks.

use crate::arena_allocator::{Memory, NO_BLOCK};

const NEWER: u32 = 2;
const OLDER: u32 = 3;

#[derive(Clone, Copy, Debug)]
pub(crate) struct Queue {
    pub(crate) newest: u32,
    pub(crate) oldest: u32,
    pub(crate) words: u64,
}

impl Queue {
    pub(crate) const EMPTY: Queue = Queue { newest: NO_BLOCK, oldest: NO_BLOCK, words: 0 };

    pub(crate) fn newer(memory: &Memory, block: u32) -> u32 {
        memory.at(block + NEWER)
    }

    /// Links `newer` to the block that is one older. Without a newer block, that block is the newest.
    fn set_older(&mut self, memory: &mut Memory, newer: u32, older: u32) {
        if newer == NO_BLOCK {
            self.newest = older;
        } else {
            memory.set(newer + OLDER, older);
        }
    }

    /// Links `older` to the block that is one newer. Without an older block, that block is the oldest.
    fn set_newer(&mut self, memory: &mut Memory, older: u32, newer: u32) {
        if older == NO_BLOCK {
            self.oldest = newer;
        } else {
            memory.set(older + NEWER, newer);
        }
    }

    pub(crate) fn push(&mut self, memory: &mut Memory, block: u32, words: u32) {
        memory.set(block + NEWER, NO_BLOCK);
        memory.set(block + OLDER, self.newest);
        self.set_newer(memory, self.newest, block);
        self.newest = block;
        self.words += u64::from(words);
    }

    pub(crate) fn remove(&mut self, memory: &mut Memory, block: u32, words: u32) {
        let (newer, older) = (memory.at(block + NEWER), memory.at(block + OLDER));
        self.set_older(memory, newer, older);
        self.set_newer(memory, older, newer);
        self.words -= u64::from(words);
    }

    /// Links the neighbors of a block that has moved to `block`.
    pub(crate) fn moved(&mut self, memory: &mut Memory, block: u32) {
        let (newer, older) = (memory.at(block + NEWER), memory.at(block + OLDER));
        self.set_older(memory, newer, block);
        self.set_newer(memory, older, block);
    }

    pub(crate) fn audit(&self, memory: &Memory) -> Vec<u32> {
        let (mut blocks, mut older, mut block) = (Vec::new(), NO_BLOCK, self.oldest);
        while block != NO_BLOCK {
            assert_eq!(memory.at(block + OLDER), older, "the link of block {block} to the older block");
            blocks.push(block);
            (older, block) = (block, memory.at(block + NEWER));
        }
        assert_eq!(older, self.newest, "the end of a queue");
        blocks
    }
}
