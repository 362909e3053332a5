//! Builds the servers of a plan before its first trial, by running their build commands.

use std::path::Path;
use std::time::Duration;

use study::plan::{EngineChoice, Plan, ProcessPlan};
use study::record::{Build, BuildOutcome};
use study::shell_words;

use crate::builds_shared_by_points::Builds;
use crate::container::Images;
use crate::lab_clocks;
use crate::options_and_hooks::{LabError, Options, Phase, Progress};
use crate::process_start_and_stop::{Exit, Launch, Supervisor};
use crate::trial_end_reason::unrunnable;

const PATIENCE: Duration = Duration::from_secs(30 * 60);
/// Prefix of the line with which a build reports a missing toolchain.
const MISSING: &str = "missing toolchain:";

/// Builds the servers of all runnable points in the order of the plan, and runs each distinct command once. Returns the
/// outcomes so far if interrupted. Fails only if the watchdog cannot be started.
pub fn build_all(
    plan: &Plan,
    options: &Options,
    progress: &mut dyn FnMut(&Progress),
    interrupted: &dyn Fn() -> bool,
) -> Result<Vec<Build>, LabError> {
    let supervisor = crate::trial::start_supervisor(options)?;
    let images = Images::default();
    let mut builds = Builds::default();
    'points: for (index, point) in plan.points.iter().enumerate() {
        if point.unrunnable.is_some() {
            continue;
        }
        let commands = point.processes().filter_map(|one| Some((one.directory.as_deref(), one.build.as_deref()?)));
        for (directory, command) in commands.filter(|(_, command)| !command.trim().is_empty()) {
            let make = || {
                say(progress, Phase::Build, index);
                let cpus = options.cpus.iter().map(|cpu| cpu.index).collect::<Vec<_>>();
                let place = options.directory.join(directory.unwrap_or(""));
                match &options.cluster {
                    None => build(&supervisor, command, &place, &cpus, interrupted),
                    Some(cluster) => cluster.build(command, directory),
                }
            };
            if !builds.add(directory, command, index, make) {
                break 'points;
            }
        }
        // A node of a cluster reports a missing image or program when it starts the server.
        if options.cluster.is_some() {
            continue;
        }
        let containers = point.processes().filter_map(|process| process.container.as_ref());
        for container in containers {
            let command = match container.engine {
                EngineChoice::Auto => format!("image {}", container.image),
                engine => format!("image {} ({})", container.image, engine.name()),
            };
            let outcome = || match images.find(container, &supervisor) {
                Ok(_) => BuildOutcome::Ready,
                Err(reason) => BuildOutcome::Skipped { reason },
            };
            builds.add(None, &command, index, || Some(outcome()));
        }
        for program in point.proxies.iter().filter_map(|proxy| absent(&proxy.process, &options.directory)) {
            let reason = format!("`{program}` is not installed");
            builds.add(None, &program, index, || Some(BuildOutcome::Skipped { reason }));
        }
    }
    let mut builds = builds.finish();
    // The nodes of a cluster start the servers but do not verify them.
    if options.cluster.is_none() {
        let mut begins = |point| say(progress, Phase::Verify, point);
        let verified = crate::verify::builds(plan, &builds, options, interrupted, &mut begins);
        builds.extend(verified);
    }
    Ok(builds)
}

fn say(progress: &mut dyn FnMut(&Progress), phase: Phase, point: usize) {
    progress(&Progress { phase, point, block: 0, order: 0, live: None });
}

fn absent(proxy: &ProcessPlan, directory: &Path) -> Option<String> {
    let program = shell_words::split(&proxy.command).ok()?.into_iter().next()?;
    if program == "quintain" || proxy.build.is_some() {
        return None;
    }
    let is_in = |path: std::ffi::OsString| std::env::split_paths(&path).any(|place| place.join(&program).is_file());
    let found = match program.contains('/') {
        true => directory.join(proxy.directory.as_deref().unwrap_or("")).join(&program).exists(),
        false => std::env::var_os("PATH").is_some_and(is_in),
    };
    (!found).then_some(program)
}

pub(crate) fn build(
    supervisor: &Supervisor,
    command: &str,
    directory: &Path,
    cpus: &[u32],
    interrupted: &dyn Fn() -> bool,
) -> Option<BuildOutcome> {
    let failed = |output_tail: String| Some(BuildOutcome::Failed { output_tail });
    let words = match shell_words::split(command) {
        Ok(words) => words,
        Err(mistake) => return failed(mistake.to_string()),
    };
    let mut child = match supervisor.spawn(Launch { cpus, ..Launch::new(&words, directory) }) {
        Ok(child) => child,
        Err(error) => return failed(format!("cannot start `{command}`: {error}")),
    };
    let deadline = lab_clocks::now() + PATIENCE;
    let exit = loop {
        if let Some(exit) = child.wait(Duration::from_millis(50)) {
            break exit;
        }
        if interrupted() {
            return None;
        }
        if lab_clocks::now() > deadline {
            child.kill();
            return failed(format!("{}\nkilled after {PATIENCE:?}", child.last_words()));
        }
    };
    let output = child.last_words();
    if exit == Exit::Code(0) {
        return Some(BuildOutcome::Ready);
    }
    // A `quintain` in a command may be a different build that lacks a feature of this binary.
    if words.first().is_some_and(|program| program == "quintain")
        && let Some(reason) = lacks(&output)
    {
        return Some(BuildOutcome::Skipped { reason });
    }
    if let Some(reason) = unrunnable(&output) {
        return Some(BuildOutcome::Unrunnable { reason });
    }
    let missing = output.lines().find_map(|line| line.find(MISSING).map(|start| line[start..].trim().to_owned()));
    match missing {
        Some(reason) => Some(BuildOutcome::Skipped { reason }),
        None => failed(format!("{output}\n{exit}").trim().to_owned()),
    }
}

fn lacks(output: &str) -> Option<String> {
    let (_, after) = output.split_once("unrecognized subcommand '")?;
    let (verb, _) = after.split_once('\'')?;
    Some(format!("this build of quintain has no command `{verb}`"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn recognizes_a_missing_command() {
        let said = "error: unrecognized subcommand 'adapter'\n\n  tip: a similar subcommand exists: 'load'";
        assert_eq!(lacks(said).as_deref(), Some("this build of quintain has no command `adapter`"));
        assert_eq!(lacks("error: unexpected argument"), None);
    }

    #[test]
    fn reports_missing_programs_of_proxies() {
        let proxy = |command: &str, build: Option<&str>| {
            let plan =
                ProcessPlan { command: command.to_owned(), build: build.map(str::to_owned), ..ProcessPlan::default() };
            absent(&plan, Path::new("/"))
        };
        assert_eq!(proxy("quintain-no-such-program -p {port}", None).as_deref(), Some("quintain-no-such-program"));
        assert_eq!(proxy("no/such/program", None).as_deref(), Some("no/such/program"));
        assert_eq!(proxy("no/such/program", Some("make")), None, "a build makes it");
        assert_eq!(
            (proxy("sh -c x", None), proxy("quintain adapter", None), proxy("bin/sh", None)),
            (None, None, None)
        );
    }
}
