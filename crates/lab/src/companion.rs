//! Companions: processes that the server needs. They start before it, and stop after it or run on for later trials.

use std::time::Duration;

use study::node_messages::Serve;
use study::plan::CompanionPlan;
use study::record::{FailureKind, ProxyUse};

use crate::start_server::{Companion, Ground, Kept, Server};
use crate::trial_end_reason::End;

/// Companions of a trial, in the plan's order. Dropping this value returns reusable ones to [`Kept`].
pub(crate) struct Companions<'a> {
    pub(crate) running: Vec<Companion>,
    kept: &'a Kept,
}

impl Drop for Companions<'_> {
    fn drop(&mut self) {
        self.running.retain(|companion| !companion.plan.fresh);
        self.kept.companions.borrow_mut().append(&mut self.running);
    }
}

/// Ends kept companions that the trial does not need, then starts the missing ones. Fills `known` even on failure.
pub(crate) fn start<'a>(order: &Serve, ground: Ground<'a>, known: &mut Vec<ProxyUse>) -> Result<Companions<'a>, End> {
    let plans = &order.point.companions;
    *known = vec![ProxyUse::default(); plans.len()];
    let mut left = order.companion_cpus.as_slice();
    for (plan, used) in plans.iter().zip(&mut *known) {
        let (own, rest) = left.split_at((plan.cpus as usize).min(left.len()));
        left = rest;
        used.name.clone_from(&plan.name);
        used.used.cpus = own.to_vec();
    }
    let mut running = ground.kept.companions.take();
    running.retain_mut(|kept| {
        let is_same = |(plan, used): (&_, &ProxyUse)| kept.plan == *plan && kept.used.cpus == used.used.cpus;
        plans.iter().zip(&*known).any(is_same) && kept.started.child.wait(Duration::ZERO).is_none()
    });
    let mut companions = Companions { running, kept: ground.kept };
    for (nth, (plan, used)) in plans.iter().zip(known).enumerate() {
        let companion = match companions.running.iter().position(|kept| kept.plan == *plan) {
            Some(at) => companions.running.remove(at),
            None => start_one(plan, ground, used)?,
        };
        used.used = companion.used.clone();
        companions.running.insert(nth, companion);
    }
    Ok(companions)
}

fn start_one(plan: &CompanionPlan, ground: Ground<'_>, used: &mut ProxyUse) -> Result<Companion, End> {
    let (who, cpus) = (format!("companion `{}`: ", plan.name), used.used.cpus.clone());
    let server = Server { cpus: &cpus, kind: FailureKind::Companion, who: &who, ..Server::new(&plan.process, ground) };
    let started = server.start(&mut used.used)?;
    used.ready_ns = Some(started.ready_ns);
    Ok(Companion { plan: plan.clone(), started, used: used.used.clone() })
}
