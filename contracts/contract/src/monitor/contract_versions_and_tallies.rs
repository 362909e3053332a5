//! The contracts in use after reloads, and counts of their verdicts and blame.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::report::{Report, ReportVerdict};
use crate::clause::{Clause, ServiceId};
use crate::contract::{Contract, OperationId};

/// Number of evaluations of a clause, by verdict, in the order of [`VERDICTS`].
pub type Tally = [u64; VERDICTS.len()];

/// Verdicts on a clause: it holds, it fails, the message lacks a value, or an operation is impossible or over a limit.
pub const VERDICTS: [&str; 4] = ["holds", "fails", "unknown", "error"];

/// Counts of verdicts and blame for all clauses.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tallies {
    /// Verdicts by operation (`Adder.add`) and clause (`Adder.add.sum`), of all contracts so far.
    pub clauses: BTreeMap<(String, String), Tally>,
    /// Blame by operation, clause and label. Once there are 1000 combinations, new ones count as [`OTHER`].
    pub blamed: BTreeMap<(String, String, String), u64>,
}

impl Tallies {
    /// Adds up the verdicts on all clauses.
    pub fn total(&self) -> Tally {
        std::array::from_fn(|at| self.clauses.values().map(|tally| tally[at]).sum())
    }
}

/// Maximum number of clauses, and of blamed combinations, to count separately, as other parties can invent labels.
const TOLD_APART_MAX: usize = 1000;

/// The name that replaces further names once 1000 are counted separately.
pub const OTHER: &str = "other";

struct Generation {
    contract: Arc<Contract>,
    tallies: Vec<Tally>,
}

impl Generation {
    fn new(contract: Arc<Contract>) -> Self {
        let tallies = vec![Tally::default(); contract.clause_names.len()];
        Self { contract, tallies }
    }

    fn put_into(&self, tallies: &mut Tallies) {
        let all = &mut tallies.clauses;
        for (names, tally) in self.contract.clause_names.iter().zip(&self.tallies) {
            let is_room = all.len() < TOLD_APART_MAX || all.contains_key(names);
            let names = if is_room { names.clone() } else { (OTHER.to_owned(), OTHER.to_owned()) };
            all.entry(names).or_default().iter_mut().zip(tally).for_each(|(sum, count)| *sum += count);
        }
    }
}

pub(super) struct Generations {
    /// Contracts that are still in use, the newest last.
    kept: Vec<Generation>,
    /// Verdicts of clauses whose contracts are no longer in use, and all blame.
    gone: Tallies,
}

impl Generations {
    pub(super) fn new(contract: Arc<Contract>) -> Self {
        Self { kept: vec![Generation::new(contract)], gone: Tallies::default() }
    }

    pub(super) fn renew(&mut self, contract: Arc<Contract>) {
        let gone = &mut self.gone;
        self.kept.retain(|generation| {
            let is_used = Arc::strong_count(&generation.contract) > 1;
            if !is_used {
                generation.put_into(gone);
            }
            is_used
        });
        self.kept.push(Generation::new(contract));
    }

    pub(super) fn newest(&self) -> &Arc<Contract> {
        &self.kept[self.kept.len() - 1].contract
    }

    fn position(&self, service: ServiceId) -> Option<usize> {
        self.kept.iter().rposition(|generation| generation.contract.generation == service.generation)
    }

    /// Returns the contract of a service, or the newest one if that contract is no longer in use.
    pub(super) fn of(&self, service: ServiceId) -> &Arc<Contract> {
        self.position(service).map_or(self.newest(), |at| &self.kept[at].contract)
    }

    /// Counts a verdict on a clause. `None` means that the clause holds.
    pub(super) fn count(&mut self, operation: OperationId, clause: &Clause, found: Option<ReportVerdict>) {
        let at = self.position(operation.service).unwrap_or(self.kept.len() - 1);
        self.kept[at].tallies[clause.number as usize][found.map_or(0, |found| 1 + found as usize)] += 1;
    }

    pub(super) fn blame(&mut self, report: &Report) {
        let operation = format!("{}.{}", report.service, report.operation);
        let all = &mut self.gone.blamed;
        for label in &report.blamed {
            let mut key = (operation.clone(), report.clause.clone(), label.clone());
            if all.len() >= TOLD_APART_MAX && !all.contains_key(&key) {
                key = (OTHER.to_owned(), OTHER.to_owned(), OTHER.to_owned());
            }
            *all.entry(key).or_default() += 1;
        }
    }

    pub(super) fn tallies(&self) -> Tallies {
        let mut tallies = self.gone.clone();
        self.kept.iter().for_each(|generation| generation.put_into(&mut tallies));
        tallies
    }
}
