//! How often each clause came to what, and whom it blamed.

use std::collections::{BTreeMap, HashMap};

use super::report::Report;
use crate::clause::Clause;
use crate::contract::Contract;

/// How often a clause came to what.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// It holds.
    pub holds: u64,
    /// It fails.
    pub fails: u64,
    /// It cannot be said, for want of something in the message.
    pub unknown: u64,
    /// It asks for what is not possible, or for too much.
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

/// What all clauses came to, and who was blamed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tallies {
    /// By operation (`Adder.add`) and clause (`Adder.add.sum`).
    pub clauses: BTreeMap<(String, String), Tally>,
    /// How often a clause blamed a party: by operation, clause and label. Labels beyond what is kept are `other`.
    pub blamed: BTreeMap<(String, String, String), u64>,
}

/// So many clauses are told apart, and as many pairs of a clause and whom it blamed: labels come from other parties, without a bound.
const TOLD_APART_MAX: usize = 1000;

/// What stands for all that is not told apart.
pub const OTHER: &str = "other";

/// The counts so far.
#[derive(Debug)]
pub(super) struct Counted {
    /// Operation, clause and count, by the clauses' numbers.
    clauses: Vec<((String, String), Tally)>,
    blamed: HashMap<(String, String, String), u64>,
}

impl Counted {
    pub(super) fn new(contract: &Contract) -> Self {
        let clauses = contract.clause_names().into_iter().map(|names| (names, Tally::default())).collect();
        Self { clauses, blamed: HashMap::new() }
    }

    pub(super) fn tally(&mut self, clause: &Clause) -> &mut Tally {
        &mut self.clauses[clause.number as usize].1
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
        let mut clauses = BTreeMap::<_, Tally>::new();
        for (names, tally) in &self.clauses {
            let is_room = clauses.len() < TOLD_APART_MAX || clauses.contains_key(names);
            let names = if is_room { names.clone() } else { (OTHER.to_owned(), OTHER.to_owned()) };
            clauses.entry(names).or_default().add(*tally);
        }
        Tallies { clauses, blamed: self.blamed.iter().map(|(key, count)| (key.clone(), *count)).collect() }
    }
}
