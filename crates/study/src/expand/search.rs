//! Reads `load.search`, `load.capacity` and a `load.rate` given as a share of a capacity.

use config::node::Table;

use crate::keys::words::ARRIVALS;
use crate::objective::Objective;
use crate::plan::{CapacityShare, Point, SearchPlan};
use crate::section::Section;
use crate::spec::{Arrivals, Stop};

/// Shares of a capacity, percent.
const SHARES: std::ops::RangeInclusive<f64> = 0.1..=200.0;

/// Placeholder in a plan for a rate that the run will find, per second.
pub(super) const LATER_PER_S: f64 = 1.0;

pub(super) fn read(load: &Section, key: &str, stop: Option<Stop>) -> Option<SearchPlan> {
    if key == "capacity" && load.has(key) && load.has("search") {
        load.mistake(key, "`load.search` already finds the capacity", "drop one of the two".to_owned());
    }
    let table = &load.section(key)?;
    table.check();
    let objective = objective(table);
    let (from, to) = (table.rate_per_s("from"), table.rate_per_s("to"));
    if from.zip(to).is_some_and(|(from, to)| from > to) {
        table.mistake("to", format!("`{}.to` is below `from`", table.name), None);
    }
    let duration_ns = match stop {
        Some(Stop::Duration { duration_ns }) => duration_ns,
        None => 0,
        Some(_) => {
            let hint = "write `stop = \"5s\"`: above its capacity a server never catches up".to_owned();
            load.mistake("stop", format!("trials of `load.{key}` must end after a time"), hint);
            0
        }
    };
    let (resolution, confirm, steps) = (table.fraction("resolution"), table.small("confirm"), table.small("max_steps"));
    let max_ns = table.duration_ns("max_time");
    let plain = SearchPlan::new(objective?, duration_ns);
    Some(SearchPlan {
        from_per_s: from,
        to_per_s: to,
        resolution: resolution.unwrap_or(plain.resolution),
        confirm: confirm.unwrap_or(plain.confirm),
        trials_max: steps.unwrap_or(plain.trials_max),
        max_ns,
        first: key == "capacity",
        ..plain
    })
}

fn objective(table: &Section) -> Option<Objective> {
    let text = table.text("objective")?;
    let place = table.filled("objective").map_or(table.place, |(_, place)| place);
    let errors = match Objective::parse(&text) {
        Ok(objective) => return Some(objective),
        Err(errors) => errors,
    };
    let source = table.report.source(place);
    for (span, error) in errors {
        // A text with templates or escapes differs from the file, so its spans do not apply.
        let part = |at: usize| match span.is_empty() {
            true => place,
            false => place.part(at + span.start..at + span.end),
        };
        let at = source.find(&text).map_or(place, part);
        table.report.invalid(at, error.of(&format!("`{}.objective`", table.name)));
    }
    None
}

pub(super) fn arrivals(load: &Section) -> Arrivals {
    let hint = "drop it: the search chooses the rates";
    load.refuse(["rate", "think"], "cannot be combined with `load.search`", hint);
    if load.is_word("loop", "closed") {
        load.mistake("loop", "a search needs an open loop", "drop `loop`".to_owned());
    }
    at_rate(load, LATER_PER_S)
}

pub(super) fn at_rate(load: &Section, rate_per_s: f64) -> Arrivals {
    match load.choice("arrivals", ARRIVALS) {
        Some(false) => Arrivals::Constant { rate_per_s },
        _ => Arrivals::Poisson { rate_per_s },
    }
}

pub(super) fn share(load: &Section) -> Option<CapacityShare> {
    let (text, place) = load.filled("rate")?;
    let number = text.trim().strip_suffix('%')?;
    let share = number.trim().parse::<f64>().ok().filter(|percent| SHARES.contains(percent));
    if share.is_none() {
        let message = format!("`load.rate` must be 0.1 % to 200 % of the capacity, not `{}`", text.escape_debug());
        load.report.mistake(place, message, None);
    }
    if !load.has("capacity") {
        let hint = "add `capacity = { objective = \"p99 < 5ms\" }`, or give a rate".to_owned();
        load.report.mistake(place, "`load.rate` is a fraction of a capacity, but `load.capacity` is missing", hint);
    }
    Some(CapacityShare { share: share.unwrap_or_default() / 100.0, point: usize::MAX })
}

/// Adds a point with a search for each capacity of `capacities` (by point), with the levels common to its points.
pub(super) fn link(points: &mut Vec<Point>, capacities: Vec<Option<SearchPlan>>) {
    let own = points.len();
    for (index, search) in capacities.into_iter().enumerate() {
        let point = &points[index];
        let Some((share, search)) = point.load.share.zip(search) else { continue };
        let mut load = point.load.clone();
        (load.share, load.search) = (None, Some(search));
        let point = Point { load, ..point.clone() };
        let same = |known: &Point| {
            (&known.subject, &known.proxies, &known.load) == (&point.subject, &point.proxies, &point.load)
        };
        let at = points[own..].iter().position(same).map_or(points.len(), |known| own + known);
        match points.get_mut(at) {
            Some(known) => known.factors.retain(|name, level| point.factors.get(name) == Some(level)),
            None => points.push(point),
        }
        points[index].load.share = Some(CapacityShare { point: at, ..share });
    }
}

/// Reports numbers of trials if every trial is the step of a search, and a capacity without shares.
pub(super) fn check_use(top: &Section, load: &Section, points: &[Point]) {
    if points.is_empty() {
        return;
    }
    if load.has("capacity") && !load.has("search") && points.iter().all(|point| point.load.share.is_none()) {
        let hint = "write `rate = \"80%\"`, or rename it to `search`".to_owned();
        load.mistake("capacity", "`load.capacity` is never used", hint);
    }
    if points.iter().any(|point| point.load.search.is_none()) {
        return;
    }
    let stop = top.table.table("trials").and_then(|trials| trials.table("stop"));
    for entry in stop.into_iter().flat_map(Table::iter) {
        if ["comparison", "relative", "min", "max", "metric"].contains(&entry.key.as_str()) {
            let message = format!("`trials.stop.{}` does not apply: all trials are steps of a search", entry.key);
            top.report.mistake(entry.key_place, message, "use `confirm` and `max_steps` of `load.search`".to_owned());
        }
    }
}
