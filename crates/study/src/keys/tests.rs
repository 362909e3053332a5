use super::*;
use crate::node::{self, Place};
use crate::report::Report;
use crate::section::Section;
use std::borrow::Cow;

/// All tables of a study.
fn tables() -> Vec<&'static Keys> {
    let mut all = vec![&STUDY];
    let mut at = 0;
    while let Some(keys) = all.get(at).copied() {
        for table in keys.keys.iter().filter_map(|key| key.kind.table()) {
            if !all.iter().any(|known| std::ptr::eq(*known, table)) {
                all.push(table);
            }
        }
        at += 1;
    }
    all
}

/// Reads `key = value` as what the key is declared as; the mistakes.
fn read(keys: &'static Keys, key: &Key, value: &str) -> Vec<String> {
    let text = format!("{} = {value}", key.name);
    let report = Report::new(&text, &[]);
    let root = node::document(&text, &report);
    let (name, table) = (keys.name.to_owned(), Cow::Borrowed(&root));
    let section = Section { name, table, keys, place: Place::default(), settings: &[], report: &report };
    section.check_keys();
    let of = |kind: &Kind| match kind {
        Kind::Text => drop(section.text(key.name)),
        Kind::Flag => drop(section.flag(key.name)),
        Kind::Count(..) => drop(section.count(key.name)),
        Kind::Bytes(..) => drop(section.bytes(key.name)),
        Kind::Duration(..) => drop(section.duration_ns(key.name)),
        Kind::Rate => drop(section.rate_per_s(key.name)),
        Kind::Fraction(..) => drop(section.fraction(key.name)),
        Kind::Number(..) => drop(section.number(key.name)),
        Kind::Word(_, words) => {
            let words = words().into_iter().map(|word| (word, ())).collect::<Vec<_>>();
            let _ = section.choice(key.name, &words);
        }
        Kind::Table(_) | Kind::Named(_) | Kind::Variants => drop(section.section(key.name).map(|inner| inner.name)),
        Kind::List(_) | Kind::Tables(_) | Kind::Levels | Kind::Profile | Kind::Other(_) => {}
        Kind::Either(_) => unreachable!("one of them is looked at"),
    };
    match key.kind {
        // The example is of one of them.
        Kind::Either(_) => {}
        kind => of(&kind),
    }
    report.finish().map_or_else(|mistakes| mistakes.iter().map(ToString::to_string).collect(), |()| Vec::new())
}

#[test]
fn examples_and_defaults_may_stand_where_they_are_shown() {
    for keys in tables() {
        for key in keys.keys {
            assert_eq!(read(keys, key, key.example), Vec::<String>::new(), "{}.{}", keys.name, key.name);
            if let Missing::Is(default) = key.missing {
                assert_eq!(read(keys, key, default), Vec::<String>::new(), "{}.{}", keys.name, key.name);
            }
        }
        let mut names = keys.names().collect::<Vec<_>>();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), keys.keys.len(), "`{}` declares a key twice", keys.name);
    }
}

/// A changed declaration changes what is read, what is hinted, the page, the help and the schema.
#[test]
fn one_declaration_has_many_faces() {
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
    let misspelt = Key { name: "custmers", ..*key };
    let text = "custmers = 5";
    let report = Report::new(text, &[]);
    let root = node::document(text, &report);
    let (name, table) = ("load".to_owned(), Cow::Borrowed(&root));
    Section { name, table, keys: other, place: Place::default(), settings: &[], report: &report }.check_keys();
    let told = report.finish().unwrap_err();
    assert_eq!(told[0].message, format!("unknown key `{}` in `load`", misspelt.name));
    assert_eq!(told[0].hint.as_deref(), Some("did you mean `customers`?"));
    assert!(markdown(other).contains("| `customers` | who comes | a count, 3 to 7 | required | `40` |"));
    let help = help(other, Some("load")).unwrap();
    assert!(
        help.contains("customers = 40\n") && help.contains("who comes") && help.contains("a count, 3 to 7"),
        "{help}"
    );
    let schema = schema(other);
    let property = &schema["properties"]["customers"];
    assert_eq!((&property["description"], &property["anyOf"][0]["maximum"]), (&"who comes".into(), &7.into()));
    assert!(schema["properties"]["clients"].is_null());
}

#[test]
fn ranges_read_as_people_write_them() {
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
        (
            Kind::Either(&[Kind::Count(1, 4096), Kind::Word("place", words::cpus_of_subject)]),
            "1 to 4,096, or \"subject\"",
        ),
        (Kind::Text, ""),
    ];
    for (kind, text) in table {
        assert_eq!(kind.range(), text);
    }
}
