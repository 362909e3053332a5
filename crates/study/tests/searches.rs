//! Tests of studies that search for a rate.

use study::plan::{CapacityShare, SearchPlan};
use study::spec::Arrivals;
use study::{Diagnostic, ExpandOptions, Plan, Profile, expand, parse};

const SEARCH: &str = r#"
question = "Which holds more?"
[subject]
command = "{server} -p {port}"
[load]
protocol = "pingpong"
clients = 40
stop = "5s"
search = { objective = "p99 < 5ms and errors < 0.1%", from = "1k", to = "1M" }
[factors]
server = ["a", "b"]
"#;

const SHARES: &str = r#"
question = "What does load do to latency?"
[subject]
command = "{server} -p {port}"
[load]
protocol = "pingpong"
clients = "{clients}"
stop = "500ms"
rate = "{load}%"
arrivals = "constant"
capacity = { objective = "p99 < 5ms", resolution = "10%", confirm = 2, max_steps = 30, max_time = "5m" }
[factors]
server = ["a", "b"]
clients = [10, 40]
load = [10, 50, 95]
"#;

fn plan_of(text: &str, profile: Profile, sets: &[(&str, &str)]) -> Plan {
    let study = parse(text).unwrap_or_else(|mistakes| panic!("{mistakes:#?}"));
    let sets = sets.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
    let options =
        ExpandOptions { name: "test".to_owned(), seed: 1, profile, machine_cpus: 2, generators_apart: false, sets };
    expand(&study, &options).unwrap_or_else(|mistakes| panic!("{mistakes:#?}"))
}

fn plan(text: &str) -> Plan {
    plan_of(text, Profile::Default, &[])
}

#[test]
fn search_is_a_point_without_a_rate() {
    let plan = plan(SEARCH);
    assert_eq!(plan.points.len(), 2);
    let expected = SearchPlan {
        objective: study::Objective::parse("p99 < 5ms and errors < 0.1%").unwrap(),
        from_per_s: Some(1_000.0),
        to_per_s: Some(1e6),
        resolution: 0.05,
        confirm: 3,
        pilot_ns: 1_000_000_000,
        trials_max: 60,
        max_ns: None,
        first: false,
    };
    for point in 0..2 {
        assert_eq!(plan.points[point].load.search.as_ref(), Some(&expected));
        assert!(matches!(plan.points[point].load.arrivals, Arrivals::Poisson { .. }));
        assert_eq!((plan.trials_max(point), plan.comes_first(point)), (60, false));
    }
    let stored = serde_json::to_string(&plan).unwrap();
    assert!(stored.contains(r#""objective":"p99 < 5ms and errors < 0.1%""#), "{stored}");
    assert_eq!(serde_json::from_str::<Plan>(&stored).unwrap(), plan);
}

#[test]
fn objective_may_be_a_factor() {
    let text = SEARCH.replace("p99 < 5ms and errors < 0.1%", "p99 < {bound}") + "bound = [\"1ms\", \"5ms\"]\n";
    let bounds = plan(&text).points.into_iter().map(|point| point.load.search.unwrap().objective.to_string());
    assert_eq!(bounds.collect::<Vec<_>>(), ["p99 < 1ms", "p99 < 5ms", "p99 < 1ms", "p99 < 5ms"]);
    let set = plan_of(SEARCH, Profile::Default, &[("load.search.objective", "mean < 1ms"), ("load.search.to", "5k")]);
    let search = set.points[0].load.search.clone().unwrap();
    assert_eq!((search.objective.to_string().as_str(), search.to_per_s), ("mean < 1ms", Some(5_000.0)));
}

#[test]
fn shares_use_one_capacity_per_combination_of_other_factors() {
    let plan = plan(SHARES);
    assert_eq!(plan.points.len(), 2 * 2 * 3 + 4);
    let share = |point: usize| plan.points[point].load.share;
    for (point, percent) in [(0, 0.1), (1, 0.5), (2, 0.95)] {
        assert_eq!(share(point), Some(CapacityShare { share: percent, point: 12 }));
    }
    assert_eq!([3, 6, 9, 11].map(|point| share(point).unwrap().point), [13, 14, 15, 15]);
    let capacity = &plan.points[13];
    let levels = capacity.factors.iter().map(|(name, level)| format!("{name} {level}")).collect::<Vec<_>>();
    assert_eq!(levels, ["clients 40", "server a"]);
    assert_eq!(
        (capacity.subject.process.command.as_str(), capacity.load.clients, capacity.load.share),
        ("a -p {port}", 40, None)
    );
    let search = capacity.load.search.as_ref().unwrap();
    assert_eq!((search.objective.to_string().as_str(), search.resolution, search.confirm), ("p99 < 5ms", 0.1, 2));
    assert_eq!((search.trials_max, search.max_ns, search.pilot_ns), (30, Some(300_000_000_000), 500_000_000));
    assert!(matches!(capacity.load.arrivals, Arrivals::Constant { .. }));
    assert!((0..12).all(|point| !plan.comes_first(point)) && (12..16).all(|point| plan.comes_first(point)));
    assert_eq!((plan.trials_max(0), plan.trials_max(12)), (30, 30));
    let mut order = plan.order_of_block(0);
    order.sort_unstable();
    assert_eq!(order, (0..16).collect::<Vec<_>>());
}

#[test]
fn rates_and_shares_can_be_mixed() {
    let text = SHARES.replace("{load}%", "{load}").replace("[10, 50, 95]", "[\"50%\", \"2k\"]");
    let plan = plan(&text);
    assert_eq!(plan.points.len(), 2 * 2 * 2 + 4);
    assert!(plan.points[0].load.share.is_some() && plan.points[1].load.share.is_none());
    assert_eq!(plan.points[1].load.arrivals, Arrivals::Constant { rate_per_s: 2_000.0 });
}

#[test]
fn estimates_the_duration_of_searches() {
    let plan = plan(SEARCH);
    let effort = plan.estimate();
    // With `from` there is no pilot. At least one trial finds a rate, and three more confirm it.
    assert_eq!((effort.trials_min, effort.trials_max), (2 * 4, 2 * 60));
    assert!((effort.seconds_max - 120.0 * 6.3).abs() < 1e-6, "{effort:?}");
    let effort = plan_of(SEARCH, Profile::Default, &[("load.search.max_time", "1m")]).estimate();
    assert!((effort.seconds_max - 2.0 * 66.3).abs() < 1e-6, "{effort:?}");
    assert_eq!(effort.trials_max, 2 * 10);
    let effort = self::plan(SHARES).estimate();
    assert_eq!((effort.trials_min, effort.trials_max), (12 * 12 + 4 * 4, 12 * 30 + 4 * 30));
}

fn shown(text: &str, diagnostics: &[Diagnostic]) -> String {
    let line = |diagnostic: &Diagnostic| {
        let source = diagnostic.set.as_deref().unwrap_or(text);
        let hint = diagnostic.hint.as_ref().map(|hint| format!("\n    hint: {hint}")).unwrap_or_default();
        format!("{diagnostic}\n    here: {:?}{hint}", &source[diagnostic.span.clone()])
    };
    diagnostics.iter().map(line).collect::<Vec<_>>().join("\n")
}

fn mistakes(text: &str) -> String {
    shown(text, &parse(text).expect_err("the study has errors"))
}

#[test]
fn reports_all_errors_of_a_search() {
    let text = SEARCH
        .replace("p99 < 5ms and errors < 0.1%", "p98 < 5ms and errors < 5")
        .replace("to = \"1M\"", "to = \"1M\", resolution = \"90%\", confirm = 0, steps = 5")
        .replace("stop = \"5s\"", "stop = { requests = 1000 }\nrate = \"10k\"\nloop = \"closed\"\nthink = \"1ms\"")
        + "[trials]\nstop = { min = 5, level = 0.9 }\n";
    insta::assert_snapshot!(mistakes(&text), @r#"
    8:8: trials of `load.search` must end after a time
        here: "{ requests = 1000 }"
        hint: write `stop = "5s"`: above its capacity a server never catches up
    9:8: `load.rate` cannot be combined with `load.search`
        here: "\"10k\""
        hint: drop it: the search chooses the rates
    10:8: a search needs an open loop
        here: "\"closed\""
        hint: drop `loop`
    11:9: `load.think` cannot be combined with `load.search`
        here: "\"1ms\""
        hint: drop it: the search chooses the rates
    12:25: `load.search.objective`: unknown metric `p98`
        here: "p98"
        hint: did you mean `p90`?
    12:48: `load.search.objective`: the bound of `errors`: `5` is out of range: 0 to 1, or 0% to 100%
        here: "5"
    12:89: `load.search.resolution` must be 0.5 % to 50 %, not `90%`
        here: "\"90%\""
    12:106: `load.search.confirm` must be 1 to 20, not 0
        here: "0"
    12:109: unknown key `steps` in `load.search`
        here: "steps"
        hint: available: `objective`, `from`, `to`, `resolution`, `confirm`, `max_steps`, `max_time`
    16:10: `trials.stop.min` does not apply: all trials are steps of a search
        here: "min"
        hint: use `confirm` and `max_steps` of `load.search`
    "#);
}

#[test]
fn search_needs_an_objective_and_ordered_rates() {
    let text = SEARCH.replace("objective = \"p99 < 5ms and errors < 0.1%\", from = \"1k\"", "from = \"2M\"");
    insta::assert_snapshot!(mistakes(&text), @r#"
    9:1: `load.search` has no `objective`
        here: "search"
        hint: add `objective = "p99 < 5ms"`
    9:30: `load.search.to` is below `from`
        here: "\"1M\""
    "#);
}

#[test]
fn rejects_trial_counts_for_searches() {
    insta::assert_snapshot!(mistakes(&(SEARCH.to_owned() + "[trials]\nstop = { min = 5, max_time = \"1h\" }\n")), @r#"
    13:10: `trials.stop.min` does not apply: all trials are steps of a search
        here: "min"
        hint: use `confirm` and `max_steps` of `load.search`
    "#);
    plan(&(SEARCH.to_owned() + "[trials]\nstop = { level = 0.9, max_time = \"1h\" }\n"));
}

#[test]
fn shares_and_capacities_need_each_other() {
    let capacity = SHARES.lines().find(|line| line.starts_with("capacity")).unwrap();
    insta::assert_snapshot!(mistakes(&SHARES.replace(capacity, "")), @r#"
    9:8: `load.rate` is a fraction of a capacity, but `load.capacity` is missing
        here: "\"{load}%\""
        hint: add `capacity = { objective = "p99 < 5ms" }`, or give a rate
    "#);
    insta::assert_snapshot!(mistakes(&SHARES.replace("{load}%", "{load}")), @r#"
    11:12: `load.capacity` is never used
        here: "{ objective = \"p99 < 5ms\", resolution = \"10%\", confirm = 2, max_steps = 30, max_time = \"5m\" }"
        hint: write `rate = "80%"`, or rename it to `search`
    "#);
    insta::assert_snapshot!(mistakes(&SHARES.replace("[10, 50, 95]", "[10, 0, 300, \"x\"]")), @r#"
    9:8: `load.rate` must be 0.1 % to 200 % of the capacity, not `0%`
        here: "\"{load}%\""
    "#);
    let both = SEARCH.replace("search = {", "capacity = { objective = \"mean < 1s\" }\nsearch = {");
    insta::assert_snapshot!(mistakes(&both), @r#"
    9:12: `load.search` already finds the capacity
        here: "{ objective = \"mean < 1s\" }"
        hint: drop one of the two
    "#);
}

#[test]
fn error_in_a_level_points_to_the_level() {
    let text =
        SEARCH.replace("\"p99 < 5ms and errors < 0.1%\"", "\"{goal}\"") + "goal = [\"p99 < 5ms\", \"p99 < 5\"]\n";
    insta::assert_snapshot!(mistakes(&text), @r#"
    12:29: `load.search.objective`: the bound of `p99`: `5` needs a unit: ns, us, ms, s, m, h
        here: "5"
        hint: a time, such as `5ms`
    "#);
}
