//! A queue of items, linked through words 2 and 3 of their blocks.

use crate::memory::{Memory, NOBODY};

const NEWER: u32 = 2;
const OLDER: u32 = 3;

#[derive(Clone, Copy, Debug)]
pub(crate) struct Queue {
    pub(crate) newest: u32,
    pub(crate) oldest: u32,
    pub(crate) words: u64,
}

impl Queue {
    pub(crate) const EMPTY: Queue = Queue { newest: NOBODY, oldest: NOBODY, words: 0 };

    /// The next block towards the newest.
    pub(crate) fn newer(memory: &Memory, block: u32) -> u32 {
        memory.at(block + NEWER)
    }

    /// Inserts a block of `words` as the newest.
    pub(crate) fn push(&mut self, memory: &mut Memory, block: u32, words: u32) {
        memory.set(block + NEWER, NOBODY);
        memory.set(block + OLDER, self.newest);
        if self.newest != NOBODY {
            memory.set(self.newest + NEWER, block);
        } else {
            self.oldest = block;
        }
        self.newest = block;
        self.words += u64::from(words);
    }

    pub(crate) fn remove(&mut self, memory: &mut Memory, block: u32, words: u32) {
        let (newer, older) = (memory.at(block + NEWER), memory.at(block + OLDER));
        if newer != NOBODY {
            memory.set(newer + OLDER, older);
        } else {
            self.newest = older;
        }
        if older != NOBODY {
            memory.set(older + NEWER, newer);
        } else {
            self.oldest = newer;
        }
        self.words -= u64::from(words);
    }

    pub(crate) fn moved(&mut self, memory: &mut Memory, to: u32, from: u32) {
        let (newer, older) = (memory.at(to + NEWER), memory.at(to + OLDER));
        if newer != NOBODY {
            memory.set(newer + OLDER, to);
        }
        if older != NOBODY {
            memory.set(older + NEWER, to);
        }
        if self.newest == from {
            self.newest = to;
        }
        if self.oldest == from {
            self.oldest = to;
        }
    }

    /// Checks the links and returns all blocks, oldest first.
    pub(crate) fn audit(&self, memory: &Memory) -> Result<Vec<u32>, String> {
        let (mut blocks, mut older, mut block) = (Vec::new(), NOBODY, self.oldest);
        while block != NOBODY {
            if memory.at(block + OLDER) != older {
                return Err(format!("block {block} of a queue does not link to the older block"));
            }
            blocks.push(block);
            (older, block) = (block, memory.at(block + NEWER));
        }
        if older != self.newest {
            return Err("a queue does not end at its newest".to_owned());
        }
        Ok(blocks)
    }
}
