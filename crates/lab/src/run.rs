//! Runs a plan: builds and verifies the servers, then runs trials until there are enough.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::time::Duration;

use study::plan::{Plan, Point};
use study::record::{Build, BuildOutcome, FailureKind, IdlePolicy, Outcome, Record};
use study::{Next, shell_words};

use crate::options_and_hooks::{Cause, Hooks, LabError, Options};
use crate::trial::{self, Bench, Trial};
use crate::trial_end_reason::End;
use crate::{cpu_list, git_revision, lab_clocks};

/// Number of consecutive failures after which a design point is abandoned.
const FAILURES_MAX: usize = 3;

/// Runs the trials of `plan` that are not in `done`. Each runnable point has one trial per block, until it has enough
/// or the study allows no more. Points that others depend on finish first. A failed trial leaves a record and does not
/// end the run. The calling thread must outlive the run, because the kernel kills a thread's children with it.
pub fn run(
    plan: &Plan,
    builds: &[Build],
    done: &[Record],
    options: &Options,
    hooks: &mut Hooks<'_>,
) -> Result<Cause, LabError> {
    let begun = lab_clocks::now();
    let bench = Bench::start(plan, options, hooks.interrupted)?;
    let is_runnable = |point: usize| {
        let is_built = |build: &Build| build.outcome == BuildOutcome::Ready || !build.points.contains(&point);
        plan.points[point].unrunnable.is_none() && builds.iter().all(is_built)
    };
    let mut active = (0..plan.points.len()).map(is_runnable).collect::<Vec<_>>();
    let awake = cpus_to_keep_awake(&bench, &active);
    keep_awake(&bench, &awake)?;
    let mut records = done.to_vec();
    let had: BTreeSet<(u32, usize)> = done.iter().map(|record| (record.block, record.point)).collect();
    let mut order = done.iter().map(|record| record.order + 1).max().unwrap_or(0);
    let spent = Duration::from_nanos(done.iter().map(|record| record.elapsed_ns).sum());
    let limit = plan.trials.max_ns.map(Duration::from_nanos);
    let mut revisions = Revisions::default();

    for stage in [true, false] {
        let of_stage = |point: &usize| plan.comes_first(*point) == stage;
        let blocks = (0..plan.points.len()).filter(of_stage).map(|point| plan.trials_max(point)).max().unwrap_or(0);
        for block in 0..blocks {
            let is_begun = block > 0 || !done.is_empty();
            if is_begun && limit.is_some_and(|limit| spent + (lab_clocks::now() - begun) >= limit) {
                return Ok(Cause::OutOfTime);
            }
            for point in plan.order_of_block(block).into_iter().filter(of_stage) {
                if !active[point] || had.contains(&(block, point)) || block >= plan.trials_max(point) {
                    continue;
                }
                let Next::Trial(step) = next(plan, point, &records, hooks) else {
                    active[point] = false;
                    continue;
                };
                if (hooks.interrupted)() {
                    return Ok(Cause::Interrupted);
                }
                let no_watchdog = |error| LabError::Watchdog(options.exe.clone(), error);
                bench.ground.supervisor.check().map_err(no_watchdog)?;
                keep_awake(&bench, &awake)?;
                let revision = revision_of(&plan.points[point], &options.directory, &mut revisions);
                let trial = Trial { bench: &bench, point, block, order, step, revision, perf: None };
                let mut record = match trial.run(hooks.progress) {
                    Ok(record) => record,
                    Err(End::Lost(why)) => return Ok(Cause::Lost(why)),
                    Err(End::Interrupted | End::Failed(_)) => return Ok(Cause::Interrupted),
                };
                (hooks.store)(&mut record).map_err(|error| LabError::Store(order, error))?;
                records.push(record);
                order += 1;
            }
            if (0..plan.points.len()).filter(of_stage).all(|point| !active[point]) {
                break;
            }
        }
    }
    Ok(Cause::Complete)
}

/// Returns the hook's decision, unless the point is abandoned. A search is abandoned only if its server cannot run.
fn next(plan: &Plan, point: usize, records: &[Record], hooks: &mut Hooks<'_>) -> Next {
    let latest = records.iter().rev().filter(|record| record.point == point).map(|record| &record.outcome);
    let failures =
        latest.map_while(|outcome| if let Outcome::Failed(failure) = outcome { Some(failure.kind) } else { None });
    let failures = failures.collect::<Vec<_>>();
    let has_failed_often = plan.points[point].load.search.is_none() && failures.len() >= FAILURES_MAX;
    if has_failed_often || failures.first() == Some(&FailureKind::Unrunnable) {
        return Next::Enough;
    }
    (hooks.next)(point, records)
}

type Revisions = BTreeMap<PathBuf, Option<String>>;

fn revision_of(point: &Point, directory: &Path, known: &mut Revisions) -> Option<String> {
    if let Some(commit) = &point.subject.revision {
        return Some(git_revision::short(commit).to_owned());
    }
    let folder = subject_folder(point, directory)?;
    known.entry(folder).or_insert_with_key(|folder| git_revision::of(folder)).clone()
}

/// Directory of a server: the parent of the first existing file in its command, or the argument of `make -C` in its
/// build. `None` if neither exists; the directory of a system program is irrelevant.
fn subject_folder(point: &Point, directory: &Path) -> Option<PathBuf> {
    let base = directory.join(point.subject.process.directory.as_deref().unwrap_or(""));
    let command = shell_words::split(&point.subject.process.command).ok()?;
    let named = command.iter().find(|word| {
        word.contains('/') && !word.starts_with('-') && !Path::new(word).is_absolute() && base.join(word).exists()
    });
    if let Some(word) = named {
        let path = base.join(word);
        return if path.is_dir() { Some(path) } else { path.parent().map(Path::to_owned) };
    }
    let build = shell_words::split(point.subject.process.build.as_deref()?).ok()?;
    let place = build.iter().position(|word| word == "-C")?;
    Some(base.join(build.get(place + 1)?)).filter(|folder| folder.is_dir())
}

/// CPUs of all active points to keep awake; none with the machine's idle policy. In a cluster, they are the server's.
pub(crate) fn cpus_to_keep_awake(bench: &Bench<'_>, active: &[bool]) -> Vec<u32> {
    if bench.options.idle == IdlePolicy::Machine {
        return Vec::new();
    }
    let active = bench.plan.points.iter().zip(active).filter(|(_, is_active)| **is_active);
    let shares = active.flat_map(|(point, _)| trial::share(point, bench.options));
    shares.flat_map(|share| [share.subject, share.generator].concat()).collect::<BTreeSet<_>>().into_iter().collect()
}

/// Starts spinners on `cpus`, here or on the machines of a cluster, or checks that they are still running.
pub(crate) fn keep_awake(bench: &Bench<'_>, cpus: &[u32]) -> Result<(), LabError> {
    let checked = match &bench.options.cluster {
        _ if cpus.is_empty() => Ok(()),
        None => bench.ground.supervisor.keep_awake(cpus),
        Some(cluster) => cluster.spin(cpus),
    };
    checked.map_err(|why| LabError::Spin(cpu_list::format(cpus), why))
}
