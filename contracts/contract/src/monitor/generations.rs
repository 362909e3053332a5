//! The contracts of a monitor: the current one, and older ones that calls in flight still use.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use super::report::Report;
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

/// Maximum number of clauses, and of pairs of clause and blamed label, counted separately. Labels
/// come from other parties, so they need a bound.
const TOLD_APART_MAX: usize = 1000;

/// Replaces all names beyond the limit.
pub const OTHER: &str = "other";

#[derive(Debug)]
struct Generation {
    contract: Arc<Contract>,
    /// By clause number.
    tallies: Vec<Tally>,
}

impl Generation {
    fn new(contract: Arc<Contract>) -> Self {
        let tallies = vec![Tally::default(); contract.clause_names().len()];
        Self { contract, tallies }
    }

    fn put_into(&self, all: &mut BTreeMap<(String, String), Tally>) {
        for (names, tally) in self.contract.clause_names().into_iter().zip(&self.tallies) {
            let is_room = all.len() < TOLD_APART_MAX || all.contains_key(&names);
            let names = if is_room { names } else { (OTHER.to_owned(), OTHER.to_owned()) };
            all.entry(names).or_default().add(*tally);
        }
    }
}

#[derive(Debug)]
pub(super) struct Generations {
    newest: Generation,
    before: Vec<Generation>,
    /// Verdicts of clauses whose contracts are no longer in use.
    gone: BTreeMap<(String, String), Tally>,
    blamed: HashMap<(String, String, String), u64>,
}

impl Generations {
    pub(super) fn new(contract: Arc<Contract>) -> Self {
        Self { newest: Generation::new(contract), before: Vec::new(), gone: BTreeMap::new(), blamed: HashMap::new() }
    }

    /// Replaces the contract, and drops older ones that are no longer in use.
    pub(super) fn renew(&mut self, contract: Arc<Contract>) {
        let before = std::mem::replace(&mut self.newest, Generation::new(contract));
        self.before.push(before);
        let gone = &mut self.gone;
        self.before.retain(|generation| {
            let is_used = Arc::strong_count(&generation.contract) > 1;
            if !is_used {
                generation.put_into(gone);
            }
            is_used
        });
    }

    pub(super) fn newest(&self) -> &Arc<Contract> {
        &self.newest.contract
    }

    /// The contract of a service. The holder of the number also holds the contract, so it still
    /// exists.
    pub(super) fn of(&self, service: ServiceId) -> &Arc<Contract> {
        let is_it = |generation: &&Generation| generation.contract.generation == service.generation;
        let before = self.before.iter().find(is_it).filter(|_| service.generation != self.newest.contract.generation);
        &before.unwrap_or(&self.newest).contract
    }

    /// Whether the contract of a service number is still kept.
    pub(super) fn knows(&self, service: ServiceId) -> bool {
        self.of(service).generation == service.generation
    }

    pub(super) fn tally(&mut self, operation: OperationId, clause: &Clause) -> &mut Tally {
        let is_it = |generation: &Generation| generation.contract.generation == operation.service.generation;
        let generation = match is_it(&self.newest) {
            true => &mut self.newest,
            false => match self.before.iter_mut().find(|generation| is_it(generation)) {
                Some(generation) => generation,
                None => &mut self.newest,
            },
        };
        &mut generation.tallies[clause.number as usize]
    }

    pub(super) fn blame(&mut self, report: &Report) {
        let operation = format!("{}.{}", report.service, report.operation);
        for label in &report.blamed {
            let key = (operation.clone(), report.clause.clone(), label.clone());
            let is_room = self.blamed.len() < TOLD_APART_MAX || self.blamed.contains_key(&key);
            let other = || (OTHER.to_owned(), OTHER.to_owned(), OTHER.to_owned());
            *self.blamed.entry(if is_room { key } else { other() }).or_default() += 1;
        }
    }

    pub(super) fn tallies(&self) -> Tallies {
        let mut clauses = self.gone.clone();
        self.before.iter().chain([&self.newest]).for_each(|generation| generation.put_into(&mut clauses));
        Tallies { clauses, blamed: self.blamed.iter().map(|(key, count)| (key.clone(), *count)).collect() }
    }
}
