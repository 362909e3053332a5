//! Queues shared with the kernel. `SAFETY` comments here and in `receive_buffers` show that no freed memory is used.

use std::io;
use std::mem::ManuallyDrop;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

use io_uring::squeue::{Entry, Flags};
use io_uring::types::{CancelBuilder, Fd, SubmitArgs, Timespec};
use io_uring::{IoUring, cqueue, opcode};
use rustix::event::PollFlags;
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, SocketFlags};

use super::receive_buffers::Buffers;
use super::tag::Kind;
use crate::driver::Nanos;
use crate::thread_and_process::monotonic_ns;

const GROUP: u16 = 0;
/// Receive flag: wait for readiness before the first attempt to receive (`IORING_RECVSEND_POLL_FIRST`).
const POLL_FIRST: u16 = 1;
/// Receive flag: stay active after a completion (`IORING_RECV_MULTISHOT`).
const MULTISHOT: u16 = 2;
/// Position in words of `optlen` in `struct io_uring_sqe`: a multishot receive's limit in bytes since Linux 6.17.
const LIMIT_WORD: usize = 11;
const GET_EVENTS: u32 = 1;
/// Tag of entries whose success is not reported.
const TAG_QUIET: u64 = 0;
const DRAIN_NS: Nanos = 1_000_000_000;

#[derive(Clone, Copy, Debug)]
pub(super) struct Completion {
    pub(super) tag: u64,
    pub(super) result: i32,
    flags: u32,
}

impl Completion {
    pub(super) fn has_more(&self) -> bool {
        cqueue::more(self.flags)
    }

    pub(super) fn buffer(&self) -> Option<u16> {
        cqueue::buffer_select(self.flags)
    }

    /// Returns the accepted socket. Must be called only once, since the result owns the descriptor.
    pub(super) fn accepted(&self) -> Option<OwnedFd> {
        let is_accept = super::tag::split(self.tag).0 == Kind::Accept;
        // SAFETY: the kernel has just opened this descriptor for this process, and it has no other owner.
        (is_accept && self.result >= 0).then(|| unsafe { OwnedFd::from_raw_fd(self.result) })
    }

    pub(super) fn error(&self) -> Option<Errno> {
        (self.result < 0).then(|| Errno::from_raw_os_error(-self.result))
    }
}

/// How connections receive.
#[derive(Clone, Copy, Debug)]
pub(super) enum Receives {
    /// Each receive is submitted separately.
    Separate,
    /// A receive stays active until it has received at least `limit_bytes`, or without limit for 0.
    Multishot { limit_bytes: u32 },
}

pub(super) struct Ring {
    /// The kernel's queues. Dropped before `buffers`, once the kernel no longer uses any buffer.
    queues: ManuallyDrop<IoUring>,
    pub(super) buffers: ManuallyDrop<Buffers>,
    pub(super) receives: Receives,
    in_kernel: usize,
}

impl Ring {
    /// Creates the ring. If the kernel cannot lock enough memory, the queues are smaller, which costs only speed.
    pub(super) fn new(mut submissions: u32, mut completions: u32, buffers: Buffers) -> io::Result<Self> {
        const LEAST: u32 = 32;
        let queues = loop {
            let built = IoUring::builder()
                .setup_single_issuer()
                .setup_defer_taskrun() // Fails before Linux 6.1. All features that `Ring` needs are older.
                .setup_taskrun_flag()
                .setup_submit_all()
                .setup_cqsize(completions)
                .build(submissions);
            match built {
                Ok(queues) => break queues,
                Err(error) if Errno::from_io_error(&error) == Some(Errno::NOMEM) && completions > LEAST => {
                    submissions = (submissions / 2).max(LEAST / 2);
                    completions = (completions / 2).max(LEAST);
                }
                Err(error) => return Err(error),
            }
        };
        // SAFETY: the memory at the address is `count` entries long, and `drop` keeps it until the ring is gone.
        unsafe {
            let submitter = queues.submitter();
            submitter.register_buf_ring_with_flags(buffers.address(), buffers.count, GROUP, 0)?;
        }
        Ok(Self {
            queues: ManuallyDrop::new(queues),
            buffers: ManuallyDrop::new(buffers),
            receives: Receives::Separate,
            in_kernel: 0,
        })
    }

    /// Whether the kernel supports [`Receives::Multishot`] with a limit. Older kernels reject the limit before they
    /// look up the socket, which does not exist.
    pub(super) fn can_limit_receives(&mut self) -> io::Result<bool> {
        self.start(receive_entry(Fd(-1), Receives::Multishot { limit_bytes: 1 }), 1)?;
        let mut inbox = Vec::new();
        self.enter(None)?;
        self.reap(&mut inbox, |_| ())?;
        Ok(inbox.iter().any(|done| done.error() == Some(Errno::BADF)))
    }

    /// Sends as much as the socket accepts at once. If that is all of `bytes`, a completion follows only if `told`.
    /// Otherwise, a completion reports the number of bytes or the error.
    ///
    /// # Safety
    ///
    /// `bytes` must not change until [`Ring::enter`] has returned `Ok`.
    pub(super) unsafe fn send(&mut self, socket: BorrowedFd<'_>, bytes: &[u8], told: bool, tag: u64) -> io::Result<()> {
        // DONTWAIT: the kernel completes or fails the send while it takes the entry, so nothing stays in the kernel.
        // WAITALL: a partial send counts as a failure and is reported.
        let flags = (SendFlags::DONTWAIT | SendFlags::NOSIGNAL).bits() | RecvFlags::WAITALL.bits();
        let len = u32::try_from(bytes.len()).expect("the caller checks the kernel's limit");
        let entry = opcode::Send::new(Fd(socket.as_raw_fd()), bytes.as_ptr(), len).flags(flags as i32).build();
        let entry = if told { entry } else { entry.flags(Flags::SKIP_SUCCESS) };
        // SAFETY: by the caller's contract, the bytes are valid until the kernel has completed the send.
        unsafe { self.push(entry.user_data(tag)) }
    }

    pub(super) fn receive(&mut self, socket: BorrowedFd<'_>, tag: u64) -> io::Result<()> {
        self.start(receive_entry(Fd(socket.as_raw_fd()), self.receives), tag)
    }

    /// Polls `fd` for `flags`: once, or on each change if `again`.
    pub(super) fn poll(&mut self, fd: BorrowedFd<'_>, flags: PollFlags, again: bool, tag: u64) -> io::Result<()> {
        let flags = u32::from(flags.bits());
        self.start(opcode::PollAdd::new(Fd(fd.as_raw_fd()), flags).multi(again).build(), tag)
    }

    pub(super) fn accept(&mut self, listener: BorrowedFd<'_>, tag: u64) -> io::Result<()> {
        let flags = (SocketFlags::NONBLOCK | SocketFlags::CLOEXEC).bits();
        self.start(opcode::AcceptMulti::new(Fd(listener.as_raw_fd())).flags(flags as i32).build(), tag)
    }

    /// Cancels an operation, whose last completion still arrives.
    pub(super) fn cancel(&mut self, tag: u64) -> io::Result<()> {
        let entry = opcode::AsyncCancel::new(tag).build().flags(Flags::SKIP_SUCCESS).user_data(TAG_QUIET);
        // SAFETY: the entry contains no pointer.
        unsafe { self.push(entry) }
    }

    fn start(&mut self, entry: Entry, tag: u64) -> io::Result<()> {
        assert_ne!(tag, TAG_QUIET, "the tag is already in use");
        // SAFETY: these operations only use the provided buffers, which `drop` keeps until every operation has ended.
        unsafe { self.push(entry.user_data(tag)) }?;
        self.in_kernel += 1;
        Ok(())
    }

    /// # Safety
    ///
    /// The memory to which `entry` points must remain valid until the operation is over.
    unsafe fn push(&mut self, entry: Entry) -> io::Result<()> {
        // SAFETY: by the caller's contract, the entry's memory remains valid.
        while unsafe { self.queues.submission().push(&entry) }.is_err() {
            self.submit(0, None)?;
        }
        Ok(())
    }

    /// Submits all entries, then waits up to `wait` ns (`None`: without limit) for a completion or a signal. Makes no
    /// system call if there is nothing to submit, fetch or wait for.
    pub(super) fn enter(&mut self, wait: Option<Nanos>) -> io::Result<()> {
        if wait == Some(0) {
            let queue = self.queues.submission();
            if queue.is_empty() && !queue.taskrun() && !queue.cq_overflow() {
                return Ok(());
            }
            drop(queue);
            self.submit(0, None)?;
        } else {
            self.submit(1, wait)?;
        }
        while !self.queues.submission().is_empty() {
            self.submit(0, None)?; // The kernel took only some entries, in which case it does not wait.
        }
        Ok(())
    }

    fn submit(&mut self, want: usize, wait: Option<Nanos>) -> io::Result<()> {
        let entries = self.queues.submission().len();
        let submitter = self.queues.submitter();
        let result = match wait {
            // Fetches completions even without waiting, since the kernel posts them only on request.
            // SAFETY: the entries are in the queue, and no other memory is passed.
            None => unsafe { submitter.enter::<()>(entries as u32, want as u32, GET_EVENTS, None) },
            Some(wait) => {
                let wait = Timespec::new().sec(wait / 1_000_000_000).nsec((wait % 1_000_000_000) as u32);
                submitter.submit_with_args(want, &SubmitArgs::new().timespec(&wait))
            }
        };
        match result {
            Ok(_) => Ok(()),
            Err(error) if matches!(Errno::from_io_error(&error), Some(Errno::TIME | Errno::INTR)) => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Takes all completions. Passes completions of sends to `sent` and appends all other completions to `inbox`.
    pub(super) fn reap(&mut self, inbox: &mut Vec<Completion>, mut sent: impl FnMut(Completion)) -> io::Result<()> {
        loop {
            for entry in self.queues.completion() {
                let done = Completion { tag: entry.user_data(), result: entry.result(), flags: entry.flags() };
                if done.tag == TAG_QUIET {
                    continue;
                }
                if super::tag::is_send(done.tag) {
                    sent(done);
                    continue;
                }
                self.in_kernel -= usize::from(!done.has_more());
                inbox.push(done);
            }
            if !self.queues.submission().cq_overflow() {
                return Ok(());
            }
            self.submit(0, None)?; // Fetches completions that did not fit.
        }
    }

    fn drain(&mut self) -> io::Result<()> {
        let entry = opcode::AsyncCancel2::new(CancelBuilder::any()).build().flags(Flags::SKIP_SUCCESS);
        // SAFETY: the entry contains no pointer.
        unsafe { self.push(entry.user_data(TAG_QUIET)) }?;
        let mut inbox = Vec::new();
        let until = monotonic_ns() + DRAIN_NS;
        while self.in_kernel > 0 && monotonic_ns() < until {
            self.enter(Some(DRAIN_NS / 10))?;
            self.reap(&mut inbox, |_| ())?;
            inbox.drain(..).for_each(|done| drop(done.accepted()));
        }
        Ok(())
    }
}

fn receive_entry(socket: Fd, receives: Receives) -> Entry {
    let (flag, limit_bytes) = match receives {
        Receives::Separate => (POLL_FIRST, 0),
        Receives::Multishot { limit_bytes } => (MULTISHOT, limit_bytes),
    };
    let receive = opcode::Recv::new(socket, std::ptr::null_mut(), 0).buf_group(GROUP).ioprio(flag);
    let mut entry = receive.build().flags(Flags::BUFFER_SELECT);
    // SAFETY: an entry has the layout of `struct io_uring_sqe`, which has 16 words.
    unsafe { (&raw mut entry).cast::<u32>().add(LIMIT_WORD).write(limit_bytes) };
    entry
}

impl Drop for Ring {
    fn drop(&mut self) {
        let drained = self.drain().is_ok() && self.in_kernel == 0;
        // SAFETY: neither field is used again. The queues are dropped first, so the kernel releases the buffers. If
        // operations remain, the buffers are leaked.
        unsafe {
            ManuallyDrop::drop(&mut self.queues);
            if drained {
                ManuallyDrop::drop(&mut self.buffers);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;
    use std::os::fd::AsFd;
    use std::os::unix::net::UnixStream;

    use super::*;
    use crate::driver::{Conn, Waker};
    use crate::uring::tag;

    #[test]
    fn overflowing_queues_lose_nothing() {
        let Ok(mut ring) = Ring::new(4, 8, Buffers::new(8, 64).unwrap()) else {
            return assert!(crate::probe().is_err(), "the small ring failed, but io_uring is available");
        };
        let wakers: Vec<Waker> = (0..100).map(|_| Waker::new().unwrap()).collect();
        let tag = |slot: usize| tag::connection_tag(Kind::Writable, Conn { slot: slot as u32, generation: 7 });
        for (slot, waker) in wakers.iter().enumerate() {
            ring.poll(waker.0.as_fd(), PollFlags::IN, false, tag(slot)).unwrap();
        }
        ring.enter(Some(0)).unwrap();
        wakers.iter().for_each(Waker::wake);
        let mut inbox = Vec::new();
        while inbox.len() < wakers.len() {
            ring.enter(None).unwrap();
            ring.reap(&mut inbox, |done| panic!("{done:?} is not a send")).unwrap();
        }
        let mut tags: Vec<u64> = inbox.iter().map(|done| done.tag).collect();
        tags.sort_unstable();
        assert_eq!(tags, (0..100).map(tag).collect::<Vec<_>>());
        assert_eq!(ring.in_kernel, 0);
    }

    #[test]
    fn multishot_receive_ends_at_its_limit() {
        let Ok(mut ring) = Ring::new(4, 8, Buffers::new(8, 64).unwrap()) else {
            return assert!(crate::probe().is_err());
        };
        if !ring.can_limit_receives().unwrap() {
            return; // The kernel is older than Linux 6.17.
        }
        ring.buffers.hand_over(8);
        ring.receives = Receives::Multishot { limit_bytes: 5 };
        let (mut there, here) = UnixStream::pair().unwrap();
        let tag = tag::connection_tag(Kind::Receive, Conn { slot: 0, generation: 0 });
        ring.receive(here.as_fd(), tag).unwrap();
        for (bytes, has_more) in [(b"four".as_slice(), true), (b"and eight", false)] {
            there.write_all(bytes).unwrap();
            ring.enter(None).unwrap();
            let mut inbox = Vec::new();
            ring.reap(&mut inbox, |done| panic!("{done:?} is not a send")).unwrap();
            let results: Vec<_> = inbox.iter().map(|done| (done.result, done.has_more())).collect();
            assert_eq!(results, [(bytes.len() as i32, has_more)]);
        }
        assert_eq!(ring.in_kernel, 0);
    }

    #[test]
    fn dropped_ring_ends_its_operations() {
        let Ok(mut ring) = Ring::new(4, 8, Buffers::new(8, 64).unwrap()) else {
            return assert!(crate::probe().is_err());
        };
        let waker = Waker::new().unwrap();
        for slot in 0..10 {
            let tag = tag::connection_tag(Kind::HangUp, Conn { slot, generation: 0 });
            ring.poll(waker.0.as_fd(), PollFlags::IN, true, tag).unwrap();
        }
        ring.enter(Some(0)).unwrap();
        assert_eq!(ring.in_kernel, 10);
        ring.drain().unwrap();
        assert_eq!(ring.in_kernel, 0);
    }
}
