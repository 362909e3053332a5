//! Tests of companions that are kept or restarted, or that fail.

use std::time::Duration;

use study::plan::CompanionPlan;
use study::record::{FailureKind, Outcome, Record};

use super::{here, options, plan, point, process, stand_in};
use crate::{Cause, Hooks};

fn companion(name: &str, command: &str, fresh: bool) -> CompanionPlan {
    CompanionPlan { name: name.to_owned(), process: process(command), fresh, ..CompanionPlan::default() }
}

fn run(command: &str, companions: Vec<CompanionPlan>, trials: u32) -> Vec<Record> {
    let folder = tempfile::tempdir().unwrap();
    let mut point = point(command);
    point.companions = companions;
    let mut records = Vec::new();
    let mut hooks = Hooks {
        store: &mut |record| {
            records.push(record.clone());
            Ok(())
        },
        next: &mut |_, _| study::Next::Trial(None),
        progress: &mut |_| {},
        interrupted: &|| false,
    };
    let options = options(stand_in(folder.path(), "quintain"));
    let ended = crate::run(&plan(vec![point], trials), &[], &[], &options, &mut hooks).unwrap();
    assert_eq!(ended, Cause::Complete);
    records
}

#[test]
fn keeps_companions_unless_they_are_fresh() {
    let well = "quintain serve well {port}";
    let both = vec![companion("kept", well, false), companion("fresh", well, true)];
    let records = run("quintain serve well {port} {kept_port}", both, 2);
    let [first, second] = records.as_slice() else { panic!("{records:?}") };
    for record in [first, second] {
        assert!(record.measurement().is_some(), "{:?}", record.outcome);
        let [kept, fresh] = record.companions.as_slice() else { panic!("{:?}", record.companions) };
        assert_eq!((kept.name.as_str(), fresh.name.as_str()), ("kept", "fresh"));
        assert_eq!(record.subject.command.last(), kept.used.port.map(|port| port.to_string()).as_ref());
        assert_eq!((kept.used.exit.as_deref(), fresh.used.exit.as_deref()), (None, Some("signal 15")));
        assert!([kept, fresh].iter().all(|one| one.used.measured_ns > 0 && !one.used.samples.is_empty()));
        assert!(
            !crate::ports_and_readiness::answers(here(kept.used.port.unwrap()), Duration::from_secs(1)),
            "it ends with the run"
        );
    }
    let ports = |at: usize| [first, second].map(|record| record.companions[at].used.port);
    assert_eq!(ports(0)[0], ports(0)[1]);
    assert_ne!(ports(1)[0], ports(1)[1]);
    assert_eq!([first, second].map(|record| record.companions[0].ready_ns.is_some()), [true, false]);
}

#[test]
fn failing_companions_are_named() {
    for (command, message) in [
        ("quintain serve early-exit {port}", "companion `db`: exited (exit 7) before port "),
        (
            "quintain serve crash {port}",
            "companion `db`: exited (signal 9) under load; last output: something is rotten",
        ),
    ] {
        let records = run("quintain serve forward {port} {db_port}", vec![companion("db", command, false)], 2);
        assert_eq!(records.len(), 2, "the next trial starts it again");
        for record in &records {
            let Outcome::Failed(failure) = &record.outcome else { panic!("{:?}", record.outcome) };
            assert_eq!(failure.kind, FailureKind::Companion, "{failure:?}");
            assert!(failure.message.starts_with(message), "{failure:?}");
        }
    }
}
