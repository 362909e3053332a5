//! Profiles the server in one extra trial per design point, without a record, because profiling affects measurements.

use study::cpu_profile::CpuProfile;
use study::plan::Plan;
use study::record::{Outcome, Record};

use crate::options_and_hooks::{LabError, Options, Progress};
use crate::process_start_and_stop::capture;
use crate::run;
use crate::trial::{Bench, Trial};
use crate::trial_end_reason::End;

/// Minimum duration of a timed trial with a profile, ns. A shorter trial would give too few samples.
const DURATION_MIN_NS: u64 = 2_000_000_000;

const IN_CONTAINER: &str =
    "the server runs in a container: `perf` samples processes of this machine; run its program without one";

/// Explains why no server of this run can be profiled, and how to fix it; `None` if no obstacle is known.
pub fn no_profile(options: &Options) -> Option<String> {
    if options.cluster.is_some() {
        return Some("the server runs on another machine: `perf` samples only processes of this one; run without `--cluster` or `--hosts`".to_owned());
    }
    let why = "`perf` is not installed: it comes with linux-perf (Debian), linux-tools (Ubuntu) or perf (Fedora, Arch)";
    capture(&["perf", "--version"], &options.directory).is_none().then(|| why.to_owned())
}

/// Profiles every design point measured in `records`; a failed trial's profile has the reason. Returns the profiles so
/// far if interrupted. Fails if the watchdog or the spinners cannot be started.
pub fn profile(
    plan: &Plan,
    records: &[Record],
    options: &Options,
    progress: &mut dyn FnMut(&Progress),
    interrupted: &dyn Fn() -> bool,
) -> Result<Vec<CpuProfile>, LabError> {
    let last = |point: usize| records.iter().rev().find(|one| one.point == point && one.measurement().is_some());
    let points = (0..plan.points.len()).filter(|point| !plan.comes_first(*point));
    let points = points.filter_map(|point| Some((point, last(point)?))).collect::<Vec<_>>();
    let none = |point: usize, why: &str| CpuProfile { point, problem: Some(why.to_owned()), ..CpuProfile::default() };
    if let Some(why) = no_profile(options) {
        return Ok(points.iter().map(|(point, _)| none(*point, &why)).collect());
    }
    let mut plan = plan.clone();
    for point in &mut plan.points {
        if let study::spec::Stop::Duration { duration_ns } = &mut point.load.stop {
            *duration_ns = (*duration_ns).max(DURATION_MIN_NS);
        }
    }
    let bench = Bench::start(&plan, options, interrupted)?;
    let active = (0..plan.points.len()).map(|point| points.iter().any(|(known, _)| *known == point));
    run::keep_awake(&bench, &run::cpus_to_keep_awake(&bench, &active.collect::<Vec<_>>()))?;
    let mut profiles = Vec::new();
    for (point, like) in points {
        if interrupted() {
            break;
        }
        let perf = match plan.points[point].subject.process.container {
            None => crate::perf_sampling::Perf::new(&bench.ground.supervisor, interrupted),
            Some(_) => Err(IN_CONTAINER.to_owned()),
        };
        let Ok(perf) = perf.map_err(|why| profiles.push(none(point, &why))) else { continue };
        let Record { block, order, step, .. } = *like;
        let trial = Trial { bench: &bench, point, block, order, step, revision: None, perf: Some(&perf) };
        let outcome = match trial.run(progress) {
            Ok(record) => record.outcome,
            Err(End::Interrupted | End::Lost(_)) => break,
            Err(End::Failed(failure)) => Outcome::Failed(failure),
        };
        let mut profile = CpuProfile { point, ..perf.profile() };
        match outcome {
            Outcome::Measured(measurement) => profile.rate_per_s = Some(measurement.rate_per_s()),
            Outcome::Failed(why) => _ = profile.problem.get_or_insert(format!("the trial failed: {}", why.message)),
        }
        profiles.push(profile);
    }
    Ok(profiles)
}
