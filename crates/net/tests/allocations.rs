//! Nothing is allocated while ping-pongs go on.

mod harness;

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

use harness::{CONFIG, OpenEpoll, OpenUring, Opener, address, has_uring, until};
use net::{Config, Conn, Driver, Event};

struct Counting;

thread_local! {
    static COUNT: Cell<usize> = const { Cell::new(0) };
}

// SAFETY: every call is handed to the system's allocator unchanged; counting allocates nothing.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        COUNT.set(COUNT.get() + 1);
        // SAFETY: handed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: handed on.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        COUNT.set(COUNT.get() + 1);
        // SAFETY: handed on.
        unsafe { System.realloc(pointer, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// How many allocations this thread makes in `rounds` answers over 20 connections, after a warm-up of 2,000.
fn allocations<O: Opener>(open: &O, pause_reads_above_bytes: usize, rounds: usize) -> usize {
    let mut driver = open.open(&Config { connections: 40, pause_reads_above_bytes, ..CONFIG });
    let (_, at) = driver.listen(&address(), 64, false).unwrap();
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
fn the_count_counts() {
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
