//! A claim and the findings of a run: does it agree, disagree, or can it not be told?

use std::collections::BTreeMap;

use analysis::Findings;
use analysis::findings::{Mark, Row, RowState, Scalability};
use stats::Estimate;
use stats::pairs::Pairs;
use study::plan::Level;

use crate::claims::claim::{At, Claim, Look, Parameter, Range, Ratio, Size, Trend, levels, number};

/// Fewer blocks, or trials of a design point, test nothing (the rule of studies: no winner below 12 blocks).
pub const BLOCKS_MIN: usize = 12;
const LEVEL: f64 = 0.95;
/// A number of blocks beyond which more of them are no advice.
const BLOCKS_MAX: f64 = 1_000.0;

/// What became of a claim.
#[derive(Clone, Debug, PartialEq)]
pub struct Answer {
    /// What was found, with its interval; a dash where nothing was.
    pub found: String,
    pub verdict: Verdict,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    Agrees,
    Disagrees,
    CannotTell {
        why: String,
        /// What would be needed to tell.
        needs: String,
    },
}

impl Verdict {
    /// All words that there are.
    pub const WORDS: [&str; 3] = ["agrees", "disagrees", "cannot be told here"];

    pub fn word(&self) -> &'static str {
        Self::WORDS[match self {
            Verdict::Agrees => 0,
            Verdict::Disagrees => 1,
            Verdict::CannotTell { .. } => 2,
        }]
    }
}

/// Why nothing can be told: the reason, and what would be needed.
type Obstacle = (String, String);

fn obstacle(why: impl Into<String>, needs: impl Into<String>) -> Obstacle {
    (why.into(), needs.into())
}

impl Answer {
    /// Nothing was found.
    pub fn none(why: impl Into<String>, needs: impl Into<String>) -> Answer {
        Answer { found: "-".to_owned(), verdict: Verdict::CannotTell { why: why.into(), needs: needs.into() } }
    }
}

/// What the findings of a run that has the rows say of a claim.
pub fn judge(claim: &Claim, findings: &Findings) -> Answer {
    let answered = match &claim.look {
        Look::Value { metric, at, range } => value(findings, metric, at, *range),
        Look::Ratios { ratios, range } => in_range(findings, ratios, *range),
        Look::Larger { ratio, than } => larger(findings, ratio, than),
        Look::Law { factor, series, parameter, range } => law(findings, factor, series, *parameter, *range),
        Look::OverRequests { what, at, trend } => over_requests(findings, what, at, *trend),
        Look::Drawn { size, range } => Ok(drawn(*size, *range)),
        Look::Untested { why, needs } => Err(obstacle(*why, *needs)),
    };
    let mut answer = answered.unwrap_or_else(|(why, needs)| Answer::none(why, needs));
    if answer.found == "-" {
        return answer;
    }
    let mut of_places = claim.look.places().into_iter().flat_map(|at| rows(findings, &at).unwrap_or_default());
    let mut obstacles = Vec::from_iter(of_places.find_map(is_of_others).filter(|_| claim.look.is_of_times()));
    let here = &findings.machine.cpu_model;
    let other = claim.only_on.filter(|machine| here != machine && !here.starts_with(&format!("{machine} ")));
    obstacles.extend(
        other.map(|machine| obstacle(format!("an absolute number of another machine (here: {here})"), machine)),
    );
    if !obstacles.is_empty() {
        let (why, needs): (Vec<_>, Vec<_>) = obstacles.into_iter().unzip();
        answer.verdict = Verdict::CannotTell { why: why.join("; "), needs: needs.join("; ") };
    }
    answer
}

/// What needs no run.
pub fn judge_without_run(look: &Look) -> Option<Answer> {
    match look {
        Look::Drawn { size, range } => Some(drawn(*size, *range)),
        Look::Untested { why, needs } => Some(Answer::none(*why, *needs)),
        _ => None,
    }
}

/// Whether these levels are among those of a row or of a design point.
pub fn has(factors: &BTreeMap<String, Level>, at: &At) -> bool {
    at.iter().all(|(factor, level)| factors.get(factor).is_some_and(|found| found.to_string() == *level))
}

/// Rows with these levels, all under one idle policy.
fn rows<'a>(findings: &'a Findings, at: &At) -> Result<Vec<&'a Row>, Obstacle> {
    let found = findings.rows.iter().filter(|row| has(&row.factors, at)).collect::<Vec<_>>();
    let idle = found.iter().find_map(|row| row.idle);
    let found = found.into_iter().filter(|row| row.idle.is_none() || row.idle == idle).collect::<Vec<_>>();
    if found.is_empty() {
        let place = levels(at);
        return Err(obstacle(format!("the run has no design point at {place}"), format!("a run with {place}")));
    }
    found.iter().try_for_each(|row| usable(row))?;
    Ok(found)
}

/// Whether a row has trials.
fn usable(row: &Row) -> Result<(), Obstacle> {
    let label = label(row);
    match &row.state {
        RowState::Measured | RowState::Partial { .. } => Ok(()),
        RowState::Unrunnable { reason } => Err(obstacle(format!("{label}: {reason}"), "a larger machine")),
        RowState::Skipped { reason } => Err(obstacle(format!("{label}: {reason}"), "the missing toolchain")),
        RowState::Failed { reason } => Err(obstacle(format!("{label}: {reason}"), "trials that do not fail")),
    }
}

/// What forbids to read times of a row as those of the server. Bytes, entries and hits do not depend on it.
fn is_of_others(row: &Row) -> Option<Obstacle> {
    let label = label(row);
    if let Some(wanted) = row.cpus_wanted {
        let why = format!("{label}: the server had {} of the {wanted} CPUs that it needs", row.cpus);
        return Some(obstacle(why, format!("{wanted} CPUs for the server and others for the generator")));
    }
    let needs = match row.marks.iter().find(|mark| **mark != Mark::Hung)? {
        Mark::GeneratorBound => "more CPUs for the generator",
        _ => "more CPUs, or a machine that runs nothing else",
    };
    let marks = row.marks.iter().map(|mark| mark.text()).collect::<Vec<_>>();
    Some(obstacle(format!("{label}: {}", marks.join(", ")), needs))
}

fn label(row: &Row) -> &str {
    if row.label.is_empty() { "the design point" } else { &row.label }
}

/// Values of a metric by block, of trials in which it is known.
fn by_block(row: &Row, metric: &str) -> Result<BTreeMap<u32, f64>, Obstacle> {
    let trials = row.trials.iter().filter(|trial| trial.failed.is_none());
    if trials.clone().any(|trial| trial.at_least.contains(metric)) {
        let why = format!("{}: `{metric}` is only known to be at least something", row.label);
        return Err(obstacle(why, "trials in which every request is answered"));
    }
    Ok(trials.filter_map(|trial| Some((trial.block, trial.known(metric)?))).collect())
}

fn enough(count: usize, what: &str) -> Result<(), Obstacle> {
    if count >= BLOCKS_MIN {
        return Ok(());
    }
    Err(obstacle(format!("{count} {what}"), format!("{BLOCKS_MIN} or more")))
}

/// How an interval lies to a range.
fn verdict(low: f64, high: f64, range: Range, more: impl FnOnce() -> String) -> Verdict {
    if low > range.low && (high < range.high || range.high == f64::INFINITY) {
        Verdict::Agrees
    } else if high <= range.low || low >= range.high {
        Verdict::Disagrees
    } else {
        Verdict::CannotTell { why: "the interval crosses the bound".to_owned(), needs: more() }
    }
}

/// Blocks after which an interval of this half-width around a point at this distance from the bound would not cross it.
fn more_blocks(n: usize, half_width: f64, distance: f64) -> String {
    let wanted = n as f64 * (half_width / distance).powi(2);
    if wanted.is_finite() && wanted < BLOCKS_MAX {
        return format!("about {} blocks instead of {n}, if the estimate stays", wanted.ceil().max(n as f64 + 1.0));
    }
    format!("more than {BLOCKS_MAX} blocks: the value lies at the bound")
}

fn distance(point: f64, range: Range) -> f64 {
    (point - range.low).abs().min((point - range.high).abs())
}

fn value(findings: &Findings, metric: &str, at: &At, range: Range) -> Result<Answer, Obstacle> {
    let found = rows(findings, at)?;
    let [row] = found[..] else {
        return Err(obstacle(format!("{} design points at {}", found.len(), levels(at)), "a run with one of them"));
    };
    let values = by_block(row, metric)?;
    enough(values.len(), "trials")?;
    let values = values.into_values().collect::<Vec<_>>();
    let estimate = stats::interval::mean(&values, LEVEL)
        .ok_or_else(|| obstacle(format!("no interval of `{metric}`"), "trials that have it"))?;
    let unit = study::Metric::named(metric).map_or("1", |metric| metric.unit);
    let [point, low, high] =
        [estimate.point, estimate.low, estimate.high].map(|value| analysis::number::quantity(value, unit));
    let half = (estimate.high - estimate.low) / 2.0;
    let more = || more_blocks(values.len(), half, distance(estimate.point, range));
    Ok(Answer {
        found: format!("{point} [{low}, {high}], {} trials", values.len()),
        verdict: verdict(estimate.low, estimate.high, range, more),
    })
}

/// Differences of logarithms by block: the mean over all pairs of rows that differ in the factor alone, of the blocks
/// that have all of them.
fn logs(findings: &Findings, ratio: &Ratio) -> Result<BTreeMap<u32, f64>, Obstacle> {
    let end = |level: &str| {
        let mut at = ratio.at.clone();
        at.insert(ratio.factor.clone(), level.to_owned());
        rows(findings, &at)
    };
    let (from, to) = (end(&ratio.from)?, end(&ratio.to)?);
    let rest = |row: &Row| {
        let others = row.factors.iter().filter(|(factor, _)| **factor != ratio.factor);
        others.map(|(factor, level)| (factor.clone(), level.to_string())).collect::<Vec<_>>()
    };
    let mut sums = BTreeMap::<u32, (usize, f64)>::new();
    for row in &from {
        let other = to.iter().find(|other| rest(other) == rest(row));
        let other = other.ok_or_else(|| {
            let why = format!("nothing to compare {} with", row.label);
            obstacle(why, "a run with every combination of levels")
        })?;
        let (a, b) = (by_block(row, &ratio.metric)?, by_block(other, &ratio.metric)?);
        for (block, value) in a {
            let Some(other) = b.get(&block) else { continue };
            if value <= 0.0 || *other <= 0.0 {
                return Err(obstacle(format!("`{}` is zero: there is no ratio", ratio.metric), "values above zero"));
            }
            let sum = sums.entry(block).or_default();
            *sum = (sum.0 + 1, sum.1 + (other / value).ln());
        }
    }
    let complete = sums.into_iter().filter(|(_, (pairs, _))| *pairs == from.len());
    Ok(complete.map(|(block, (pairs, sum))| (block, sum / pairs as f64)).collect())
}

fn pairs(logs: impl IntoIterator<Item = f64>) -> Result<Pairs, Obstacle> {
    let logs = logs.into_iter().collect::<Vec<_>>();
    enough(logs.len(), "blocks in common")?;
    Ok(Pairs::from_logs(logs))
}

fn typical(pairs: &Pairs, level: f64) -> Result<Estimate, Obstacle> {
    pairs.typical(level).ok_or_else(|| obstacle(format!("no interval from {} blocks", pairs.len()), "more blocks"))
}

/// All of several ratios: they agree when each does, and disagree when one does at a level that allows for their number.
fn together(named: &[(String, Pairs)], range: Range) -> Result<Answer, Obstacle> {
    let strict = 1.0 - (1.0 - LEVEL) / named.len() as f64;
    let (mut words, mut verdicts) = (Vec::new(), Vec::new());
    for (name, pairs) in named {
        let estimate = typical(pairs, LEVEL)?;
        let [point, low, high] = [estimate.point, estimate.low, estimate.high].map(number);
        let name = if named.len() > 1 { format!("{name}: ") } else { String::new() };
        words.push(format!("{name}{point} [{low}, {high}], {} blocks", pairs.len()));
        let half = stats::pairs::half_width(&estimate).ln_1p();
        let logs = Range { low: range.low.ln(), high: range.high.ln() };
        let more = || more_blocks(pairs.len(), half, distance(estimate.point.ln(), logs));
        let alone = verdict(estimate.low, estimate.high, range, more);
        let wide = typical(pairs, strict)?;
        let with_all = verdict(wide.low, wide.high, range, String::new);
        verdicts.push(match alone {
            Verdict::Disagrees if with_all != Verdict::Disagrees => Verdict::CannotTell {
                why: format!("{name}outside by itself, not when {} ratios are tested", named.len()),
                needs: "more blocks".to_owned(),
            },
            alone => alone,
        });
    }
    let verdict = match verdicts.iter().find(|verdict| **verdict == Verdict::Disagrees) {
        Some(disagrees) => disagrees.clone(),
        None => verdicts.into_iter().find(|verdict| *verdict != Verdict::Agrees).unwrap_or(Verdict::Agrees),
    };
    Ok(Answer { found: words.join("; "), verdict })
}

fn in_range(findings: &Findings, ratios: &[Ratio], range: Range) -> Result<Answer, Obstacle> {
    let named = ratios.iter().map(|ratio| {
        let logs = logs(findings, ratio)?;
        Ok((format!("{} {} to {}", ratio.factor, ratio.from, ratio.to), pairs(logs.into_values())?))
    });
    together(&named.collect::<Result<Vec<_>, Obstacle>>()?, range)
}

/// The size of a change over that of others. The way that each goes is that of its mean over all blocks.
fn larger(findings: &Findings, ratio: &Ratio, than: &[Ratio]) -> Result<Answer, Obstacle> {
    let upwards = |ratio: &Ratio| {
        let logs = logs(findings, ratio)?;
        let sign = if logs.values().sum::<f64>() < 0.0 { -1.0 } else { 1.0 };
        Ok::<_, Obstacle>(logs.into_iter().map(|(block, log)| (block, sign * log)).collect::<BTreeMap<_, _>>())
    };
    let first = upwards(ratio)?;
    let named = than.iter().map(|other| {
        let logs = upwards(other)?;
        let common = first.iter().filter_map(|(block, log)| Some(log - logs.get(block)?));
        let differs = if ratio.factor == other.factor && ratio.metric == other.metric {
            levels(&other.at)
        } else {
            format!("`{}` over {} {} to {}", other.metric, other.factor, other.from, other.to)
        };
        Ok((format!("over {differs}"), pairs(common)?))
    });
    together(&named.collect::<Result<Vec<_>, Obstacle>>()?, Range { low: 1.0, high: f64::INFINITY })
}

fn law(findings: &Findings, factor: &str, series: &At, parameter: Parameter, range: Range) -> Result<Answer, Obstacle> {
    // A series names the factors that vary; the run is known to have the levels of the others.
    let of = |found: &&Scalability| {
        let is = |(name, level): (&String, &String)| found.series.get(name).is_none_or(|is| is.to_string() == *level);
        found.factor == factor && series.iter().all(is)
    };
    let found = findings.scalability.iter().find(of);
    let found = found.ok_or_else(|| obstacle("no scalability law", "a run over more levels"))?;
    let members = findings.rows.iter().filter(|row| has(&row.factors, series));
    // The law leaves out rows with marks by itself, and not those of too few processors.
    let starved = members.clone().filter(|row| row.cpus_wanted.is_some()).find_map(is_of_others);
    let fitted = found.points.iter().filter(|point| point.left_out.is_none());
    let Some(fit) = &found.fit else {
        members.clone().try_for_each(usable)?;
        return Err(obstacle(found.sentence.trim_end_matches('.'), "more levels, so more CPUs"));
    };
    enough(fitted.clone().map(|point| point.trials).min().unwrap_or(0), "trials of a design point")?;
    let most = fitted.map(|point| point.n).fold(0.0, f64::max);
    let (name, point, low, high) = match parameter {
        Parameter::Peak => {
            let nowhere = |end: Option<f64>| end.unwrap_or(f64::INFINITY);
            ("peak", nowhere(fit.peak), nowhere(fit.peak_low), nowhere(fit.peak_high))
        }
        Parameter::Coherency => ("coherency", fit.coherency.point, fit.coherency.low, fit.coherency.high),
    };
    let end = |value: f64| if value.is_finite() { number(value) } else { "nowhere".to_owned() };
    let words = format!("{name} {} [{}, {}], fitted up to {most} {factor}", end(point), end(low), end(high));
    let verdict = if parameter == Parameter::Peak && most < range.high && high > most {
        // Beyond the last level the law is only an extrapolation.
        let why = format!("measured up to {most} {factor}");
        Verdict::CannotTell { why, needs: format!("more than {} CPUs for the server", range.high) }
    } else if let Some((why, needs)) = starved {
        Verdict::CannotTell { why, needs }
    } else {
        verdict(low, high, range, || "more trials, or more levels near the bound".to_owned())
    };
    Ok(Answer { found: words, verdict })
}

fn over_requests(findings: &Findings, what: &str, at: &At, trend: Trend) -> Result<Answer, Obstacle> {
    let row = *rows(findings, at)?.first().ok_or_else(|| obstacle("no such design point", "a run with it"))?;
    let place = findings.rows.iter().position(|other| std::ptr::eq(other, row));
    let found = findings.over_requests.iter().find(|found| Some(found.row) == place && found.what == what);
    let found = found.ok_or_else(|| obstacle(format!("no trend of `{what}`"), "trials that record it"))?;
    let slope = found.slope_per_1000.ok_or_else(|| obstacle("one trial has no interval", "more trials"))?;
    enough(slope.n as usize, "trials")?;
    let [point, low, high] =
        [slope.point, slope.low, slope.high].map(|value| analysis::number::quantity(value, &found.unit));
    // The word that the findings publish.
    let word = serde_json::to_value(found.trend).ok();
    let word = word.as_ref().and_then(|word| word.as_str()).unwrap_or("unclear");
    let cannot = |why: &str, needs: &str| Verdict::CannotTell { why: why.to_owned(), needs: needs.to_owned() };
    let verdict = match (trend, word) {
        (Trend::Flat, "flat") => Verdict::Agrees,
        (Trend::Flat, "line") if slope.low > 0.0 => Verdict::Disagrees,
        (Trend::Flat, "line") => Verdict::Agrees,
        (Trend::Line, "line") if slope.low > 0.0 => Verdict::Agrees,
        (Trend::Line, "line" | "flat") => Verdict::Disagrees,
        (Trend::Line, "bent") => Verdict::Disagrees,
        (_, "bent") => cannot("the series bends within the trial", "more operations per trial, beyond the bend"),
        _ => cannot("the interval leaves room for a change that matters", "more operations or more trials"),
    };
    Ok(Answer { found: format!("{word}: {point} [{low}, {high}] per 1,000 requests, {} trials", slope.n), verdict })
}

fn drawn(size: Size, range: Range) -> Answer {
    let workload = study::workload::preset("course");
    let sizes = workload.and_then(|workload| match size {
        Size::Key => workload.key_sizes().ok(),
        Size::Value => workload.value_sizes().ok(),
    });
    let Some(sizes) = sizes else { return Answer::none("there is no workload `course`", "that workload") };
    let mean = sizes.mean();
    Answer {
        found: format!("{mean:.1} bytes, exact: the mean of the sampled distribution"),
        verdict: verdict(mean, mean, range, || unreachable!("a point lies inside or outside")),
    }
}

#[cfg(test)]
mod tests;
