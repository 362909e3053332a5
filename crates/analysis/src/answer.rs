//! The answer to a study's question, if blocks and intervals support one.

use std::collections::BTreeSet;

use stats::ranking::BLOCKS_MIN;
use study::Metric;
use study::plan::{Asked, AskedKind, Plan};

use crate::comparisons::is_compared;
use crate::enum_words_and_lists::{NAMED, all_of, capitalised, first_of};
use crate::findings::{
    ComparedPlace, Comparison, Difference, Estimate, Findings, Mark, RequestTrend, Row, Scalability, SearchEnd,
    Sentence, Source, Trend,
};
use crate::group_by_key::{distinct, grouped};
use crate::label::label;
use crate::number::relation;
use crate::{gate, number};

pub(crate) fn answer(findings: &Findings, plan: &Plan) -> Vec<Sentence> {
    let without = findings.rows.iter().filter(|row| row.n == 0).collect::<Vec<_>>();
    if without.len() == findings.rows.len() {
        let reason = findings.rows.iter().find_map(|row| row.state.reason()).unwrap_or("no design points");
        return vec![from(Source::Rows, format!("No result: no trial succeeded ({reason})."))];
    }
    let mut sentences = asked(findings, &plan.asked());
    if sentences.is_empty() {
        sentences.extend(from_all(Source::Rows, values(findings)));
    }
    if sentences.is_empty() {
        sentences.push(from(Source::Rows, no_answer(findings)));
    }
    sentences.extend(others(findings).into_iter().map(|text| from(Source::Rows, text)));
    if let Some(text) = about_others(findings) {
        // The sentence that most points did not measure the server comes first, or last if a gate's verdict must lead.
        let place = if findings.gate.is_some() { sentences.len() } else { 0 };
        sentences.insert(place, from(Source::Rows, text));
    }
    sentences
}

fn from(from: Source, text: String) -> Sentence {
    Sentence { text, from }
}

fn from_all(source: Source, texts: impl IntoIterator<Item = String>) -> impl Iterator<Item = Sentence> {
    texts.into_iter().map(move |text| from(source, text))
}

/// Answers the question of the study, then related questions.
fn asked(findings: &Findings, asked: &Asked) -> Vec<Sentence> {
    let next: &[AskedKind] = match asked.kind {
        AskedKind::Best => &[AskedKind::Growth, AskedKind::Capacity],
        AskedKind::Added | AskedKind::Effects | AskedKind::Values => &[AskedKind::Capacity],
        AskedKind::Growth => &[AskedKind::Best, AskedKind::Capacity],
        AskedKind::Capacity => &[AskedKind::Best, AskedKind::Growth],
        AskedKind::Gate => &[],
    };
    let factor = asked.factor.as_deref().filter(|_| asked.kind == AskedKind::Growth);
    let answer = |kind: &AskedKind| match kind {
        AskedKind::Best => from_all(Source::Comparisons, best(findings)).collect(),
        AskedKind::Added => from_all(Source::Added, added(findings)).collect(),
        AskedKind::Growth => growth(findings, factor),
        AskedKind::Capacity => from_all(Source::Searches, capacity(findings)).collect(),
        AskedKind::Effects => from_all(Source::Effects, effects(findings)).collect(),
        AskedKind::Values => from_all(Source::Rows, values(findings)).collect(),
        AskedKind::Gate => from_all(Source::Gate, findings.gate.iter().flat_map(gate::sentences)).collect::<Vec<_>>(),
    };
    let answers = std::iter::once(&asked.kind).chain(next).flat_map(answer);
    answers.chain(from_all(Source::OverRequests, over_requests(findings))).collect()
}

fn added(findings: &Findings) -> impl Iterator<Item = String> {
    let mut met = BTreeSet::new();
    let (first, again) = findings.added.iter().partition::<Vec<_>, _>(|found| met.insert(&found.through));
    let shown = first.into_iter().chain(again).take(NAMED).map(|found| found.sentence.clone());
    shown.chain(more(findings.added.len(), "comparison", "of proxy overhead"))
}

fn over_requests(findings: &Findings) -> impl Iterator<Item = String> {
    let of = |trend: RequestTrend| findings.over_requests.iter().filter(move |found| found.trend == trend);
    let shown = of(RequestTrend::Line).chain(of(RequestTrend::Bent)).chain(of(RequestTrend::Flat));
    shown.filter(|_| !findings.quick).take(NAMED).map(|found| format!("{}.", found.sentence))
}

fn best(findings: &Findings) -> impl Iterator<Item = String> {
    let headlines = findings.comparisons.iter().filter(|comparison| comparison.headline);
    headlines.filter_map(|comparison| Contest::new(findings, comparison)).flat_map(|contest| contest.sentences())
}

fn growth(findings: &Findings, factor: Option<&str>) -> Vec<Sentence> {
    let curves = findings.miss_ratios.iter().flat_map(|found| found.sentences.iter().take(NAMED)).cloned();
    let mut factors = findings.trends.iter().map(|trend| trend.factor.as_str()).collect::<Vec<_>>();
    factors.dedup();
    // The requested factor gets a sentence per series; every other factor gets a summary.
    factors.sort_by_key(|name| Some(*name) != factor);
    let trends = factors.into_iter().filter_map(|name| {
        let trends = findings.trends.iter().filter(|trend| trend.factor == name).collect::<Vec<_>>();
        trend_words(findings, &trends, Some(name) == factor)
    });
    let told = |law: &&Scalability| law.fit.is_some() || law.points.iter().any(|point| point.left_out.is_some());
    let laws = findings.scalability.iter().filter(told).take(NAMED).map(|found| found.sentence.clone());
    let curves = from_all(Source::MissRatios, curves).chain(from_all(Source::Trends, trends));
    curves.chain(from_all(Source::Scalability, laws)).collect()
}

fn capacity(findings: &Findings) -> impl Iterator<Item = String> {
    let searches = findings.searches().map(|(row, search)| format!("{}: {}.", row.label, search.sentence));
    let more = more(findings.searches().count(), "search", "of searches");
    bears_most(findings).into_iter().chain(searches.take(NAMED)).chain(more)
}

/// Largest shown effects on the study's metric or, if they are marked, on the first metric without a mark.
fn effects(findings: &Findings) -> impl Iterator<Item = String> {
    let found = || findings.effects.iter().filter(|effects| effects.marked.is_none());
    let found = found().find(|effects| effects.metric == findings.metric).or_else(|| found().next());
    found.into_iter().flat_map(|effects| effects.sentences.iter().take(effects.shown.min(NAMED)).cloned())
}

fn values(findings: &Findings) -> impl Iterator<Item = String> {
    let rows = findings.rows.iter().filter(|row| !row.is_marked() && is_compared(row, &findings.metric));
    rows.take(NAMED).map(|row| alone(findings, row))
}

fn no_answer(findings: &Findings) -> String {
    let is_there = |row: &&Row| row.estimate(&findings.metric).is_some();
    let why = match findings.rows.iter().find(is_there).map(Row::is_about_others) {
        Some(true) => "measures the server",
        Some(false) => "comes from a server that kept responding",
        None if findings.rows.iter().any(|row| row.is_at_least(&findings.metric)) => "is more than a lower bound",
        None => "has an interval",
    };
    let noun = study::Metric::noun_of(&findings.metric);
    format!("No answer: no design point's {noun} {why}.")
}

fn about_others(findings: &Findings) -> Option<String> {
    let measured = findings.rows.iter().filter(|row| row.n > 0).count();
    let marked = || findings.rows.iter().filter(|row| row.is_about_others() && row.n > 0);
    if marked().count() * 2 <= measured {
        return None;
    }
    if marked().all(is_shared_alone) {
        return Some("The CPUs were shared with other work: ratios hold, absolute values include it.".to_owned());
    }
    let kinds = marked().flat_map(|row| &row.marks).filter(|mark| **mark != Mark::Hung).map(|mark| mark.text());
    let kinds = kinds.collect::<BTreeSet<_>>().into_iter().collect::<Vec<_>>().join(" or ");
    let all = number::count(measured as u64, "design point");
    Some(format!("{} of {all} do not measure the server: {kinds}.", marked().count()))
}

/// Whether a row has no mark except shared CPUs, which still allow comparing pairs.
fn is_shared_alone(row: &Row) -> bool {
    row.marks.iter().all(|mark| *mark == Mark::Shared)
}

/// Returns why a row is in a list; `None` if it is not.
type Why<'a> = &'a dyn Fn(&Row) -> Option<String>;

/// Lists rows that are not ranked or not measured, one sentence per reason.
fn others(findings: &Findings) -> Vec<String> {
    let all = findings.rows.iter().filter(|row| row.n > 0).all(Row::is_about_others);
    let marks = |row: &Row| row.marks.iter().map(|mark| mark.text()).collect::<Vec<_>>().join(", ");
    let hung = |row: &Row| format!("hung in {} of {}", row.hung(), number::count(row.n as u64, "trial"));
    let at_least = |row: &Row| {
        let metric = findings.metric_info(&findings.metric)?;
        let is_unknown = !row.is_marked() && row.is_at_least(metric.name) && !is_compared(row, metric.name);
        let mean = row.mean(metric.name).filter(|_| is_unknown)?;
        Some(format!("{} at least {}", metric.noun, number::quantity(mean, metric.unit)))
    };
    let is_hung = |row: &Row| !row.is_about_others() && row.hung() > 0;
    let is_marked = |row: &Row| !all && row.is_about_others() && row.n > 0 && !is_shared_alone(row);
    let lists: [(&str, Why<'_>); 5] = [
        ("Not ranked: ", &|row| is_marked(row).then(|| marks(row))),
        ("Not ranked because the server stopped responding: ", &|row| is_hung(row).then(|| hung(row))),
        ("Not ranked because requests were still waiting for a response at the end: ", &at_least),
        ("Not ranked because more of its requests failed: ", &|row| row.more_errors.clone()),
        ("Not measured: ", &|row| (row.n == 0).then(|| row.state.word().to_owned())),
    ];
    let sentence = |(start, why): (&str, Why<'_>)| {
        let rows = findings.rows.iter().filter_map(|row| Some(format!("{} ({})", row.label, why(row)?)));
        listed(start, rows.collect())
    };
    lists.into_iter().filter_map(sentence).collect()
}

/// Names the row with the highest sustained rate, without a statistical test. `None` unless exactly one factor varies.
fn bears_most(findings: &Findings) -> Option<String> {
    if findings.factors.iter().filter(|factor| factor.levels.len() > 1).count() != 1 {
        return None;
    }
    let ranges = findings.rows.iter().filter_map(|row| {
        let search = row.search.as_ref()?;
        let sure = |end: Option<SearchEnd>| end.filter(|end| end.confirmed).map(|end| end.rate_per_s);
        Some((row, sure(search.low)?, sure(search.high)))
    });
    let mut ranges = ranges.collect::<Vec<_>>();
    ranges.sort_by(|a, b| b.1.total_cmp(&a.1));
    let (&(first, low_per_s, _), rest) = ranges.split_first().filter(|(_, rest)| !rest.is_empty())?;
    let rate = |rate_per_s| number::quantity(rate_per_s, "1/s");
    let has_failed = |high: Option<f64>| high.is_some_and(|high_per_s| high_per_s <= low_per_s);
    let near = rest.iter().filter(|(.., high)| !has_failed(*high)).map(|(row, ..)| row.label.as_str());
    let near = near.collect::<Vec<_>>().join(" and ");
    if !near.is_empty() {
        return Some(format!("Too close to call on sustained rate (ranges overlap): {} and {near}.", first.label));
    }
    let failed = rest.iter().filter_map(|(row, _, high)| Some(format!("{} at {}", row.label, rate((*high)?))));
    let (rate, failed) = (rate(low_per_s), first_of(&failed.collect::<Vec<_>>(), "; "));
    Some(format!("{} sustained {rate}; the others failed at lower rates: {failed}.", first.label))
}

fn more(all: usize, noun: &str, table: &str) -> Option<String> {
    let others = all.saturating_sub(NAMED) as u64;
    (others > 0).then(|| format!("{} not listed here: see the table {table}.", number::count(others, noun)))
}

fn listed(start: &str, items: Vec<String>) -> Option<String> {
    (!items.is_empty()).then(|| format!("{start}{}.", first_of(&items, "; ")))
}

fn alone(findings: &Findings, row: &Row) -> String {
    let names = distinct([findings.metric.as_str(), "throughput", "latency_mean", "latency_p99"]);
    let parts = names.into_iter().filter_map(|name| {
        let metric = findings.metric_info(name)?;
        Some(format!("{} {}", metric.noun, value(findings, row, metric)?))
    });
    let parts = parts.collect::<Vec<_>>().join(", ");
    if findings.rows.len() == 1 { capitalised(&parts) + "." } else { format!("{}: {parts}.", row.label) }
}

fn value(findings: &Findings, row: &Row, metric: &Metric) -> Option<String> {
    let found = row.metrics.get(metric.name)?;
    match found.estimate.filter(|_| !findings.quick) {
        Some(estimate) => Some(number::estimate(&estimate, metric.unit)),
        None if found.at_least => Some(number::at_least(found.mean?, metric.unit)),
        None => Some(number::quantity(found.mean?, metric.unit)),
    }
}

struct Contest<'a> {
    findings: &'a Findings,
    comparison: &'a Comparison,
    metric: &'static Metric,
    best: &'static str,
    better: &'static str,
}

impl<'a> Contest<'a> {
    fn new(findings: &'a Findings, comparison: &'a Comparison) -> Option<Contest<'a>> {
        let metric = findings.metric_info(&comparison.metric)?;
        let (best, better) = if metric.higher_is_better { ("highest", "higher") } else { ("lowest", "lower") };
        Some(Contest { findings, comparison, metric, best, better })
    }

    fn sentences(&self) -> Vec<String> {
        let places = self.comparison.places.iter().collect::<Vec<_>>();
        let claimed = |place: &&&ComparedPlace| !self.findings.quick && place.blocks >= BLOCKS_MIN as u64;
        let (told, short) = places.iter().copied().partition::<Vec<_>, _>(|place| claimed(&place));
        let mut sentences = match told.as_slice() {
            [] => Vec::new(),
            [place] if short.is_empty() => self.of_one(place),
            _ => self.of_many(&told),
        };
        sentences.extend(self.kinds_of_starts(&told));
        sentences.extend(self.not_claimed(&short));
        sentences
    }

    fn name(&self, row: usize) -> String {
        label(std::slice::from_ref(&self.comparison.factor), &self.findings.rows[row].factors)
    }

    fn ratio(&self, place: &ComparedPlace, x: usize, y: usize) -> Option<Estimate> {
        let pair = place.pairs.iter().find(|pair| (pair.a, pair.b) == (x, y) || (pair.a, pair.b) == (y, x))?;
        pair.ratio.map(|ratio| if pair.b == x { ratio } else { ratio.inverse() })
    }

    fn next(&self, place: &ComparedPlace, best: usize) -> Option<(usize, Estimate)> {
        let others = place.rows.iter().filter(|row| **row != best);
        let ratios = others.filter_map(|&row| Some((row, self.ratio(place, best, row)?)));
        ratios.min_by(|a, b| a.1.point.ln().abs().total_cmp(&b.1.point.ln().abs()))
    }

    fn lead(&self, place: &ComparedPlace) -> Option<(usize, (usize, Estimate))> {
        let best = place.best.filter(|_| place.leads)?;
        Some((best, self.next(place, best)?))
    }

    /// Names the winner at one place, as in `c-epoll has the lowest mean latency: ...`, or lists the possible winners.
    fn of_one(&self, place: &'a ComparedPlace) -> Vec<String> {
        let at = if place.label.is_empty() { String::new() } else { format!(" at {}", place.label) };
        let blocks = number::count(place.blocks, "block");
        let word = if place.rows.len() == 2 { self.better } else { self.best };
        let Some((best, (next, ratio))) = self.lead(place) else {
            let (names, could) = self.undecided(place);
            let could = could.map_or(String::new(), |could| format!("{could}; "));
            let noun = self.metric.noun;
            let text = format!("Too close to call which of {names} has the {word} {noun}{at} ({could}{blocks}).");
            let slower = place.rows.iter().filter(|row| !self.candidates(place).contains(row));
            let slower = slower.map(|&row| self.name(row)).collect::<Vec<_>>();
            let slower = (!slower.is_empty()).then(|| format!("Ruled out: {}.", all_of(&slower, "and")));
            return std::iter::once(text).chain(slower).collect();
        };
        let next_best = if place.rows.len() > 2 { ", the next" } else { "" };
        let (leader, second, by) = (self.name(best), self.name(next), relation(&ratio));
        let first = format!("{leader} has the {word} {}{at}: {by} {second}{next_best} ({blocks}).", self.metric.noun);
        let others = place.rows.iter().filter(|row| **row != best && **row != next);
        let of_other = |&row| Some(format!("{} is {} it", self.name(row), relation(&self.ratio(place, row, best)?)));
        std::iter::once(first).chain(listed("", others.filter_map(of_other).collect())).collect()
    }

    fn candidates(&self, place: &ComparedPlace) -> Vec<usize> {
        let next = place.best.and_then(|best| self.next(place, best)).map(|(next, _)| next);
        let also = [place.best, next].into_iter().flatten().filter(|_| place.may_be_best.len() < 2);
        let also = also.collect::<Vec<_>>();
        place.rows.iter().copied().filter(|row| place.may_be_best.contains(row) || also.contains(row)).collect()
    }

    /// Names the contenders that may be best and, if known, the size of a difference that would have been shown.
    fn undecided(&self, place: &ComparedPlace) -> (String, Option<String>) {
        let candidates = self.candidates(place);
        let names = candidates.iter().map(|&row| self.name(row)).collect::<Vec<_>>();
        let among = |pair: &&Difference| candidates.contains(&pair.a) && candidates.contains(&pair.b);
        let could = place.pairs.iter().filter(among).map(|pair| pair.could_show).collect::<Option<Vec<_>>>();
        let could = could.and_then(|all| all.into_iter().reduce(f64::max)).filter(|size| *size > 0.0);
        let could = could.map(|size| format!("a difference of about {} would have shown", number::percent(size)));
        (all_of(&names, "and"), could)
    }

    fn of_many(&self, places: &[&'a ComparedPlace]) -> Vec<String> {
        let led = places.iter().filter_map(|place| {
            let (best, (next, ratio)) = self.lead(place)?;
            Some((self.name(best), (place, next, ratio)))
        });
        let mut leaders = grouped(led);
        leaders.sort_by_key(|(_, leads)| std::cmp::Reverse(leads.len()));
        let all = places.len();
        let blocks = places.iter().map(|place| place.blocks).min().unwrap_or(0);
        let blocks = number::count(blocks, "block");
        let mut sentences = Vec::new();
        for (name, leads) in &leaders {
            let some = if leads.len() < all { format!("{} of", leads.len()) } else { "all".to_owned() };
            let (best, noun) = (self.best, self.metric.noun);
            sentences.push(format!("{name} has the {best} {noun} in {some} {all} comparisons ({blocks})."));
            let detail = |(place, next, ratio): &(&&ComparedPlace, usize, Estimate)| {
                format!("{}: {} {}", place.label, relation(ratio), self.name(*next))
            };
            sentences.extend(listed("At ", leads.iter().map(detail).collect()));
        }
        let open = places.iter().filter(|place| self.lead(place).is_none()).map(|place| {
            let (names, could) = self.undecided(place);
            let could = could.map_or(String::new(), |could| format!(" ({could})"));
            format!("at {}: {names}{could}", place.label)
        });
        let start = if leaders.is_empty() { format!("In {blocks} it is not shown") } else { "Not shown".to_owned() };
        let start = format!("{start} which has the {} {} ", self.best, self.metric.noun);
        sentences.extend(listed(&start, open.collect()));
        sentences
    }

    fn kinds_of_starts(&self, places: &[&'a ComparedPlace]) -> Option<String> {
        let told = places.iter().flat_map(|place| place.pairs.iter().map(move |pair| (place, pair)));
        let parts = told.filter_map(|(place, pair)| {
            place.best.filter(|best| pair.kinds_of_starts && [pair.a, pair.b].contains(best))?;
            let (ratio, mean) = (relation(&pair.ratio?), relation(&pair.mean_ratio?));
            let at = if place.label.is_empty() { String::new() } else { format!("{}: ", place.label) };
            Some(format!("{at}{} is {ratio} {}, its mean {mean}", self.name(pair.b), self.name(pair.a)))
        });
        let start =
            "The typical start and the mean disagree, so one of them seems to have more than one kind of start: ";
        listed(start, parts.collect())
    }

    fn not_claimed(&self, places: &[&ComparedPlace]) -> Option<String> {
        let most = places.iter().map(|place| place.blocks).max()?;
        let values = places.iter().map(|place| {
            let one = |row: &usize| {
                Some(format!("{} {}", self.name(*row), value(self.findings, &self.findings.rows[*row], self.metric)?))
            };
            let all = place.rows.iter().filter_map(one).collect::<Vec<_>>().join(", ");
            if place.label.is_empty() { all } else { format!("at {}: {all}", place.label) }
        });
        let values = first_of(&values.collect::<Vec<_>>(), "; ");
        let colon = if places.iter().all(|place| place.label.is_empty()) { ":" } else { "" };
        let why = match self.findings.quick {
            true => format!("A quick run ({}) names no winner", number::count(most, "block")),
            false => format!("Too few blocks to name a winner, {most} of the {BLOCKS_MIN} needed"),
        };
        Some(format!("{why}. {}{colon} {values}.", capitalised(self.metric.noun)))
    }
}

fn trend_words(findings: &Findings, trends: &[&Trend], is_asked: bool) -> Option<String> {
    let first = trends.first()?;
    let metric = findings.metric_info(&first.metric)?;
    let same = trends.iter().filter(|trend| (&trend.from, &trend.to) == (&first.from, &first.to)).copied();
    let is_claimed = |trend: &&Trend| !findings.quick && trend.change.blocks >= BLOCKS_MIN as u64;
    let (claimed, short) = same.partition::<Vec<_>, _>(is_claimed);
    let from_to = format!("From {} {} to {} {}", first.factor, first.from, first.to, metric.noun);
    let place = |trend: &Trend| if trend.label.is_empty() { String::new() } else { format!(" ({})", trend.label) };
    let Some(blocks) = claimed.iter().map(|trend| trend.change.blocks).min() else {
        let mean = |row: usize| Some(number::quantity(findings.rows[row].mean(metric.name)?, metric.unit));
        let of = |one: &&Trend| Some(format!("{} to {}{}", mean(one.change.a)?, mean(one.change.b)?, place(one)));
        let parts = short.iter().filter_map(of).collect::<Vec<_>>();
        let why = if findings.quick { "a quick run" } else { "too few blocks for a claim" };
        return is_asked.then(|| format!("{from_to} went from {}: {why}.", first_of(&parts, "; ")));
    };
    let shown = |grows: bool| {
        let ratios = claimed.iter().filter(|trend| trend.change.shown);
        let ratios = ratios.filter_map(|trend| Some((trend, trend.change.ratio?)));
        let ratios = ratios.filter(|(_, ratio)| (ratio.point > 1.0) == grows);
        let parts = ratios.map(|(trend, ratio)| format!("{}{}", times(&ratio), place(trend))).collect::<Vec<_>>();
        let verb = if grows { "grows" } else { "falls" };
        (!parts.is_empty()).then(|| format!("{verb} {}", first_of(&parts, "; ")))
    };
    let open = claimed.iter().filter(|trend| !trend.change.shown).map(|trend| {
        let could = trend.change.could_show.filter(|size| *size > 0.0);
        (trend.label.as_str(), could.map(|size| format!("about {} would have been", number::percent(size))))
    });
    let each = |(label, could): &(&str, Option<String>)| match could {
        Some(could) => format!("{label} ({could})"),
        None => (*label).to_owned(),
    };
    let open = match open.collect::<Vec<_>>().as_slice() {
        [] => None,
        [("", None)] => Some(String::new()),
        [("", Some(could))] => Some(format!(", though {could}")),
        several => Some(format!(": {}", first_of(&several.iter().map(each).collect::<Vec<_>>(), "; "))),
    };
    let open = open.map(|which| format!("is not shown to change{which}"));
    let parts = [shown(true), shown(false), open].into_iter().flatten().collect::<Vec<_>>().join("; ");
    Some(format!("{from_to} {parts}, in {}.", number::count(blocks, "block")))
}

fn times(ratio: &Estimate) -> String {
    let words = relation(ratio);
    match words.strip_suffix(" that of") {
        Some(times) => format!("to {times}"),
        None => format!("by {}", words.trim_end_matches(" above").trim_end_matches(" below")),
    }
}

#[cfg(test)]
mod tests {
    use crate::{analyze, example};
    use insta::assert_snapshot;
    use study::record::{Record, Run};

    fn answer_to(edit: impl FnOnce(&mut Run, &mut Vec<Record>)) -> String {
        let (mut run, mut records) = example::compared();
        edit(&mut run, &mut records);
        text(&run, &records)
    }

    fn text(run: &Run, records: &[Record]) -> String {
        analyze(run, records).answer.into_iter().map(|sentence| sentence.text).collect::<Vec<_>>().join("\n")
    }

    #[test]
    fn names_leaders_and_excluded_rows() {
        assert_snapshot!(answer_to(|_, _| ()), @"
        c-epoll has the lowest mean latency in all 3 comparisons (17 blocks).
        At cores 1, clients 40: 18 % [17, 19] below rust-tokio; cores 1, clients 80: 19.4 % [18.5, 20.5] below rust-tokio; cores 2, clients 40: 18 % [17, 19] below rust-tokio.
        From cores 1 to 2 mean latency falls by 37.5 % [36.9, 38.1] (c-epoll, clients 40); by 37.8 % [37.1, 38.6] (go, clients 40); by 37.4 % [36.7, 38.4] (rust-tokio, clients 40), in 17 blocks.
        From clients 40 to 80 mean latency grows by 92 % [89, 94] (c-epoll, cores 1); by 93 % [90, 96] (go, cores 1); by 96 % [93, 98] (rust-tokio, cores 1), in 17 blocks.
        Not ranked: c-epoll, cores 2, clients 80 (generator-bound).
        Not measured: go, cores 2, clients 80 (failed); rust-tokio, cores 2, clients 80 (unrunnable).
        ");
    }

    #[test]
    fn describes_a_single_point() {
        let only = |run: &mut Run, records: &mut Vec<Record>| {
            run.plan.points.truncate(1);
            records.retain(|record| record.point == 0);
        };
        assert_snapshot!(answer_to(only), @"Mean latency 573 ±5 µs, throughput 69.8 ±0.6 k/s, p99 latency 1.288 ±0.016 ms.");
    }

    #[test]
    fn numeric_levels_compete_without_text_levels() {
        let only = |run: &mut Run, records: &mut Vec<Record>| {
            run.plan.points.truncate(3);
            records.retain(|record| record.point < 3);
        };
        assert_snapshot!(answer_to(only), @"
        From cores 1 to 2 mean latency falls by 37.5 % [36.9, 38.1] (clients 40), in 18 blocks.
        From clients 40 to 80 mean latency grows by 92 % [89, 94] (cores 1), in 18 blocks.
        ");
    }

    #[test]
    fn identical_trials_show_no_difference() {
        let twins = |run: &mut Run, records: &mut Vec<Record>| {
            run.plan.points = vec![run.plan.points[0].clone(), run.plan.points[4].clone()];
            records.retain(|record| record.point == 0);
            let twins = records.iter().map(|record| Record { point: 1, ..record.clone() }).collect::<Vec<_>>();
            records.extend(twins);
        };
        assert_snapshot!(answer_to(twins), @"Too close to call which of c-epoll and go has the lower mean latency (18 blocks).");
    }

    #[test]
    fn no_trials_give_no_answer() {
        assert_snapshot!(answer_to(|_, records| records.clear()), @"No result: no trial succeeded (no trial finished).");
        assert_snapshot!(answer_to(|_, records| records.retain(|record| record.block == 0)), @"
        Too few blocks to name a winner, 1 of the 12 needed. Mean latency at cores 1, clients 40: c-epoll 554 µs, go 773 µs, rust-tokio 698 µs; at cores 1, clients 80: c-epoll 1.103 ms, go 1.475 ms, rust-tokio 1.369 ms; at cores 2, clients 40: c-epoll 353 µs, go 494 µs, rust-tokio 436 µs.
        Not ranked: c-epoll, cores 2, clients 80 (generator-bound).
        Not measured: go, cores 2, clients 80 (failed); rust-tokio, cores 2, clients 80 (unrunnable).
        ");
    }

    #[test]
    fn capacity_is_reported_but_not_compared() {
        let (run, records) = example::capacity();
        assert_snapshot!(text(&run, &records), @"
        From load 20 to 80 p99 latency grows to ×2.92 [2.85, 2.98], in 12 blocks.
        capacity: holds 64.1 k/s, fails at 69.9 k/s: p99 < 5ms and errors < 0.1%; 12 trials.
        ");
    }

    #[test]
    fn searches_are_ranked_if_ranges_do_not_overlap() {
        let (run, records) = example::capacity();
        let mut findings = analyze(&run, &records);
        let capacity = findings.capacities.remove(0);
        let named = |name: &str, factor: f64| {
            let mut row = capacity.clone();
            row.label = name.to_owned();
            row.factors.insert("server".to_owned(), study::plan::Level::Text(name.to_owned()));
            let search = row.search.as_mut().unwrap();
            for end in [&mut search.low, &mut search.high].into_iter().flatten() {
                end.rate_per_s *= factor;
            }
            row
        };
        findings.rows = vec![named("a", 1.0), named("b", 1.5)];
        findings.factors.retain(|factor| factor.name == "server");
        findings.factors[0].levels =
            vec![study::plan::Level::Text("a".to_owned()), study::plan::Level::Text("b".to_owned())];
        let first = |findings: &crate::Findings| {
            let said = super::answer(findings, &run.plan);
            said.iter().find(|sentence| sentence.from == super::Source::Searches).unwrap().text.clone()
        };
        assert_snapshot!(first(&findings), @"b sustained 96.1 k/s; the others failed at lower rates: a at 69.9 k/s.");
        findings.rows[1] = named("b", 1.001);
        assert_snapshot!(first(&findings), @"Too close to call on sustained rate (ranges overlap): b and a.");
        findings.rows[1].search.as_mut().unwrap().high = None;
        assert_snapshot!(first(&findings), @"Too close to call on sustained rate (ranges overlap): b and a.");
    }

    fn with(point: usize, trials: usize, edit: impl Fn(&mut study::record::Measurement)) -> crate::Findings {
        let (run, mut records) = example::compared();
        for record in records.iter_mut().filter(|record| record.point == point).take(trials) {
            let study::record::Outcome::Measured(measurement) = &mut record.outcome else { unreachable!() };
            edit(measurement);
        }
        analyze(&run, &records)
    }

    #[test]
    fn hung_server_is_named_but_not_ranked() {
        use crate::example::{MS, leave};
        let findings = with(0, 1, |measurement| leave(measurement, &[200 * MS; 40], &[], 200 * MS));
        let told = findings.answer.iter().find(|sentence| sentence.text.contains("stopped responding"));
        let expected =
            "Not ranked because the server stopped responding: c-epoll, cores 1, clients 40 (hung in 1 of 18 trials).";
        assert_eq!(told.map(|told| told.text.as_str()), Some(expected));
        assert!(
            findings.answer[0].text.starts_with("c-epoll has the lowest mean latency in 2 of 3"),
            "{:?}",
            findings.answer
        );
        assert!(findings.rows[0].estimate("latency_mean").is_none(), "its mean is only at least something");
        let json = serde_json::to_string(&findings).unwrap();
        assert!(json.contains(r#""at_least":true"#) && json.contains(r#""hung""#));
    }

    #[test]
    fn rows_with_many_lower_bounds_are_not_ranked() {
        use crate::example::{MS, leave};
        let findings = with(0, 1, |measurement| leave(measurement, &[4_000 * MS], &[], MS));
        assert!(findings.answer[0].text.contains("in all 3 comparisons"), "{:?}", findings.answer);
        assert!(
            findings.answer.iter().all(|sentence| !sentence.text.contains("still waiting")),
            "{:?}",
            findings.answer
        );
        let findings = with(0, 3, |measurement| leave(measurement, &[4_000 * MS], &[], MS));
        let told = findings.answer.iter().find(|sentence| sentence.text.contains("still waiting")).unwrap();
        assert!(told.text.contains("c-epoll, cores 1, clients 40 (mean latency at least "), "{told:?}");
        assert!(
            findings.answer[0].text.starts_with("c-epoll has the lowest mean latency in 2 of 3"),
            "{:?}",
            findings.answer
        );
        let found = &findings.rows[0].metrics["latency_mean"];
        assert!(found.at_least && found.estimate.is_none() && found.mean.is_some());
        assert!(findings.rows[0].estimate("latency_p50").is_some(), "its median is known");
    }

    #[test]
    fn sentences_of_one_answer_do_not_contradict_each_other() {
        let mut rng = stats::Rng::new(3);
        let (mut leads, mut open) = (0, 0);
        for _ in 0..10 {
            let (run, mut records) = example::compared();
            let of_point = (0..12).map(|_| 1.0 + 0.1 * rng.unit_f64()).collect::<Vec<_>>();
            for record in &mut records {
                let study::record::Outcome::Measured(measurement) = &mut record.outcome else { continue };
                let mean_ns = 500_000.0 * of_point[record.point] * (0.015 * rng.normal()).exp();
                measurement.service.sum = mean_ns * measurement.service.count as f64;
            }
            let findings = analyze(&run, &records);
            let said = findings.answer.iter().filter(|sentence| sentence.from == super::Source::Comparisons);
            let said = said.map(|sentence| sentence.text.as_str()).collect::<Vec<_>>();
            let is_open = |sentence: &&str| sentence.contains("ot shown which");
            for place in &findings.comparisons[0].places {
                let mentions = said.iter().filter(|sentence| sentence.contains(&place.label)).collect::<Vec<_>>();
                assert_eq!(mentions.len(), 1, "{}: {said:#?}", place.label);
                assert_eq!(is_open(mentions[0]), !place.leads, "{said:#?}");
                *(if place.leads { &mut leads } else { &mut open }) += 1;
            }
            let effects = findings.effects.iter().filter(|effects| effects.metric == findings.metric);
            for sentence in effects.flat_map(|effects| &effects.sentences) {
                assert!(!sentence.contains("no effect") && !sentence.contains(" from "), "{sentence}");
            }
        }
        assert!(leads > 0 && open > 0, "{leads} places with a leader, {open} without: both must occur");
    }
}
