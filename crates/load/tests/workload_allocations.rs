//! Once created, a stream of operations draws operations, keys and values without allocating.

use std::alloc::System;

use load::operation_stream::{KEY_MAX_BYTES, Stream, Texts};
use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};
use study::workload::{PRESETS, preset};

#[global_allocator]
static COUNTING: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

#[test]
fn operations_do_not_allocate() {
    for name in PRESETS.map(|preset| preset.name) {
        let mut workload = preset(name).unwrap();
        if workload.keys.reuse.is_none() {
            workload.keys.shift_every = Some(1_000);
        }
        let (mut stream, texts) = (Stream::new(&workload, 1, 0, 2).unwrap(), Texts::new(&workload, 1).unwrap());
        let (mut buffer, mut value, mut bytes) = ([0; KEY_MAX_BYTES], vec![0; 1 << 20], 0);
        // The minimum excludes occasional allocations by the test harness.
        let mut least = usize::MAX;
        for _ in 0..3 {
            let region = Region::new(COUNTING);
            for _ in 0..20_000 {
                let operation = stream.next_operation();
                let value = &mut value[..operation.value_bytes as usize];
                bytes += texts.key(operation.key, &mut buffer).len();
                texts.value(operation.key, value);
                assert!(texts.matches(&texts.expectation(operation.key, value.len()), 0, value));
            }
            let change = region.change();
            least = least.min(change.allocations + change.reallocations);
        }
        assert_eq!(least, 0, "{name}");
        assert!(bytes > 20_000);
    }
}
