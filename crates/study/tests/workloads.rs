//! Tests of parsing `[load.workload]`: every error is reported with its place.

use stats::Distribution;
use study::workload::{self, NewKey, Popularity, SizeLaw, ValueLength, trace};

fn read(text: &str) -> study::Workload {
    study::parse_workload(text).unwrap_or_else(|mistakes| panic!("{mistakes:#?}"))
}

fn mistakes(text: &str) -> String {
    let mistakes = study::parse_workload(text).expect_err("it is mistaken");
    let line = |mistake: &study::Diagnostic| match &mistake.hint {
        Some(hint) => format!("{mistake} | {hint}"),
        None => mistake.to_string(),
    };
    mistakes.iter().map(line).collect::<Vec<_>>().join("\n")
}

#[test]
fn parses_a_preset() {
    assert_eq!(read("[load.workload]\npreset = \"etc-2012\""), workload::preset("etc-2012").unwrap());
}

#[test]
fn keys_override_a_preset() {
    let workload = read(
        r#"
        [load.workload]
        preset = "course"
        operations = { delete = 0 }
        fill = false
        ttl = "1m"
        [load.workload.keys]
        reuse = 0.5
        popularity = "recency"
        max = 100
        [load.workload.values]
        size = { law = "gamma", shape = 1, scale = 400 }
        length = "per-set"
        "#,
    );
    let mut expected = workload::preset("course").unwrap();
    expected.operations.delete = 0.0;
    expected.fill = false;
    expected.ttl = vec![workload::Ttl { seconds: 60, share: 1.0 }];
    expected.keys.reuse = Some(0.5);
    expected.keys.popularity = Popularity::Recency;
    expected.keys.max_bytes = 100;
    expected.values.size = Distribution::Gamma { shape: 1.0, scale: 400.0 }.into();
    expected.values.length = ValueLength::PerSet;
    assert_eq!(workload, expected);
}

#[test]
fn parses_a_workload_without_preset() {
    let workload = read(
        r#"
        [load.workload]
        operations = { get = 9, set = 1 }
        ttl = [{ time = "24h", share = 0.5 }, { time = "2s", share = 0.25 }]
        keys = { count = "1M", popularity = "hot-set", hot_keys = 100, hot_share = "0.9", shift_every = "200k", one_hit = 0.1, size = { law = "constant", bytes = 20 } }
        values.size = { law = "empirical", values = [[2, 0.3], [10, 20, 0.4]], tail = { law = "pareto", location = 20, scale = 100, shape = 0.3, weight = 0.3 } }
        values.max = "64KiB"
        "#,
    );
    assert!(workload.fill && workload.preset.is_none() && workload.keys.new == NewKey::Any);
    assert_eq!(workload.keys.popularity, Popularity::HotSet { keys: 100, share: 0.9 });
    assert_eq!(
        (workload.keys.count, workload.keys.shift_every, workload.values.max_bytes),
        (1_000_000, Some(200_000), 65_536)
    );
    assert_eq!(workload.ttl.iter().map(|ttl| ttl.seconds).collect::<Vec<_>>(), [86_400, 2]);
    let SizeLaw::Empirical { values, tail: Some(tail) } = &workload.values.size else { panic!("{workload:?}") };
    assert_eq!((values.as_slice(), tail.weight), (&[(2.0, 2.0, 0.3), (10.0, 20.0, 0.4)][..], 0.3));
}

#[test]
fn parses_a_trace() {
    let text = "[load.workload]\ntrace = { file = \"t.csv\", format = \"twitter\", gaps = \"recorded\", speed = 2 }";
    let workload = read(text);
    let trace = workload.trace.unwrap();
    assert_eq!(
        (trace.file.as_str(), trace.format, trace.gaps),
        ("t.csv", trace::Format::Twitter, workload::Gaps::Recorded)
    );
    assert_eq!((trace.speed, workload.fill), (2.0, false));
    let filled = |rest: &str| read(&format!("[load.workload]\ntrace = {{ file = \"t\", {rest}")).fill;
    assert!(filled("format = \"oracle-general\" }"));
    assert!(filled("format = \"meta-kv\" }\nfill = true"));
    assert_eq!(
        mistakes("[load.workload]\ntrace = { file = \"t\", format = \"plain\", gaps = \"recorded\" }"),
        "1:7: `load.workload.values` has no `size` | add `size = { law = \"gamma\", shape = 4, scale = 7 }`\n\
         2:48: `load.workload.trace.gaps`: a `plain` trace has no times | drop `gaps`"
    );
}

#[test]
fn file_may_have_only_the_workload_keys() {
    let body = "preset = \"course\"\nfill = false\nkeys.reuse = 0.5\n";
    assert_eq!(read(body), read(&format!("[load.workload]\n{body}")));
    assert_eq!(
        mistakes("preset = \"course\"\nfil = 3"),
        "2:1: unknown key `fil` in `load.workload` | did you mean `fill`?"
    );
    // With `[load.workload]`, the string is a study, whose other keys are ignored.
    assert_eq!(read("preset = \"x\"\n[load.workload]\npreset = \"course\"").preset.as_deref(), Some("course"));
}

#[test]
fn first_levels_fill_the_workload() {
    let text = "[load.workload]\npreset = \"course\"\nvalues.size = { law = \"gamma\", shape = \"{a}\", scale = 200 }\n[factors]\na = [2.5, 1]";
    assert_eq!(read(text).values.size, Distribution::Gamma { shape: 2.5, scale: 200.0 }.into());
}

#[test]
fn all_mistakes_at_once() {
    let text = r#"
[load.workload]
preset = "etc-2021"
operations = { get = -1, sett = 2 }
fill = "maybe"
ttl = "5"
[load.workload.keys]
popularity = "zip"
count = 0.5
hot_share = 0.5
size = { law = "gama", shape = 1 }
[load.workload.values]
size = { law = "gamma", shape = 1 }
length = "per-value"
"#;
    insta::assert_snapshot!(mistakes(text));
}

#[test]
fn rejects_incompatible_keys() {
    let check = |keys: &str, expected: &str| {
        let text = format!("[load.workload]\npreset = \"ycsb-a\"\nkeys = {{ {keys} }}");
        assert_eq!(mistakes(&text), expected, "{keys}");
    };
    check(
        "popularity = \"recency\"",
        "3:23: `load.workload.keys.popularity`: `recency` needs `keys.reuse`: only keys created during the load have \
         ages | add `reuse = 0.96`, or choose `zipf`",
    );
    check("new = \"set\"", "3:16: `load.workload.keys.new`: only works with `keys.reuse`");
    check(
        "reuse = 0.9, shift_every = 5",
        "3:37: `load.workload.keys.shift_every`: cannot be combined with `keys.reuse` | with `reuse` the popular keys \
         change anyway",
    );
    check(
        "popularity = \"hot-set\", hot_keys = 200_000, hot_share = 0.9",
        "3:45: `load.workload.keys.hot_keys`: must be 1 to 100000, the number of keys, not 200000",
    );
    check(
        "popularity = \"loop\", exponent = 1",
        "3:42: `exponent` does not apply to popularity `loop` | set `popularity = \"zipf\"`, or drop it",
    );
}

#[test]
fn rejects_shares_of_times_to_live_above_1() {
    assert_eq!(
        mistakes("preset = \"course\"\nttl = [{ time = \"1h\", share = 0.9 }, { time = \"2h\", share = 0.9 }]"),
        "2:7: `load.workload.ttl`: times to live must be 1s to 30 days, and their shares must sum to at most 1"
    );
}

#[test]
fn rejects_scans_and_missing_workloads() {
    assert_eq!(
        mistakes("[load.workload]\npreset = \"ycsb-e\""),
        "2:10: `ycsb-e` scans key ranges, which no supported cache protocol can do | available: `ycsb-a` to `ycsb-d` \
         and `ycsb-f`"
    );
    assert_eq!(
        mistakes(""),
        "1:1: the study has no `[load.workload]` | add `[load.workload]` with `preset = \"etc-2012\"`"
    );
    assert_eq!(
        mistakes("[load.workload]\npreset = \"course\"\ngaps = \"recorded\""),
        "3:1: unknown key `gaps` in `load.workload` | available: `preset`, `operations`, `fill`, `ttl`, `keys`, `values`, `trace`"
    );
}

#[test]
fn rejects_a_workload_for_pingpong() {
    let text = "question = \"?\"\n[subject]\ncommand = \"x {port}\"\n[load]\nprotocol = \"pingpong\"\nclients = 1\nstop = \"1s\"\n[load.workload]\npreset = \"course\"\n";
    let mistakes = study::parse(text).unwrap_err();
    assert_eq!(mistakes.len(), 1, "{mistakes:?}");
    assert_eq!(mistakes[0].to_string(), "8:7: `load.workload` does not apply to protocol `pingpong`");
}
