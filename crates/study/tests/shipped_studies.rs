//! Tests that the studies of this repository are valid and end within their stated time.

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
    let options = ExpandOptions {
        name: name.to_owned(),
        seed: 1,
        profile,
        machine_cpus,
        generators_apart: false,
        sets: Vec::new(),
    };
    expand(&study, &options).unwrap_or_else(|mistakes| panic!("{name} {profile:?}: {mistakes:#?}"))
}

fn names() -> Vec<String> {
    let entries = std::fs::read_dir(repository().join("studies")).unwrap().map(|entry| entry.unwrap().path());
    let studies = entries.filter(|path| path.extension().is_some_and(|extension| extension == "toml"));
    studies.map(|path| path.file_stem().unwrap().to_str().unwrap().to_owned()).collect()
}

#[test]
fn every_study_expands_in_every_profile_on_2_and_80_cpus() {
    let names = names();
    assert!(names.contains(&"volley".to_owned()));
    for name in names {
        for profile in Profile::ALL {
            for machine_cpus in [2, 80] {
                let plan = plan(&name, profile, machine_cpus);
                let runnable = plan.points.iter().filter(|point| point.unrunnable.is_none()).count();
                assert!(runnable > 0, "{name} {profile:?} on {machine_cpus}");
                assert_eq!(plan.trials.quick, profile == Profile::Quick);
                assert_eq!(plan.text, text(&name));
                for word in plan.points.iter().flat_map(|point| point.subject.process.command.split(' ')) {
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
fn default_volley_ends_within_10_minutes_on_2_cpus() {
    let plan = plan("volley", Profile::Default, 2);
    assert_eq!(plan.points.len(), 12);
    assert!(plan.points.iter().all(|point| point.subject.cpus == 1 && point.unrunnable.is_none()));
    let effort = plan.estimate();
    assert_eq!((effort.trials_min, effort.trials_max), (144, 360));
    assert!(effort.seconds_min < 200.0 && effort.seconds_max < 510.0, "{effort:?}");
    let quintain = plan.points.iter().find(|point| point.subject.process.build.is_none()).unwrap();
    assert_eq!(quintain.subject.process.command, "quintain serve pingpong --host {address} --threads 1 -p {port}");
    assert_eq!(plan.points[0].subject.process.build.as_deref(), Some("make -C subjects/c-epoll c-epoll"));
    assert_eq!(plan.figures[4].kind, FigureKind::Timeline);
}

#[test]
fn quick_run_and_build_fit_in_45_seconds() {
    for name in names() {
        let quick = plan(&name, Profile::Quick, 2);
        assert!(quick.estimate().seconds_max < 20.0, "{name}: {:?}", quick.estimate());
        assert!(matches!(
            quick.trials,
            TrialRule { min: 3, max: 3, quick: true, relative: None, comparison: None, .. }
        ));
    }
}

#[test]
fn cache_warms_up_by_share_or_until_steady() {
    let load = |text: &str| {
        let options = ExpandOptions {
            name: "cache".to_owned(),
            seed: 1,
            profile: Profile::Default,
            machine_cpus: 2,
            generators_apart: false,
            sets: Vec::new(),
        };
        let plan = parse(text).and_then(|study| expand(&study, &options));
        plan.map(|plan| plan.points[0].load.clone()).map_err(|found| format!("{found:?}"))
    };
    let text = text("cache-baseline");
    let baseline = load(&text).unwrap();
    assert_eq!((baseline.protocol.name(), baseline.warmup), ("memcached", study::spec::Warmup::Requests(500_000)));
    assert!(baseline.workload.unwrap().fill);
    let with = |warmup: &str| load(&text.replace("warmup = { share = 0.5 }", warmup));
    let steady = |seconds: u64| Some(study::spec::Warmup::Steady { max_ns: seconds * 1_000_000_000 });
    assert_eq!(with("").ok().map(|load| load.warmup), steady(60));
    assert_eq!(with("warmup = \"steady\"").ok().map(|load| load.warmup), steady(60));
    assert_eq!(with("warmup = { steady = \"5s\" }").ok().map(|load| load.warmup), steady(5));
    for (changed, words) in [
        (text.replace("\"memcached\"", "\"memcache\""), "did you mean `memcached`"),
        (text.replace("\"memcached\"", "\"http\""), "does not apply to protocol `http`"),
        (
            text.replace("stop = { requests = 1_000_000, max_time = \"2m\" }", "stop = \"5s\""),
            "a share needs \
                                                                                               `stop.requests`",
        ),
        (text.replace("clients = 50", "clients = 50\npath = \"/\""), "`load.path` does not apply"),
    ] {
        let found = load(&changed).unwrap_err();
        assert!(found.contains(words), "{words}: {found}");
    }
}

#[test]
fn full_volley_is_the_original_sweep() {
    let plan = plan("volley", Profile::Full, 2);
    assert_eq!(plan.points.len(), 13 * 14 * 3);
    let volley = Stop::Volley { round_requests: 1_000_000, half_width_ns: 5_000, max_ns: 180_000_000_000 };
    assert!(plan.points.iter().all(|point| point.load.stop == volley));
    assert_eq!(plan.points.iter().filter(|point| point.unrunnable.is_none()).count(), 13 * 3);
    assert_eq!(
        plan.points.last().unwrap().unrunnable.as_deref(),
        Some("needs 41 CPUs (40 for the server, 1 for the generator), has 2")
    );
    let on_80 = self::plan("volley", Profile::Full, 80);
    assert!(on_80.points.iter().all(|point| point.unrunnable.is_none()));
}

#[test]
fn http_threads_has_one_cpu_per_thread_if_possible() {
    let cpus = |profile, machine_cpus| {
        let plan = plan("http-threads", profile, machine_cpus);
        assert!(plan.points.iter().all(|point| point.unrunnable.is_none() && point.load.clients == 400));
        let of = |point: &study::Point| match point.subject.cpus_wanted {
            Some(wanted) => format!("{}/{wanted}", point.subject.cpus),
            None => point.subject.cpus.to_string(),
        };
        plan.points.iter().map(of).collect::<Vec<_>>().join(" ")
    };
    assert_eq!(cpus(Profile::Default, 2), "1 1/2 1/3 1/4 1/6 1/8 1/12");
    assert_eq!(cpus(Profile::Default, 80), "1 2 3 4 6 8 12");
    assert_eq!(cpus(Profile::Full, 80), "2 4 6 8 10 12");
    let plan = plan("http-threads", Profile::Default, 2);
    assert_eq!(plan.points[1].subject.process.command, "quintain serve http --host {address} --threads 2 -p {port}");
    let lasts = |plan: &Plan, ns| plan.points.iter().all(|at| at.load.stop == Stop::Duration { duration_ns: ns });
    assert!(lasts(&plan, 1_000_000_000));
    let effort = plan.estimate();
    assert!(effort.seconds_min < 420.0 && effort.seconds_max < 960.0, "{effort:?}");
    let full = self::plan("http-threads", Profile::Full, 2);
    assert!(lasts(&full, 5_000_000_000), "as the seed has it");
    let full = full.trials;
    assert_eq!((full.relative, full.min, full.max), (None, 10, 10), "ten trials of each, as the seed has it");
}

#[test]
fn http_servers_compares_all_http_servers() {
    let mut servers = std::fs::read_dir(repository().join("subjects"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| name.starts_with("http-"))
        .collect::<Vec<_>>();
    servers.push("quintain".to_owned());
    servers.sort();
    let plan = plan("http-servers", Profile::Full, 2);
    let mut compared = plan.points.iter().map(|point| point.factors["server"].to_string()).collect::<Vec<_>>();
    compared.sort();
    compared.dedup();
    assert_eq!(compared, servers);
    let effort = self::plan("http-servers", Profile::Default, 2).estimate();
    assert!(effort.seconds_min < 420.0 && effort.seconds_max < 960.0, "{effort:?}");
}

#[test]
fn http_latency_runs_at_shares_of_one_capacity() {
    let plan = plan("http-latency", Profile::Default, 2);
    let is_search = |point: &&study::Point| point.load.search.is_some();
    let (capacities, shares) = plan.points.iter().partition::<Vec<_>, _>(is_search);
    assert_eq!((capacities.len(), shares.len()), (1, 10));
    let mut found = shares.iter().map(|point| point.load.share.unwrap()).collect::<Vec<_>>();
    found.sort_by(|a, b| a.share.total_cmp(&b.share));
    assert_eq!((found[0].share, found[9].share), (0.1, 0.95));
    assert!(found.iter().all(|share| plan.points[share.point].load.search.is_some()));
    let effort = plan.estimate();
    assert!(effort.seconds_min < 480.0 && effort.seconds_max < 1_300.0, "{effort:?}");
}

#[test]
fn open_loop_offers_its_rates() {
    let plan = plan("pingpong-open", Profile::Default, 2);
    let rates = plan.points.iter().map(|point| point.load.arrivals).collect::<Vec<_>>();
    let poisson = |rate_per_s| Arrivals::Poisson { rate_per_s };
    assert_eq!(rates, [5e3, 1e4, 2e4, 4e4].map(poisson));
}
