//! Companions of a trial: processes that the server needs. They start before it and stop after it,
//! or are kept for later trials.

use std::net::{IpAddr, Ipv4Addr};
use std::path::Path;
use std::time::{Duration, Instant};

use study::plan::CompanionPlan;
use study::record::{Failure, FailureKind, ProxyUse};
use study::{Warning, WarningKind};

use crate::end::End;
use crate::process::Child;
use crate::sample::{Reading, Sampler};
use crate::server::{self, Ground, Kept, Running, Server, Started};

pub(crate) struct Companion<'a> {
    plan: &'a CompanionPlan,
    /// `None`: it belongs to [`Kept`].
    started: Option<Started>,
    pub(crate) sampler: Sampler,
    pub(crate) port: u16,
}

impl Kept {
    /// Ends the companions that are not among `plans` with their CPUs, to make room for others.
    fn end_others(&self, plans: &[CompanionPlan], cpus: &[u32]) {
        let left = std::mem::take(&mut *self.companions.borrow_mut());
        let is_kept = |running: &mut Running| {
            let used = places(plans, cpus).any(|(plan, cpus)| running.plan == *plan && running.used.cpus == cpus);
            used && running.started.child.wait(Duration::ZERO).is_none()
        };
        for (name, mut running) in left {
            if is_kept(&mut running) {
                self.companions.borrow_mut().insert(name, running);
            }
        }
    }
}

fn places<'p>(plans: &'p [CompanionPlan], mut cpus: &'p [u32]) -> impl Iterator<Item = (&'p CompanionPlan, &'p [u32])> {
    plans.iter().map(move |plan| {
        let (own, rest) = cpus.split_at((plan.cpus as usize).min(cpus.len()));
        cpus = rest;
        (plan, own)
    })
}

/// Starts the companions that do not run yet; fills `known` even on failure.
pub(crate) fn start<'a>(
    plans: &'a [CompanionPlan],
    cpus: &'a [u32],
    ground: Ground<'_>,
    known: &mut Vec<ProxyUse>,
    warnings: &mut Vec<Warning>,
) -> Result<Vec<Companion<'a>>, End> {
    ground.kept.end_others(plans, cpus);
    *known = vec![ProxyUse::default(); plans.len()];
    let mut companions = Vec::new();
    for ((plan, cpus), used) in places(plans, cpus).zip(known) {
        used.name.clone_from(&plan.name);
        let kept = &ground.kept.companions;
        let sampler = |started: &Started| Sampler::new(Path::new("/proc"), started.pid, started.at, cpus);
        let (started, mut sampler) = if let Some(running) = kept.borrow().get(&plan.name) {
            used.used = running.used.clone();
            (None, sampler(&running.started))
        } else {
            used.used.cpus = cpus.to_vec();
            let started = one(plan, cpus, ground, used)?;
            let sampler = sampler(&started);
            if plan.fresh {
                (Some(started), sampler)
            } else {
                let running = Running { plan: plan.clone(), started, used: used.used.clone() };
                kept.borrow_mut().insert(plan.name.clone(), running);
                (None, sampler)
            }
        };
        if used.used.container.is_some() && !sampler.reads_cgroup() {
            let text = format!("companion `{}`: cannot read the control group of its container", plan.name);
            warnings.push(WarningKind::NotRead.says(text));
        }
        let port = used.used.port.unwrap_or(0);
        companions.push(Companion { plan, started, sampler, port });
    }
    Ok(companions)
}

fn one(plan: &CompanionPlan, cpus: &[u32], ground: Ground<'_>, used: &mut ProxyUse) -> Result<Started, End> {
    let server = Server {
        ground,
        command: &plan.command,
        container: plan.container.as_ref(),
        environment: &plan.environment,
        names: &|_| None,
        prepare: &|_| Ok(()),
        directory: plan.directory.as_deref(),
        cpus,
        address: IpAddr::V4(Ipv4Addr::LOCALHOST),
        port: plan.port,
        ready_timeout_ns: plan.ready_timeout_ns,
        stop_timeout_ns: plan.stop_timeout_ns,
        kind: FailureKind::Companion,
        who: &format!("companion `{}`: ", plan.name),
    };
    let started = server.start(&mut used.used)?;
    used.ready_ns = Some(started.ready_ns);
    Ok(started)
}

impl Companion<'_> {
    pub(crate) fn child(&self) -> Option<&Child> {
        self.started.as_ref().map(|started| &started.child)
    }

    pub(crate) fn ended(&mut self, kept: &Kept) -> Option<Failure> {
        let mut kept = kept.companions.borrow_mut();
        let child = match &mut self.started {
            Some(started) => &mut started.child,
            None => &mut kept.get_mut(&self.plan.name)?.started.child,
        };
        let exit = child.wait(Duration::ZERO)?;
        let message = format!("companion `{}`: {}", self.plan.name, child.exited(exit, "under load"));
        Some(Failure { kind: FailureKind::Companion, message })
    }

    pub(crate) fn finish(
        self,
        readings: Option<(Reading, Reading)>,
        span: Option<(Instant, Instant)>,
        used: &mut ProxyUse,
    ) -> Option<Warning> {
        let who = format!("companion `{}`: ", self.plan.name);
        let warning = self
            .started
            .and_then(|mut started| server::stop(&mut started.child, self.plan.stop_timeout_ns, &who, &mut used.used));
        self.sampler.finish(readings, span, &mut used.used);
        warning
    }
}
