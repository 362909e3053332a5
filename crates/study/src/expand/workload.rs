//! Reads `[load.workload]` as a [`Workload`].

use config::{Diagnostic, Invalid, Place, Report, Value, node, suggestion};
use stats::Distribution;

use crate::keys::allowed_words::{GAPS, LAWS};
use crate::keys::{STUDY, WORKLOAD};
use crate::section_at_design_point::{Section, Setting, Settings, named};
use crate::study_and_profiles::TEXT_MAX_BYTES;
use crate::workload::trace::FORMATS;
use crate::workload::{
    Keys, Operations, PRESETS, Popularity, Problem, SizeLaw, Tail, Trace, Ttl, Values, Workload, plain, preset,
};

const VALUES_MAX: usize = 4096;

/// Reads the workload from a study with `[load.workload]`, or from TOML with only the keys of that table. Names of
/// factors stand for their first level. Fails with all errors in the workload, or if it is missing.
pub fn parse(text: &str) -> Result<Workload, Vec<Diagnostic>> {
    let report = Report::new("the study", text, &[]);
    report.check_length("a study", TEXT_MAX_BYTES)?;
    let root = node::document(text, &report);
    let factors = super::factor_levels::read(&root, &super::ExpandOptions::default(), &report);
    let settings = factors.iter().filter_map(|factor| {
        let (level, place) = factor.levels.first()?;
        Some(Setting { factor: &factor.name, level, place: *place })
    });
    let settings = settings.collect::<Vec<_>>();
    let top = Section::whole(&root, &STUDY, Settings(&settings), &report);
    let is_bare = !top.has("load") && root.keys().any(|key| WORKLOAD.get(key).is_some());
    let workload = match is_bare {
        true => Some(read(&Section { name: WORKLOAD.name.to_owned(), keys: &WORKLOAD, ..top })),
        false => top.section("load").and_then(|load| Some(read(&load.section("workload")?))),
    };
    let hint = "add `[load.workload]` with `preset = \"etc-2012\"`";
    let message = "the study has no `[load.workload]`";
    report.rule(workload.is_none() && report.count() == 0, Place::default(), message, hint);
    report.finish()?;
    Ok(workload.expect("missing values have been reported"))
}

pub(super) fn read(section: &Section) -> Workload {
    section.check_keys();
    let preset = preset_of(section);
    // Keys that an invalid preset or trace would have set must not be reported as missing.
    let is_known = section.has("preset");
    let trace = trace_of(section);
    let traced = section.has("trace");
    let has_lengths = traced && trace.as_ref().is_none_or(|trace| trace.format.has_lengths());
    // Keys of a trace have their recorded lengths, or are as short as distinct keys can be.
    let [shortest, empty] = [1.0, 0.0].map(|value| Distribution::Constant { value }.into());
    let base = preset.unwrap_or_else(|| plain(None, shortest, empty));
    let workload = Workload {
        operations: operations(section, base.operations, traced || is_known),
        fill: section.flag("fill").unwrap_or(trace.as_ref().map_or(base.fill, |trace| !trace.format.has_writes())),
        keys: keys(section, &base, traced || is_known),
        values: values(section, &base.values, has_lengths || is_known),
        ttl: ttl(section).unwrap_or(base.ttl),
        preset: base.preset,
        trace,
    };
    for Problem { key: path, message, hint } in workload.problems() {
        let (message, hint) = (format!("`load.workload.{path}`: {message}"), hint.map(str::to_owned));
        match path.split_once('.').and_then(|(table, key)| Some((section.section(table)?, key))) {
            Some((keys, "hot_keys")) if !keys.has("hot_keys") => keys.mistake("popularity", message, hint),
            Some((table, key)) => table.mistake(key, message, hint),
            None => section.mistake(path, message, hint),
        }
    }
    workload
}

fn preset_of(section: &Section) -> Option<Workload> {
    section.text_as("preset", |name| {
        if name == "ycsb-e" {
            let error = Invalid::new("`ycsb-e` scans key ranges, which no supported cache protocol can do");
            return Err(error.hint("available: `ycsb-a` to `ycsb-d` and `ycsb-f`"));
        }
        preset(name).ok_or_else(|| {
            let known = PRESETS.iter().map(|preset| preset.name);
            Invalid::new(format!("unknown preset `{}`", name.escape_debug())).hint(suggestion(name, known))
        })
    })
}

fn operations(section: &Section, base: Operations, is_optional: bool) -> Operations {
    let Some(table) = section.section("operations") else {
        section.required_if(!is_optional, "operations");
        return if base.total() > 0.0 { base } else { Operations { get: 1.0, ..base } };
    };
    table.check_keys();
    let weight = |key, base| if table.has(key) { table.number(key).unwrap_or(1.0) } else { base };
    Operations {
        get: weight("get", base.get),
        set: weight("set", base.set),
        delete: weight("delete", base.delete),
        read_modify_write: weight("read_modify_write", base.read_modify_write),
    }
}

fn ttl(section: &Section) -> Option<Vec<Ttl>> {
    let seconds = |table: &Section, key: &str| {
        let ns = table.duration_ns(key)?;
        table.rule(ns % 1_000_000_000 != 0, key, format!("`{key}` is not a whole number of seconds"), None);
        u32::try_from(ns / 1_000_000_000).ok()
    };
    if !section.is_list("ttl") {
        return seconds(section, "ttl").map(|seconds| vec![Ttl { seconds, share: 1.0 }]);
    }
    let tables = section.tables("ttl", "a time to live");
    let each = tables.iter().flatten().filter_map(|table| {
        table.check();
        let (seconds, share) = (seconds(table, "time"), table.number("share"));
        Some(Ttl { seconds: seconds?, share: share? })
    });
    Some(each.collect())
}

fn keys(section: &Section, base: &Workload, is_optional: bool) -> Keys {
    let (table, has_preset, base) = (section.section_or_empty("keys"), base.preset.is_some(), &base.keys);
    table.check_keys();
    let reuse = table.number("reuse").or(base.reuse);
    Keys {
        count: table.count("count").unwrap_or(if has_preset || reuse.is_none() { base.count } else { 0 }),
        popularity: popularity(&table, base.popularity).unwrap_or(Popularity::Uniform),
        shift_every: table.count("shift_every").or(base.shift_every),
        reuse,
        new: named(&table, "new").unwrap_or(base.new),
        one_hit: table.number("one_hit").unwrap_or(base.one_hit),
        invalidation: table.number("invalidation").unwrap_or(base.invalidation),
        neighbours_hot: table.flag("neighbours_hot").unwrap_or(base.neighbours_hot),
        size: size(&table, &base.size, is_optional),
        max_bytes: table.count("max").unwrap_or(base.max_bytes),
    }
}

fn popularity(table: &Section, base: Popularity) -> Option<Popularity> {
    const PARAMETERS: [(&str, &str, &str); 3] =
        [("exponent", "zipf", "exponent"), ("hot_keys", "hot-set", "keys"), ("hot_share", "hot-set", "share")];
    let base = serde_json::to_value(base).expect("a distribution is plain JSON");
    let word = if table.has("popularity") { table.word("popularity")? } else { base["law"].as_str()? };
    let mut law = serde_json::Map::from_iter([("law".to_owned(), word.into())]);
    for (key, owner, field) in PARAMETERS {
        if word == owner {
            let is_count = key == "hot_keys";
            let given = if is_count { table.count(key).map(Into::into) } else { table.number(key).map(Into::into) };
            let value = given.or_else(|| base.get(field).cloned());
            table.required_if(value.is_none(), key);
            law.extend(value.map(|value| (field.to_owned(), value)));
        } else if table.has(key) {
            let hint = format!("set `popularity = \"{owner}\"`, or drop it");
            table.mistake(key, format!("`{key}` does not apply to popularity `{word}`"), hint);
        }
    }
    serde_json::from_value(law.into()).ok()
}

fn values(section: &Section, base: &Values, is_optional: bool) -> Values {
    let table = section.section_or_empty("values");
    table.check_keys();
    Values {
        size: size(&table, &base.size, is_optional),
        max_bytes: table.bytes("max").unwrap_or(base.max_bytes),
        length: named(&table, "length").unwrap_or(base.length),
    }
}

fn size(table: &Section, base: &SizeLaw, is_optional: bool) -> SizeLaw {
    table.required_if(!is_optional, "size");
    table.section("size").and_then(|size| law(&size, true)).unwrap_or_else(|| base.clone())
}

fn law(table: &Section, counted: bool) -> Option<SizeLaw> {
    table.required("law");
    let known = LAWS.iter().map(|law| (law.0, *law)).filter(|law| counted || law.0 != "empirical").collect::<Vec<_>>();
    let (name, parameters) = table.choice("law", &known)?;
    let beside: &[&str] = if counted { &["law"] } else { &["law", "weight"] };
    if name == "empirical" {
        return empirical(table);
    }
    table.only(&[beside, parameters].concat());
    for parameter in parameters {
        table.required(parameter);
    }
    let read = parameters.iter().map(|key| Some(((*key).to_owned(), table.number(key)?.into()))).collect::<Vec<_>>();
    let mut law = read.into_iter().collect::<Option<serde_json::Map<_, _>>>()?;
    law.insert("law".to_owned(), name.into());
    let size = serde_json::from_value(law.into()).expect("it has its parameters");
    checked(size, |must| table.report.mistake(table.place_of("law"), format!("`{}`: {must}", table.name), None))
}

fn checked(size: SizeLaw, report: impl FnOnce(String)) -> Option<SizeLaw> {
    size.law().map_err(report).ok().map(|_| size)
}

fn empirical(table: &Section) -> Option<SizeLaw> {
    table.only(&["law", "values", "tail"]);
    table.required("values");
    let entry = table.table.get("values")?;
    let wrong = |place| {
        let hint = "write a length with a weight, `[2, 0.3]`, or a range with a weight, `[10, 20, 0.7]`".to_owned();
        table.report.mistake(place, format!("`{}.values` must be a list of lengths with weights", table.name), hint);
    };
    let Value::List(items) = &entry.node.value else {
        wrong(entry.node.place);
        return None;
    };
    let message = format!("`{}.values` has {} lengths, at most {VALUES_MAX}", table.name, items.len());
    table.rule(items.len() > VALUES_MAX, "values", message, "merge some into ranges, `[low, high, weight]`");
    let number = |node: &node::Node| match node.value {
        Value::Integer(integer) => Some(integer as f64),
        Value::Number(number) => Some(number),
        _ => None,
    };
    let each = items.iter().map(|item| {
        let numbers = if let Value::List(numbers) = &item.value { numbers.as_slice() } else { &[] };
        match numbers.iter().map(number).collect::<Option<Vec<_>>>().as_deref() {
            Some(&[length, weight]) if length >= 0.0 && weight >= 0.0 => Some((length, length, weight)),
            Some(&[low, high, weight]) if low >= 0.0 && low <= high && weight >= 0.0 => Some((low, high, weight)),
            _ => {
                wrong(item.place);
                None
            }
        }
    });
    let each = each.collect::<Vec<_>>();
    let tail = table.section("tail").and_then(|tail| {
        tail.required("weight");
        let (size, weight) = (law(&tail, false), tail.number("weight"));
        let SizeLaw::Formula(size) = size? else { return None };
        Some(Tail { size, weight: weight? })
    });
    let size = SizeLaw::Empirical { values: each.into_iter().collect::<Option<Vec<_>>>()?, tail };
    checked(size, |must| table.mistake("values", must, None))
}

fn trace_of(section: &Section) -> Option<Trace> {
    let table = section.section("trace")?;
    table.check();
    let file = table.text("file");
    let hint = "set it to the path of a trace";
    table.rule(file.as_deref() == Some(""), "file", "`load.workload.trace.file` is empty", hint);
    let format = table.choice("format", FORMATS);
    let (gaps, speed) = (table.choice("gaps", GAPS), table.number("speed"));
    Some(Trace { file: file?, format: format?, gaps: gaps?, speed: speed? })
}
