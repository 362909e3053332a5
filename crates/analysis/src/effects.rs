//! Main effects and interactions of the factors, as numbers and sentences. A metric whose values are all above zero is
//! first analyzed on a logarithmic scale, because its spread grows with its size, and then directly.

use stats::adjust_p_values;
use stats::effects::{Contrast, Factorial, POWER, Scale, Term, Trial, factorial};
use stats::ranking::BLOCKS_MIN;
use study::Metric;
use study::plan::{Design, EffectsPlan, Level};
use study::record::IdlePolicy;

use crate::enum_words_and_lists::first_of;
use crate::findings::{
    ChangeAt, EffectAnalysis, EffectChange, EffectSource, Effects, Estimate, Factor, Findings, InteractionEffect,
    LevelEffect, Mark, Row, SourceKind,
};
use crate::group_by_key::distinct;
use crate::{comparisons, number};

/// p-value below which the scatter of points differs too much for a pooled error.
const UNEVEN_P: f64 = 0.01;
/// Share of the variation, from 0 to 1, below which sources are listed together.
const SMALL: f64 = 0.005;

const ONE_AT_A_TIME: &str = "One factor at a time: blind to interactions. Each change is with all other factors at their \
                             first level and says nothing about other levels. Changes are claimed after Holm's \
                             adjustment for all changes; the intervals are not adjusted.";

const UNEQUAL: &str = "Design points have unequal numbers of trials: every level is weighted equally (type III sums of \
                       squares), and shares are of their sum.";

const UNEVEN: &str = "Variances differ significantly between design points: the intervals share one error term and are \
                      too narrow for the noisiest points.";

/// Computes the effects on each metric under each idle policy. Empty if fewer than two factors vary.
pub fn effects(findings: &Findings, plan: &EffectsPlan) -> Vec<Effects> {
    if findings.factors.iter().filter(|factor| factor.levels.len() > 1).count() < 2 {
        return Vec::new();
    }
    let metrics = match &plan.metrics {
        Some(names) => distinct(names.iter().filter_map(|name| findings.metric_info(name))),
        None => comparisons::metrics(findings),
    };
    let of = |idle: IdlePolicy| metrics.iter().map(move |metric| one(findings, plan.design, metric, idle));
    comparisons::idle_policies(findings).into_iter().flat_map(of).collect()
}

struct Input<'a> {
    factors: Vec<Factor>,
    rows: Vec<(&'a Row, Vec<usize>)>,
    left_out: Vec<String>,
}

fn one(findings: &Findings, design: Design, metric: &Metric, idle: IdlePolicy) -> Effects {
    let input = input(findings, metric, idle);
    let hindrance = hindrance(&input);
    let all_values = input.rows.iter().flat_map(|(row, _)| values(row, metric.name));
    let has_ratios = metric.unit != "1" && all_values.map(|(_, value)| value).all(|value| value > 0.0);
    let scales: &[Scale] = match (&hindrance, has_ratios) {
        (Some(_), _) => &[],
        (None, true) => &[Scale::Ratio, Scale::Difference],
        (None, false) => &[Scale::Difference],
    };
    let shown = |scale: &Scale| Shown { scale: *scale, level: findings.level };
    let found = scales.iter().map(|scale| analysis(design, &input, metric, &shown(scale))).collect::<Vec<_>>();
    let marked = marked(&input).filter(|_| hindrance.is_none());
    let refused = hindrance.or_else(|| found.iter().rev().find_map(|found| found.clone().err()));
    let refused = refused.filter(|_| found.iter().all(Result::is_err));
    let blocks = input.rows.iter().map(|(row, _)| values(row, metric.name).count()).max().unwrap_or(0);
    let Input { factors, left_out, .. } = input;
    let analyses = found.into_iter().flatten().collect();
    let (name, sentences) = (metric.name.to_owned(), Vec::new());
    let mut effects =
        Effects { metric: name, idle, design, factors, left_out, refused, marked, analyses, sentences, shown: 0 };
    // Comparisons and trends already report these factors; a second test would give different numbers.
    let compared = findings.comparisons.iter().filter(|found| found.metric == metric.name).map(|found| &found.factor);
    let trends = findings.trends.iter().filter(|found| found.metric == metric.name).map(|found| &found.factor);
    let told = compared.chain(trends).cloned().collect::<Vec<_>>();
    write_sentences(&mut effects, metric, findings, blocks, &told);
    effects.analyses.iter_mut().for_each(|analysis| analysis.changes.retain(|change| !told.contains(&change.factor)));
    effects
}

fn values(row: &Row, metric: &'static str) -> impl Iterator<Item = (u32, f64)> {
    row.trials.iter().filter_map(move |trial| Some((trial.block, trial.known(metric)?)))
}

/// Collects the rows of a metric, without unmeasured levels, so that the other levels still form a full factorial.
fn input<'a>(findings: &'a Findings, metric: &Metric, idle: IdlePolicy) -> Input<'a> {
    let rows = findings.rows.iter().filter(|row| row.idle == Some(idle) && values(row, metric.name).next().is_some());
    let rows = rows.collect::<Vec<_>>();
    let mut left_out = Vec::new();
    let mut factors = Vec::new();
    for factor in findings.factors.iter().filter(|factor| factor.levels.len() > 1) {
        let there = |level: &&Level| rows.iter().any(|row| row.factors.get(&factor.name) == Some(level));
        let (kept, gone) = factor.levels.iter().partition::<Vec<&Level>, _>(there);
        left_out.extend(gone.into_iter().map(|level| factor.named(level)));
        if kept.len() > 1 {
            factors.push(Factor { levels: kept.into_iter().cloned().collect(), ..factor.clone() });
        }
    }
    let levels = |row: &'a Row| {
        let at = |factor: &Factor| factor.levels.iter().position(|level| row.factors.get(&factor.name) == Some(level));
        Some((row, factors.iter().map(at).collect::<Option<Vec<_>>>()?))
    };
    let rows = rows.into_iter().filter_map(levels).collect();
    Input { factors, rows, left_out }
}

fn hindrance(input: &Input<'_>) -> Option<String> {
    let is_search = input.rows.iter().any(|(row, _)| row.search.is_some());
    match input.factors.as_slice() {
        _ if is_search => Some("the trials of a search are steps at different rates, not replications".to_owned()),
        [] => Some("no factor has two or more measured levels".to_owned()),
        [factor] => Some(format!("only {} has more than one level with trials", factor.name)),
        _ => None,
    }
}

fn marked(input: &Input<'_>) -> Option<String> {
    let marks = |mark: Mark| input.rows.iter().filter(|(row, _)| row.marks.contains(&mark)).count();
    let all = [Mark::GeneratorBound, Mark::NetworkBound, Mark::Shared, Mark::Hung];
    let of = number::count(input.rows.len() as u64, "design point");
    let part = |mark: &Mark| format!("{} of {of} {}", marks(*mark), mark.text());
    let parts = all.iter().filter(|mark| marks(**mark) > 0).map(part).collect::<Vec<_>>();
    (!parts.is_empty()).then(|| parts.join(", "))
}

fn analysis(design: Design, input: &Input<'_>, metric: &Metric, shown: &Shown) -> Result<EffectAnalysis, String> {
    let trials = |levels: &dyn Fn(&[usize]) -> Option<Vec<usize>>| {
        let of = |(row, at): &(&Row, Vec<usize>)| {
            let levels = levels(at)?;
            let of = |(block, value)| Trial { levels: levels.clone(), block, value };
            Some(values(row, metric.name).map(of).collect::<Vec<_>>())
        };
        input.rows.iter().filter_map(of).flatten().collect::<Vec<_>>()
    };
    let scale = shown.scale;
    match design {
        Design::Full => {
            let sizes = input.factors.iter().map(|factor| factor.levels.len()).collect::<Vec<_>>();
            let found = factorial(&sizes, &trials(&|at| Some(at.to_vec())), scale)?;
            let mut analysis = EffectAnalysis::of_sources(&found, scale, &input.factors);
            crossed(&mut analysis, &found, &input.factors, shown);
            Ok(analysis)
        }
        Design::OneAtATime => {
            let mut points = vec![vec![0; input.factors.len()]];
            for (factor, of) in input.factors.iter().enumerate() {
                points.extend((1..of.levels.len()).map(|level| {
                    let mut at = vec![0; input.factors.len()];
                    at[factor] = level;
                    at
                }));
            }
            let trials = trials(&|at| points.iter().position(|point| point == at).map(|point| vec![point]));
            let is_missing = |point: &usize| !trials.iter().any(|trial| trial.levels == [*point]);
            let missing = (0..points.len()).filter(is_missing).count();
            if missing > 0 {
                let which = "the reference point or a point compared with it";
                return Err(format!("{missing} of {} design points have no trial ({which})", points.len()));
            }
            let found = factorial(&[points.len()], &trials, scale)?;
            let mut analysis = EffectAnalysis::of_sources(&found, scale, &[]);
            let tested = (1..points.len()).map(|index| found.change(0, 0, index, None).p_value()).collect::<Vec<_>>();
            let adjusted = adjust_p_values::holm(&tested);
            for (index, point) in points.iter().enumerate().skip(1) {
                let factor = point.iter().position(|level| *level > 0).unwrap_or(0);
                let contrast = found.change(0, 0, index, None);
                let change = shown.change(&input.factors[factor], point[factor], None, &contrast);
                let p_adjusted = Some(adjusted[index - 1]);
                analysis.changes.extend(change.map(|change| EffectChange { p_adjusted, ..change }));
            }
            Ok(analysis)
        }
    }
}

struct Shown {
    scale: Scale,
    level: f64,
}

impl Shown {
    /// Converts a contrast to an estimate; `None` if its interval is not finite, as with very few trials.
    fn estimate(&self, contrast: &Contrast) -> Option<Estimate> {
        let is_ratio = self.scale == Scale::Ratio;
        let found = if is_ratio { contrast.ratio(self.level) } else { contrast.interval(self.level) };
        [found.point, found.low, found.high].iter().all(|value| value.is_finite()).then_some(found)
    }

    /// Describes the change of a factor from its first level to the level at index `to`.
    fn change(&self, factor: &Factor, to: usize, at: Option<ChangeAt>, found: &Contrast) -> Option<EffectChange> {
        let change = self.estimate(found)?;
        let [from, to] = [0, to].map(|level| factor.levels[level].clone());
        let detectable = found.detectable(self.level, POWER);
        let detectable = if self.scale == Scale::Ratio { detectable.exp_m1() } else { detectable };
        // A value that is not finite becomes the largest number, which is a lower bound.
        let detectable = detectable.min(f64::MAX);
        Some(EffectChange { factor: factor.name.clone(), from, to, at, change, detectable, p_adjusted: None })
    }
}

impl EffectAnalysis {
    /// Creates an analysis with only its sources of variation.
    fn of_sources(found: &Factorial, scale: Scale, factors: &[Factor]) -> Self {
        let is_effect = |source: SourceKind| !matches!(source, SourceKind::Blocks | SourceKind::Error);
        let tested = found.terms.iter().map(|term| term.p_value.filter(|_| is_effect(term.source)));
        let adjusted = adjust_p_values::holm_of_some(tested);
        let source = |(term, p_adjusted): (&Term, Option<f64>)| {
            let is_points = factors.is_empty() && term.source == SourceKind::Main;
            let kind = if is_points { SourceKind::Points } else { term.source };
            let names = term.factors.iter().filter_map(|factor| Some(factors.get(*factor)?.name.clone())).collect();
            let &Term { share, squares, df, p_value: p, .. } = term;
            let f = term.f.filter(|f| f.is_finite());
            EffectSource { kind, factors: names, share, squares, df, f, p, p_adjusted }
        };
        let sources = found.terms.iter().zip(adjusted).map(source).collect();
        let (points, uneven_p) = (found.spreads.len(), found.uneven().map(|(_, p)| p));
        let &Factorial { trials, is_equal: equal, error, error_df, blocks, .. } = found;
        let (levels, interactions, changes) = Default::default();
        Self { scale, points, trials, equal, error, error_df, blocks, uneven_p, sources, levels, interactions, changes }
    }
}

fn crossed(analysis: &mut EffectAnalysis, found: &Factorial, factors: &[Factor], shown: &Shown) {
    for (a, factor) in factors.iter().enumerate() {
        for (index, level) in factor.levels.iter().enumerate() {
            let Some(effect) = shown.estimate(&found.main(a, index)) else { continue };
            analysis.levels.push(LevelEffect { factor: factor.name.clone(), level: level.clone(), effect });
        }
        for (b, other) in factors.iter().enumerate().skip(a + 1) {
            for (of_a, level_a) in factor.levels.iter().enumerate() {
                for (of_b, level_b) in other.levels.iter().enumerate() {
                    let Some(effect) = shown.estimate(&found.interaction((a, of_a), (b, of_b))) else { continue };
                    let factors = [factor.name.clone(), other.name.clone()];
                    let levels = [level_a.clone(), level_b.clone()];
                    analysis.interactions.push(InteractionEffect { factors, levels, effect });
                }
            }
        }
        for to in 1..factor.levels.len() {
            analysis.changes.extend(shown.change(factor, to, None, &found.change(a, 0, to, None)));
            for (b, other) in factors.iter().enumerate().filter(|(b, _)| *b != a) {
                for (index, level) in other.levels.iter().enumerate() {
                    let at = ChangeAt { factor: other.name.clone(), level: level.clone() };
                    let contrast = found.change(a, 0, to, Some((b, index)));
                    analysis.changes.extend(shown.change(factor, to, Some(at), &contrast));
                }
            }
        }
    }
}

/// Formats a change with its interval: `+38 % [+31, +45]`, `-12.3 µs [-14.0, -10.6]`.
pub fn change(scale: Scale, found: &Estimate, unit: &str) -> String {
    let values = [found.point, found.low, found.high];
    let (numbers, name, signed) = match scale {
        Scale::Ratio if found.high < 3.0 => (values.map(|ratio| (ratio - 1.0) * 100.0), "%", true),
        Scale::Ratio => (values, "", false),
        Scale::Difference => {
            let (divisor, name) = number::scale(unit, values.map(f64::abs).into_iter().fold(0.0, f64::max));
            (values.map(|value| value / divisor), name, true)
        }
    };
    let bound = if number::is_unbounded(numbers[2]) { numbers[0] } else { numbers[2] };
    let half = (bound - numbers[1]) / 2.0;
    let digits = if half > 0.0 { (1.0 - half.log10().floor()).clamp(0.0, 9.0) as usize } else { 1 };
    let digits = if name == "%" { digits.saturating_sub(1).min(3) } else { digits };
    let text = |value: f64| {
        let text = match signed {
            true => format!("{value:+.digits$}"),
            false if number::is_unbounded(value) => return "∞".to_owned(),
            false => format!("{value:.digits$}"),
        };
        if text.trim_matches(['+', '-', '0', '.']).is_empty() { text.trim_matches(['+', '-']).to_owned() } else { text }
    };
    let [point, low, high] = numbers.map(text);
    let (times, space) = (if signed { "" } else { "×" }, if name.is_empty() { "" } else { " " });
    format!("{times}{point}{space}{name} [{low}, {high}]")
}

fn share(fraction: f64) -> String {
    match fraction {
        none if none <= 0.0 => "0 %".to_owned(),
        little if little < SMALL => "under 0.5 %".to_owned(),
        share => format!("{:.0} %", share * 100.0),
    }
}

/// Names a source of variation: `maxmem × value_size`, `error`.
pub fn source_name(source: &EffectSource) -> String {
    match source.kind {
        SourceKind::Main | SourceKind::Interaction => source.factors.join(" × "),
        SourceKind::Higher => "three or more factors".to_owned(),
        SourceKind::Points => "design points".to_owned(),
        SourceKind::Blocks => "blocks".to_owned(),
        SourceKind::Error => "error".to_owned(),
    }
}

fn write_sentences(effects: &mut Effects, metric: &Metric, findings: &Findings, blocks: usize, told: &[String]) {
    let Some(found) = effects.analyses.first() else {
        let why = effects.refused.clone().unwrap_or_default();
        effects.sentences = vec![format!("Effects on {}: none computed, because {why}.", metric.noun)];
        return;
    };
    let speaker = Speaker { effects, found, metric, error: 1.0 - findings.level, told };
    let is_claimed = !findings.quick && blocks >= BLOCKS_MIN;
    let variation = speaker.variation();
    let mut all = match effects.design {
        _ if findings.quick => vec![(true, format!("A quick run claims no effects. {variation}"))],
        _ if !is_claimed => {
            vec![(true, format!("No effects claimed: {blocks} blocks, {BLOCKS_MIN} needed. {variation}"))]
        }
        Design::Full => speaker.sources(),
        Design::OneAtATime => found.changes.iter().map(|found| speaker.of_change(found)).collect(),
    };
    all.extend(is_claimed.then_some((false, variation)));
    all.sort_by_key(|(is_shown, _)| !is_shown);
    let shown = all.iter().filter(|(is_shown, _)| *is_shown).count();
    let sentences = all.into_iter().map(|(_, text)| text).chain(speaker.reservations()).collect();
    (effects.shown, effects.sentences) = (shown, sentences);
}

struct Speaker<'a> {
    effects: &'a Effects,
    found: &'a EffectAnalysis,
    metric: &'a Metric,
    error: f64,
    told: &'a [String],
}

impl Speaker<'_> {
    fn is_shown(&self, p_adjusted: Option<f64>) -> bool {
        p_adjusted.is_some_and(|p| p < self.error)
    }

    fn change(&self, found: &EffectChange) -> String {
        let change = change(self.found.scale, &found.change, self.metric.unit);
        format!("from {} to {} {change}", found.from, found.to)
    }

    fn not_shown(&self, what: &str, least: f64) -> String {
        let least = match self.found.scale {
            Scale::Ratio => number::percent(least),
            Scale::Difference => number::quantity(least, self.metric.unit),
        };
        format!("{what}: no significant effect on {} (≥ {least} would have been detected).", self.metric.noun)
    }

    /// Changes that sentences report: from a factor's first level to its last, or to each other level of a text factor.
    fn named_changes(&self, factor: &Factor, at: Option<&ChangeAt>) -> Vec<&EffectChange> {
        let is_named = |found: &&EffectChange| {
            let is_end = !factor.numeric || Some(&found.to) == factor.levels.last();
            found.factor == factor.name && found.at.as_ref() == at && is_end
        };
        self.found.changes.iter().filter(is_named).collect()
    }

    fn sources(&self) -> Vec<(bool, String)> {
        let mut sources = self.found.sources.iter().filter(|source| source.p_adjusted.is_some()).collect::<Vec<_>>();
        sources.sort_by(|a, b| b.share.total_cmp(&a.share));
        let of = |source: &EffectSource| Some((self.is_shown(source.p_adjusted), self.of_source(source)?));
        sources.into_iter().filter_map(of).collect()
    }

    fn of_source(&self, source: &EffectSource) -> Option<String> {
        let (noun, share, is_shown) = (&self.metric.noun, share(source.share), self.is_shown(source.p_adjusted));
        let factor = |name: &String| self.effects.factors.iter().find(|factor| factor.name == *name);
        let factors = source.factors.iter().map(factor).collect::<Option<Vec<_>>>()?;
        let is_told = factors.first().is_some_and(|factor| self.told.contains(&factor.name));
        let details =
            |parts: Vec<String>| if is_told { String::new() } else { format!(": {}", first_of(&parts, ", ")) };
        Some(match (source.kind, factors.as_slice()) {
            (SourceKind::Main, [_]) if is_told && !is_shown => return None,
            (SourceKind::Main, [factor]) => {
                let changes = self.named_changes(factor, None);
                if !is_shown {
                    let least = changes.iter().map(|change| change.detectable).fold(0.0, f64::max);
                    return Some(self.not_shown(&factor.name, least));
                }
                let interactions = self.found.sources.iter().filter(|other| other.kind == SourceKind::Interaction);
                let mut shown = interactions.filter(|other| self.is_shown(other.p_adjusted));
                let interacts = shown.any(|other| other.factors.contains(&factor.name));
                let average = if interacts { "on average " } else { "" };
                let mut changes = changes.into_iter().map(|change| self.change(change)).collect::<Vec<_>>();
                changes.iter_mut().take(1).for_each(|first| first.insert_str(0, average));
                format!("{} explains {share} of the variation of {noun}{}.", factor.name, details(changes))
            }
            (SourceKind::Interaction, [a, b]) if !is_shown => {
                self.not_shown(&source_name(source), self.interaction_detectable(a, b)?)
            }
            (SourceKind::Interaction, [a, b]) => {
                // Only the largest change of a text factor is reported; the table has the rest.
                let largest = |level: &Level| {
                    let changes =
                        self.named_changes(a, Some(&ChangeAt { factor: b.name.clone(), level: level.clone() }));
                    let largest = changes.into_iter().max_by(|x, y| self.size(x).total_cmp(&self.size(y)))?;
                    Some(format!("{}: {}", b.named(level), self.change(largest)))
                };
                let details = details(b.levels.iter().filter_map(largest).collect());
                format!("The effect of {} on {noun} depends on {} ({share} of the variation){details}.", a.name, b.name)
            }
            (SourceKind::Higher, _) if is_shown => {
                format!("Interactions of three or more factors explain {share} of the variation of {noun}.")
            }
            (SourceKind::Higher, _) => format!("No interaction of three or more factors in {noun} shown."),
            _ => return None,
        })
    }

    fn of_change(&self, found: &EffectChange) -> (bool, String) {
        let steps = format!("{} from {} to {}", found.factor, found.from, found.to);
        if !self.is_shown(found.p_adjusted) {
            return (false, self.not_shown(&steps, found.detectable));
        }
        let change = change(self.found.scale, &found.change, self.metric.unit);
        (true, format!("{steps}: {} {change}, all other factors at their first level.", self.metric.noun))
    }

    fn size(&self, found: &EffectChange) -> f64 {
        let point = found.change.point;
        if self.found.scale == Scale::Ratio { point.ln().abs() } else { point.abs() }
    }

    /// Smallest detectable difference between the effects of `a` at the first and the last level of `b`.
    fn interaction_detectable(&self, a: &Factor, b: &Factor) -> Option<f64> {
        let at = |level: &Level| ChangeAt { factor: b.name.clone(), level: level.clone() };
        let detectable = |found: &EffectChange| found.detectable;
        let of = |level: &Level| self.named_changes(a, Some(&at(level))).into_iter().map(detectable).reduce(f64::max);
        let (first, last) = (of(b.levels.first()?)?, of(b.levels.last()?)?);
        let is_ratio = self.found.scale == Scale::Ratio;
        Some(if is_ratio { first.ln_1p().hypot(last.ln_1p()).exp_m1() } else { first.hypot(last) })
    }

    fn variation(&self) -> String {
        let mut sources = self.found.sources.iter().collect::<Vec<_>>();
        sources.sort_by(|a, b| b.share.total_cmp(&a.share));
        let (large, small): (Vec<_>, Vec<_>) = sources.into_iter().partition(|source| source.share >= SMALL);
        let named = |source: &EffectSource| format!("{} {}", source_name(source), share(source.share));
        let mut parts = large.into_iter().map(named).collect::<Vec<_>>();
        match small.as_slice() {
            [] => {}
            [one] => parts.push(named(one)),
            more => parts.push(format!("{} others under 0.5 % each", more.len())),
        }
        let of = match self.found.scale {
            Scale::Ratio => format!("the logarithm of {} (changes are ratios)", self.metric.noun),
            Scale::Difference => format!("{} (changes are differences)", self.metric.noun),
        };
        format!("Shares of the variation of {of}: {}.", parts.join(", "))
    }

    fn reservations(&self) -> impl Iterator<Item = String> {
        let is_one_at_a_time = self.effects.design == Design::OneAtATime;
        let one_at_a_time = is_one_at_a_time.then(|| ONE_AT_A_TIME.to_owned());
        let marked = self.effects.marked.as_ref().map(|marked| format!("Not only about the server: {marked}."));
        let left_out = &self.effects.left_out;
        let left_out = (!left_out.is_empty()).then(|| format!("Excluded (not measured): {}.", left_out.join(", ")));
        let unequal = (!self.found.equal).then(|| UNEQUAL.to_owned());
        let uneven = self.found.uneven_p.filter(|p| *p < UNEVEN_P).map(|_| UNEVEN.to_owned());
        [one_at_a_time, marked, left_out, unequal, uneven].into_iter().flatten()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{analyze, example};
    use insta::assert_snapshot;
    use std::collections::BTreeMap;
    use study::record::{Record, Run};

    fn of(edit: impl FnOnce(&mut Run, &mut Vec<Record>)) -> Findings {
        let (mut run, mut records) = example::builds();
        edit(&mut run, &mut records);
        analyze(&run, &records)
    }

    fn sentences(findings: &Findings) -> String {
        findings.effects.iter().flat_map(|effects| effects.sentences.clone()).collect::<Vec<_>>().join("\n")
    }

    // Simulated: 20,000/s for O0 at both memory limits, 40,000/s and 50,000/s for O2. Ratio: sqrt(2 * 2.5) = 2.236.
    #[test]
    fn finds_the_simulated_effects() {
        let findings = of(|_, _| ());
        let [effects] = findings.effects.as_slice() else { panic!("one metric") };
        let found = &effects.analyses[0];
        assert_eq!((found.scale, found.points, found.trials, found.equal), (Scale::Ratio, 8, 95, false));
        let change = |factor: &str, at: Option<(&str, &str)>| {
            let at =
                at.map(|(factor, level)| ChangeAt { factor: factor.to_owned(), level: Level::Text(level.to_owned()) });
            let found = found.changes.iter().find(|change| change.factor == factor && change.at == at).unwrap();
            (found.change.low, found.change.high)
        };
        for ((low, high), truth) in [
            (change("build", None), 5f64.sqrt()),
            (change("build", Some(("maxmem", "10MB"))), 2.5),
            (change("maxmem", Some(("build", "O0"))), 1.0),
            (change("maxmem", Some(("build", "O2"))), 1.25),
        ] {
            assert!(low < truth && truth < high && high / low < 1.06, "{low} {high} {truth}");
        }
        assert!((found.sources.iter().map(|source| source.share).sum::<f64>() - 1.0).abs() < 1e-9);
        assert_eq!(effects.shown, 3, "{:?}", effects.sentences);
        assert!(findings.answer.iter().any(|said| said.text.contains(&effects.sentences[0])));
    }

    #[test]
    fn sentences_list_effects_and_shares() {
        assert_snapshot!(sentences(&of(|_, _| ())), @"
        build explains 96 % of the variation of throughput: on average from O0 to O2 +124 % [+122, +126].
        The effect of build on throughput depends on maxmem (2 % of the variation): 1MB: from O0 to O2 +101 % [+98, +103], 10MB: from O0 to O2 +150 % [+147, +153].
        maxmem explains 2 % of the variation of throughput: on average from 1MB to 10MB +11.4 % [+10.4, +12.4].
        maxmem × clients: no significant effect on throughput (≥ 2.5 % would have been detected).
        build × clients: no significant effect on throughput (≥ 2.5 % would have been detected).
        clients: no significant effect on throughput (≥ 1.3 % would have been detected).
        No interaction of three or more factors in throughput shown.
        Shares of the variation of the logarithm of throughput (changes are ratios): build 96 %, build × maxmem 2 %, maxmem 2 %, 6 others under 0.5 % each.
        Design points have unequal numbers of trials: every level is weighted equally (type III sums of squares), and shares are of their sum.
        ");
    }

    #[test]
    fn few_blocks_claim_nothing() {
        let said = sentences(&of(|_, records| records.retain(|record| record.block < 11)));
        assert!(said.starts_with("No effects claimed: 11 blocks, 12 needed. Shares of"), "{said}");
        assert!(!said.contains("explains") && !said.contains("no significant effect on"), "{said}");
    }

    #[test]
    fn analyzes_only_metrics_of_the_study() {
        let names = |metrics: Option<Vec<&str>>| {
            let findings = of(|run, _| {
                run.plan.effects.metrics = metrics.map(|names| names.into_iter().map(str::to_owned).collect())
            });
            findings.effects.iter().map(|effects| effects.metric.clone()).collect::<Vec<_>>().join(" ")
        };
        assert_eq!(names(None), "throughput");
        assert_eq!(names(Some(vec!["latency_p99", "throughput"])), "latency_p99 throughput");
        assert_eq!(names(Some(Vec::new())), "");
    }

    #[test]
    fn counts_are_analyzed_only_as_differences() {
        let findings = of(|run, records| {
            run.plan.effects.metrics = Some(vec!["errors".to_owned()]);
            for (index, record) in records.iter_mut().enumerate() {
                if let study::record::Outcome::Measured(found) = &mut record.outcome {
                    found.errors = BTreeMap::from([("status".to_owned(), record.point as u64 * 10 + index as u64 % 3)]);
                }
            }
        });
        let [effects] = findings.effects.as_slice() else { panic!("one metric") };
        assert_eq!(effects.analyses.iter().map(|found| found.scale).collect::<Vec<_>>(), [Scale::Difference]);
        assert!(effects.sentences[0].contains("build explains"), "{:?}", effects.sentences);
    }

    /// The design has the base point O0, 1MB, 40 clients, and one change of each factor.
    fn one_at_a_time() -> Findings {
        of(|run, records| {
            run.plan.effects.design = Design::OneAtATime;
            let kept = [0, 1, 2, 4];
            records.retain(|record| kept.contains(&record.point));
            for record in records.iter_mut() {
                record.point = kept.iter().position(|point| *point == record.point).unwrap();
            }
            run.plan.points = kept.iter().map(|&point| run.plan.points[point].clone()).collect();
        })
    }

    #[test]
    fn one_at_a_time_design_states_its_limits() {
        let findings = one_at_a_time();
        assert_snapshot!(sentences(&findings), @"
        build from O0 to O2: throughput +101 % [+97, +104], all other factors at their first level.
        maxmem from 1MB to 10MB: no significant effect on throughput (≥ 2.5 % would have been detected).
        clients from 40 to 80: no significant effect on throughput (≥ 2.5 % would have been detected).
        Shares of the variation of the logarithm of throughput (changes are ratios): design points 100 %, 2 others under 0.5 % each.
        One factor at a time: blind to interactions. Each change is with all other factors at their first level and says nothing about other levels. Changes are claimed after Holm's adjustment for all changes; the intervals are not adjusted.
        ");
    }

    /// Among many changes without effect, one looks significant by its own interval.
    #[test]
    fn changes_one_at_a_time_are_tested_together() {
        let findings = one_at_a_time();
        let changes = &findings.effects[0].analyses[0].changes;
        let input = input(&findings, findings.metric_info("throughput").unwrap(), IdlePolicy::Machine);
        let raw = |point: usize| {
            let of = |(row, _): &(&Row, Vec<usize>)| {
                let levels = vec![row.point];
                values(row, "throughput").map(|(block, value)| Trial { levels: levels.clone(), block, value }).collect()
            };
            let trials = input.rows.iter().flat_map(|row| -> Vec<Trial> { of(row) }).collect::<Vec<_>>();
            factorial(&[4], &trials, Scale::Ratio).unwrap().change(0, 0, point, None).p_value()
        };
        // Points are in the order of the factors' first levels: clients, maxmem, build.
        let raw = [1, 2, 3].map(raw);
        let mut adjusted = adjust_p_values::holm(&raw);
        let mut found = changes.iter().map(|change| change.p_adjusted.unwrap()).collect::<Vec<_>>();
        adjusted.sort_by(f64::total_cmp);
        found.sort_by(f64::total_cmp);
        for (found, expected) in found.iter().zip(&adjusted) {
            assert!((found - expected).abs() < 1e-12, "{found} {expected}");
        }
        assert!(found[1] > raw.iter().copied().fold(f64::INFINITY, f64::min), "more than one is tested");
    }

    #[test]
    fn refuses_gaps_and_leaves_out_empty_levels() {
        let gap = of(|_, records| records.retain(|record| record.point != 6));
        assert_eq!(
            sentences(&gap),
            "Effects on throughput: none computed, because 1 of 8 design points has no trial: the factors are not fully crossed."
        );
        assert_eq!((gap.effects[0].shown, gap.effects[0].analyses.len()), (0, 0));
        let level = of(|_, records| records.retain(|record| record.point % 2 == 0));
        assert_eq!(
            (level.effects[0].left_out.as_slice(), level.effects[0].factors.len()),
            (["clients 80".to_owned()].as_slice(), 2)
        );
        assert!(sentences(&level).contains("Excluded (not measured): clients 80."));
        let alone = of(|_, records| records.retain(|record| record.point < 2));
        assert_eq!(
            sentences(&alone),
            "Effects on throughput: none computed, because only clients has more than one level with trials."
        );
        let once = of(|_, records| records.retain(|record| record.block == 0));
        assert!(sentences(&once).contains("none computed, because the error is unknown"), "{}", sentences(&once));
        assert!(of(|_, records| records.clear()).effects.is_empty());
    }

    #[test]
    fn generator_bound_rows_are_analyzed_but_not_reported() {
        let findings = of(|_, records| {
            for record in records.iter_mut().filter(|record| record.point == 7) {
                record.verdict.as_mut().unwrap().limited_by = study::record::Limit::Generator;
            }
        });
        let effects = &findings.effects[0];
        assert_eq!(effects.marked.as_deref(), Some("1 of 8 design points generator-bound"));
        assert!(
            effects.sentences.contains(&"Not only about the server: 1 of 8 design points generator-bound.".to_owned())
        );
        assert!(!findings.answer.iter().any(|said| said.text.contains(&effects.sentences[0])));
    }

    #[test]
    fn idle_policies_are_analyzed_separately() {
        let findings = of(|_, records| {
            for record in records.iter_mut().filter(|record| record.block % 2 == 1) {
                record.idle = IdlePolicy::Spin;
            }
        });
        assert_eq!(
            findings.effects.iter().map(|effects| effects.idle).collect::<Vec<_>>(),
            [IdlePolicy::Machine, IdlePolicy::Spin]
        );
        assert_eq!(findings.effects.iter().map(|effects| effects.analyses[0].trials).sum::<usize>(), 95);
    }

    #[test]
    fn formats_changes() {
        let estimate = |point, low, high| Estimate { point, low, high, level: 0.95, n: 8 };
        let table = [
            (Scale::Ratio, estimate(1.38, 1.31, 1.45), "1/s", "+38 % [+31, +45]"),
            (Scale::Ratio, estimate(0.965, 0.9612, 0.9688), "1/s", "-3.5 % [-3.9, -3.1]"),
            (Scale::Ratio, estimate(1.0, 0.99998, 1.00002), "ns", "0.000 % [-0.002, +0.002]"),
            (Scale::Ratio, estimate(3.4, 3.1, 3.7), "ns", "×3.40 [3.10, 3.70]"),
            (Scale::Ratio, estimate(3.4, 3.1, 1e217), "ns", "×3.40 [3.10, ∞]"),
            (Scale::Difference, estimate(-12_300.0, -14_000.0, -10_600.0), "ns", "-12.3 µs [-14.0, -10.6]"),
            (Scale::Difference, estimate(0.0, 0.0, 0.0), "1", "0.0 [0.0, 0.0]"),
        ];
        for (scale, found, unit, text) in table {
            assert_eq!(change(scale, &found, unit), text);
        }
    }
}
