//! Reads the names and levels of `[factors]`.

use std::collections::BTreeSet;

use config::{Entry, Node, Place, Report, Table, Value};

use crate::expand::ExpandOptions;
use crate::factor_placeholders;
use crate::plan::Level;

const LEVEL_MAX_BYTES: usize = 256;

#[derive(Debug)]
pub(crate) struct Factor {
    pub(crate) name: String,
    pub(crate) place: Place,
    pub(crate) levels: Vec<(Level, Place)>,
}

impl Factor {
    pub(crate) fn is_numeric(&self) -> bool {
        self.levels.iter().all(|(level, _)| level.as_f64().is_some())
    }
}

/// Reads the factors. A factor with an invalid level keeps the valid ones, so that other keys can refer to it.
pub(crate) fn read(root: &Table, options: &ExpandOptions, report: &Report) -> Vec<Factor> {
    let Some(entry) = root.get("factors") else { return Vec::new() };
    let Value::Table(table) = &entry.node.value else {
        let message = format!("`factors` must be a table, not {}", entry.node.value.kind());
        report.mistake(entry.node.place, message, "begin it with `[factors]`".to_owned());
        return Vec::new();
    };
    table.iter().map(|entry| factor(entry, auto(root, options), report)).collect()
}

fn factor(entry: &Entry, auto: Vec<i64>, report: &Report) -> Factor {
    let Entry { key, key_place, node } = entry;
    if !factor_placeholders::is_name(key) || factor_placeholders::is_reserved(key) {
        let message = format!("`{}` is not a valid factor name", key.escape_debug());
        let hint = match key.as_str() {
            factor_placeholders::PORT => "`{port}` is the server's port",
            key if factor_placeholders::is_reserved(key) => "it is reserved: the lab sets it when it starts a proxy",
            _ => "use a letter, then letters, digits, `_` or `-`, so that `{name}` can refer to it",
        };
        report.mistake(*key_place, message, hint.to_owned());
    }
    let mut levels = match &node.value {
        Value::Text(word) if word == "auto" => auto.into_iter().map(|n| (Level::Integer(n), node.place)).collect(),
        Value::List(items) => items.iter().filter_map(|item| level(key, item, report)).collect::<Vec<_>>(),
        other => {
            let hint = format!("write `{key} = [{}]`", report.source(node.place));
            let message = format!("factor `{key}` must be a list of levels or \"auto\", not {}", other.kind());
            report.mistake(node.place, message, hint);
            Vec::new()
        }
    };
    let hint = "add a level, or drop the factor";
    let message = format!("factor `{key}` has no levels");
    report.rule(matches!(&node.value, Value::List(items) if items.is_empty()), node.place, message, hint);
    // Commands and tables identify levels by their string form.
    let mut seen = BTreeSet::new();
    levels.retain(|(level, place)| {
        let is_new = seen.insert(level.to_string());
        report.rule(!is_new, *place, format!("duplicate level `{level}` in factor `{key}`"), None);
        is_new
    });
    if levels.is_empty() {
        levels.push((Level::Integer(1), node.place));
    }
    Factor { name: key.clone(), place: *key_place, levels }
}

fn level(factor: &str, item: &Node, report: &Report) -> Option<(Level, Place)> {
    let is_template = |name: &&str| *name != factor_placeholders::PORT;
    let level = match &item.value {
        Value::Integer(level) => Ok(Level::Integer(*level)),
        Value::Number(level) => Ok(Level::Number(*level)),
        Value::Flag(level) => Ok(Level::Text(level.to_string())),
        Value::Text(level) if level.trim().is_empty() => Err("is empty".to_owned()),
        Value::Text(level) if level.len() > LEVEL_MAX_BYTES => Err("is too long: at most 256 bytes".to_owned()),
        Value::Text(level) if level.chars().any(char::is_control) => Err("contains a control character".to_owned()),
        Value::Text(level) if factor_placeholders::names(level).iter().any(is_template) => {
            Err("contains a template; levels are not expanded".to_owned())
        }
        Value::Text(level) => Ok(Level::Text(level.clone())),
        other => Err(format!("must be a number or a word, not {}", other.kind())),
    };
    let report = |problem| report.mistake(item.place, format!("a level of factor `{factor}` {problem}"), None);
    Some((level.map_err(report).ok()?, item.place))
}

fn auto(root: &Table, options: &ExpandOptions) -> Vec<i64> {
    let load = root.table("load");
    let value = |key: &str| load.and_then(|load| load.get(key)).map(|entry| &entry.node.value);
    let share = matches!(value("share_cpus"), Some(Value::Flag(true)));
    let cpus = if let Some(Value::Integer(cpus)) = value("cpus") { u32::try_from(*cpus).ok() } else { None };
    let most = options.machine_cpus.saturating_sub(options.generator_cpus(share, cpus)).max(1);
    std::iter::successors(Some(1), |level| Some(level * 2)).take_while(|level| *level <= i64::from(most)).collect()
}
