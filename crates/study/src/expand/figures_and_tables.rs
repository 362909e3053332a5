//! Reads `[[figure]]` and `[[table]]`.

use config::Invalid;

use crate::expand::factor_levels::Factor;
use crate::metric::Metric;
use crate::plan::{Figure, FigureKind, Table, TableKind, TrialRule};
use crate::section_at_design_point::{Section, named};

const USUAL_POLICIES: [&str; 3] = ["lru", "belady", "belady-size"];

pub(super) fn read(top: &Section, factors: &[Factor], trials: &TrialRule) -> Vec<Figure> {
    let figures = top.tables("figure", "a figure");
    figures.iter().flatten().flat_map(|table| figure(table, factors, trials).unwrap_or_default()).collect()
}

fn figure(figure: &Section, factors: &[Factor], trials: &TrialRule) -> Option<Vec<Figure>> {
    figure.check();
    let kind = named(figure, "kind");
    let names = factors.iter().map(|factor| (factor.name.as_str(), factor)).collect::<Vec<_>>();
    let is_lost = |key: &str| figure.filled(key).is_some_and(|(name, _)| super::lost(&name, figure.report));
    let factor = |key: &str| if is_lost(key) { None } else { figure.choice(key, &names) };
    let (x, series, facet) = (factor("x"), factor("series"), factor("facet"));
    let (title, unit) = (figure.text("title"), unit(figure));
    let interval = figure.fraction("interval").unwrap_or(trials.level);
    let policies = figure.choices("policies").unwrap_or_else(|| USUAL_POLICIES.to_vec());
    let mut y = metrics(figure, matches!(kind, Some(FigureKind::Interaction | FigureKind::Added)));
    let kind = kind?;
    if y.is_empty() && kind == FigureKind::Timeline {
        y.push(trials.metric.clone());
    }
    check_axes(figure, kind, x);
    if kind == FigureKind::Interaction && x.is_some() && x.map(|x| &x.name) == series.map(|series| &series.name) {
        figure.mistake("series", "an interaction needs two factors, `x` and `series`", None);
    }
    let has_several = y.len() > 1 && kind != FigureKind::Interaction;
    let is_timeline = has_several && kind == FigureKind::Timeline;
    figure.rule(is_timeline, "y", "a timeline has only one metric", "draw one figure per metric");
    let hint = "use the factor as `facet`: one panel per level";
    let message = "several metrics on `y` are the series, so `series` cannot be set";
    figure.rule(has_several && figure.has("series"), "series", message, hint);
    let name = |factor: &Factor| factor.name.clone();
    let is_curve = kind == FigureKind::MissRatio;
    let policies = policies.into_iter().filter(|_| is_curve).map(str::to_owned).collect();
    let mut y = y.into_iter();
    let first = Figure {
        kind,
        x: x.map(name),
        y: y.next(),
        y_more: Vec::new(),
        series: series.map(name),
        facet: facet.map(name),
        interval,
        title,
        policies,
        x_unit_bytes: unit,
    };
    if let Some(x) = x.filter(|_| is_curve) {
        check_capacities(figure, &first, x);
    }
    if kind != FigureKind::Interaction {
        return Some(vec![Figure { y_more: y.collect(), ..first }]);
    }
    let more = y.map(|y| Figure { y: Some(y), ..first.clone() }).collect::<Vec<_>>();
    Some([first].into_iter().chain(more).collect())
}

fn metrics(figure: &Section, apart: bool) -> Vec<String> {
    let metrics = if figure.is_list("y") { metric_names(figure, "y") } else { figure.word("y").into_iter().collect() };
    let unit = |name: &str| Metric::named(name).map(|metric| metric.unit);
    if let Some(other) = metrics.iter().find(|metric| unit(metric) != unit(metrics[0]) && !apart) {
        let message = format!("`{}` and `{other}` have different units", metrics[0]);
        figure.mistake("y", message, "use two figures".to_owned());
    }
    metrics.into_iter().map(str::to_owned).collect()
}

fn unit(figure: &Section) -> Option<u64> {
    figure.text_as("unit", |text| {
        let error = Invalid::new(format!("`{}` is not a unit of memory", text.escape_debug()));
        config::units::bytes(&format!("1{text}")).map_err(|_| error.hint("B, kB, MB, GB, KiB, MiB or GiB"))
    })
}

fn check_capacities(figure: &Section, wanted: &Figure, x: &Factor) {
    let is_none = |(level, _): &&(_, _)| wanted.capacity_bytes(level).is_none();
    if let Some((level, _)) = x.levels.iter().find(is_none) {
        let message =
            format!("a miss-ratio curve needs memory limits on `x`, but factor `{}` has the level `{level}`", x.name);
        let hint = "use levels such as `250kB`, or numbers and `unit = \"MiB\"`".to_owned();
        figure.mistake("x", message, hint);
    }
}

fn check_axes(figure: &Section, kind: FigureKind, x: Option<&Factor>) {
    let (needed, foreign): (&[&str], &[&str]) = match kind {
        FigureKind::Line | FigureKind::Scatter => (&["x", "y"], &[]),
        FigureKind::Interaction => (&["x", "series", "y"], &[]),
        FigureKind::Timeline => (&[], &["x"]),
        FigureKind::MissRatio => (&["x"], &["y"]),
        FigureKind::Added => (&["y"], &["x"]),
        _ => (&[], &["x", "y"]),
    };
    let of_curves: &[&str] = if kind == FigureKind::MissRatio { &[] } else { &["policies", "unit"] };
    needed.iter().for_each(|key| figure.required(key));
    let why = format!("does not apply to a figure of kind `{}`", figure.word("kind").unwrap_or_default());
    figure.refuse(foreign.iter().chain(of_curves).copied(), &why, "drop it");
    if let (FigureKind::Line, Some(x)) = (kind, x)
        && let Some((level, _)) = x.levels.iter().find(|(level, _)| level.as_f64().is_none())
    {
        let message = format!("a line needs numbers on `x`, but factor `{}` has the level `{level}`", x.name);
        figure.mistake("x", message, "`kind = \"scatter\"` also takes words".to_owned());
    }
}

pub(super) fn tables(top: &Section) -> Vec<Table> {
    top.tables("table", "each `[[table]]`").iter().flatten().filter_map(table).collect()
}

fn table(table: &Section) -> Option<Table> {
    table.check_keys();
    let title = table.text("title");
    let (kind, metrics) = match table.one_of(&["metric", "metrics"])? {
        "metric" => (TableKind::Statistics, table.word("metric").into_iter().collect()),
        _ => (TableKind::Metrics, metric_names(table, "metrics")),
    };
    Some(Table { kind, metrics: metrics.into_iter().map(str::to_owned).collect(), title })
}

fn metric_names(section: &Section, key: &str) -> Vec<&'static str> {
    let metrics = section.choices(key);
    let message = format!("`{}.{key}` names no metric", section.name);
    section.rule(metrics.as_ref().is_some_and(Vec::is_empty), key, message, None);
    metrics.unwrap_or_default()
}
