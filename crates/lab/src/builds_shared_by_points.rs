//! Builds and verifications that several design points share.

use study::record::{Build, BuildOutcome};

use crate::lab_clocks;

/// Outcomes of builds. Points with equal keys and equal commands share one outcome.
#[derive(Default)]
pub(crate) struct Builds<K>(Vec<(K, Build)>);

impl<K: PartialEq> Builds<K> {
    /// Records that a point needs a build; calls `make` only for a new key or command. Returns `false` if interrupted.
    pub(crate) fn add(
        &mut self,
        key: K,
        command: &str,
        point: usize,
        make: impl FnOnce() -> Option<BuildOutcome>,
    ) -> bool {
        match self.0.iter_mut().find(|(known, build)| *known == key && build.command == command) {
            Some((_, build)) if build.points.last() == Some(&point) => {}
            Some((_, build)) => build.points.push(point),
            None => {
                let begun = lab_clocks::now();
                let Some(outcome) = make() else { return false };
                let elapsed_ns = lab_clocks::nanos(lab_clocks::now() - begun);
                self.0.push((key, Build { command: command.to_owned(), points: vec![point], outcome, elapsed_ns }));
            }
        }
        true
    }

    pub(crate) fn finish(self) -> Vec<Build> {
        self.0.into_iter().map(|(_, build)| build).collect()
    }
}
