//! Tests of the plans of valid studies.

use proptest::prelude::*;
use study::plan::{BodyPlan, HttpRequestPlan, TableKind, TrialRule};
use study::spec::{Arrivals, Backend, ClientCertificate, Connection, Expect, Protocol, Stop, Tls, Warmup};
use study::{ExpandOptions, Level, Plan, Profile, expand, parse};

const STUDY: &str = r#"
question = "Which?"
[subject]
build = "make {server}"
command = "{server} -p {port}"
cpus = "{cores}"
environment = { THREADS = "{cores}", DEBUG = 0 }
[subject.variants.b]
build = ""
command = "b --port={port}"
[load]
protocol = "pingpong"
clients = "{clients}"
warmup = { requests = "10k" }
stop = { requests = 1_000_000, max_time = "10s" }
[factors]
server = ["a", "b"]
cores = "auto"
clients = [40, 80, 200]
[trials]
stop = { relative = "3%", max_time = "2m" }
[full.factors]
cores = [1, 40]
"#;

fn options(seed: u64, profile: Profile, machine_cpus: u32, sets: &[(&str, &str)]) -> ExpandOptions {
    let sets = sets.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
    ExpandOptions { name: "test".to_owned(), seed, profile, machine_cpus, generators_apart: false, sets }
}

fn plan(profile: Profile, machine_cpus: u32, sets: &[(&str, &str)]) -> Plan {
    let study = parse(STUDY).unwrap_or_else(|mistakes| panic!("{mistakes:#?}"));
    expand(&study, &options(1, profile, machine_cpus, sets)).unwrap_or_else(|mistakes| panic!("{mistakes:#?}"))
}

fn levels(plan: &Plan, factor: &str) -> Vec<String> {
    let mut levels = plan.points.iter().map(|point| point.factors[factor].to_string()).collect::<Vec<_>>();
    levels.dedup();
    levels
}

#[test]
fn points_combine_levels_with_the_first_factor_slowest() {
    let plan = plan(Profile::Default, 9, &[]);
    assert_eq!(plan.factors, ["server", "cores", "clients"]);
    assert_eq!(plan.points.len(), 2 * 4 * 3);
    assert_eq!(levels(&plan, "server"), ["a", "b"]);
    assert_eq!(levels(&plan, "clients")[..4], ["40", "80", "200", "40"]);
    let (first, last) = (&plan.points[0], &plan.points[23]);
    assert_eq!(first.subject.process.command, "a -p {port}");
    assert_eq!(first.subject.process.build.as_deref(), Some("make a"));
    assert_eq!(first.subject.process.environment["DEBUG"], "0");
    assert_eq!(
        (last.subject.process.command.as_str(), last.subject.process.build.as_deref()),
        ("b --port={port}", None)
    );
    assert_eq!((last.subject.cpus, last.subject.process.environment["THREADS"].as_str()), (8, "8"));
    assert_eq!(last.factors["clients"], Level::Integer(200));
    assert_eq!((last.load.clients, last.load.warmup), (200, Warmup::Requests(10_000)));
    assert_eq!(last.load.stop, Stop::Requests { requests: 1_000_000, max_ns: 10_000_000_000 });
    assert_eq!((last.load.backend, last.load.threads, last.load.share_cpus), (Backend::Auto, None, false));
}

#[test]
fn auto_levels_leave_one_cpu_to_the_generator() {
    let auto = |cpus, sets: &[(&str, &str)]| {
        let plan = plan(Profile::Default, cpus, &[&[("server", "a"), ("clients", "1")], sets].concat());
        levels(&plan, "cores").join(" ")
    };
    assert_eq!(auto(1, &[]), "1");
    assert_eq!(auto(2, &[]), "1");
    assert_eq!(auto(3, &[]), "1 2");
    assert_eq!(auto(80, &[]), "1 2 4 8 16 32 64");
    assert_eq!(auto(80, &[("load.cpus", "40")]), "1 2 4 8 16 32");
    assert_eq!(auto(2, &[("load.share_cpus", "true")]), "1 2");
    assert_eq!(auto(80, &[("cores", "3")]), "3");
}

#[test]
fn unrunnable_points_have_a_reason() {
    let unrunnable = |cpus, sets: &[(&str, &str)]| plan(Profile::Full, cpus, sets).points[5].unrunnable.clone();
    assert_eq!(unrunnable(41, &[]), None);
    let needs = |text: &str| Some(text.to_owned());
    assert_eq!(unrunnable(2, &[]), needs("needs 41 CPUs (40 for the server, 1 for the generator), has 2"));
    assert_eq!(
        unrunnable(44, &[("load.cpus", "8")]),
        needs("needs 48 CPUs (40 for the server, 8 for the generator), has 44")
    );
    assert_eq!(unrunnable(40, &[("load.share_cpus", "true")]), None);
    assert_eq!(
        unrunnable(39, &[("load.share_cpus", "true")]),
        needs("needs 40 CPUs (shared by server and generator), has 39")
    );
}

const HTTP: &str = r#"
question = "Which?"
[subject]
command = "{server} -p {port} -t {threads}"
cpus = { up_to = "{threads}" }
[load]
protocol = "https"
clients = 400
stop = "1s"
pipeline = "{depth}"
headers = { Accept = "text/plain", X-Server = "{server}" }
expect_status = [200, "3xx"]
expect_body = "test"
ca_file = "roots.pem"
cert_file = "client.pem"
values = { item = "rand:1..{depth}" }
[[load.request]]
path = "/{server}?item={{item}}&depth={depth}"
weight = 3
headers = { accept = "*/*", X-Number = 7 }
[[load.request]]
method = "POST"
path = "/echo"
body = '{ "server": "{server}" }'
[[load.request]]
method = "PUT"
body_file = "bodies/{server}.json"
[factors]
server = ["a", "b"]
threads = [1, 2, 40]
depth = [1, 16]
[[table]]
metric = "throughput"
title = "As the seed has it"
[[table]]
metrics = ["throughput", "latency_p99"]
[[figure]]
kind = "line"
x = "threads"
y = ["latency_p50", "latency_p99"]
facet = "server"
"#;

fn http(machine_cpus: u32, sets: &[(&str, &str)]) -> Plan {
    let study = parse(HTTP).unwrap_or_else(|mistakes| panic!("{mistakes:#?}"));
    expand(&study, &options(1, Profile::Default, machine_cpus, sets)).unwrap_or_else(|mistakes| panic!("{mistakes:#?}"))
}

#[test]
fn plans_http_requests() {
    let plan = http(80, &[]);
    let load = &plan.points.last().unwrap().load;
    let http = load.http.as_ref().unwrap();
    assert_eq!((load.protocol, load.pipeline, load.connection), (Protocol::Https, 16, Connection::KeepAlive));
    let shown = |request: &HttpRequestPlan| {
        let fields =
            request.headers.iter().map(|(name, value)| format!("{name}: {value}")).collect::<Vec<_>>().join(", ");
        let body = match &request.body {
            None => String::new(),
            Some(BodyPlan::Text(text)) => format!(" [{text}]"),
            Some(BodyPlan::File(path)) => format!(" <{path}>"),
        };
        format!("{} {} {} ({fields}){body}", request.weight, request.method, request.path)
    };
    let requests = http.requests.iter().map(shown).collect::<Vec<_>>();
    assert_eq!(
        requests,
        [
            "3 GET /b?item={{rand:1..16@item}}&depth=16 (X-Server: b, accept: */*, X-Number: 7)",
            "1 POST /echo (Accept: text/plain, X-Server: b) [{ \"server\": \"b\" }]",
            "1 PUT / (Accept: text/plain, X-Server: b) <bodies/b.json>",
        ]
    );
    assert_eq!(
        (http.expect.status.as_ref().unwrap().len(), http.expect.body.as_deref()),
        (101, Some(b"test".as_slice()))
    );
    let tls = Tls {
        server_name: "localhost".to_owned(),
        insecure: false,
        ca_file: Some("roots.pem".to_owned()),
        client: Some(ClientCertificate { cert_file: "client.pem".to_owned(), key_file: "client.pem".to_owned() }),
        resume: true,
    };
    assert_eq!(http.tls, Some(tls));
    assert_eq!(serde_json::from_str::<Plan>(&serde_json::to_string(&plan).unwrap()).unwrap(), plan);
}

#[test]
fn http_defaults_to_one_get_request() {
    let text =
        HTTP[..HTTP.find("pipeline").unwrap()].replace("https", "http") + &HTTP[HTTP.find("[factors]").unwrap()..];
    let text = text.replace("depth = [1, 16]\n", "");
    let study = parse(&text).unwrap_or_else(|mistakes| panic!("{mistakes:#?}"));
    let plan = expand(&study, &options(1, Profile::Default, 2, &[])).unwrap();
    let http = plan.points[0].load.http.as_ref().unwrap();
    assert_eq!((http.tls.as_ref(), &http.expect), (None, &Expect::default()));
    let [HttpRequestPlan { weight: 1, method, path, headers, body: None, name: None }] = http.requests.as_slice()
    else {
        panic!("{http:?}")
    };
    assert_eq!((method.as_str(), path.as_str(), headers.len()), ("GET", "/", 0));
    assert_eq!((plan.points[0].load.pipeline, plan.points[0].load.connection), (1, Connection::KeepAlive));
    let text = text.replace("clients = 400", "clients = 400\nrequests_per_connection = 9");
    let plan = expand(&parse(&text).unwrap(), &options(1, Profile::Default, 2, &[])).unwrap();
    assert_eq!(plan.points[0].load.connection, Connection::Requests(9));
}

#[test]
fn cpus_up_to_a_maximum_leave_the_generator_its_own() {
    let cpus = |machine_cpus, sets: &[(&str, &str)]| {
        let plan = http(machine_cpus, &[&[("server", "a"), ("depth", "1")], sets].concat());
        assert!(plan.points.iter().all(|point| point.unrunnable.is_none() || machine_cpus == 1));
        let of = |point: &study::Point| match point.subject.cpus_wanted {
            Some(wanted) => format!("{} of {wanted}", point.subject.cpus),
            None => point.subject.cpus.to_string(),
        };
        plan.points.iter().map(of).collect::<Vec<_>>().join(", ")
    };
    assert_eq!(cpus(2, &[]), "1, 1 of 2, 1 of 40");
    assert_eq!(cpus(80, &[]), "1, 2, 40");
    assert_eq!(cpus(41, &[("load.cpus", "8")]), "1, 2, 33 of 40");
    assert_eq!(cpus(2, &[("load.share_cpus", "true")]), "1, 2, 2 of 40");
    assert_eq!(cpus(80, &[("subject.cpus", "all"), ("load.cpus", "20")]), "60, 60, 60");
    assert_eq!(cpus(2, &[("subject.cpus", "all")]), "1, 1, 1");
    assert_eq!(cpus(1, &[]), "1, 1 of 2, 1 of 40");
    let alone = http(1, &[]).points[0].unrunnable.clone();
    assert_eq!(alone.as_deref(), Some("needs 2 CPUs (1 for the server, 1 for the generator), has 1"));
}

#[test]
fn plans_tables_and_figures_of_several_metrics() {
    let plan = http(2, &[]);
    let tables = plan.tables.iter().map(|table| (table.kind, table.metrics.join(" "), table.title.as_deref()));
    assert_eq!(
        tables.collect::<Vec<_>>(),
        [
            (TableKind::Statistics, "throughput".to_owned(), Some("As the seed has it")),
            (TableKind::Metrics, "throughput latency_p99".to_owned(), None),
        ]
    );
    assert_eq!(plan.figures[0].y.as_deref(), Some("latency_p50"));
    assert_eq!(plan.figures[0].y_more, ["latency_p99"]);
}

#[test]
fn sets_replace_levels_and_values_and_the_last_one_wins() {
    let sets = [
        ("clients", "7"),
        ("server", "b, c"),
        ("factors.clients", "9"),
        ("load.stop.duration", "2s"),
        ("load.warmup", "0s"),
        ("load.rate", "50k"),
        ("trials.stop", "{ min = 2 }"),
        ("subject.environment.PLACE", "here"),
    ];
    let plan = plan(Profile::Default, 2, &sets);
    assert_eq!((levels(&plan, "server").join(" "), levels(&plan, "clients").join(" ")), ("b c".into(), "9".into()));
    let point = &plan.points[1];
    assert_eq!(point.load.stop, Stop::Duration { duration_ns: 2_000_000_000 });
    assert_eq!(point.load.warmup, Warmup::DurationNs(0));
    assert_eq!(point.load.arrivals, Arrivals::Poisson { rate_per_s: 50_000.0 });
    assert_eq!((plan.trials.min, plan.trials.max, plan.trials.relative), (2, 2, None));
    assert_eq!(
        (point.subject.process.command.as_str(), point.subject.process.environment["PLACE"].as_str()),
        ("c -p {port}", "here")
    );
}

#[test]
fn profiles_override_single_keys() {
    let default = plan(Profile::Default, 2, &[]).trials;
    let rule = TrialRule {
        relative: Some(0.03),
        comparison: None,
        level: 0.95,
        metric: "latency_mean".to_owned(),
        min: 12,
        max: 30,
        max_ns: Some(120_000_000_000),
        quick: false,
    };
    assert_eq!(default, rule);
    assert_eq!(levels(&plan(Profile::Full, 2, &[("clients", "1")]), "cores"), ["1", "40", "1", "40"]);
    assert_eq!(plan(Profile::Full, 2, &[]).trials, rule);
    let quick = plan(Profile::Quick, 2, &[]).trials;
    assert_eq!(quick, TrialRule { relative: None, comparison: None, min: 3, max: 3, quick: true, ..rule });
    let without = parse(&STUDY.replace("[trials]\nstop = { relative = \"3%\", max_time = \"2m\" }\n", "")).unwrap();
    let quick = expand(&without, &options(1, Profile::Quick, 2, &[])).unwrap().trials;
    assert_eq!((quick.min, quick.max, quick.relative, quick.quick), (3, 3, None, true));
}

#[test]
fn plans_volley_and_interval_rules() {
    let stop = |value: &str| plan(Profile::Default, 2, &[("load.stop", value)]).points[0].load.stop;
    let volley = Stop::Volley { round_requests: 1_000_000, half_width_ns: 5_000, max_ns: 180_000_000_000 };
    assert_eq!(stop("{ rule = \"volley\" }"), volley);
    let interval = Stop::Interval { relative: 0.01, level: 0.99, max_ns: 60_000_000_000 };
    assert_eq!(stop("{ relative = \"1%\", level = 0.99 }"), interval);
}

#[test]
fn estimate_counts_trials_and_time() {
    let timed = [("load.stop", "1s"), ("load.warmup", "200ms"), ("server", "a"), ("cores", "1,40")];
    let estimate = |sets: &[(&str, &str)]| {
        let effort = plan(Profile::Default, 2, &[&timed, sets].concat()).estimate();
        let seconds = |seconds: f64| format!("{seconds:.1}");
        (effort.trials_min, effort.trials_max, seconds(effort.seconds_min), seconds(effort.seconds_max))
    };
    // Only three points can run, with trials of 1.5 s each; the others need 41 CPUs.
    assert_eq!(estimate(&[("trials.stop", "{ min = 4 }")]), (12, 12, "18.0".into(), "18.0".into()));
    assert_eq!(estimate(&[]), (36, 81, "54.0".into(), "124.5".into()));
    assert_eq!(estimate(&[("trials.stop.max_time", "20s")]), (15, 15, "22.5".into(), "24.5".into()));
    assert_eq!(estimate(&[("cores", "40")]), (0, 0, "0.0".into(), "0.0".into()));
    let counted = plan(Profile::Default, 2, &[("server", "a"), ("trials.stop", "{ min = 1 }")]).estimate();
    assert_eq!((counted.seconds_min, counted.seconds_max), (3.0 * 0.3, 3.0 * 10.3));
}

#[test]
fn plan_survives_json() {
    let plan = plan(Profile::Full, 2, &[]);
    assert_eq!(serde_json::from_str::<Plan>(&serde_json::to_string(&plan).unwrap()).unwrap(), plan);
}

proptest! {
    #[test]
    fn same_seed_gives_the_same_plan(seed: u64, block in 0u32..1000) {
        let study = parse(STUDY).unwrap();
        let plan = || expand(&study, &options(seed, Profile::Default, 80, &[])).unwrap();
        let (one, two) = (plan(), plan());
        prop_assert_eq!(one.order_of_block(block), two.order_of_block(block));
        prop_assert_eq!(one.trial_seed(block), two.trial_seed(block));
        prop_assert_eq!(&one, &two);
        let mut order = one.order_of_block(block);
        order.sort_unstable();
        prop_assert_eq!(order, (0..one.points.len()).collect::<Vec<_>>());
    }

    #[test]
    fn orders_and_seeds_differ_between_blocks(seed: u64, block in 0u32..1000) {
        let plan = expand(&parse(STUDY).unwrap(), &options(seed, Profile::Default, 80, &[])).unwrap();
        let next = expand(&parse(STUDY).unwrap(), &options(seed.wrapping_add(1), Profile::Default, 80, &[])).unwrap();
        // With 42 points, two equal orders are practically impossible.
        prop_assert_ne!(plan.order_of_block(block), plan.order_of_block(block + 1));
        prop_assert_ne!(plan.order_of_block(block), next.order_of_block(block));
        prop_assert_ne!(plan.trial_seed(block), plan.trial_seed(block + 1));
    }

    #[test]
    fn arbitrary_sets_never_panic(key in "[a-z.]{0,12}|load\\.[a-z.]{1,9}|cores", value in "\\PC{0,20}") {
        let study = parse(STUDY).unwrap();
        if let Err(mistakes) = expand(&study, &options(1, Profile::Quick, 2, &[(&key, &value)])) {
            for mistake in mistakes {
                let text = mistake.set.as_deref().unwrap_or(study.text());
                prop_assert!(text.get(mistake.span.clone()).is_some(), "{mistake:?}");
            }
        }
    }
}
