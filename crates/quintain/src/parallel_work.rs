//! Applies a function to items on several threads.

use std::panic::resume_unwind;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Calls `work` for every item on up to `threads` threads, and returns the results in the order of the items.
pub(crate) fn in_parallel<T: Sync, R: Send>(threads: usize, items: &[T], work: impl Fn(&T) -> R + Sync) -> Vec<R> {
    let next = AtomicUsize::new(0);
    let run = || {
        let take = || items.iter().enumerate().nth(next.fetch_add(1, Ordering::Relaxed));
        std::iter::from_fn(take).map(|(index, item)| (index, work(item))).collect::<Vec<_>>()
    };
    let mut results = std::thread::scope(|scope| {
        let workers = (0..threads.min(items.len())).map(|_| scope.spawn(run)).collect::<Vec<_>>();
        let results = workers.into_iter().map(|worker| worker.join().unwrap_or_else(|panic| resume_unwind(panic)));
        results.flatten().collect::<Vec<_>>()
    });
    results.sort_unstable_by_key(|(index, _)| *index);
    results.into_iter().map(|(_, result)| result).collect()
}
