//! Position of a trial in the plan and its values, kept so that histograms and windows can be dropped.

use study::record::{Agent, IdlePolicy, NetworkCounters, Record};

use crate::findings::{Clock, ProbedTrial, Values};
use crate::{run_conditions, value};

pub(crate) struct Trial<'a> {
    pub(crate) point: usize,
    pub(crate) block: u32,
    pub(crate) elapsed_ns: u64,
    pub(crate) is_measured: bool,
    pub(crate) values: Box<dyn Fn(f64) -> Values + 'a>,
}

impl<'a> From<&'a Record> for Trial<'a> {
    fn from(record: &'a Record) -> Self {
        let &Record { point, block, elapsed_ns, .. } = record;
        let is_measured = record.measurement().is_some();
        let values = Box::new(|level| value::values_and_bounds(record, level));
        Self { point, block, elapsed_ns, is_measured, values }
    }
}

pub(crate) struct Kept {
    pub(crate) point: usize,
    pub(crate) block: u32,
    pub(crate) order: u32,
    pub(crate) started: String,
    pub(crate) idle: IdlePolicy,
    /// `None` without a measurement.
    pub(crate) clock: Option<Clock>,
    pub(crate) agents: Vec<Agent>,
    pub(crate) is_hosted: bool,
    pub(crate) probed: Option<ProbedTrial>,
    pub(crate) network: NetworkCounters,
    elapsed_ns: u64,
    pub(crate) values: Values,
}

impl Kept {
    pub(crate) fn new(record: &Record, values: Values) -> Self {
        let &Record { point, block, order, idle, network, elapsed_ns, .. } = record;
        let (started, agents) = (record.started.clone(), record.agents.clone());
        let clock = record.measurement().map(value::clock);
        let is_hosted = record.subject.container.is_some() || !record.companions.is_empty();
        let probed = run_conditions::of_trial(record);
        Self { point, block, order, started, idle, clock, agents, is_hosted, probed, network, elapsed_ns, values }
    }

    pub(crate) fn trial(&self) -> Trial<'_> {
        let Self { point, block, elapsed_ns, .. } = *self;
        let is_measured = self.clock.is_some();
        Trial { point, block, elapsed_ns, is_measured, values: Box::new(|_| self.values.clone()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::example;

    #[test]
    fn kept_trials_have_the_values_of_their_records() {
        for record in example::volley().1 {
            let kept = Kept::new(&record, value::values_and_bounds(&record, 0.95));
            assert_eq!((kept.trial().values)(0.95), (Trial::from(&record).values)(0.95));
            assert_eq!(kept.trial().is_measured, record.measurement().is_some());
        }
    }
}
