//! The studies of this repository are read, expanded, and end in the time they say.

use std::path::{Path, PathBuf};

use study::plan::{FigureKind, TrialRule};
use study::spec::{Arrivals, Stop};
use study::{ExpandOptions, Plan, Profile, expand, parse};

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn text(name: &str) -> String {
    std::fs::read_to_string(repository().join("studies").join(format!("{name}.toml"))).unwrap()
}

fn plan(name: &str, profile: Profile, machine_cpus: u32) -> Plan {
    let study = parse(&text(name)).unwrap_or_else(|mistakes| panic!("{name}: {mistakes:#?}"));
    let options = ExpandOptions { name: name.to_owned(), seed: 1, profile, machine_cpus, sets: Vec::new() };
    expand(&study, &options).unwrap_or_else(|mistakes| panic!("{name} {profile}: {mistakes:#?}"))
}

fn names() -> Vec<String> {
    let entries = std::fs::read_dir(repository().join("studies")).unwrap().map(|entry| entry.unwrap().path());
    let studies = entries.filter(|path| path.extension().is_some_and(|extension| extension == "toml"));
    studies.map(|path| path.file_stem().unwrap().to_str().unwrap().to_owned()).collect()
}

#[test]
fn every_study_expands_in_every_profile_on_2_and_80_processors() {
    let names = names();
    assert!(names.contains(&"volley".to_owned()));
    for name in names {
        for profile in Profile::ALL {
            for machine_cpus in [2, 80] {
                let plan = plan(&name, profile, machine_cpus);
                let runnable = plan.points.iter().filter(|point| point.unrunnable.is_none()).count();
                assert!(runnable > 0, "{name} {profile} on {machine_cpus}");
                assert_eq!(plan.trials.quick, profile == Profile::Quick);
                assert_eq!(plan.text, text(&name));
                // What a point builds or starts is there.
                for word in plan.points.iter().flat_map(|point| point.subject.command.split(' ')) {
                    if let Some(path) = word.strip_prefix("subjects/") {
                        let folder = repository().join("subjects").join(path.split('/').next().unwrap());
                        assert!(folder.join("Makefile").is_file(), "{name}: {}", folder.display());
                    }
                }
            }
        }
    }
}

#[test]
fn volley_by_default_ends_within_10_minutes_on_2_processors() {
    let plan = plan("volley", Profile::Default, 2);
    assert_eq!(plan.points.len(), 12);
    assert!(plan.points.iter().all(|point| point.subject.cpus == 1 && point.unrunnable.is_none()));
    let effort = plan.estimate();
    assert_eq!((effort.trials_min, effort.trials_max), (96, 300));
    assert!(effort.seconds_min < 200.0 && effort.seconds_max < 510.0, "{effort:?}");
    let quintain = plan.points.iter().find(|point| point.subject.build.is_none()).unwrap();
    assert_eq!(quintain.subject.command, "quintain serve pingpong --threads 1 -p {port}");
    assert_eq!(plan.points[0].subject.build.as_deref(), Some("make -C subjects/c-epoll c-epoll"));
    assert_eq!(plan.figures[4].kind, FigureKind::Timeline);
}

#[test]
fn a_quick_look_leaves_time_for_the_build_within_45_seconds() {
    for name in names() {
        let quick = plan(&name, Profile::Quick, 2);
        assert!(quick.estimate().seconds_max < 20.0, "{name}: {:?}", quick.estimate());
        assert!(matches!(quick.trials, TrialRule { min: 3, max: 3, quick: true, relative: None, .. }));
    }
}

#[test]
fn volley_in_full_is_the_sweep_of_volley() {
    let plan = plan("volley", Profile::Full, 2);
    assert_eq!(plan.points.len(), 13 * 14 * 3);
    let volley = Stop::Volley { round_requests: 1_000_000, half_width_ns: 5_000, max_ns: 180_000_000_000 };
    assert!(plan.points.iter().all(|point| point.load.stop == volley));
    assert_eq!(plan.points.iter().filter(|point| point.unrunnable.is_none()).count(), 13 * 3);
    assert_eq!(
        plan.points.last().unwrap().unrunnable.as_deref(),
        Some("needs 41 processors (40 for the subject, 1 for the generator), has 2")
    );
    let on_80 = self::plan("volley", Profile::Full, 80);
    assert!(on_80.points.iter().all(|point| point.unrunnable.is_none()));
}

#[test]
fn the_open_loop_offers_its_rates() {
    let plan = plan("pingpong-open", Profile::Default, 2);
    let rates = plan.points.iter().map(|point| point.load.arrivals).collect::<Vec<_>>();
    let poisson = |rate_per_s| Arrivals::Poisson { rate_per_s };
    assert_eq!(rates, [5e3, 1e4, 2e4, 4e4].map(poisson));
}
