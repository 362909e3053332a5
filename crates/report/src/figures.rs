//! The figures of a report: drawings of panels, and the code that they share.

mod flame_graph;
mod history;
mod latency_distribution;
mod metric_over_factor;
mod miss_ratio;
mod offered_rates;
mod proxy_overhead;
mod request_trends;
mod svg_file;
mod trial_timeline;
mod trials_in_run_order;

use std::collections::{BTreeMap, BTreeSet};

use study::plan::{Figure as Wanted, FigureKind as Kind};
use study::record::IdlePolicy;

use crate::panel::{Panel, style};
use analysis::enum_words_and_lists::serde_name;
use analysis::findings::{Estimate, Factor, Findings, Mark, Row};
use analysis::group_by_key::{distinct, grouped};
use analysis::number::drawable;

pub(crate) use flame_graph::Flame;
pub(crate) use history::history;
pub(crate) use svg_file::{Face, svg_file};

#[derive(Debug, Default)]
pub(crate) struct Drawing {
    /// Stem of the file name, such as `1-line-throughput`.
    pub(crate) name: String,
    pub(crate) title: String,
    pub(crate) caption: String,
    pub(crate) keys: Vec<Key>,
    /// Meaning of hollow markers in words; empty if there are none.
    pub(crate) hollow: String,
    pub(crate) panels: Vec<Panel>,
    pub(crate) flames: Vec<Flame>,
    pub(crate) notes: Vec<String>,
    /// Whether this is one of the supporting figures of [`Block::Figures`](crate::document::Block::Figures).
    pub(crate) supporting: bool,
}

impl Drawing {
    pub(crate) fn new(name: impl Into<String>, title: impl Into<String>) -> Drawing {
        Drawing { name: name.into(), title: title.into(), ..Drawing::default() }
    }

    /// Entries of the legend; empty for a single series, or if names beside the lines or slots replace the legend.
    pub(crate) fn legend(&self) -> &[Key] {
        let in_slots = |panel: &Panel| self.keys.iter().all(|key| panel.has_slot(&key.label));
        let named = self.panels.iter().all(|panel| panel.named_layers().next().is_some() || in_slots(panel));
        if named || self.keys.iter().all(|key| key.label == ALL) { &[] } else { &self.keys }
    }

    /// Key of the hollow markers, if there are any.
    pub(crate) fn hollow_key(&self) -> Option<Key> {
        let series = self.keys.first().map_or(0, |key| key.series);
        (!self.hollow.is_empty()).then(|| Key { series, label: format!("hollow: {}", self.hollow), face: Face::Hollow })
    }

    fn name_lines(&mut self) {
        let names = self.keys.iter().map(|key| (key.series, key.label.clone())).collect();
        let mut panels = self.panels.clone();
        if !self.legend().is_empty() && panels.iter_mut().all(|panel| panel.name_lines(&names)) {
            self.panels = panels;
        }
    }
}

#[derive(Debug)]
pub(crate) struct Key {
    pub(crate) series: usize,
    pub(crate) label: String,
    pub(crate) face: Face,
}

impl Key {
    pub(crate) fn measured(series: usize, label: impl Into<String>) -> Key {
        Key { series, label: label.into(), face: Face::Measured }
    }
}

/// Level of detail. A large report draws less in each figure instead of omitting figures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Detail {
    pub(crate) tips: bool,
    pub(crate) curve_points: usize,
    pub(crate) panels: usize,
}

impl Detail {
    pub(crate) const FULL: Detail = Detail { tips: true, curve_points: 6000, panels: 24 };

    fn tip(self, text: impl FnOnce() -> String) -> String {
        if self.tips { text() } else { String::new() }
    }

    pub(crate) const ALL: [Detail; 4] = [
        Detail::FULL,
        Detail { tips: true, curve_points: 3000, panels: 12 },
        Detail { tips: false, curve_points: 2000, panels: 12 },
        Detail { tips: false, curve_points: 1000, panels: 4 },
    ];
}

const ALL: &str = "all";

/// Maximum number of trials in a figure with a marker and tooltip per trial. If there are more, trials become dots.
const MARKS: usize = 700;

/// Creates every figure of a report: the study's figures, or by default throughput and mean latency. Adds the steps of
/// searches, the CPU speed, the latency distribution and trials over time, which help to judge the other figures.
pub(crate) fn figures(findings: &Findings, detail: Detail) -> Vec<Drawing> {
    let plain =
        |kind, y: Option<&str>| Wanted { kind, y: y.map(str::to_owned), interval: findings.level, ..Wanted::default() };
    let is_distribution = |figure: &Wanted| matches!(figure.kind, Kind::Ecdf | Kind::Quantiles);
    let is_timeline = |figure: &Wanted| figure.kind == Kind::Timeline;
    let mut wanted = findings.figures.clone();
    if wanted.is_empty() {
        wanted = vec![plain(Kind::Line, Some("throughput")), plain(Kind::Line, Some("latency_mean"))];
    }
    // If a study draws only distributions, they are its main figures, not supporting ones.
    let are_distributions = wanted.iter().all(|figure| is_distribution(figure) || is_timeline(figure));
    wanted.extend((!wanted.iter().any(is_distribution)).then(|| plain(Kind::Quantiles, None)));
    wanted.extend((!wanted.iter().any(is_timeline)).then(|| plain(Kind::Timeline, None)));
    let drawn = wanted.iter().enumerate().map(|(index, figure)| match figure.kind {
        Kind::Line | Kind::Scatter | Kind::Interaction => metric_over_factor::over(findings, figure, detail),
        Kind::Ecdf | Kind::Quantiles => latency_distribution::distribution(findings, figure, detail),
        Kind::Timeline => trials_in_run_order::timeline(findings, figure, detail),
        Kind::MissRatio => miss_ratio::miss_ratio(findings, index, figure, detail),
        Kind::Added => proxy_overhead::added(findings, figure, detail),
        Kind::MemoryChart | Kind::ThroughputChart => request_trends::over_requests(findings, figure, detail),
        Kind::NetworkChart => request_trends::network(findings, figure, detail),
    });
    let drawn = drawn.zip(&wanted).map(|(drawing, figure)| Drawing {
        supporting: is_timeline(figure) || (is_distribution(figure) && !are_distributions),
        ..drawing
    });
    let more = [
        offered_rates::over_rate(findings, detail),
        offered_rates::steps(findings, detail),
        trials_in_run_order::probes(findings, detail),
        trial_timeline::inside(findings, detail),
    ];
    let more = more.into_iter().flatten().chain(flame_graph::flames(findings, detail));
    let drawn = drawn.chain(more.map(|drawing| Drawing { supporting: true, ..drawing }));
    let number = |(index, mut drawing): (usize, Drawing)| {
        drawing.name = format!("{}-{}", index + 1, drawing.name);
        drawing.name_lines();
        drawing
    };
    drawn.enumerate().map(number).collect()
}

/// Numbers of series, which select color and shape. A contender has the same number in all figures.
struct Colours<'a> {
    contender: Option<&'a Factor>,
    /// Number of idle policies of the rows: 1, or 2 if each policy of a level is a series.
    policies: usize,
}

impl<'a> Colours<'a> {
    /// Selects the contenders: the levels of the first figure's series factor, or else of the first varied text factor,
    /// or else of the first varied factor.
    fn new(findings: &'a Findings) -> Colours<'a> {
        let varied = || findings.factors.iter().filter(|factor| factor.varies());
        let asked = findings.figures.iter().filter_map(|figure| figure.series.as_ref());
        let asked = asked.filter_map(|name| varied().find(|factor| factor.name == *name)).next();
        let contender = asked.or_else(|| varied().find(|factor| !factor.numeric)).or_else(|| varied().next());
        let policies = distinct(findings.rows.iter().filter_map(|row| row.idle));
        Colours { contender, policies: policies.len().max(1) }
    }

    /// First series number after the contenders; 0 if contenders are levels of a numeric factor or use up all colors.
    fn others(&self) -> usize {
        let named = self.contender.filter(|factor| !factor.numeric);
        let taken = named.map_or(0, |factor| self.policies * factor.levels.len());
        if style::colour_class(taken) == taken { taken } else { 0 }
    }

    fn first_of(&self, factor: Option<&Factor>) -> usize {
        let is_contender = |factor: &Factor| self.contender.is_some_and(|contender| contender.name == factor.name);
        if factor.is_none_or(|factor| is_contender(factor) || !factor.varies()) { 0 } else { self.others() }
    }

    /// Series number of the level with index `place`, counted from `first`, for the row's idle policy.
    fn number(&self, first: usize, place: usize, row: &Row) -> usize {
        first + place * self.policies + usize::from(self.policies == 2 && row.idle == Some(IdlePolicy::Spin))
    }

    /// Series number of the row's level of `factor`; `None` if the factor lacks the level.
    fn of(&self, factor: Option<&Factor>, row: &Row) -> Option<usize> {
        let place = factor.map_or(Some(0), |factor| place_of(factor, row))?;
        Some(self.number(self.first_of(factor), place, row))
    }

    fn of_row(&self, row: &Row) -> usize {
        self.of(self.contender, row).unwrap_or_else(|| self.number(0, 0, row))
    }

    /// Series number of the line for each row. Lines of one contender share a color and differ in dashes.
    fn of_rows(&self, rows: &[&Row]) -> Vec<usize> {
        let mut taken: Vec<usize> = Vec::new();
        for row in rows {
            let own = self.of_row(row);
            let before =
                taken.iter().filter(|number| style::colour_class(**number) == style::colour_class(own)).count();
            taken.push(style::dashed(own, before));
        }
        taken
    }

    fn named(&self, first: usize, names: Vec<String>) -> BTreeMap<usize, String> {
        let both = |name: String| {
            [IdlePolicy::Machine, IdlePolicy::Spin].map(|idle| format!("{name}, idle {}", serde_name(idle)))
        };
        let names = if self.policies == 2 { names.into_iter().flat_map(both).collect() } else { names };
        names.into_iter().enumerate().map(|(place, name)| (first + place, name)).collect()
    }
}

struct Grid<'a> {
    findings: &'a Findings,
    x: Option<&'a Factor>,
    series: Option<&'a Factor>,
    /// Factors other than `x` and `series`. Each panel shows one combination of their levels.
    facets: Vec<&'a Factor>,
    colours: Colours<'a>,
    detail: Detail,
}

struct Facet<'a> {
    title: String,
    rows: Vec<&'a Row>,
}

impl<'a> Grid<'a> {
    fn new(findings: &'a Findings, wanted: &Wanted, has_x: bool, detail: Detail) -> Grid<'a> {
        let named = |name: &Option<String>| findings.factors.iter().find(|factor| Some(&factor.name) == name.as_ref());
        let taken = |factor: &Factor| [&wanted.series, &wanted.facet].contains(&&Some(factor.name.clone()));
        let free = || findings.factors.iter().filter(|factor| !taken(factor));
        let x = named(&wanted.x).or_else(|| free().find(|factor| factor.numeric && factor.varies()));
        let x = x.or_else(|| free().next()).filter(|_| has_x);
        let is_x = |factor: &Factor| x.is_some_and(|x| x.name == factor.name);
        // With several metrics, each is a series, so every varied factor except the axis splits the figure into panels.
        let series = named(&wanted.series).or_else(|| {
            let free = || free().filter(|factor| !is_x(factor) && factor.varies());
            // Without a series, each named level on an axis still gets its own color.
            let words = || x.filter(|x| !x.numeric && x.varies());
            free().find(|factor| !factor.numeric).or_else(|| free().next()).or_else(words)
        });
        let series = series.filter(|_| wanted.y_more.is_empty());
        let is_series = |factor: &Factor| series.is_some_and(|series| series.name == factor.name);
        let rest = |factor: &&Factor| !is_x(factor) && !is_series(factor) && factor.varies();
        let facets = findings.factors.iter().filter(rest).collect();
        Grid { findings, x, series, facets, colours: Colours::new(findings), detail }
    }

    fn series_labels(&self) -> BTreeMap<usize, String> {
        let levels = match self.series {
            Some(factor) if factor.varies() => factor.levels.iter().map(|level| factor.named(level)).collect(),
            _ => vec![ALL.to_owned()],
        };
        self.colours.named(self.colours.first_of(self.series), levels)
    }

    fn series_of(&self, row: &Row) -> Option<usize> {
        self.colours.of(self.series, row)
    }

    /// Panels with measurements in the order of the study, and the number of panels omitted for readability.
    fn facets(&self) -> (Vec<Facet<'a>>, usize) {
        let mut facets = BTreeMap::<Vec<usize>, Vec<&Row>>::new();
        for row in self.findings.rows.iter().filter(|row| row.n > 0 && self.series_of(row).is_some()) {
            let key = self.facets.iter().map(|factor| place_of(factor, row)).collect::<Option<Vec<usize>>>();
            key.into_iter().for_each(|key| facets.entry(key).or_default().push(row));
        }
        let left_out = facets.len().saturating_sub(self.detail.panels);
        let facet = |(key, rows): (Vec<usize>, Vec<&'a Row>)| {
            let names = self.facets.iter().zip(key).map(|(factor, place)| factor.named(&factor.levels[place]));
            Facet { title: names.collect::<Vec<_>>().join(", "), rows }
        };
        (facets.into_iter().take(self.detail.panels).map(facet).collect(), left_out)
    }

    fn drawing(&self, facets: &[Facet<'a>], panels: Vec<Panel>, notes: [Option<String>; 2]) -> Drawing {
        let labels = self.series_labels();
        let rows = || facets.iter().flat_map(|facet| facet.rows.iter().copied());
        let used = rows().filter_map(|row| self.series_of(row)).collect::<BTreeSet<_>>();
        let keys = used.into_iter().map(|series| Key::measured(series, &*labels[&series])).collect();
        let hollow = hollow(rows().flat_map(|row| &row.marks));
        let notes = notes.into_iter().flatten().chain(not_shown(self.findings)).collect();
        Drawing { keys, hollow, panels, notes, ..Drawing::default() }
    }
}

fn hollow<'a>(marks: impl Iterator<Item = &'a Mark>) -> String {
    let marks = marks.collect::<BTreeSet<_>>();
    marks.into_iter().map(|mark| mark.text()).collect::<Vec<_>>().join(" or ")
}

fn left_out(count: usize, what: &str) -> Option<String> {
    (count > 0).then(|| format!("{count} more {what}."))
}

fn place_of(factor: &Factor, row: &Row) -> Option<usize> {
    let level = row.factors.get(&factor.name)?;
    factor.levels.iter().position(|known| known == level)
}

pub(crate) fn metric_of(name: &str) -> (String, String) {
    let (unit, text) = study::Metric::named(name).map_or(("1", name), |metric| (metric.unit, metric.text));
    (unit.to_owned(), text.to_owned())
}

fn bars(findings: &Findings, level: f64, rest: &str) -> String {
    let quick = findings.quick.then(|| "a quick run, no stated confidence".to_owned());
    quick.unwrap_or_else(|| format!("{} % intervals{rest}", percent(level)))
}

fn is_drawable(found: &Estimate) -> bool {
    [found.point, found.low, found.high, found.half_width()].iter().all(|value| drawable(*value))
}

fn not_shown(findings: &Findings) -> Vec<String> {
    let reason =
        |row: &Row| format!("{}: {}", row.state.word(), row.state.reason().unwrap_or("no trial has a measurement"));
    let without = findings.rows.iter().filter(|row| row.n == 0);
    let reasons = grouped(without.map(|row| (reason(row), row.label.as_str())));
    let line = |(reason, labels): (String, Vec<&str>)| {
        let named = labels.iter().take(4).copied().collect::<Vec<_>>().join("; ");
        let more = if labels.len() > 4 { format!("; and {} more", labels.len() - 4) } else { String::new() };
        format!("Not shown: {named}{more} ({reason}).")
    };
    let total = reasons.len();
    let mut lines: Vec<String> = reasons.into_iter().take(8).map(line).collect();
    lines.extend((total > 8).then(|| format!("Not shown for {} further reasons: see the table.", total - 8)));
    lines
}

fn tip(series: &str, row: &Row, rest: &str) -> String {
    let marks: Vec<&str> = row.marks.iter().map(|mark| mark.text()).collect();
    let marks = if marks.is_empty() { String::new() } else { format!("\n{}", marks.join(", ")) };
    let series = if series == ALL || row.label.contains(series) { String::new() } else { format!("{series}, ") };
    format!("{series}{}\n{rest}{marks}", row.label)
}

/// Formats a confidence level in percent with all its nines: `95`, `99.9`.
pub(crate) fn percent(level: f64) -> String {
    ((level * 1e4).round() / 1e2).to_string()
}
