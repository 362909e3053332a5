//! Memory per entry, measured at the allocator. The binary has only one test, so that no other thread allocates.

mod adapters_in_memory;

use std::alloc::System;

use adapters_in_memory::{World, ask, settings};
use contract::monitor::{MemoryStore, Monitor};
use serde_json::json;
use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

/// Maximum size of a case study's entry in bytes, independent of the number of entries.
const ENTRY_BYTES_MAX: usize = 120;
/// Allowance in bytes for partly filled structures: the newest segment, and lists of segments.
const SLACK_BYTES: usize = 24 << 10;
/// Default memory limit of an adapter with a store file, in bytes.
const BOUND_BYTES: usize = 512 << 10;

fn kept(region: &Region<'_, System>) -> usize {
    let change = region.change();
    change.bytes_allocated.saturating_sub(change.bytes_deallocated)
}

fn world(contract: &str, endpoint: &str, service: &str, bytes_max: usize) -> World {
    let mut world = World::new(contract);
    let monitor = Monitor::new(world.contract.clone(), settings("a"), MemoryStore::new(bytes_max, None), 0);
    world.adapters.insert("a".to_owned(), monitor);
    world.configure("a", endpoint, service, &["b"], None);
    world
}

/// Adds an Evernote user with two entries. As in the case study, an index is 55 letters and a number.
fn evernote(world: &mut World, number: usize) {
    let token = format!("{}{number}", "t".repeat(55));
    let notes = json!("https://127.0.0.1:9444/");
    world.call(&ask("a", "https://127.0.0.1:9443/edam/user", "getNoteStoreUrl", json!([token]), notes));
}

fn twitter(world: &mut World, number: usize) {
    let args = json!([{"user_id": format!("{number}")}, {"authorization": "OAuth"}]);
    let result = json!({"body": {"users": [{"id_str": format!("11{number:010}")}]}});
    world.call(&ask("a", "https://127.0.0.1:3912", "GET /1.1/friends/list.json", args, result));
}

type Case = fn(&mut World, usize);

fn entries(world: &World) -> usize {
    world.adapters["a"].counts().entries as usize
}

#[test]
fn entries_take_at_most_120_bytes_and_respect_the_bound() {
    let cases: [(&str, &str, &str, Case); 2] = [
        ("evernote", "https://127.0.0.1:9443/edam/user", "UserStore", evernote),
        ("twitter", "https://127.0.0.1:3912", "TwitterTweets", twitter),
    ];
    for (case, endpoint, service, call) in cases {
        let mut all = world(case, endpoint, service, 1 << 30);
        (0..10).for_each(|number| call(&mut all, number));
        let (region, before) = (Region::new(ALLOCATOR), entries(&all));
        let mut number = 10;
        // The table doubles between the counts of each pair, so it first has the least and then the most spare room.
        for count in [1_780, 1_800, 3_570, 3_600, 14_300, 14_400, 28_600, 28_800] {
            while entries(&all) < count {
                call(&mut all, number);
                number += 1;
            }
            let new = entries(&all) - before;
            let bytes = kept(&region);
            assert!(new + 2 > count - before, "{case}: each call is of two new entries");
            assert!(bytes <= new * ENTRY_BYTES_MAX + SLACK_BYTES, "{case}: {} B an entry of {new}", bytes / new);
            assert!(bytes + SLACK_BYTES > new * 40, "{case}: {bytes} B is too little for {new} entries");
        }
        let mut bounded = world(case, endpoint, service, BOUND_BYTES);
        let region = Region::new(ALLOCATOR);
        (0..5_000).for_each(|number| call(&mut bounded, number));
        let at_5_000 = kept(&region);
        assert!(at_5_000 <= BOUND_BYTES + SLACK_BYTES, "{case}: {at_5_000} B");
        (5_000..50_000).for_each(|number| call(&mut bounded, number));
        let at_50_000 = kept(&region);
        assert!(
            at_50_000 <= at_5_000 + SLACK_BYTES,
            "{case}: {at_5_000} B, and {at_50_000} B with ten times the entries"
        );
    }
}
