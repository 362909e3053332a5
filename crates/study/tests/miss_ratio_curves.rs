//! Tests of studies with miss-ratio curves.

use study::plan::{Figure, FigureKind};
use study::{ExpandOptions, Level, Plan, Profile, expand, parse};

const STUDY: &str = r#"
question = "How much memory does which cache need?"
[subject]
command = "quintain serve cache --maxmem {cap}MiB --evict {server} -p {port}"
[load]
protocol = "memcached"
clients = 10
stop = "1s"
workload.preset = "course"
[factors]
server = ["lru", "redis-density", "density"]
cap = [1, 2, 4]
[[figure]]
kind = "miss-ratio"
x = "cap"
unit = "MiB"
series = "server"
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

fn figure(text: &str) -> Figure {
    let [figure] = plan(text).figures.try_into().unwrap();
    figure
}

fn mistakes(old: &str, new: &str) -> Vec<String> {
    parse(&STUDY.replace(old, new)).expect_err("the study has errors").iter().map(ToString::to_string).collect()
}

#[test]
fn capacities_are_numbers_or_words_with_a_unit() {
    let numbers = figure(STUDY);
    assert_eq!((numbers.kind, numbers.x_unit_bytes), (FigureKind::MissRatio, Some(1 << 20)));
    assert_eq!(numbers.capacity_bytes(&Level::Integer(4)), Some(4 << 20));
    assert_eq!(numbers.capacity_bytes(&Level::Number(0.5)), Some(512 << 10));
    let words = figure(
        &STUDY
            .replace("[1, 2, 4]", "[\"250kB\", \"1MiB\"]")
            .replace("{cap}MiB", "{cap}")
            .replace("unit = \"MiB\"\n", ""),
    );
    assert_eq!(words.capacity_bytes(&Level::Text("250kB".to_owned())), Some(250_000));
    for none in [Level::Text("much".to_owned()), Level::Integer(0), Level::Integer(-1)] {
        assert_eq!(words.capacity_bytes(&none), None, "{none}");
    }
}

#[test]
fn level_of_a_series_ends_with_its_policy() {
    let named = STUDY.replace("unit =", "policies = [\"lru\", \"density\", \"none\"]\nunit =");
    let figure = figure(&named);
    let of = |word: &str| figure.policy_of(Some(&Level::Text(word.to_owned()))).map(str::to_owned);
    for (word, policy) in [
        ("lru", Some("lru")),
        ("redis-density", Some("density")),
        ("redis-lfu", None),
        ("nolru", None),
        ("x-none", Some("none")),
    ] {
        assert_eq!(of(word).as_deref(), policy, "{word}");
    }
    assert_eq!(figure.policy_of(Some(&Level::Integer(1))), None);
    assert_eq!(figure.policy_of(None), None);
}

#[test]
fn policies_have_defaults() {
    assert_eq!(figure(STUDY).policies, ["lru", "belady", "belady-size"]);
    assert_eq!(figure(&STUDY.replace("unit =", "policies = []\nunit =")).policies, [""; 0]);
}

#[test]
fn mistakes_are_named() {
    assert_eq!(mistakes("x = \"cap\"\n", ""), ["13:1: `figure` has no `x`"]);
    assert_eq!(
        mistakes("x = \"cap\"", "x = \"server\""),
        ["15:5: a miss-ratio curve needs memory limits on `x`, but factor `server` has the level `lru`"]
    );
    assert_eq!(mistakes("\"MiB\"", "\"miles\""), ["16:8: `miles` is not a unit of memory"]);
    assert_eq!(
        mistakes("unit =", "policies = [\"lru\", \"lru\", \"lfu\", 3]\nunit ="),
        [
            "16:20: duplicate policy `lru`",
            "16:27: unknown policy `lfu`",
            "16:34: a policy must be a name, not an integer",
        ]
    );
    assert_eq!(
        mistakes("unit =", "y = \"hit_ratio\"\nunit ="),
        ["16:5: `figure.y` does not apply to a figure of kind `miss-ratio`"]
    );
    assert_eq!(
        mistakes("kind = \"miss-ratio\"", "kind = \"line\"\ny = \"hit_ratio\"\npolicies = []"),
        [
            "16:12: `figure.policies` does not apply to a figure of kind `line`",
            "18:8: `figure.unit` does not apply to a figure of kind `line`",
        ]
    );
}

#[test]
fn level_may_have_its_own_load() {
    let text =
        STUDY.replace("[factors]", "[load.variants.redis-density]\nprotocol = \"redis\"\nclients = 3\n[factors]");
    for point in plan(&text).points {
        let is_redis = point.factors["server"] == Level::Text("redis-density".to_owned());
        let expected = if is_redis { ("redis", 3) } else { ("memcached", 10) };
        assert_eq!((point.load.protocol.name(), point.load.clients), expected);
    }
    assert_eq!(
        mistakes("[factors]", "[load.variants.redis-density]\nprotocl = \"redis\"\n[factors]"),
        ["11:1: unknown key `protocl` in `load.variants.redis-density`"]
    );
    assert_eq!(
        mistakes("[factors]", "[load.variants.valkey]\nprotocol = \"redis\"\n[factors]"),
        ["10:16: variant `valkey` is not a level of any factor"]
    );
}
