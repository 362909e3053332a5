//! Tests of the schemas of outputs.

use std::path::Path;

fn schema(name: &str) -> serde_json::Value {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../../schemas/{name}.json"));
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

fn keys(schema: &serde_json::Value) -> (Vec<String>, Vec<String>) {
    let required =
        schema["required"].as_array().into_iter().flatten().filter_map(|key| key.as_str().map(str::to_owned));
    let described = schema["properties"]
        .as_object()
        .into_iter()
        .flatten()
        .filter(|(_, property)| !property["description"].is_null());
    (required.collect(), described.map(|(key, _)| key.clone()).collect())
}

#[test]
fn the_schema_of_a_load_has_the_keys_that_scripts_rely_on() {
    let schema = schema("load");
    let (required, described) = keys(&schema);
    for key in ["requests", "errors", "duration_s", "rate_per_s", "latency_ns", "generator"] {
        assert!(required.iter().any(|other| other == key), "{key} is required");
    }
    let properties = schema["properties"].as_object().unwrap();
    assert_eq!(described.len(), properties.len(), "every key is described");
    let (_, latency) = keys(&schema["$defs"]["LatencyNs"]);
    for key in ["mean", "p50", "p90", "p95", "p99", "p999", "max", "clock"] {
        assert!(latency.iter().any(|other| other == key), "{key}");
    }
}

#[test]
fn the_schema_of_a_workload_has_its_keys_described() {
    let schema = schema("workload");
    let (required, described) = keys(&schema);
    for key in ["version", "operations", "kinds", "distinct_keys", "footprint_bytes", "lengths", "fits"] {
        assert!(required.iter().any(|other| other == key), "{key} is required");
    }
    assert_eq!(described.len(), schema["properties"].as_object().unwrap().len(), "every key is described");
}

#[test]
fn findings_have_every_key_that_their_schema_requires() {
    let (run, records) = fixtures::volley();
    let value = serde_json::to_value(analysis::analyze(&run, &records)).unwrap();
    let schema = schema("findings");
    let (required, described) = keys(&schema);
    assert!(required.iter().all(|key| value.get(key).is_some()));
    let value = value.as_object().unwrap();
    assert!(value.keys().all(|key| described.contains(key)), "every key is described");
    let absent = described.iter().filter(|key| !value.contains_key(*key)).collect::<Vec<_>>();
    assert_eq!(
        absent,
        [
            "cluster",
            "commit",
            "cpu_profiles",
            "gate",
            "hosted",
            "imported",
            "nodes",
            "profile_differences",
            "unfinished"
        ],
        "the run of the example is complete, on one machine"
    );
}
