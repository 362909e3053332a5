//! Tests of studies with proxies.

use study::{ExpandOptions, Plan, Profile, expand, parse};

const STUDY: &str = r#"
question = "What does a proxy cost?"
[subject]
command = "server -p {port}"
[proxy.haproxy]
command = "haproxy -db -f {folder}/{kind}.cfg"
files = { "it.cfg" = "studies/{kind}.cfg" }
environment = { NEXT = "{next_port}" }
calls = "calls.csv"
[proxy.adapter]
command = "adapter {port} {next_port} {subject_port} {admin_port}"
cpus = 2
[load]
protocol = "http"
clients = 10
stop = "1s"
[factors]
through = ["direct", "haproxy", "haproxy + adapter"]
kind = ["plain", "large"]
[slopes]
over_requests = ["latency", "proxy_rss"]
[[figure]]
kind = "added"
y = ["latency_p50", "latency_p99"]
[[figure]]
kind = "memorychart"
"#;

fn options(machine_cpus: u32, sets: &[(&str, &str)]) -> ExpandOptions {
    let sets = sets.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
    ExpandOptions {
        name: "test".to_owned(),
        seed: 1,
        profile: Profile::Default,
        machine_cpus,
        generators_apart: false,
        sets,
    }
}

fn plan(machine_cpus: u32) -> Plan {
    let study = parse(STUDY).unwrap_or_else(|mistakes| panic!("{mistakes:#?}"));
    expand(&study, &options(machine_cpus, &[])).unwrap_or_else(|mistakes| panic!("{mistakes:#?}"))
}

fn mistakes(old: &str, new: &str) -> Vec<String> {
    assert!(STUDY.contains(old), "{old}");
    parse(&STUDY.replace(old, new)).expect_err("the study has errors").iter().map(ToString::to_string).collect()
}

#[test]
fn levels_select_proxies() {
    let plan = plan(8);
    let names = |at: usize| plan.points[at].proxies.iter().map(|proxy| proxy.name.as_str()).collect::<Vec<_>>();
    assert_eq!((names(0), names(2), names(4)), (vec![], vec!["haproxy"], vec!["haproxy", "adapter"]));
    let haproxy = &plan.points[3].proxies[0];
    assert_eq!(
        haproxy.process.command, "haproxy -db -f {folder}/large.cfg",
        "factors are filled in, the rest is the lab's"
    );
    assert_eq!(haproxy.files["it.cfg"], "studies/large.cfg");
    assert_eq!(
        (haproxy.process.environment["NEXT"].as_str(), haproxy.calls.as_deref()),
        ("{next_port}", Some("calls.csv"))
    );
    assert_eq!((haproxy.cpus, haproxy.process.ready_timeout_ns, haproxy.process.port), (0, 10_000_000_000, None));
    assert_eq!(plan.slopes, ["latency", "proxy_rss"]);
    assert_eq!(plan.figures[0].y_more, ["latency_p99"]);
}

#[test]
fn every_point_reserves_the_cpus_of_proxies() {
    let plan = plan(8);
    assert!(
        plan.points.iter().all(|point| (point.proxy_cpus, point.subject.cpus) == (2, 1) && point.unrunnable.is_none())
    );
    let small = self::plan(2);
    let reason = "needs 4 CPUs (1 for the server, 2 for proxies, 1 for the generator), has 2";
    assert!(small.points.iter().all(|point| point.unrunnable.as_deref() == Some(reason)));
}

#[test]
fn server_may_have_a_second_port() {
    let study = STUDY.replace("server -p {port}", "server -p {port} -q {second_port}");
    let plan = expand(&parse(&study).unwrap(), &options(8, &[])).unwrap();
    assert_eq!(plan.points[0].subject.process.command, "server -p {port} -q {second_port}");
    let told = mistakes("kind = [\"plain\", \"large\"]", "kind = [\"plain\"]\nsecond_port = [1]");
    assert!(told.iter().any(|told| told.contains("`second_port` is not a valid factor name")), "{told:?}");
}

#[test]
fn set_changes_a_key_of_a_proxy() {
    let study = parse(STUDY).unwrap();
    let plan =
        expand(&study, &options(8, &[("proxy.adapter.cpus", "subject"), ("through", "direct,adapter")])).unwrap();
    assert_eq!((plan.points.len(), plan.points[2].proxy_cpus), (4, 0));
    let wrong = expand(&study, &options(8, &[("through", "direct,haproxi")])).unwrap_err();
    assert_eq!(wrong[0].message, "unknown proxy `haproxi`");
    assert_eq!(wrong[0].hint.as_deref(), Some("did you mean `haproxy`?"));
}

#[test]
fn reports_all_errors_of_proxies() {
    for (old, new, told) in [
        ("\"haproxy + adapter\"", "\"haproxy + adaptor\"", "unknown proxy `adaptor`"),
        ("\"haproxy + adapter\"", "\"haproxy+haproxy\"", "duplicate proxy in `haproxy+haproxy`"),
        ("\"haproxy + adapter\"", "3", "a level of `through` must be `direct` or a proxy, not `3`"),
        ("through = [\"direct\", \"haproxy\", \"haproxy + adapter\"]", "", "no factor `through` selects"),
        ("[proxy.adapter]", "[proxy.direct]", "`direct` is not a valid proxy name"),
        ("cpus = 2", "cups = 2", "unknown key `cups` in `proxy.adapter`"),
        ("cpus = 2", "cpus = 0", "`proxy.adapter.cpus` must be 1 to 4,096, or \"subject\""),
        ("{port} {next_port} {subject_port} {admin_port}", "{next_port}", "`proxy.adapter.command` has no `{port}`"),
        ("{admin_port}", "{admin_prot}", "`{admin_prot}` does not name a factor"),
        ("calls = \"calls.csv\"", "calls = \"/tmp/calls.csv\"", "`/tmp/calls.csv` is not a plain file name"),
        ("server -p {port}", "server -p {port} {folder}", "`{folder}` does not name a factor"),
        ("\"latency\", \"proxy_rss\"", "\"latency\", \"proxy_rs\"", "unknown series `proxy_rs`"),
        ("kind = [\"plain\", \"large\"]", "kind = [\"plain\"]\nfolder = [1]", "`folder` is not a valid factor name"),
    ] {
        let found = mistakes(old, new);
        assert!(found.iter().any(|mistake| mistake.contains(told)), "{told}: {found:#?}");
    }
}

#[test]
fn direct_needs_no_proxy() {
    let study = STUDY.replace(", \"haproxy\", \"haproxy + adapter\"]", "]");
    assert!(parse(&study).is_ok());
}
