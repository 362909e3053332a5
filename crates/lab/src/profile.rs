//! Profiles the server in one extra trial per design point, which disturbs and leaves no record.

use study::cpu_profile::CpuProfile;
use study::plan::Plan;
use study::record::{IdlePolicy, Outcome, Record};
use study::spec::Stop;

use crate::companion::Kept;
use crate::end::End;
use crate::hooks::{LabError, Options, Progress};
use crate::perf::Perf;
use crate::process::{Supervisor, capture};
use crate::run::{GENERATOR_MARGIN, Spinners};
use crate::trial::Trial;

/// Minimum duration of a timed trial for a profile, because samples are sparse.
const DURATION_MIN_NS: u64 = 2_000_000_000;

/// Why no server of this run can be profiled, and the fix; `None`: no known obstacle.
pub fn no_profile(options: &Options) -> Option<String> {
    if options.cluster.is_some() {
        return Some("the server runs on another machine: `perf` samples only processes of this one; run without `--cluster` or `--hosts`".to_owned());
    }
    match capture(&["perf", "--version"], &options.directory) {
        Some(_) => None,
        None => Some(
            "`perf` is not installed: it comes with linux-perf (Debian), linux-tools (Ubuntu) or perf (Fedora, Arch)"
                .to_owned(),
        ),
    }
}

/// Profiles every design point with a measurement among `records`. A failed trial leaves a reason.
/// After an interruption nothing more is returned.
pub fn profile(
    plan: &Plan,
    records: &[Record],
    options: &Options,
    progress: &mut dyn FnMut(&Progress),
    interrupted: &dyn Fn() -> bool,
) -> Result<Vec<CpuProfile>, LabError> {
    let last =
        |point: usize| records.iter().rev().find(|record| record.point == point && record.measurement().is_some());
    let points = (0..plan.points.len())
        .filter(|point| !plan.comes_first(*point))
        .filter_map(|point| Some((point, last(point)?)));
    let points = points.collect::<Vec<_>>();
    let none = |point: usize, why: &str| CpuProfile { point, problem: Some(why.to_owned()), ..CpuProfile::default() };
    if let Some(why) = no_profile(options) {
        return Ok(points.iter().map(|(point, _)| none(*point, &why)).collect());
    }
    let no_watchdog = |error| LabError::Watchdog { exe: options.exe.clone(), error };
    let supervisor = Supervisor::start(&options.exe).map_err(no_watchdog)?;
    let kept = Kept::default();
    let ends = (0..plan.points.len()).map(|point| points.iter().all(|(known, _)| *known != point).then(String::new));
    let _spinners = match options.idle {
        IdlePolicy::Machine => None,
        IdlePolicy::Spin => Spinners::start(plan, &ends.collect::<Vec<_>>(), options, &supervisor)?,
    };
    let mut plan = plan.clone();
    for point in &mut plan.points {
        if let Stop::Duration { duration_ns } = &mut point.load.stop {
            *duration_ns = (*duration_ns).max(DURATION_MIN_NS);
        }
    }
    let trials_done = u32::try_from(records.len()).unwrap_or(u32::MAX);
    let mut profiles = Vec::new();
    for (point, like) in points {
        if interrupted() {
            break;
        }
        if plan.points[point].subject.container.is_some() {
            let why =
                "the server runs in a container: `perf` samples processes of this machine; run its program without one";
            profiles.push(none(point, why));
            continue;
        }
        let perf = match Perf::new(&supervisor, interrupted) {
            Ok(perf) => perf,
            Err(error) => {
                profiles.push(none(point, &format!("no directory for samples: {error}")));
                continue;
            }
        };
        let (block, order, step) = (like.block, like.order, like.step);
        let trial = Trial {
            plan: &plan,
            point,
            block,
            order,
            step,
            revision: None,
            options,
            supervisor: &supervisor,
            kept: &kept,
            interrupted,
            margin: GENERATOR_MARGIN,
            perf: Some(&perf),
        };
        let mut say = |phase, live: Option<&_>| {
            progress(&Progress { phase, point, block, order, step, trials_done, live: live.cloned() });
        };
        let outcome = match trial.run(&mut say) {
            Ok(record) => record.outcome,
            Err(End::Interrupted | End::Lost(_)) => break,
            Err(End::Failed(failure)) => Outcome::Failed(failure),
        };
        let mut profile = CpuProfile { point, ..perf.profile() };
        match outcome {
            Outcome::Measured(measurement) => profile.rate_per_s = Some(measurement.rate_per_s()),
            Outcome::Failed(failure) => {
                profile.problem.get_or_insert(format!("the trial failed: {}", failure.message));
            }
        }
        profiles.push(profile);
    }
    Ok(profiles)
}
