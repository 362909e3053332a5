//! Numbers of series, which select color and shape. A contender has the same number in all figures.

use std::collections::BTreeMap;

use study::record::IdlePolicy;

use super::place_of;
use crate::panel::style;
use analysis::enum_words_and_lists::serde_name;
use analysis::findings::{Factor, Findings, Row};

pub(crate) struct Colours<'a> {
    contender: Option<&'a Factor>,
    /// Number of idle policies of the rows: 1, or 2 if each policy of a level is a series.
    policies: usize,
}

impl<'a> Colours<'a> {
    /// Selects the contenders: the levels of the first figure's series factor, or else of the first varied text factor,
    /// or else of the first varied factor.
    pub(crate) fn new(findings: &'a Findings) -> Colours<'a> {
        let varied = || findings.factors.iter().filter(|factor| factor.varies());
        let asked = findings.figures.iter().filter_map(|figure| figure.series.as_ref());
        let asked = asked.filter_map(|name| varied().find(|factor| factor.name == *name)).next();
        let contender = asked.or_else(|| varied().find(|factor| !factor.numeric)).or_else(|| varied().next());
        let mut policies = findings.rows.iter().filter_map(|row| row.idle);
        let first: Option<IdlePolicy> = policies.next();
        Colours { contender, policies: if policies.any(|policy| Some(policy) != first) { 2 } else { 1 } }
    }

    /// First series number after the contenders; 0 if contenders are levels of a numeric factor or use up all colors.
    pub(crate) fn others(&self) -> usize {
        let named = self.contender.filter(|factor| !factor.numeric);
        let taken = named.map_or(0, |factor| self.policies * factor.levels.len());
        if style::colour_class(taken) == taken { taken } else { 0 }
    }

    pub(crate) fn first_of(&self, factor: Option<&Factor>) -> usize {
        let is_contender = |factor: &Factor| self.contender.is_some_and(|contender| contender.name == factor.name);
        if factor.is_none_or(|factor| is_contender(factor) || !factor.varies()) { 0 } else { self.others() }
    }

    /// Series number of the level with index `place`, counted from `first`, for the row's idle policy.
    pub(crate) fn number(&self, first: usize, place: usize, row: &Row) -> usize {
        first + place * self.policies + usize::from(self.policies == 2 && row.idle == Some(IdlePolicy::Spin))
    }

    /// Series number of the row's level of `factor`; `None` if the factor lacks the level.
    pub(crate) fn of(&self, factor: Option<&Factor>, row: &Row) -> Option<usize> {
        let place = factor.map_or(Some(0), |factor| place_of(factor, row))?;
        Some(self.number(self.first_of(factor), place, row))
    }

    pub(crate) fn of_row(&self, row: &Row) -> usize {
        self.of(self.contender, row).unwrap_or_else(|| self.number(0, 0, row))
    }

    /// Series number of the line for each row. Lines of one contender share a color and differ in dashes.
    pub(crate) fn of_rows(&self, rows: &[&Row]) -> Vec<usize> {
        let mut taken: Vec<usize> = Vec::new();
        for row in rows {
            let own = self.of_row(row);
            let before =
                taken.iter().filter(|number| style::colour_class(**number) == style::colour_class(own)).count();
            taken.push(style::dashed(own, before));
        }
        taken
    }

    pub(crate) fn named(&self, first: usize, names: Vec<String>) -> BTreeMap<usize, String> {
        let both = |name: String| {
            [IdlePolicy::Machine, IdlePolicy::Spin].map(|idle| format!("{name}, idle {}", serde_name(idle)))
        };
        let names = if self.policies == 2 { names.into_iter().flat_map(both).collect() } else { names };
        names.into_iter().enumerate().map(|(place, name)| (first + place, name)).collect()
    }
}
