//! `quintain load --find`: finds the highest rate at which a server meets an objective.

use analysis::{FIND_VERSION, FindReport, Search, SearchBound};
use load::{LoadError, Progress};
use study::Objective;
use study::plan::SearchPlan;
use study::spec::{Arrivals, LoadSpec, Stop};

use crate::cli::LoadArgs;
use crate::collected_mistakes::Mistakes;
use crate::command_result::{Done, Exit, usage};
use crate::load_progress_and_errors::{Live, live, problem};
use crate::{output, signals};

/// Reads the search with trials of `duration_ns` from the flags. `None` without `--find`; adds errors to `mistakes`.
pub(crate) fn plan(args: &LoadArgs, duration_ns: u64, mistakes: &mut Mistakes) -> Option<SearchPlan> {
    let (from_per_s, to_per_s) = (args.find_from, args.find_to);
    if from_per_s.zip(to_per_s).is_some_and(|(from, to)| from > to) {
        mistakes.add(usage("`--find-to` is below `--find-from`"));
    }
    let objective = Objective::parse(args.find.as_ref()?);
    let objective = objective.map_err(|errors| errors.into_iter().map(|(_, error)| error).collect());
    let objective = mistakes.all_ok("`--find`", objective)?;
    if let Some(condition) = objective.conditions.iter().find(|condition| condition.metric.name == "subject_rss") {
        let problem = usage(format!("`--find`: server memory cannot be observed here (`{condition}`)"));
        mistakes.add(problem.hint("a study with `load.search` starts the server itself and sees its memory"));
    }
    let plain = SearchPlan::new(objective, duration_ns);
    let resolution = args.resolution.unwrap_or(plain.resolution);
    Some(SearchPlan { from_per_s, to_per_s, resolution, ..plain })
}

pub(crate) fn find(args: &LoadArgs, plan: SearchPlan, spec: &LoadSpec, name: &str) -> Done {
    let pilot_ns = plan.pilot_ns;
    let mut search = Search::new(plan);
    let mut line = Live::new(!args.quiet);
    while let Some(step) = search.next(false).filter(|_| !signals::is_interrupted()) {
        let mut trial = spec.clone();
        // Each trial has its own schedule, which the seed makes reproducible.
        trial.seed = spec.seed.wrapping_add(search.trials() as u64);
        // Rates are requests per second in a search but sessions per second in a load.
        let asked = step.rate_per_s.map(|rate_per_s| rate_per_s / spec.target.requests_per_session());
        match (asked, &mut trial.arrivals) {
            (None, arrivals) => {
                *arrivals = Arrivals::closed(0);
                trial.stop = Stop::Duration { duration_ns: pilot_ns };
            }
            (Some(asked), Arrivals::Poisson { rate_per_s } | Arrivals::Constant { rate_per_s }) => *rate_per_s = asked,
            (Some(asked), arrivals) => *arrivals = Arrivals::Poisson { rate_per_s: asked },
        }
        let what =
            step.rate_per_s.map_or_else(|| "a closed loop".to_owned(), |rate| analysis::number::quantity(rate, "1/s"));
        let mut progress = |progress: Progress| {
            let text = format!("trial {}, {what}: {}", search.trials() + 1, live(&progress, &trial.stop));
            line.show(&text, Some(&progress));
        };
        let result = load::run(&trial, &mut progress, &signals::INTERRUPTED);
        line.clear();
        let told = match result {
            Ok(_) if signals::is_interrupted() => break,
            Ok(measurement) => search.measured(step, &measurement),
            Err(LoadError::Interrupted) => break,
            // If an earlier trial reached the server, the server broke under the load.
            Err(error @ LoadError::Unreachable { .. }) if search.trials() > 0 => search.broke(step, &error.to_string()),
            Err(error) => return Err(problem(&error, &trial.target)),
        };
        if !args.quiet {
            output::message(&told);
        }
    }
    let finding = search.finding(false);
    let warnings = vec!["all trials used the same server process; its state affects the result".to_owned()];
    let report = FindReport { version: FIND_VERSION, target: name.to_owned(), search: finding, warnings };
    output::json_or(args.json, &report, || report::find_terminal(&report, &output::style(false)))?;
    Ok(match report.search.bound {
        _ if signals::is_interrupted() => Exit::Interrupted,
        SearchBound::Found => Exit::Fine,
        SearchBound::Subject => Exit::Subject,
        SearchBound::Measuring => Exit::Machine,
    })
}
