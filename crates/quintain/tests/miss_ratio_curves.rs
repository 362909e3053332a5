//! Miss-ratio curves of real processes: a cache that implements its policy matches the replay, a different cache
//! deviates, and a missing program is reported as a row.

use crate::common::Folder;
use serde_json::Value;

/// Study with two memory limits below the footprint and three trials each.
const STUDY: &str = r#"
question = "Does it evict as it says?"
[subject]
command = "quintain serve cache --maxmem {cap} --evict {cache} --threads 1 -p {port}"
[subject.variants.wrong-lru]
command = "quintain serve cache --maxmem {cap} --evict fifo --threads 1 -p {port}"
[subject.variants.absent]
command = "no-such-cache-anywhere -p {port}"
[load]
protocol = "memcached"
clients = 8
share_cpus = true
warmup = { share = 0.5 }
stop = { requests = 20_000, max_time = "30s" }
timeout = "20s"
[load.workload]
preset = "etc-2012"
[load.workload.keys]
count = 4_000
[load.workload.operations]
get = 0.9
set = 0.07
delete = 0.02
read_modify_write = 0.01
[factors]
cache = ["lru", "wrong-lru", "absent"]
cap = ["100kB", "300kB"]
[trials]
stop = { metric = "hit_ratio", min = 3, max = 3 }
[[figure]]
kind = "miss-ratio"
x = "cap"
series = "cache"
policies = ["lru", "belady", "belady-size"]
"#;

#[test]
#[ignore = "slow: a run of 18 trials"]
fn miss_ratio_of_an_lru_cache_matches_its_replay() {
    let folder = Folder::new();
    folder.write("curves.toml", STUDY);
    let ran = folder.quintain(&["run", "curves.toml", "--seed", "7"]).expect(0);
    assert!(ran.err.contains("block"), "{}", ran.err);
    let findings = folder.quintain(&["report", "-f", "json"]).expect(0).json();
    let found = &findings["miss_ratios"][0];
    let points = |label: &str| {
        let curve = found["curves"].as_array().unwrap().iter().find(|curve| curve["label"] == label).unwrap();
        curve["points"].as_array().unwrap().clone()
    };
    let number = |value: &Value| value.as_f64().unwrap();
    for point in points("lru") {
        assert!((number(&point["miss_ratio"]) - number(&point["simulated"])).abs() < 0.002, "{point}");
        assert_eq!(point["strays"], false, "{point}");
    }
    assert!(points("wrong-lru").iter().any(|point| point["strays"] == true), "{found}");
    // Clairvoyant policies miss least, and knowing sizes reduces misses further.
    let policy = |name: &str, at: usize| {
        let policy = found["policies"].as_array().unwrap().iter().find(|policy| policy["name"] == name).unwrap();
        number(&policy["points"][at]["miss_ratio"])
    };
    for at in 0..2 {
        assert!(policy("belady-size", at) < policy("belady", at) && policy("belady", at) < policy("lru", at));
    }
    let absent = findings["rows"].as_array().unwrap().iter().find(|row| row["factors"]["cache"] == "absent").unwrap();
    assert_eq!(absent["state"]["state"], "unrunnable", "{absent}");
    assert_eq!(absent["state"]["reason"], "`no-such-cache-anywhere` is not installed");
    assert_eq!(folder.quintain(&["report", "-f", "json"]).expect(0).json(), findings);
    let rows = folder.quintain(&["report", "-f", "csv-miss-ratio"]).expect(0).out;
    assert_eq!(rows.lines().count(), 1 + 4 + 6, "{rows}");
}
