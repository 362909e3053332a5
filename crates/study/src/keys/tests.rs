//! Tests of declared keys: examples, help and schema.

use config::check_declared_examples::{self, read};
use config::{Report, Section, node, render_keys};

use super::*;

#[test]
fn examples_and_defaults_may_stand_where_they_are_shown() {
    for root in [&STUDY, &JOURNEY] {
        assert_eq!(check_declared_examples::mistakes(root), Vec::<String>::new());
    }
}

#[test]
fn changed_declaration_changes_all_outputs() {
    let changed = |from: &str, name: &'static str, kind: Kind, text: &'static str| -> &'static Keys {
        let mut keys = LOAD.keys.to_vec();
        let key = keys.iter_mut().find(|key| key.name == from).unwrap();
        (key.name, key.kind, key.text) = (name, kind, text);
        Box::leak(Box::new(Keys { name: "load", text: "Another", keys: keys.leak() }))
    };
    let other = changed("clients", "customers", Kind::Count(3, 7), "who comes");
    let key = other.get("customers").unwrap();
    assert_eq!(read(other, key, "8"), ["1:13: `load.customers` must be 3 to 7, not 8"]);
    assert_eq!(read(&LOAD, LOAD.get("clients").unwrap(), "8"), Vec::<String>::new());
    let text = "custmers = 5";
    let report = Report::new("the study", text, &[]);
    Section { name: "load".to_owned(), ..Section::whole(&node::document(text, &report), other, (), &report) }
        .check_keys();
    let told = report.finish().unwrap_err();
    assert_eq!(told[0].message, "unknown key `custmers` in `load`");
    assert_eq!(told[0].hint.as_deref(), Some("did you mean `customers`?"));
    assert!(render_keys::table(other).contains("| `customers` | who comes | a count, 3 to 7 | required | `40` |"));
    let help = render_keys::help(other, Some("load"), |keys| keys.name.to_owned()).unwrap();
    assert!(
        help.contains("customers = 40\n") && help.contains("who comes") && help.contains("a count, 3 to 7"),
        "{help}"
    );
    let schema = render_keys::schema(other, "Study", |_, _| true);
    let property = &schema["properties"]["customers"];
    assert_eq!((&property["description"], &property["anyOf"][0]["maximum"]), (&"who comes".into(), &7.into()));
    assert!(schema["properties"]["clients"].is_null());
}

#[test]
fn ranges_are_formatted_with_units() {
    let table = [
        (Kind::Count(1, 1_000_000), "1 to 1,000,000"),
        (Kind::Duration(10_000_000, 86_400_000_000_000), "10ms to 24h"),
        (Kind::Duration(0, 60_000_000_000), "0s to 1m"),
        (Kind::Fraction(0.0001, 0.5), "0.01 % to 50 %"),
        (Kind::Fraction(0.5, 0.9999), "50 % to 99.99 %"),
        (Kind::Fraction(0.0, 10.0), "0 to 10"),
        (Kind::Number(1e-6, 1e6), "0.000001 to 1,000,000"),
        (Kind::Number(-1e12, 1e12), "-1e12 to 1e12"),
        (Kind::Bytes(0, 64 << 20), "at most 64 MiB"),
        (Kind::Either(&[Kind::Count(1, 4096), Kind::Word("place", || vec!["subject"])]), "1 to 4,096, or \"subject\""),
        (Kind::Text, ""),
    ];
    for (kind, text) in table {
        assert_eq!(kind.range(), text);
    }
}

#[test]
fn texts_sort_load_keys_by_kind_of_load() {
    let keys = |kind| load_keys(kind).collect::<Vec<_>>().join(" ");
    let http = "path method headers body body_file request expect_status expect_body expect_json expect_matches \
                expect_length check pipeline http grpc proto messages streams stream_window connection_window header_table connection values requests_per_connection";
    assert_eq!(keys("HTTP"), http);
    assert_eq!(keys("https:"), "insecure ca_file cert_file key_file server_name resume");
    assert_eq!(keys("caches:"), "workload");
    assert_eq!(keys("journeys:"), "targets resolve keep_calls identities");
}
