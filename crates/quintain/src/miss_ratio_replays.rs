//! Simulated eviction policies for comparison with the server. Regenerates the operations of a run's trials from their
//! seeds (`load`) and replays them (`cache`). The result is stored with the run, so `report` depends on neither.

use std::collections::BTreeSet;

use cache::replay::{Action, Operation, Rules, clairvoyant, replay};
use load::operation_stream::{Kind, Stream, Texts};
use study::Workload;
use study::plan::{Figure, FigureKind, LoadPlan};
use study::record::{Measurement, Record, Reference, Run};
use study::spec::{Arrivals, Dialect, Protocol, ThinkTime};

use crate::parallel_work::in_parallel;

/// Number of trials replayed with a design point's own policy: enough for an interval, since differences vary little.
const TRIALS: usize = 3;

pub(crate) fn may_have(run: &Run) -> bool {
    run.plan.figures.iter().any(|figure| figure.kind == FigureKind::MissRatio)
}

/// Computes the missing references of a run on all CPUs. Returns whether any were missing.
pub(crate) fn complete(run: &mut Run, records: &[Record]) -> bool {
    let jobs = jobs(run, records);
    if jobs.is_empty() {
        return false;
    }
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let simulate = |(job, record): &(Reference, &Record)| {
        let replayed = replayed(job, &run.plan.points[job.point].load, record);
        let (problem, (gets, misses)) = replayed.map_or_else(|why| (Some(why), (0, 0)), |counts| (None, counts));
        Reference { gets, misses, problem, ..job.clone() }
    };
    run.references.extend(in_parallel(threads, &jobs, simulate));
    run.references.sort_by(|a, b| (a.point, a.block, &a.policy).cmp(&(b.point, b.block, &b.policy)));
    true
}

/// Missing references of a run, to be computed: up to [`TRIALS`] trials per design point for its own policy, and one
/// trial per memory limit for every policy.
fn jobs<'r>(run: &Run, records: &'r [Record]) -> Vec<(Reference, &'r Record)> {
    let mut jobs = Vec::new();
    for figure in run.plan.figures.iter().filter(|figure| figure.kind == FigureKind::MissRatio) {
        let mut drawn = BTreeSet::new();
        for (index, point) in run.plan.points.iter().enumerate() {
            let Some(level) = figure.x.as_ref().and_then(|x| point.factors.get(x)) else { continue };
            let Some(capacity_bytes) = figure.capacity_bytes(level) else { continue };
            let has_cache = |record: &Record| record.measurement().is_some_and(|found| found.cache.is_some());
            let trials = records.iter().filter(|record| record.point == index && has_cache(record));
            let trials = trials.take(TRIALS).collect::<Vec<_>>();
            let own = own_policy(figure, figure.series.as_ref().and_then(|series| point.factors.get(series)));
            // Each policy is replayed at least once per combination of factors except the series: the load may differ.
            let rest = point.factors.iter().filter(|(name, _)| Some(*name) != figure.series.as_ref());
            let is_first = !trials.is_empty()
                && drawn.insert(rest.map(|(name, level)| format!("{name} {level}")).collect::<Vec<_>>());
            for policy in &figure.policies {
                let wanted = if own == Some(policy.as_str()) { trials.len() } else { usize::from(is_first) };
                for &record in &trials[..wanted] {
                    let (policy, point, block) = (policy.clone(), index, record.block);
                    let (gets, misses, problem) = (0, 0, None);
                    jobs.push((Reference { policy, point, block, capacity_bytes, gets, misses, problem }, record));
                }
            }
        }
    }
    let key = |reference: &Reference| (reference.policy.clone(), reference.point, reference.block);
    jobs.retain(|(job, _)| run.references.iter().all(|known| key(known) != key(job)));
    jobs
}

/// Policy with which a series is compared: the series' own, otherwise the first that is not clairvoyant, if any.
fn own_policy<'a>(figure: &'a Figure, series: Option<&study::plan::Level>) -> Option<&'a str> {
    let first = || figure.policies.iter().find(|policy| policy.parse::<cache::Evictor>().is_ok());
    figure.policy_of(series).or_else(|| first().map(String::as_str))
}

/// Replays the operations of a trial and returns the numbers of GETs and misses. Fails if they cannot be simulated.
fn replayed(job: &Reference, load: &LoadPlan, record: &Record) -> Result<(u64, u64), String> {
    let (Some(workload), Some(measurement)) = (&load.workload, record.measurement()) else {
        return Err("the trial has no workload".to_owned());
    };
    if workload.trace.is_some() {
        return Err("recorded traces are not simulated".to_owned());
    }
    let seconds = (measurement.warmup_ns + measurement.duration_ns) as f64 / 1e9;
    if let Some(ttl) = workload.ttl.iter().filter(|ttl| ttl.share > 0.0).find(|ttl| f64::from(ttl.seconds) < seconds) {
        let after = ttl.seconds;
        return Err(format!("values expire after {after} s, during the trial, and the simulation has no clock"));
    }
    let warm_up = measurement.warmup_requests;
    let measured = measurement.requests + measurement.errors_total();
    // memcached stores flags with every value, which takes memory.
    let flags = u32::from(load.protocol == Protocol::Cache(Dialect::Memcached));
    let rules = Rules { fill: workload.fill, warm_up, clients: turns(load, measurement), flags };
    let operations = operations(workload, record.seed, measurement.threads.max(1), [warm_up, measured]);
    let operations = operations.map_err(|error| error.to_string())?;
    let ratio = match job.policy.as_str() {
        "belady" | "belady-size" => {
            let by_size = job.policy == "belady-size";
            clairvoyant(operations, job.capacity_bytes, 0, by_size, rules)
        }
        evictor => {
            // Defaults of `quintain serve cache`: all memory counts, and items have versions.
            let evictor = evictor.parse()?;
            let config = cache::Config { evictor, versions: true, ..cache::Config::new(job.capacity_bytes) };
            let cache = cache::Cache::new(config).map_err(|error| error.to_string())?;
            replay(&cache, operations, rules)
        }
    };
    Ok((ratio.requests, ratio.requests - ratio.hits))
}

/// Number of clients that take turns: the maximum in flight in a closed loop without think time, the mean otherwise.
fn turns(load: &LoadPlan, measurement: &Measurement) -> usize {
    let in_flight = measurement.clients as usize * measurement.pipeline as usize;
    match load.arrivals {
        Arrivals::Closed { think: ThinkTime::NONE } => in_flight.max(1),
        _ => (measurement.in_flight_mean.round() as usize).clamp(1, in_flight.max(1)),
    }
}

/// Operations of all workers, which take turns, in each of two parts: the warm-up and the measurement.
fn operations(
    workload: &Workload,
    seed: u64,
    workers: u32,
    counts: [u64; 2],
) -> Result<impl Iterator<Item = Operation>, String> {
    let texts = Texts::new(workload, seed)?;
    let streams = (0..workers).map(|worker| Stream::new(workload, seed, worker, workers));
    let mut streams = streams.collect::<Result<Vec<_>, _>>()?;
    // The first workers have the larger shares of a part (see `even_share`), so they also have the last turns.
    let turns = counts.into_iter().flat_map(|count| 0..count);
    Ok(turns.map(move |turn| {
        let operation = streams[(turn % u64::from(workers)) as usize].next_operation();
        let action = match operation.kind {
            Kind::Get => Action::Get,
            Kind::Set => Action::Set,
            Kind::Delete => Action::Delete,
            Kind::ReadModifyWrite => Action::ReadModifyWrite,
        };
        let key_bytes = texts.key_bytes(operation.key);
        Operation { action, id: operation.key, key_bytes, value_bytes: operation.value_bytes }
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_study_policy_can_be_replayed() {
        let is_known = |name: &str| name.starts_with("belady") || name.parse::<cache::Evictor>().is_ok();
        assert!(study::plan::POLICIES.iter().all(|(name, _)| is_known(name)));
        assert_eq!(study::plan::POLICIES.len(), cache::Evictor::ALL.len() + 2);
    }

    #[test]
    fn operations_match_the_generator() {
        let workload = study::workload::preset("course").unwrap();
        let of = |workers, counts| operations(&workload, 7, workers, counts).unwrap();
        assert_eq!(of(1, [100, 200]).count(), 300);
        let mut stream = Stream::new(&workload, 7, 0, 1).unwrap();
        for found in of(1, [50, 50]) {
            let operation = stream.next_operation();
            assert_eq!((found.id, found.value_bytes), (operation.key, operation.value_bytes));
        }
        // Three workers share both parts: 4, 3 and 3 operations of the warm-up, and 2, 2 and 1 of the measurement.
        let streams = (0..3).map(|worker| Stream::new(&workload, 7, worker, 3).unwrap());
        let mut streams = streams.collect::<Vec<_>>();
        let counted = of(3, [10, 5]).collect::<Vec<_>>();
        assert_eq!(counted.len(), 15);
        for worker in [0, 1, 2, 0, 1, 2, 0, 1, 2, 0, 0, 1, 2, 0, 1].into_iter().zip(&counted) {
            assert_eq!(streams[worker.0].next_operation().key, worker.1.id);
        }
    }
}
