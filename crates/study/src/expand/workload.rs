//! `[load.workload]` becomes a [`Workload`].

use std::borrow::Cow;

use config::node::{self, Entry, Node, Table, Value};
use config::{Diagnostic, Place, Report};

use crate::keys::words::{FORMATS, GAPS, LAWS, LENGTHS, NEW_KEYS, POPULARITIES};
use crate::keys::{LOAD, TTL, WORKLOAD};
use crate::section::{Section, Setting, Settings};
use crate::source::TEXT_MAX_BYTES;
use crate::workload::{
    KEY_MAX_BYTES, Keys, Operations, PRESETS, Popularity, SizeLaw, Tail, Trace, Ttl, Values, Workload, preset,
};

/// Points and ranges of an empirical law in a file at most.
const VALUES_MAX: usize = 4096;

/// The workload in the `[load.workload]` of a text of TOML, whatever else stands there, or in a text that is the content of that table alone; where its values name factors, with the
/// first level of each.
///
/// # Errors
/// Every mistake in it, and that there is none.
pub fn parse(text: &str) -> Result<Workload, Vec<Diagnostic>> {
    let report = Report::new("the study", text, &[]);
    if text.len() > TEXT_MAX_BYTES {
        let message = format!("a study is limited to {TEXT_MAX_BYTES} bytes, this one has {}", text.len());
        report.mistake(Place::default(), message, None);
        report.finish()?;
    }
    let root = node::document(text, &report);
    let factors = super::factors::read(&root, super::Machine { cpus: 2, apart: false }, &report);
    let settings = factors.iter().filter_map(|factor| {
        let (level, place) = factor.levels.first()?;
        Some(Setting { factor: &factor.name, level, place: *place })
    });
    let settings = settings.collect::<Vec<_>>();
    // A file may be the content of the table alone.
    let bare = root.get("load").is_none() && root.keys().any(|key| WORKLOAD.get(key).is_some());
    let wrapped = bare.then(|| {
        let (key, place) = ("workload".to_owned(), Place::default());
        let mut load = Table::default();
        load.put(Entry { key, key_place: place, node: Node { value: Value::Table(root.clone()), place } });
        load
    });
    let load = match (&wrapped, root.get("load").map(|entry| &entry.node.value)) {
        (Some(wrapped), _) => Some(wrapped),
        (None, Some(Value::Table(table))) => Some(table),
        _ => None,
    };
    let workload = match load {
        Some(table) => {
            let (table, place) = (Cow::Borrowed(table), Place::default());
            let (name, keys) = ("load".to_owned(), &LOAD);
            read(&Section { name, table, keys, place, fill: Settings(&settings), report: &report })
        }
        _ => None,
    };
    // A mistake that was found says more than that nothing is left.
    if !matches!(workload, Some(Some(_))) && report.count() == 0 {
        let hint = "add `[load.workload]` with `preset = \"etc-2012\"`".to_owned();
        report.mistake(Place::default(), "the study has no `[load.workload]`", hint);
    }
    report.finish()?;
    Ok(workload.flatten().expect("missing values have been reported"))
}

/// The workload of a load: `Some(None)` where there is none, `None` where a mistake was reported.
pub(crate) fn read(load: &Section) -> Option<Option<Workload>> {
    if !load.has("workload") {
        return Some(None);
    }
    let section = load.section("workload")?;
    section.check_keys();
    let base = base(&section);
    let traced = section.has("trace");
    let operations = operations(&section, base.as_ref(), traced);
    let fill = section.given("fill", section.flag("fill"));
    let ttl = ttl(&section);
    let keys = keys(&section, base.as_ref(), traced);
    let trace = trace_of(&section);
    // What a mistaken trace would have told is not missing too.
    let told =
        traced && trace.as_ref().is_none_or(|trace| trace.as_ref().is_some_and(|trace| trace.format.has_lengths()));
    let values = values(&section, base.as_ref(), told);
    let base = base?;
    let name = base.as_ref().and_then(|base| base.preset.clone());
    let workload = Workload {
        preset: name,
        operations: operations?,
        fill: fill?.unwrap_or(match &trace {
            Some(Some(trace)) => !trace.format.has_writes(),
            _ => base.as_ref().is_none_or(|base| base.fill),
        }),
        ttl: ttl?.unwrap_or_else(|| base.map(|base| base.ttl).unwrap_or_default()),
        keys: keys?,
        values: values?,
        trace: trace?,
    };
    let problems = workload.problems();
    for problem in &problems {
        place(&section, problem.key, |at, key| {
            at.mistake(
                key,
                format!("`load.workload.{}`: {}", problem.key, problem.message),
                problem.hint.map(str::to_owned),
            );
        });
    }
    problems.is_empty().then_some(Some(workload))
}

/// Hands on the section and the key that a dotted key means.
fn place(section: &Section, dotted: &str, then: impl FnOnce(&Section, &str)) {
    match dotted.split_once('.') {
        Some((table, key)) => match section.has(table).then(|| section.section(table)).flatten() {
            Some(inner) => {
                let key = if key == "hot_keys" && !inner.has(key) { "popularity" } else { key };
                then(&inner, key);
            }
            None => then(section, table),
        },
        None => then(section, dotted),
    }
}

/// The preset: `Some(None)` where none is named.
fn base(section: &Section) -> Option<Option<Workload>> {
    if !section.has("preset") {
        return Some(None);
    }
    let read = |name: &str| {
        if name == "ycsb-e" {
            let hint = "available: `ycsb-a` to `ycsb-d` and `ycsb-f`".to_owned();
            return Err(("`ycsb-e` scans key ranges, which no supported cache protocol can do".to_owned(), Some(hint)));
        }
        preset(name).ok_or_else(|| {
            let known = PRESETS.iter().map(|preset| preset.name);
            (format!("unknown preset `{}`", name.escape_debug()), Some(config::nearest::suggestion(name, known)))
        })
    };
    section.text_as("preset", read).map(Some)
}

fn operations(section: &Section, base: Option<&Option<Workload>>, traced: bool) -> Option<Operations> {
    // What a mistaken preset would have brought is not missing too.
    let mistaken = base.is_none();
    let base = base.and_then(Option::as_ref).map(|base| base.operations);
    if !section.has("operations") {
        // A trace brings its own.
        let reads = Operations { get: 1.0, ..Default::default() };
        if !mistaken && base.is_none() && !traced {
            section.required("operations");
        }
        return base.or(traced.then_some(reads));
    }
    let table = section.section("operations")?;
    table.check_keys();
    let base = base.unwrap_or_default();
    let weight = |key, base| Some(table.given(key, table.number(key))?.unwrap_or(base));
    let all = [
        weight("get", base.get),
        weight("set", base.set),
        weight("delete", base.delete),
        weight("read_modify_write", base.read_modify_write),
    ];
    let [get, set, delete, read_modify_write] = all;
    Some(Operations { get: get?, set: set?, delete: delete?, read_modify_write: read_modify_write? })
}

/// `Some(None)`: not there.
fn ttl(section: &Section) -> Option<Option<Vec<Ttl>>> {
    let Some(entry) = section.table.get("ttl") else { return Some(None) };
    let whole = |table: &Section, key: &str| {
        let ns = table.duration_ns(key)?;
        if ns % 1_000_000_000 != 0 {
            table.mistake(key, format!("`{key}` is not a whole number of seconds"), None);
            return None;
        }
        u32::try_from(ns / 1_000_000_000).ok()
    };
    let Value::List(items) = &entry.node.value else {
        return whole(section, "ttl").map(|seconds| Some(vec![Ttl { seconds, share: 1.0 }]));
    };
    let each = items.iter().map(|item| {
        let Value::Table(table) = &item.value else {
            let hint = "for example `[{ time = \"24h\", share = 0.65 }]`".to_owned();
            section.report.mistake(
                item.place,
                format!("a time to live must be a table, not {}", item.value.kind()),
                hint,
            );
            return None;
        };
        let table = section.inner(table, &TTL, item.place);
        table.check_keys();
        table.required("time");
        table.required("share");
        let (seconds, share) = (whole(&table, "time"), table.number("share"));
        Some(Ttl { seconds: seconds?, share: share? })
    });
    // All are read, so that all mistakes are found.
    let each = each.collect::<Vec<_>>();
    each.into_iter().collect::<Option<Vec<_>>>().map(Some)
}

fn keys(section: &Section, base: Option<&Option<Workload>>, traced: bool) -> Option<Keys> {
    let mistaken = base.is_none();
    let base = base.and_then(Option::as_ref).map(|base| &base.keys);
    let table = section.section_or_empty("keys")?;
    table.check_keys();
    let reuse = table.given("reuse", table.number("reuse"));
    let fixed = matches!((&reuse, base), (Some(None), None) | (Some(None), Some(Keys { reuse: None, .. })));
    let count = table.given("count", table.count("count"));
    let popularity = popularity(&table, base.map(|base| base.popularity));
    let every = table.given("shift_every", table.count("shift_every"));
    let new = table.given("new", table.choice("new", NEW_KEYS));
    let one_hit = table.given("one_hit", table.number("one_hit"));
    let invalidation = table.given("invalidation", table.number("invalidation"));
    let neighbours_hot = table.given("neighbours_hot", table.flag("neighbours_hot"));
    let max_bytes = table.given("max", table.count("max"));
    // The keys of a trace have lengths or are written with as few characters as tell them apart.
    let shortest = traced.then_some(SizeLaw::Constant { bytes: 1.0 });
    let size = size(&table, base.map(|base| &base.size).or(shortest.as_ref()), mistaken);
    Some(Keys {
        count: count?.or(base.map(|base| base.count)).unwrap_or(if fixed { 100_000 } else { 0 }),
        popularity: popularity?,
        shift_every: every?.or(base.and_then(|base| base.shift_every)),
        reuse: reuse?.or(base.and_then(|base| base.reuse)),
        new: new?.or(base.map(|base| base.new)).unwrap_or_default(),
        one_hit: one_hit?.or(base.map(|base| base.one_hit)).unwrap_or(0.0),
        invalidation: invalidation?.or(base.map(|base| base.invalidation)).unwrap_or(0.0),
        neighbours_hot: neighbours_hot?.or(base.map(|base| base.neighbours_hot)).unwrap_or(false),
        size: size?,
        max_bytes: max_bytes?.or(base.map(|base| base.max_bytes)).unwrap_or(KEY_MAX_BYTES),
    })
}

fn popularity(table: &Section, base: Option<Popularity>) -> Option<Popularity> {
    let before = match base {
        None | Some(Popularity::Uniform) => "uniform",
        Some(Popularity::Zipf { .. }) => "zipf",
        Some(Popularity::Recency) => "recency",
        Some(Popularity::HotSet { .. }) => "hot-set",
        Some(Popularity::Loop) => "loop",
    };
    let word = table.given("popularity", table.choice("popularity", POPULARITIES));
    let exponent = table.given("exponent", table.number("exponent"));
    let hot_keys = table.given("hot_keys", table.count("hot_keys"));
    let hot_share = table.given("hot_share", table.number("hot_share"));
    let word = word?.unwrap_or(before);
    for (key, owner) in [("exponent", "zipf"), ("hot_keys", "hot-set"), ("hot_share", "hot-set")] {
        if table.has(key) && word != owner {
            let hint = format!("set `popularity = \"{owner}\"`, or drop it");
            table.mistake(key, format!("`{key}` does not apply to popularity `{word}`"), hint);
        }
    }
    Some(match word {
        "zipf" => {
            let before =
                base.and_then(|base| if let Popularity::Zipf { exponent } = base { Some(exponent) } else { None });
            if before.is_none() {
                table.required("exponent");
            }
            Popularity::Zipf { exponent: exponent?.or(before)? }
        }
        "hot-set" => {
            let before =
                base.and_then(
                    |base| if let Popularity::HotSet { keys, share } = base { Some((keys, share)) } else { None },
                );
            if before.is_none() {
                table.required("hot_keys");
                table.required("hot_share");
            }
            let (keys, share) = (hot_keys?.or(before.map(|b| b.0)), hot_share?.or(before.map(|b| b.1)));
            Popularity::HotSet { keys: keys?, share: share? }
        }
        "recency" => Popularity::Recency,
        "loop" => Popularity::Loop,
        _ => Popularity::Uniform,
    })
}

fn values(section: &Section, base: Option<&Option<Workload>>, told: bool) -> Option<Values> {
    let mistaken = base.is_none();
    let base = base.and_then(Option::as_ref).map(|base| &base.values);
    let table = section.section_or_empty("values")?;
    table.check_keys();
    let empty = told.then_some(SizeLaw::Constant { bytes: 0.0 });
    let size = size(&table, base.map(|base| &base.size).or(empty.as_ref()), mistaken);
    let max_bytes = table.given("max", table.bytes("max"));
    let length = table.given("length", table.choice("length", LENGTHS));
    Some(Values {
        size: size?,
        max_bytes: max_bytes?.or(base.map(|base| base.max_bytes)).unwrap_or(1 << 20),
        length: length?.or(base.map(|base| base.length)).unwrap_or_default(),
    })
}

fn size(table: &Section, base: Option<&SizeLaw>, mistaken: bool) -> Option<SizeLaw> {
    if !table.has("size") {
        if base.is_none() && !mistaken {
            table.required("size");
        }
        return base.cloned();
    }
    law(&table.section("size")?, true)
}

/// A law of lengths; `counted` where an empirical one may stand.
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
    let read = parameters.iter().map(|key| table.number(key)).collect::<Vec<_>>();
    let read = read.into_iter().collect::<Option<Vec<_>>>()?;
    let size = match (name, read.as_slice()) {
        ("constant", &[bytes]) => SizeLaw::Constant { bytes },
        ("uniform", &[low, high]) => SizeLaw::Uniform { low, high },
        ("exponential", &[mean]) => SizeLaw::Exponential { mean },
        ("lognormal", &[median, sigma]) => SizeLaw::Lognormal { median, sigma },
        ("bimodal", &[low, high, high_share]) => SizeLaw::Bimodal { low, high, high_share },
        ("gamma", &[shape, scale]) => SizeLaw::Gamma { shape, scale },
        ("gev", &[location, scale, shape]) => SizeLaw::Gev { location, scale, shape },
        (_, &[location, scale, shape]) => SizeLaw::Pareto { location, scale, shape },
        _ => unreachable!("each distribution reads its own parameters"),
    };
    match size.law() {
        Ok(_) => Some(size),
        Err(must) => {
            table.report.mistake(table.place_of("law"), format!("`{}`: {must}", table.name), None);
            None
        }
    }
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
    if items.len() > VALUES_MAX {
        let message = format!("`{}.values` has {} lengths, at most {VALUES_MAX}", table.name, items.len());
        table.mistake("values", message, "merge some into ranges, `[low, high, weight]`".to_owned());
        return None;
    }
    let each = items.iter().map(|item| {
        let Value::List(numbers) = &item.value else {
            wrong(item.place);
            return None;
        };
        let number = |node: &node::Node| match node.value {
            Value::Integer(integer) => Some(integer as f64),
            Value::Number(number) => Some(number),
            _ => None,
        };
        let numbers = numbers.iter().map(number).collect::<Option<Vec<_>>>();
        match numbers.as_deref() {
            Some(&[length, weight]) if length >= 0.0 && weight >= 0.0 => Some((length, length, weight)),
            Some(&[low, high, weight]) if low >= 0.0 && low <= high && weight >= 0.0 => Some((low, high, weight)),
            _ => {
                wrong(item.place);
                None
            }
        }
    });
    let each = each.collect::<Vec<_>>();
    let tail = match table.has("tail").then(|| table.section("tail")) {
        None => Some(None),
        Some(None) => None,
        Some(Some(tail)) => {
            tail.required("weight");
            let (size, weight) = (law(&tail, false), tail.number("weight"));
            size.zip(weight).map(|(size, weight)| Some(Tail { size: Box::new(size), weight }))
        }
    };
    let size = SizeLaw::Empirical { values: each.into_iter().collect::<Option<Vec<_>>>()?, tail: tail? };
    match size.law() {
        Ok(_) => Some(size),
        Err(must) => {
            table.mistake("values", must, None);
            None
        }
    }
}

/// `Some(None)`: no trace.
fn trace_of(section: &Section) -> Option<Option<Trace>> {
    if !section.has("trace") {
        return Some(None);
    }
    let table = section.section("trace")?;
    table.check_keys();
    table.required("file");
    table.required("format");
    let file = table.text("file");
    if file.as_deref() == Some("") {
        table.mistake("file", "`load.workload.trace.file` is empty", "set it to the path of a trace".to_owned());
        return None;
    }
    let format = table.choice("format", FORMATS);
    let (gaps, speed) = (table.choice("gaps", GAPS), table.number("speed"));
    Some(Some(Trace { file: file?, format: format?, gaps: gaps?, speed: speed? }))
}
