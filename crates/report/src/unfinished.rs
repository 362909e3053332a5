//! A run that did not end as it should, in words.

use study::record::{Run, RunState};

use crate::findings::Unfinished;
use crate::number::count;

/// What every form of a report says of a run that was interrupted or goes on still; `None`: it has ended.
pub(crate) fn unfinished(run: &Run, trials: usize) -> Option<Unfinished> {
    let effort = run.plan.estimate();
    let trials = trials as u64;
    let done = progress(trials, effort.trials_min, effort.trials_max);
    let (sentence, resume) = match run.state? {
        RunState::Complete | RunState::OutOfTime => return None,
        RunState::Running => (format!("running, {done} so far"), String::new()),
        RunState::Interrupted => (format!("interrupted after {done}"), run.resume.clone()),
    };
    Some(Unfinished { state: run.state?, trials, trials_min: effort.trials_min, sentence, resume })
}

/// `5 of 15 trials`, `5 of at least 15 trials`; the number alone where there are more. `least` and `most` are those of the plan.
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
    use crate::{analyze, csv, csv_trials, example, html, markdown, terminal};

    #[test]
    fn how_much_is_done() {
        assert_eq!(progress(5, 15, 15), "5 of 15 trials");
        assert_eq!(progress(0, 1, 9), "0 of at least 1 trial");
        assert_eq!(progress(16, 15, 20), "16 trials");
    }

    #[test]
    fn only_what_has_not_ended_is_unfinished() {
        let (mut run, _) = example::volley();
        for state in [None, Some(RunState::Complete), Some(RunState::OutOfTime)] {
            run.state = state;
            assert_eq!(unfinished(&run, 3), None, "{state:?}");
        }
    }

    #[test]
    fn every_form_of_a_report_says_that_a_run_was_interrupted_and_how_to_go_on() {
        let (mut run, mut records) = example::volley();
        records.truncate(5);
        run.state = Some(RunState::Interrupted);
        run.resume = "quintain run volley --resume 'volley & more'".to_owned();
        let findings = analyze(&run, &records);
        let page = html(&findings).unwrap();
        let forms = [
            ("terminal", crate::terminal(&findings, &terminal::Style { colour: false, width: 40 })),
            ("markdown", markdown(&findings)),
            ("json", serde_json::to_string(&findings).unwrap()),
        ];
        for (form, text) in forms {
            let text = text.replace("\n  ", " ");
            assert!(text.to_lowercase().contains("interrupted after 5 of at least 88 trials"), "{form}: {text}");
            assert!(text.contains(&run.resume), "{form}: {text}");
        }
        assert!(page.contains("interrupted after 5 of at least 88 trials"));
        assert!(page.contains("quintain run volley --resume &#39;volley &#38; more&#39;"), "{page}");
        for (form, text) in [("csv", csv(&findings)), ("csv-trials", csv_trials(&findings))] {
            let mut lines = text.lines();
            assert!(lines.next().unwrap().ends_with(",run_state"), "{form}: {text}");
            assert!(lines.all(|line| line.ends_with(",interrupted")), "{form}: {text}");
        }
        run.state = Some(RunState::Running);
        let running = terminal(&analyze(&run, &records), &crate::Style::PLAIN);
        assert!(running.contains("RUNNING, 5 of at least 88 trials so far"), "{running}");
        assert!(!running.contains("--resume"), "it goes on by itself: {running}");
    }
}
