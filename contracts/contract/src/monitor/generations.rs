use std::collections::BTreeMap;
use std::sync::Arc;

use super::report::{Report, ReportVerdict};
use crate::clause::{Clause, ServiceId};
use crate::contract::{Contract, OperationId};

/// Number of evaluations of a clause, by verdict.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// It holds.
    pub holds: u64,
    /// It fails.
    pub fails: u64,
    /// Undecided: the message lacks a value.
    pub unknown: u64,
    /// Undecided: an impossible operation, or a limit was exceeded.
    pub errors: u64,
}

impl Tally {
    pub(super) fn count(&mut self, found: ReportVerdict) {
        *match found {
            ReportVerdict::Fails => &mut self.fails,
            ReportVerdict::Unknown => &mut self.unknown,
            ReportVerdict::Error => &mut self.errors,
        } += 1;
    }

    pub(super) fn add(&mut self, other: Self) {
        self.holds += other.holds;
        self.fails += other.fails;
        self.unknown += other.unknown;
        self.errors += other.errors;
    }
}

/// Verdicts and blame of all clauses.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tallies {
    /// Verdicts by operation (`Adder.add`) and clause (`Adder.add.sum`), of all contracts so far.
    pub clauses: BTreeMap<(String, String), Tally>,
    /// Blame by operation, clause and label. Labels beyond the limit count as [`OTHER`].
    pub blamed: BTreeMap<(String, String, String), u64>,
}

impl Tallies {
    /// The sum over all clauses.
    pub fn total(&self) -> Tally {
        let mut total = Tally::default();
        self.clauses.values().for_each(|tally| total.add(*tally));
        total
    }
}

/// Maximum number of clauses, and of pairs of clause and blamed label, counted separately: other parties choose labels.
const TOLD_APART_MAX: usize = 1000;

/// Replaces all names beyond the limit.
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

    fn put_into(&self, all: &mut BTreeMap<(String, String), Tally>) {
        for (names, tally) in self.contract.clause_names.iter().zip(&self.tallies) {
            let is_room = all.len() < TOLD_APART_MAX || all.contains_key(names);
            let names = if is_room { names.clone() } else { (OTHER.to_owned(), OTHER.to_owned()) };
            all.entry(names).or_default().add(*tally);
        }
    }
}

pub(super) struct Generations {
    /// The newest is last.
    kept: Vec<Generation>,
    /// Verdicts of clauses whose contracts are no longer in use.
    gone: BTreeMap<(String, String), Tally>,
    blamed: BTreeMap<(String, String, String), u64>,
}

impl Generations {
    pub(super) fn new(contract: Arc<Contract>) -> Self {
        Self { kept: vec![Generation::new(contract)], gone: BTreeMap::new(), blamed: BTreeMap::new() }
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

    /// The contract of a service. It exists as long as a holder of the number.
    pub(super) fn of(&self, service: ServiceId) -> &Arc<Contract> {
        self.position(service).map_or(self.newest(), |at| &self.kept[at].contract)
    }

    pub(super) fn knows(&self, service: ServiceId) -> bool {
        self.position(service).is_some()
    }

    pub(super) fn tally(&mut self, operation: OperationId, clause: &Clause) -> &mut Tally {
        let at = self.position(operation.service).unwrap_or(self.kept.len() - 1);
        &mut self.kept[at].tallies[clause.number as usize]
    }

    pub(super) fn blame(&mut self, report: &Report) {
        let operation = format!("{}.{}", report.service, report.operation);
        for label in &report.blamed {
            let mut key = (operation.clone(), report.clause.clone(), label.clone());
            if self.blamed.len() >= TOLD_APART_MAX && !self.blamed.contains_key(&key) {
                key = (OTHER.to_owned(), OTHER.to_owned(), OTHER.to_owned());
            }
            *self.blamed.entry(key).or_default() += 1;
        }
    }

    pub(super) fn tallies(&self) -> Tallies {
        let mut clauses = self.gone.clone();
        self.kept.iter().for_each(|generation| generation.put_into(&mut clauses));
        Tallies { clauses, blamed: self.blamed.clone() }
    }
}
