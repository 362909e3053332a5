//! Applies `--set KEY=VALUE` to a study and reports errors as for values in the file.

use config::place::span_of;
use config::{Entry, Node, Place, Report, Table, Value, node, suggestion};

use crate::keys::allowed_words::chooses;

const TABLES: [&str; 5] = ["subject", "proxy", "load", "trials", "factors"];

pub(crate) fn apply(root: &mut Table, sets: &[(String, String)], report: &Report) {
    for (index, (key, value)) in sets.iter().enumerate() {
        let at = |start: usize, end: usize| Place { set: Some(index), start, end };
        let value_place = at(key.len() + 1, key.len() + 1 + value.len());
        if let Some(factor) = key.strip_prefix("factors.").or((!key.contains('.')).then_some(key.as_str())) {
            let levels = levels(value, value_place, report);
            let names = root.table("factors").into_iter().flat_map(Table::keys).map(str::to_owned).collect::<Vec<_>>();
            match root.table_mut("factors").and_then(|factors| factors.get_mut(factor)) {
                Some(entry) => entry.node = levels,
                None => {
                    let place = at(key.len() - factor.len(), key.len());
                    let hint = suggestion(factor, names.iter().map(String::as_str));
                    report.mistake(place, format!("the study has no factor `{factor}`"), hint);
                }
            }
        } else {
            let node = node::value(value, value_place, report);
            let node = node.unwrap_or_else(|| Node { value: Value::Text(value.clone()), place: value_place });
            set_value(root, key, index, node, report);
        }
    }
}

fn levels(text: &str, place: Place, report: &Report) -> Node {
    if text.trim() == "auto" {
        return Node { value: Value::Text("auto".to_owned()), place };
    }
    let item = |word: &str| {
        let place = place.part(span_of(word, text));
        let node = node::value(word, place, report).filter(|node| !matches!(node.value, Value::Other(_)));
        node.unwrap_or_else(|| Node { value: Value::Text(word.to_owned()), place })
    };
    let words = text.split(',').map(str::trim).filter(|_| !text.trim().is_empty());
    Node { value: Value::List(words.map(item).collect()), place }
}

fn set_value(root: &mut Table, key: &str, index: usize, node: Node, report: &Report) {
    let segments = key.split('.').collect::<Vec<_>>();
    let whole = Place { set: Some(index), start: 0, end: key.len() };
    let place_of = |segment: usize| whole.part(span_of(segments[segment], key));
    if !TABLES.contains(&segments[0]) {
        let hint = suggestion(segments[0], TABLES);
        report.mistake(place_of(0), format!("the study has no table `{}`", segments[0]), hint);
        return;
    }
    if segments.len() > 8 || segments.contains(&"") {
        report.mistake(place_of(0), format!("`{key}` is not a valid key"), None);
        return;
    }
    let mut table = root;
    for (depth, segment) in segments[..segments.len() - 1].iter().enumerate() {
        let key_place = place_of(depth);
        let empty = Value::Table(Table::default());
        if table.table(segment).is_none() {
            table.put(Entry { key: (*segment).to_owned(), key_place, node: Node { value: empty, place: key_place } });
        }
        table = table.table_mut(segment).expect("just inserted");
    }
    let last = segments.len() - 1;
    // A new rule replaces all keys of the study's rule. Keys from other `--set` flags remain.
    if last == 2 && segments[0] == "load" && chooses(segments[1], segments[last]) {
        table.retain(|entry| entry.node.place.set.is_some() && !chooses(segments[1], &entry.key));
    }
    const TARGETS: [&str; 2] = ["comparison", "relative"];
    if last == 2 && segments[..2] == ["trials", "stop"] && TARGETS.contains(&segments[last]) {
        table.retain(|entry| entry.node.place.set.is_some() || !TARGETS.contains(&entry.key.as_str()));
    }
    table.put(Entry { key: segments[last].to_owned(), key_place: place_of(last), node });
}
