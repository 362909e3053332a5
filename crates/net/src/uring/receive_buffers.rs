//! Receive buffers: one pool for all connections, shared with the kernel. Source: `io_uring_register_buf_ring(3)`.

use std::ffi::c_void;
use std::io;
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicU16, Ordering};

use io_uring::types::BufRingEntry;
use rustix::mm::{MapFlags, ProtFlags};

/// Receive buffers of all connections. The kernel owns each buffer handed over, except from completion to `give_back`.
pub(super) struct Buffers {
    /// Memory of the ring, whose tail is stored in its first entry.
    ring: Mapping,
    bytes: Mapping,
    pub(super) count: u16,
    size: usize,
    /// Number of buffers handed to the kernel so far. The remaining buffers use no memory.
    handed_over: u16,
    tail: u16,
}

impl Buffers {
    /// Maximum number of buffers that the kernel accepts.
    pub(super) const COUNT_MAX: u16 = 1 << 15;

    /// Creates `count` buffers of `size` bytes; `count` must be a power of two. None is handed to the kernel yet.
    pub(super) fn new(count: u16, size: usize) -> io::Result<Self> {
        assert!(count.is_power_of_two() && count <= Self::COUNT_MAX, "the kernel rejects a ring of {count}");
        let ring = Mapping::new(size_of::<BufRingEntry>() * usize::from(count))?;
        let bytes = Mapping::new(size * usize::from(count))?;
        Ok(Self { ring, bytes, count, size, handed_over: 0, tail: 0 })
    }

    /// Hands buffers to the kernel until it has `wanted` of them. It uses them in turn, so all become resident.
    pub(super) fn hand_over(&mut self, wanted: usize) {
        while self.handed_over < self.count && usize::from(self.handed_over) < wanted {
            self.handed_over += 1;
            self.give_back(self.handed_over - 1);
        }
    }

    pub(super) fn address(&self) -> u64 {
        self.ring.start.as_ptr() as u64
    }

    pub(super) fn get(&self, buffer: u16, len: usize) -> &[u8] {
        assert!(buffer < self.count && len <= self.size, "the kernel named a buffer that does not exist");
        // SAFETY: the bytes are in the mapping, which lives as long as `self`. The kernel zeroed them at first, and
        // does not write to a buffer between its completion and `give_back`, whose `&mut self` excludes this borrow.
        unsafe {
            let start = self.bytes.start.as_ptr().cast::<u8>().add(usize::from(buffer) * self.size);
            std::slice::from_raw_parts(start, len)
        }
    }

    pub(super) fn give_back(&mut self, buffer: u16) {
        assert!(buffer < self.handed_over, "the kernel named a buffer it was not given");
        let base = self.ring.start.as_ptr().cast::<BufRingEntry>();
        // SAFETY: the entry is within the mapping. It is at the tail, so it belongs to this process until the tail
        // advances. Only its three fields are written, since the fourth holds the tail in the first entry. The
        // address points to a buffer in a mapping that outlives the ring.
        unsafe {
            let entry = &mut *base.add(usize::from(self.tail & (self.count - 1)));
            entry.set_addr(self.bytes.start.as_ptr().cast::<u8>().add(usize::from(buffer) * self.size) as u64);
            entry.set_len(self.size as u32);
            entry.set_bid(buffer);
        }
        self.tail = self.tail.wrapping_add(1);
        // SAFETY: the tail is within the first entry, aligned to two bytes, and has no other writer. Release ordering
        // makes the entry visible to the kernel before the tail that covers it.
        unsafe { AtomicU16::from_ptr(BufRingEntry::tail(base).cast_mut()) }.store(self.tail, Ordering::Release);
    }
}

struct Mapping {
    start: NonNull<c_void>,
    len: usize,
}

impl Mapping {
    fn new(len: usize) -> io::Result<Self> {
        // SAFETY: a new mapping at an address chosen by the kernel does not touch other memory.
        let start = unsafe {
            rustix::mm::mmap_anonymous(ptr::null_mut(), len, ProtFlags::READ | ProtFlags::WRITE, MapFlags::PRIVATE)?
        };
        let start = NonNull::new(start).expect("the kernel never maps address zero unless asked to");
        Ok(Self { start, len })
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: the mapping has no other owner, and the owner drops it only once the kernel no longer uses it.
        let _ = unsafe { rustix::mm::munmap(self.start.as_ptr(), self.len) };
    }
}
