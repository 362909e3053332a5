//! Assertions for any output of `perf script`.

use lab::fold_stacks::{DEPTH_MAX, Fold, HOTTEST_KEPT, NAME_MAX, STACKS_KEPT};

/// Checks that no sample is lost, every frame refers to a function, and cuts in the text do not change the result.
pub(crate) fn perf_script(bytes: &[u8]) {
    let folded = |piece: usize| {
        let mut fold = Fold::default();
        bytes.chunks(piece).for_each(|piece| fold.push(piece));
        fold.finish()
    };
    let profile = folded(4096);
    assert_eq!(profile, folded(7));
    let of_stacks = profile.stacks.iter().map(|stack| stack.samples).sum::<u64>();
    assert_eq!(of_stacks + profile.other_samples, profile.samples);
    assert!(profile.stacks.len() <= STACKS_KEPT);
    assert!(profile.functions.len() <= HOTTEST_KEPT + STACKS_KEPT * DEPTH_MAX);
    for function in &profile.functions {
        assert!(function.name.chars().count() <= NAME_MAX && !function.name.contains(char::is_control));
    }
    for stack in &profile.stacks {
        assert!((1..=DEPTH_MAX).contains(&stack.frames.len()));
        assert!(stack.frames.iter().all(|frame| (*frame as usize) < profile.functions.len()));
    }
}
