//! Tests that ping-pongs do not allocate and that idle connections hold no buffers.

mod harness;

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

use harness::{CONFIG, OpenEpoll, OpenUring, Opener, address, has_uring, until};
use net::{Config, Conn, Driver, Event};

struct Counting;

thread_local! {
    static COUNT: Cell<usize> = const { Cell::new(0) };
    /// Number of bytes allocated and not freed by this thread, which frees only its own allocations here.
    static HELD: Cell<isize> = const { Cell::new(0) };
}

// SAFETY: every call is forwarded to the system allocator unchanged. Counting does not allocate.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        COUNT.set(COUNT.get() + 1);
        HELD.set(HELD.get() + layout.size() as isize);
        // SAFETY: the call is forwarded unchanged.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        HELD.set(HELD.get() - layout.size() as isize);
        // SAFETY: the call is forwarded unchanged.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        COUNT.set(COUNT.get() + 1);
        HELD.set(HELD.get() + size as isize - layout.size() as isize);
        // SAFETY: the call is forwarded unchanged.
        unsafe { System.realloc(pointer, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Number of allocations during `rounds` responses over 20 connections, after a warm-up of 2,000.
fn allocations<O: Opener>(open: &O, pause_reads_above_bytes: usize, rounds: usize) -> usize {
    let mut driver = open.open(&Config { connections: 40, pause_reads_above_bytes, ..CONFIG });
    let (_, at) = driver.listen(&address(), 64).unwrap();
    let clients: Vec<Conn> = (0..20).map(|_| driver.connect(&at).unwrap()).collect();
    let mut is_client = [false; 40];
    for conn in clients {
        is_client[conn.index()] = true;
        driver.send(conn, &[0, 0, 0, 1]).unwrap();
    }
    let mut play = |rounds: usize| {
        let mut answers = 0;
        until(&mut driver, |driver, event| {
            let Event::Data(conn, data) = event else { return false };
            answers += usize::from(is_client[conn.index()]);
            let word: [u8; 4] = driver.bytes(data).try_into().expect("four bytes come at once over loopback");
            driver.send(conn, &word).unwrap();
            answers >= rounds
        });
    };
    play(2_000);
    let before = COUNT.get();
    play(rounds);
    COUNT.get() - before
}

#[test]
fn allocator_counts_allocations() {
    let before = COUNT.get();
    drop(std::hint::black_box(vec![1]));
    assert_eq!(COUNT.get() - before, 1);
}

#[test]
fn epoll_allocates_nothing_in_steady_state() {
    assert_eq!(allocations(&OpenEpoll, usize::MAX, 20_000), 0);
}

#[test]
fn io_uring_allocates_nothing_in_steady_state() {
    if has_uring() {
        assert_eq!(allocations(&OpenUring, usize::MAX, 20_000), 0);
        assert_eq!(allocations(&OpenUring, 65_536, 20_000), 0, "with reads that may pause");
    }
}

/// Number of bytes still allocated after 200 connections have sent 40,000 bytes each, one after another.
fn held_after_large_sends<O: Opener>(open: &O) -> isize {
    const COUNT: usize = 200;
    const LEN: usize = 40_000;
    let mut driver = open.open(&Config { connections: 2 * COUNT, pause_reads_above_bytes: 65_536, ..CONFIG });
    let (_, at) = driver.listen(&address(), 256).unwrap();
    let clients: Vec<Conn> = (0..COUNT).map(|_| driver.connect(&at).unwrap()).collect();
    let mut stand = 0;
    until(&mut driver, |_, event| {
        stand += usize::from(matches!(event, Event::Connected(_) | Event::Accepted(..)));
        stand == 2 * COUNT
    });
    let bytes = vec![1; LEN];
    let before = HELD.get();
    for &conn in &clients {
        driver.send(conn, &bytes).unwrap();
        let mut received = 0;
        until(&mut driver, |driver, event| {
            let Event::Data(_, data) = event else { panic!("{event:?}") };
            received += driver.bytes(data).len();
            received == LEN
        });
    }
    HELD.get() - before
}

#[test]
fn large_sends_leave_no_memory_behind() {
    const FEW: isize = 4 * 65_536;
    assert!((0..FEW).contains(&held_after_large_sends(&OpenEpoll)));
    if has_uring() {
        assert!((0..FEW).contains(&held_after_large_sends(&OpenUring)));
    }
}
