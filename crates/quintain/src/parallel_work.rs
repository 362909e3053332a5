//! Applies a function to items on several threads.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;

/// Calls `work` for every item on up to `threads` threads. Calls `each` on this thread with each index and result, in
/// any order. Fails with the first error of `each`.
pub(crate) fn in_parallel<T: Sync, R: Send, E>(
    threads: usize,
    items: &[T],
    work: impl Fn(&T) -> R + Sync,
    mut each: impl FnMut(usize, R) -> Result<(), E>,
) -> Result<(), E> {
    let (next, work) = (&AtomicUsize::new(0), &work);
    std::thread::scope(|scope| {
        let (sender, results) = mpsc::channel();
        for _ in 0..threads.min(items.len()) {
            let sender = sender.clone();
            scope.spawn(move || {
                while let Some((index, item)) = items.iter().enumerate().nth(next.fetch_add(1, Ordering::Relaxed)) {
                    if sender.send((index, work(item))).is_err() {
                        return;
                    }
                }
            });
        }
        drop(sender);
        results.into_iter().try_for_each(|(index, result)| each(index, result))
    })
}
