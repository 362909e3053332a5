//! Tests of studies whose question is about the effects of factors.

use study::plan::{Design, FigureKind};
use study::{ExpandOptions, Level, Plan, Profile, expand, parse};

const STUDY: &str = r#"
question = "What changes the speed of the server?"
[subject]
build = "cc -O{optimisation} -o server-O{optimisation} server.c"
command = "./server-O{optimisation} --maxmem {maxmem} -p {port}"
[load]
protocol = "pingpong"
clients = "{clients}"
stop = "1s"
[factors]
optimisation = [0, 2]
maxmem = ["1MB", "10MB"]
clients = [40, 80, 200]
[[figure]]
kind = "interaction"
x = "maxmem"
series = "optimisation"
y = ["throughput", "latency_p95"]
"#;

fn plan(text: &str) -> Plan {
    let options = ExpandOptions {
        name: "test".to_owned(),
        seed: 1,
        profile: Profile::Default,
        machine_cpus: 2,
        generators_apart: false,
        sets: Vec::new(),
    };
    let study = parse(text).unwrap_or_else(|mistakes| panic!("{mistakes:#?}"));
    expand(&study, &options).unwrap_or_else(|mistakes| panic!("{mistakes:#?}"))
}

fn mistakes(text: &str) -> Vec<String> {
    parse(text).expect_err("the study has errors").iter().map(ToString::to_string).collect()
}

#[test]
fn builds_are_a_factor_of_a_full_factorial() {
    let plan = plan(STUDY);
    assert_eq!((plan.effects.design, &plan.effects.metrics, plan.points.len()), (Design::Full, &None, 12));
    let builds = plan.points.iter().filter_map(|point| point.subject.process.build.as_deref());
    let builds = builds.collect::<std::collections::BTreeSet<_>>();
    assert_eq!(
        builds.into_iter().collect::<Vec<_>>(),
        ["cc -O0 -o server-O0 server.c", "cc -O2 -o server-O2 server.c"]
    );
    assert_eq!(plan.points[11].subject.process.command, "./server-O2 --maxmem 10MB -p {port}");
}

#[test]
fn interaction_makes_one_figure_per_metric() {
    let plan = plan(STUDY);
    let figures = plan.figures.iter().map(|figure| {
        assert_eq!((figure.kind, figure.x.as_deref()), (FigureKind::Interaction, Some("maxmem")));
        assert!(figure.y_more.is_empty() && figure.series.as_deref() == Some("optimisation"));
        figure.y.as_deref().unwrap()
    });
    assert_eq!(figures.collect::<Vec<_>>(), ["throughput", "latency_p95"]);
}

#[test]
fn one_at_a_time_changes_one_factor_per_point() {
    let plan = plan(&STUDY.replace("[subject]", "design = \"one-at-a-time\"\n[subject]"));
    assert_eq!(plan.effects.design, Design::OneAtATime);
    let first = [Level::Integer(0), Level::Text("1MB".to_owned()), Level::Integer(40)];
    let changed = plan.points.iter().map(|point| {
        let levels = plan.factors.iter().zip(&first).filter(|(name, first)| point.factors[*name] != **first);
        levels.map(|(name, _)| format!("{name} {}", point.factors[name])).collect::<Vec<_>>().join(", ")
    });
    assert_eq!(changed.collect::<Vec<_>>(), ["", "clients 80", "clients 200", "maxmem 10MB", "optimisation 2"]);
}

#[test]
fn metrics_may_be_named_or_empty() {
    let with =
        |lines: &str| plan(&STUDY.replace("[[figure]]", &format!("[effects]\n{lines}\n[[figure]]"))).effects.metrics;
    assert_eq!(
        with("metrics = [\"latency_p99\", \"throughput\"]"),
        Some(vec!["latency_p99".to_owned(), "throughput".to_owned()])
    );
    assert_eq!(with("metrics = []"), Some(Vec::new()));
}

#[test]
fn mistakes_are_named() {
    let replaced = |old: &str, new: &str| mistakes(&STUDY.replace(old, new));
    assert_eq!(replaced("[subject]", "design = \"half\"\n[subject]"), ["3:10: unknown design `half`"]);
    assert_eq!(replaced("[[figure]]", "[effects]\n[[figure]]"), ["14:2: `effects` has no `metrics`"]);
    assert_eq!(
        replaced("[[figure]]", "[effects]\nmetrics = \"throughput\"\nmetric = 1\n[[figure]]"),
        ["15:11: `effects.metrics` must be a list, not a string", "16:1: unknown key `metric` in `effects`"]
    );
    assert_eq!(
        replaced("series = \"optimisation\"", "series = \"maxmem\""),
        ["17:10: an interaction needs two factors, `x` and `series`"]
    );
    assert_eq!(replaced("series = \"optimisation\"\n", ""), ["14:1: `figure` has no `series`"]);
}
