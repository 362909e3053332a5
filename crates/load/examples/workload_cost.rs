//! What one operation of a workload's stream costs, with the text of its key:
//! `cargo run --release -p load --example workload_cost`.
#![allow(clippy::print_stdout, clippy::disallowed_methods, reason = "it measures by itself and says so")]

use std::hint::black_box;
use std::time::{Duration, Instant};

use load::workload::{KEY_MAX_BYTES, Stream, Texts};
use study::workload::{PRESETS, preset};

/// Short rounds, so that some fit between two turns of other processes.
const OPERATIONS: u32 = 10_000;
const ROUNDS: usize = 300;

/// The fastest of some rounds, ns an operation: what else runs on the machine only adds to it.
fn fastest(mut round: impl FnMut() -> Duration) -> f64 {
    let least = (0..ROUNDS).map(|_| round()).min().unwrap_or_default();
    least.as_secs_f64() * 1e9 / f64::from(OPERATIONS)
}

fn main() {
    println!("{:<20} {:>9} {:>9} {:>12}   ns an operation", "preset", "draw", "and key", "200 B value");
    for name in PRESETS.map(|preset| preset.name) {
        let Some(workload) = preset(name) else { continue };
        let texts = Texts::new(&workload, 1).expect("a preset");
        let mut buffer = [0; KEY_MAX_BYTES];
        let mut stream = Stream::new(&workload, 1, 0, 1).expect("a preset");
        let mut round = |with_key: bool, buffer: &mut [u8; KEY_MAX_BYTES]| {
            let start = Instant::now();
            for _ in 0..OPERATIONS {
                let operation = black_box(stream.next_operation());
                if with_key {
                    black_box(texts.key(operation.key, buffer));
                }
            }
            start.elapsed()
        };
        let draw = fastest(|| round(false, &mut buffer));
        let key = fastest(|| round(true, &mut buffer));
        let mut value = [0; 200];
        let value = fastest(|| {
            let start = Instant::now();
            for key in 0..u64::from(OPERATIONS) {
                texts.value(key, &mut value);
                assert!(texts.verify(key, black_box(&value)));
            }
            start.elapsed()
        });
        println!("{name:<20} {draw:>9.1} {key:>9.1} {value:>12.1}");
    }
}
