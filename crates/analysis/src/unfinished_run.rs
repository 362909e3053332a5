//! The progress of a run that has not ended.

use study::record::{Run, RunState};

use crate::findings::Unfinished;
use crate::number::count;

pub(crate) fn unfinished(run: &Run, trials: usize) -> Option<Unfinished> {
    let effort = run.plan.estimate();
    let trials = trials as u64;
    let done = progress(trials, effort.trials_min, effort.trials_max);
    let (sentence, resume) = match run.state? {
        RunState::Complete | RunState::OutOfTime => return None,
        RunState::Running => (format!("running, {done} so far"), String::new()),
        // The command of an imported run is untrusted and meant for a different machine, so it is omitted.
        RunState::Interrupted if !run.imported.is_empty() => (format!("interrupted after {done}"), String::new()),
        RunState::Interrupted => (format!("interrupted after {done}"), run.resume.clone()),
    };
    Some(Unfinished { state: run.state?, trials, trials_min: effort.trials_min, sentence, resume })
}

/// Formats progress: `5 of 15 trials`, `5 of at least 15 trials`, or only the number once it exceeds the minimum.
pub fn progress(trials: u64, least: u64, most: u64) -> String {
    match (trials < least, least == most) {
        (true, true) => format!("{trials} of {}", count(least, "trial")),
        (true, false) => format!("{trials} of at least {}", count(least, "trial")),
        (false, _) => count(trials, "trial"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::example;

    #[test]
    fn formats_progress() {
        assert_eq!(progress(5, 15, 15), "5 of 15 trials");
        assert_eq!(progress(0, 1, 9), "0 of at least 1 trial");
        assert_eq!(progress(16, 15, 20), "16 trials");
    }

    #[test]
    fn ended_runs_are_not_unfinished() {
        let (mut run, _) = example::volley();
        for state in [None, Some(RunState::Complete), Some(RunState::OutOfTime)] {
            run.state = state;
            assert_eq!(unfinished(&run, 3), None, "{state:?}");
        }
    }
}
