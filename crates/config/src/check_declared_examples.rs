//! Checks declarations in tests: every example and default must be a valid value of its key.

use std::borrow::Cow;

use crate::error_collector::Report;
use crate::keys::{Key, Keys, Kind, Missing};
use crate::node;
use crate::place::Place;
use crate::render_keys::tables;
use crate::section::Section;

/// Finds invalid examples, invalid defaults and keys declared twice, in `root` and all tables below it.
pub fn mistakes(root: &'static Keys) -> Vec<String> {
    let mut wrong = Vec::new();
    for keys in tables(root) {
        for (index, key) in keys.keys.iter().enumerate() {
            if keys.keys[..index].iter().any(|other| other.name == key.name) {
                wrong.push(format!("`{}` declares `{}` twice", keys.name, key.name));
            }
            wrong.extend(read(keys, key, key.example));
            if let Missing::Is(default) = key.missing {
                wrong.extend(read(keys, key, default));
            }
        }
    }
    wrong
}

/// Reads `key = value` as declared and returns the errors. Skips [`Kind::Other`], [`Kind::Either`] and most lists.
pub fn read(keys: &'static Keys, key: &Key, value: &str) -> Vec<String> {
    let text = format!("{} = {value}", key.name);
    let report = Report::new("the example", &text, &[]);
    let root = node::document(&text, &report);
    let (name, table) = (keys.name.to_owned(), Cow::Borrowed(&root));
    let section = Section { name, table, keys, place: Place::default(), fill: (), report: &report };
    section.check_keys();
    match &key.kind {
        Kind::Text | Kind::Form(..) | Kind::Name(_) => drop(section.text(key.name)),
        Kind::Flag => drop(section.flag(key.name)),
        Kind::Duration(..) | Kind::LongDuration(..) => drop(section.duration_ns(key.name)),
        Kind::Rate => drop(section.rate_per_s(key.name)),
        Kind::Count(..) | Kind::Bytes(..) | Kind::Fraction(..) | Kind::Number(..) => {
            let _ = section.numeric(key.name, |_| true, "a number");
        }
        Kind::Word(..) => drop(section.word(key.name)),
        Kind::List(Kind::Text | Kind::Form(..)) => drop(section.texts(key.name)),
        Kind::List(Kind::Word(..)) => drop(section.choices(key.name)),
        Kind::Table(_) | Kind::Named(_) | Kind::Variants => drop(section.section(key.name).map(|inner| inner.name)),
        Kind::Tables(_) => drop(section.tables(key.name, "each").len()),
        Kind::List(_) | Kind::Other(..) | Kind::Either(_) => {}
    }
    report.finish().map_or_else(|mistakes| mistakes.iter().map(ToString::to_string).collect(), |()| Vec::new())
}
