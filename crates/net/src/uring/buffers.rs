//! The buffers that the kernel receives into: one pool for all connections, handed over and back through memory that
//! both sides see. Source: `io_uring_register_buf_ring(3)`.

use std::ffi::c_void;
use std::io;
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicU16, Ordering};

use io_uring::types::BufRingEntry;
use rustix::mm::{MapFlags, ProtFlags};

/// The pool. Each buffer that was handed over is either the kernel's or, between its completion and [`Buffers::give_back`], ours.
#[derive(Debug)]
pub(super) struct Buffers {
    /// `count` entries of the ring; its tail hides in the first.
    ring: Mapping,
    /// `count` times `size` bytes.
    bytes: Mapping,
    count: u16,
    size: usize,
    /// How many of them the kernel has been told of, the first ones. The others take no memory.
    handed_over: u16,
    tail: u16,
}

impl Buffers {
    /// The most that the kernel takes.
    pub(super) const COUNT_MAX: u16 = 1 << 15;

    /// A pool of up to `count` buffers, a power of two, of `size` bytes each, none of which is the kernel's yet.
    pub(super) fn new(count: u16, size: usize) -> io::Result<Self> {
        assert!(count.is_power_of_two() && count <= Self::COUNT_MAX, "the kernel rejects a ring of {count}");
        let ring = Mapping::new(size_of::<BufRingEntry>() * usize::from(count))?;
        let bytes = Mapping::new(size * usize::from(count))?;
        Ok(Self { ring, bytes, count, size, handed_over: 0, tail: 0 })
    }

    /// Hands buffers over until the kernel has `wanted` or all of them: it goes round those it has, and each becomes resident.
    pub(super) fn hand_over(&mut self, wanted: usize) {
        while self.handed_over < self.count && usize::from(self.handed_over) < wanted {
            self.handed_over += 1;
            self.give_back(self.handed_over - 1);
        }
    }

    /// Where the ring lies, for the kernel.
    pub(super) fn address(&self) -> u64 {
        self.ring.start.as_ptr() as u64
    }

    pub(super) fn count(&self) -> u16 {
        self.count
    }

    /// The `len` bytes that the kernel put into `buffer`.
    #[inline]
    pub(super) fn get(&self, buffer: u16, len: usize) -> &[u8] {
        assert!(buffer < self.count && len <= self.size, "the kernel named a buffer that does not exist");
        // SAFETY: the bytes lie within the mapping, which lives as long as `self`. They were zeroed by the kernel at
        // first. The kernel does not write to a buffer between its completion and `give_back`, which needs `&mut self`
        // and so outlasts this borrow.
        unsafe {
            let start = self.bytes.start.as_ptr().cast::<u8>().add(usize::from(buffer) * self.size);
            std::slice::from_raw_parts(start, len)
        }
    }

    /// Makes `buffer` the kernel's again.
    #[inline]
    pub(super) fn give_back(&mut self, buffer: u16) {
        assert!(buffer < self.handed_over, "the kernel named a buffer it was not given");
        let base = self.ring.start.as_ptr().cast::<BufRingEntry>();
        // SAFETY: the entry lies within the mapping and, being at the tail, is ours to write until the tail moves on.
        // Only its three fields are written: the fourth is the tail where the entry is the first. The address is
        // that of a buffer in a mapping that outlives the ring.
        unsafe {
            let entry = &mut *base.add(usize::from(self.tail & (self.count - 1)));
            entry.set_addr(self.bytes.start.as_ptr().cast::<u8>().add(usize::from(buffer) * self.size) as u64);
            entry.set_len(self.size as u32);
            entry.set_bid(buffer);
        }
        self.tail = self.tail.wrapping_add(1);
        // SAFETY: the tail lies within the first entry, aligned to two bytes, and is written by nobody else. Release
        // lets the kernel see the entry before the tail that covers it.
        unsafe { AtomicU16::from_ptr(BufRingEntry::tail(base).cast_mut()) }.store(self.tail, Ordering::Release);
    }
}

/// Zeroed memory of its own pages.
#[derive(Debug)]
struct Mapping {
    start: NonNull<c_void>,
    len: usize,
}

impl Mapping {
    fn new(len: usize) -> io::Result<Self> {
        // SAFETY: a new mapping at an address that the kernel chooses touches no other memory.
        let start = unsafe {
            rustix::mm::mmap_anonymous(ptr::null_mut(), len, ProtFlags::READ | ProtFlags::WRITE, MapFlags::PRIVATE)?
        };
        let start = NonNull::new(start).expect("the kernel never maps address zero unless asked to");
        Ok(Self { start, len })
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: the mapping is ours alone; whoever drops it has seen to it that the kernel uses it no more.
        let _ = unsafe { rustix::mm::munmap(self.start.as_ptr(), self.len) };
    }
}
