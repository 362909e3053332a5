//! `quintain runs`: what is in the store.

use store::{RunSummary, Store};
use study::record::RunState;

use crate::cli::StoreArgs;
use crate::message::{Done, Exit};
use crate::output;

pub(crate) fn runs(args: StoreArgs) -> Done {
    let runs = Store::open_existing(&args.store)?.runs()?;
    if args.json {
        output::json(&runs)?;
        return Ok(Exit::Fine);
    }
    if runs.is_empty() {
        output::message(&format!("no runs in `{}` yet; start one with `quintain run volley`", args.store.display()));
        return Ok(Exit::Fine);
    }
    let heads = ["RUN", "STARTED", "PROFILE", "TRIALS", "FAILED", "STATE", "STUDY"];
    let mut rows = vec![heads.map(str::to_owned).to_vec()];
    rows.extend(runs.into_iter().map(|run| {
        let (trials, failed) = (trials(&run), run.failed.to_string());
        let state = run.state.map_or("", |state| state.word()).to_owned();
        vec![run.id, run.started, run.profile, trials, failed, state, run.study]
    }));
    output::data(&output::columns(&rows))?;
    Ok(Exit::Fine)
}

/// `15`, or `5 of 15` where the run was to have more.
fn trials(run: &RunSummary) -> String {
    let [least, _] = run.planned.unwrap_or_default();
    let ended = matches!(run.state, Some(RunState::Complete | RunState::OutOfTime));
    if u64::from(run.trials) < least && !ended { format!("{} of {least}", run.trials) } else { run.trials.to_string() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trials_that_are_missing_are_told_of() {
        let run = |trials, state| RunSummary {
            id: String::new(),
            started: String::new(),
            study: String::new(),
            profile: String::new(),
            points: 1,
            trials,
            failed: 0,
            planned: Some([15, 30]),
            state,
        };
        for (done, state, expected) in [
            (5, Some(RunState::Interrupted), "5 of 15"),
            (5, Some(RunState::Running), "5 of 15"),
            (5, None, "5 of 15"),
            (18, Some(RunState::Interrupted), "18"),
            // Points that are given up have fewer.
            (5, Some(RunState::Complete), "5"),
            (5, Some(RunState::OutOfTime), "5"),
        ] {
            assert_eq!(trials(&run(done, state)), expected, "{state:?}");
        }
        assert_eq!(trials(&RunSummary { planned: None, ..run(5, None) }), "5");
    }
}
