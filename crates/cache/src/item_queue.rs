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

    pub(crate) fn push(&mut self, memory: &mut Memory, block: u32, words: u32) {
        memory.set(block + NEWER, NO_BLOCK);
        memory.set(block + OLDER, self.newest);
        if self.newest != NO_BLOCK {
            memory.set(self.newest + NEWER, block);
        } else {
            self.oldest = block;
        }
        self.newest = block;
        self.words += u64::from(words);
    }

    pub(crate) fn remove(&mut self, memory: &mut Memory, block: u32, words: u32) {
        let (newer, older) = (memory.at(block + NEWER), memory.at(block + OLDER));
        if newer != NO_BLOCK {
            memory.set(newer + OLDER, older);
        } else {
            self.newest = older;
        }
        if older != NO_BLOCK {
            memory.set(older + NEWER, newer);
        } else {
            self.oldest = newer;
        }
        self.words -= u64::from(words);
    }

    pub(crate) fn moved(&mut self, memory: &mut Memory, to: u32, from: u32) {
        let (newer, older) = (memory.at(to + NEWER), memory.at(to + OLDER));
        if newer != NO_BLOCK {
            memory.set(newer + OLDER, to);
        }
        if older != NO_BLOCK {
            memory.set(older + NEWER, to);
        }
        if self.newest == from {
            self.newest = to;
        }
        if self.oldest == from {
            self.oldest = to;
        }
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
