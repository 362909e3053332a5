use std::collections::BTreeSet;

use super::*;
use claim::Look;

#[test]
fn the_page_has_every_claim_as_it_is_declared() {
    let text = std::fs::read_to_string(crate::tidy::root().join(PAGE)).unwrap();
    let of_page = text.split("\n### ").skip(1).map(|part| {
        let part = part.split("\n## ").next().unwrap();
        let (declared, answer) = part.split_once("- Found: ").unwrap_or((part, ""));
        assert!(answer.contains("\n- Verdict: **"), "{part}");
        format!("### {declared}")
    });
    let declared = declared::claims().iter().map(declaration).collect::<Vec<_>>();
    let of_page = of_page.collect::<Vec<_>>();
    for (of_page, declared) in of_page.iter().zip(&declared) {
        assert_eq!(of_page, declared, "`cargo xtask claims --write` writes it anew");
    }
    assert_eq!(of_page.len(), declared.len());
}

#[test]
fn claims_are_whole() {
    let claims = declared::claims();
    let ids = claims.iter().map(|claim| claim.id.as_str()).collect::<BTreeSet<_>>();
    assert_eq!(ids.len(), claims.len(), "names are unique");
    for claim in &claims {
        let tested = !matches!(claim.look, Look::Untested { .. } | Look::Drawn { .. });
        assert_eq!(tested, matches!(claim.command, Command::Run { .. }), "{}", claim.id);
        assert!(claim.statement.ends_with(['.', ')']), "{}", claim.id);
    }
    for source in Source::ALL {
        assert!(claims.iter().any(|claim| claim.source == source), "{source:?}");
    }
}

#[test]
fn every_run_expands_and_has_the_design_points_of_its_claims() {
    for claim in declared::claims() {
        if !matches!(claim.command, Command::Run { .. }) {
            continue;
        }
        // As many processors as any claim needs.
        let plan = expanded(&claim.command, 64).unwrap_or_else(|error| panic!("{}: {error}", claim.id));
        assert!(plan.trials.min >= judge::BLOCKS_MIN as u32, "{}: {:?}", claim.id, plan.trials);
        for at in claim.look.places() {
            let of_place = plan.points.iter().filter(|point| judge::has(&point.factors, &at)).collect::<Vec<_>>();
            assert!(!of_place.is_empty(), "{}: no design point at {at:?}", claim.id);
            assert!(of_place.iter().all(|point| point.unrunnable.is_none()), "{}: {at:?}", claim.id);
        }
    }
}

#[test]
fn a_set_that_would_not_expand_is_found() {
    let command = Command::Run { study: "volley", sets: vec!["corse=1".to_owned()] };
    assert!(expanded(&command, 4).unwrap_err().contains("corse"));
}

/// A run that a claim about `volley` could be answered by.
fn example() -> Stored {
    let (mut run, records) = analysis::example::volley();
    run.command = ["quintain", "run", "volley"].map(str::to_owned).to_vec();
    run.profile = "default".to_owned();
    run.state = Some(RunState::Complete);
    Stored { run, records, findings: OnceCell::new() }
}

/// A claim about a design point of the example.
fn of_example() -> Claim {
    let at = [("server", "c-epoll"), ("cores", "1"), ("clients", "40")];
    let at = at.into_iter().map(|(factor, level)| (factor.to_owned(), level.to_owned())).collect();
    let range = claim::Range { low: 0.0, high: f64::INFINITY };
    let declared = declared::claims().swap_remove(0);
    let command = Command::Run { study: "volley", sets: vec!["load.warmup=1s".to_owned()] };
    Claim { command, look: Look::Value { metric: "throughput", at, range }, ..declared }
}

#[test]
fn a_run_answers_that_has_the_rows_and_nothing_else_set() {
    let claim = of_example();
    let answers = |change: &dyn Fn(&mut Run)| {
        let mut stored = example();
        change(&mut stored.run);
        run_of(&claim, &[stored]).is_some()
    };
    let set = |run: &mut Run, set: &str| run.command.extend(["--set".to_owned(), set.to_owned()]);
    assert!(answers(&|_| {}));
    assert!(answers(&|run| set(run, "cores=1,2")), "a factor");
    assert!(answers(&|run| set(run, "trials.stop.min=30")), "more trials");
    assert!(answers(&|run| set(run, "load.warmup=1s")), "as the claim sets it");
    assert!(!answers(&|run| set(run, "load.warmup=9s")));
    assert!(!answers(&|run| run.command.push("--set=load.pipeline=8".to_owned())));
    assert!(!answers(&|run| run.plan.study = "another".to_owned()));
    assert!(!answers(&|run| run.plan.points.remove(0).factors.clear()), "no such design point");
}

#[test]
fn a_store_has_the_runs_that_ended_latest_first() {
    let directory = tempfile::tempdir().unwrap();
    let store = Store::open(directory.path().join("quintain.db")).unwrap();
    let add = |name: &str, started: &str, profile: &str, state: Option<RunState>| {
        let Stored { run, records, .. } = example();
        let (id, started, profile) = (name.to_owned(), started.to_owned(), profile.to_owned());
        store.begin_run(&Run { id: id.clone(), started, profile, state, ..run }).unwrap();
        store.add_record(&id, &records[0]).unwrap();
    };
    add("early", "2026-11-20T00:00:00Z", "default", Some(RunState::Complete));
    add("late", "2026-11-21T00:00:00Z", "full", Some(RunState::OutOfTime));
    add("quick", "2026-11-22T00:00:00Z", "quick", Some(RunState::Complete));
    add("interrupted", "2026-11-23T00:00:00Z", "default", Some(RunState::Interrupted));
    add("killed", "2026-11-24T00:00:00Z", "default", Some(RunState::Running));
    add("unknown", "2026-11-25T00:00:00Z", "default", None);
    let found = stored(&store).unwrap();
    assert_eq!(found.iter().map(|stored| stored.run.id.as_str()).collect::<Vec<_>>(), ["late", "early"]);
    assert_eq!(found[0].records.len(), 1);
}

#[test]
fn a_page_of_runs_names_them_and_says_what_is_missing() {
    let (claim, stored) = (of_example(), example());
    let untested = declared::claims().into_iter().find(|claim| matches!(claim.look, Look::Untested { .. })).unwrap();
    let text = page(&[claim.clone(), untested], &[stored]);
    let run = example().run;
    assert!(text.contains(&format!("| `{}` | {} | {} |", run.id, run.started, run.host.cpu_model)), "{text}");
    assert!(text.contains("- Verdict: **cannot be told here**: 8 trials. Needed: 12 or more\n"), "{text}");
    assert!(
        text.contains("**cannot be told here**: a lock of Linux 3.16 under 40 cores. Needed: `--profile`"),
        "{text}"
    );
    assert!(text.contains("| All | 2 | 0 | 0 | 2 |"), "{text}");
    let text = page(&[claim], &[]);
    assert!(text.contains("**cannot be told here**: no run in the store. Needed: that run\n"), "{text}");
}

#[test]
fn commands_come_once_and_with_quotes_where_a_shell_needs_them() {
    let claim = of_example();
    let text = commands(&[claim.clone(), claim]).unwrap();
    assert_eq!(text.lines().filter(|line| line.starts_with("quintain run")).count(), 1, "{text}");
    let command = Command::Run { study: "whip", sets: vec!["through=client + server".to_owned()] };
    assert_eq!(command.to_string(), "quintain run whip --set 'through=client + server'");
}
