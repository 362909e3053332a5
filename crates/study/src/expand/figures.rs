//! `[[figure]]`: what to draw.

use config::nearest::suggestion;
use config::node::Value;

use crate::expand::factors::Factor;
use crate::keys::words::FIGURES;
use crate::metric::METRICS;
use crate::plan::{Figure, FigureKind, POLICIES, TrialRule};
use crate::section::Section;

/// Policies of a miss-ratio curve that names none.
const USUAL_POLICIES: [&str; 3] = ["lru", "belady", "belady-size"];

/// The figures; `None` only where a mistake was reported.
pub(crate) fn read(top: &Section, factors: &[Factor], trials: Option<&TrialRule>) -> Option<Vec<Figure>> {
    let figures = top.tables("figure", "a figure").into_iter().map(|each| figure(&each?, factors, trials));
    let figures = figures.collect::<Vec<_>>();
    Some(figures.into_iter().collect::<Option<Vec<_>>>()?.into_iter().flatten().collect())
}

/// The figure of a table; of an interaction one for each metric.
fn figure(figure: &Section, factors: &[Factor], trials: Option<&TrialRule>) -> Option<Vec<Figure>> {
    figure.check_keys();
    figure.required("kind");
    let kind = figure.choice("kind", FIGURES);
    let names = factors.iter().map(|factor| (factor.name.as_str(), factor)).collect::<Vec<_>>();
    let factor = |key: &str| if lost(figure, key) { None } else { figure.choice(key, &names) };
    let (x, series, facet) = (factor("x"), factor("series"), factor("facet"));
    let y = metrics(figure, figure.is_word("kind", "interaction") || figure.is_word("kind", "added"));
    let interval = figure.fraction("interval");
    let title = figure.text("title");
    let policies = policies(figure);
    let unit = unit(figure);
    let read = [
        ("x", x.is_some()),
        ("y", y.is_some()),
        ("series", series.is_some()),
        ("facet", facet.is_some()),
        ("interval", interval.is_some()),
        ("title", title.is_some()),
        ("policies", policies.is_some()),
        ("unit", unit.is_some()),
    ];
    let kind = kind?;
    check_axes(figure, kind, x);
    if read.iter().any(|(key, is_read)| figure.has(key) && !is_read) {
        return None;
    }
    let name = |factor: &Factor| factor.name.clone();
    let mut y = y.unwrap_or_default().into_iter().map(str::to_owned);
    let (y, y_more) = (y.next(), y.collect::<Vec<_>>());
    if kind == FigureKind::Interaction && figure.has("x") && x.map(|x| &x.name) == series.map(|series| &series.name) {
        figure.mistake("series", "an interaction needs two factors, `x` and `series`", None);
    }
    if !y_more.is_empty() && kind != FigureKind::Interaction {
        check_several(figure, kind);
    }
    let y = match kind {
        FigureKind::Timeline => Some(y.unwrap_or(trials?.metric.clone())),
        _ => y,
    };
    let interval = interval.unwrap_or(trials?.level);
    let (x, series, facet) = (x.map(name), series.map(name), facet.map(name));
    let is_curve = kind == FigureKind::MissRatio;
    let policies = policies.filter(|_| is_curve).unwrap_or_default();
    let first =
        Figure { kind, x, y, y_more: Vec::new(), series, facet, interval, title, policies, x_unit_bytes: unit? };
    if is_curve {
        check_capacities(figure, &first, factors)?;
    }
    if kind == FigureKind::Interaction {
        let more = y_more.into_iter().map(|y| Figure { y: Some(y), ..first.clone() }).collect::<Vec<_>>();
        return Some([first].into_iter().chain(more).collect());
    }
    Some(vec![Figure { y_more, ..first }])
}

/// The metrics of `y`: one, or a list of some that have one unit, which those of `apart` need not.
fn metrics(figure: &Section, apart: bool) -> Option<Vec<&'static str>> {
    let known = METRICS.iter().map(|metric| (metric.name, metric.name)).collect::<Vec<_>>();
    let Some(Value::List(items)) = figure.table.get("y").map(|entry| &entry.node.value) else {
        return figure.choice("y", &known).map(|name| vec![name]);
    };
    let metrics = super::tables::metrics(figure, "y", items)?;
    if let Some(other) = metrics.iter().find(|metric| metric.unit != metrics[0].unit && !apart) {
        let message = format!("`{}` and `{}` have different units", metrics[0].name, other.name);
        figure.mistake("y", message, "use two figures".to_owned());
        return None;
    }
    Some(metrics.into_iter().map(|metric| metric.name).collect())
}

/// The policies that a miss-ratio curve is held against; `None` only where a mistake was reported.
fn policies(figure: &Section) -> Option<Vec<String>> {
    if !figure.has("policies") {
        return Some(USUAL_POLICIES.map(str::to_owned).to_vec());
    }
    let Some(Value::List(items)) = figure.table.get("policies").map(|entry| &entry.node.value) else {
        let hint = "write `policies = [\"lru\", \"belady\"]`; an empty list means none".to_owned();
        figure.mistake("policies", "`figure.policies` must be a list of policies", hint);
        return None;
    };
    let mut all = Vec::new();
    let mut fine = true;
    for item in items {
        let (message, hint) = match &item.value {
            Value::Text(name) if all.contains(name) => (format!("duplicate policy `{name}`"), None),
            Value::Text(name) if POLICIES.iter().any(|(known, _)| known == name) => {
                all.push(name.clone());
                continue;
            }
            Value::Text(name) => {
                let known = POLICIES.iter().map(|(known, _)| *known);
                (format!("unknown policy `{}`", name.escape_debug()), Some(suggestion(name, known)))
            }
            other => (format!("a policy must be a name, not {}", other.kind()), None),
        };
        figure.report.mistake(item.place, message, hint);
        fine = false;
    }
    fine.then_some(all)
}

/// The unit of numbers on `x`, bytes; `Some(None)`: not given, `None` only where a mistake was reported.
fn unit(figure: &Section) -> Option<Option<u64>> {
    if !figure.has("unit") {
        return Some(None);
    }
    let text = figure.text("unit")?;
    match config::units::bytes(&format!("1{text}")) {
        Ok(bytes) => Some(Some(bytes)),
        Err(_) => {
            let hint = "B, kB, MB, GB, KiB, MiB or GiB".to_owned();
            figure.mistake("unit", format!("`{}` is not a unit of memory", text.escape_debug()), hint);
            None
        }
    }
}

/// Each level on `x` of a miss-ratio curve is a capacity; `None` only where a mistake was reported.
fn check_capacities(figure: &Section, wanted: &Figure, factors: &[Factor]) -> Option<()> {
    let x = factors.iter().find(|factor| Some(&factor.name) == wanted.x.as_ref())?;
    let is_none = |(level, _): &&(_, _)| wanted.capacity_bytes(level).is_none();
    let Some((level, _)) = x.levels.iter().find(is_none) else { return Some(()) };
    let message =
        format!("a miss-ratio curve needs memory limits on `x`, but factor `{}` has the level `{level}`", x.name);
    let hint = "use levels such as `250kB`, or numbers and `unit = \"MiB\"`".to_owned();
    figure.mistake("x", message, hint);
    None
}

/// Several metrics are series of their own.
fn check_several(figure: &Section, kind: FigureKind) {
    if kind == FigureKind::Timeline {
        figure.mistake("y", "a timeline has only one metric", "draw one figure per metric".to_owned());
    }
    if figure.has("series") {
        let hint = "use the factor as `facet`: one panel per level".to_owned();
        figure.mistake("series", "several metrics on `y` are the series, so `series` cannot be set", hint);
    }
}

/// What the kind needs and what it has no use for.
fn check_axes(figure: &Section, kind: FigureKind, x: Option<&Factor>) {
    let word = FIGURES.iter().find(|(_, known)| *known == kind).map_or("", |(word, _)| *word);
    let (needed, foreign): (&[&str], &[&str]) = match kind {
        FigureKind::Line | FigureKind::Scatter => (&["x", "y"], &[]),
        FigureKind::Interaction => (&["x", "series", "y"], &[]),
        FigureKind::Ecdf | FigureKind::Quantiles => (&[], &["x", "y"]),
        FigureKind::Timeline => (&[], &["x"]),
        FigureKind::MissRatio => (&["x"], &["y"]),
        FigureKind::Added => (&["y"], &["x"]),
        FigureKind::MemoryChart | FigureKind::ThroughputChart | FigureKind::NetworkChart => (&[], &["x", "y"]),
    };
    let of_curves: &[&str] = if kind == FigureKind::MissRatio { &[] } else { &["policies", "unit"] };
    needed.iter().for_each(|key| figure.required(key));
    for key in foreign.iter().chain(of_curves).filter(|key| figure.has(key)) {
        figure.mistake(key, format!("`{key}` does not apply to a figure of kind `{word}`"), None);
    }
    if let (FigureKind::Line, Some(x)) = (kind, x)
        && let Some((level, _)) = x.levels.iter().find(|(level, _)| level.as_f64().is_none())
    {
        let message = format!("a line needs numbers on `x`, but factor `{}` has the level `{level}`", x.name);
        figure.mistake("x", message, "`kind = \"scatter\"` also takes words".to_owned());
    }
}

/// Whether the factor that `key` names may have been lost to a syntax error.
fn lost(figure: &Section, key: &str) -> bool {
    let word = figure.table.get(key).map(|entry| &entry.node.value);
    matches!(word, Some(Value::Text(word)) if super::lost(word, figure.report))
}
