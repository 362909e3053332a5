//! Connects to the machines of a cluster and starts the nodes and generators on them.

use std::path::Path;
use std::rc::Rc;

use lab::cluster::file::{self, Hosts, Launcher};
use lab::cluster::{Cluster, ClusterError, Generators, Reach};
use study::record::{Finding, FindingState, Role};
use study::spec::LoadSpec;

use crate::cli::ClusterArgs;
use crate::command_result::{Exit, Problem, Result, cannot, exe, machine, usage};
use crate::study_file::mistaken;
use crate::{built_in, output, signals};

/// Starts a node on each machine that the flags name; `None` without such flags. Commands start in `directory`, or in
/// the working directory if `None`.
pub(crate) fn start(args: &ClusterArgs, directory: Option<&Path>) -> Result<Option<Rc<Cluster>>> {
    let Some(hosts) = hosts(args, file::STUDY)? else { return Ok(None) };
    let cluster = reach(directory, |reach| Cluster::start(&hosts, reach))?;
    output::message(&words(&cluster));
    Ok(Some(Rc::new(cluster)))
}

/// Starts generators on the machines that the flags name, to load a running server; `None` without such flags.
pub(crate) fn generators(args: &ClusterArgs, spec: &LoadSpec) -> Result<Option<Generators>> {
    let Some(hosts) = hosts(args, file::LOAD)? else { return Ok(None) };
    let mut load = hosts.hosts.iter().filter(|host| host.role == Role::Load);
    let count = load.clone().count();
    if let Some(text) = lab::cluster::refuses(spec.target.protocol(), spec.stop, spec.warmup, count) {
        return Err(usage(text));
    }
    let address = spec.target.address();
    if !analysis::is_elsewhere(address)
        && let Some(other) = load.find(|host| host.launcher != Some(Launcher::Local))
    {
        let text = format!("`{address}` is another server on each machine: to `{}` it is its own", other.name);
        return Err(usage(text).hint("name the server by its address in the network"));
    }
    let generators = reach(None, |reach| Generators::start(&hosts, reach))?;
    output::message(&format!("cluster: load {}{}", generators.words(), launcher_words(generators.launcher)));
    Ok(Some(generators))
}

fn reach<T>(directory: Option<&Path>, start: impl FnOnce(&Reach<'_>) -> Result<T, ClusterError>) -> Result<T> {
    let here = std::env::current_dir().map_err(machine)?;
    let directory = match directory {
        None => here,
        // Each node unpacks the built-in studies to its own cache.
        Some(directory) if directory == Path::new(built_in::DIRECTORY) => directory.to_path_buf(),
        Some(directory) => here.join(directory).canonicalize().map_err(machine)?,
    };
    let exe = exe()?;
    let build = build(&exe)?;
    let note = |text: &str| output::message(&format!("cluster: {text}"));
    let interrupted = signals::is_interrupted;
    let reach = Reach { exe, directory, build, interrupted, note: &note, variable: &output::variable };
    start(&reach).map_err(|error| match &error {
        ClusterError::Interrupted => Problem::new(Exit::Interrupted, error),
        ClusterError::Machines(_) => Problem::new(Exit::Machine, error),
    })
}

/// Machines that the flags name; `None` without such flags. Fails if a role in `needed` has no machine.
fn hosts(args: &ClusterArgs, needed: &[Role]) -> Result<Option<Hosts>> {
    let hosts = match (&args.cluster, &args.hosts) {
        (Some(path), _) => {
            let text = output::read(path)?;
            file::parse(&text, needed).map_err(|mistakes| mistaken(path, &text, &mistakes))?
        }
        (None, Some(text)) => file::short(text, needed).map_err(|wrong| {
            usage(format!("`--hosts {text}`: {}", wrong.join("; ")))
                .hint("for example `--hosts subject=10.0.0.11,load=10.0.0.12-14`; `--cluster FILE` says more")
        })?,
        (None, None) if args.deploy => {
            return Err(usage("`--deploy` needs `--cluster FILE` or `--hosts LIST`"));
        }
        (None, None) => return Ok(None),
    };
    Ok(Some(Hosts { deploy: hosts.deploy || args.deploy, ..hosts }))
}

/// Names of the checks that found a disturbance, in one line; `None` if none did.
pub(crate) fn doctor_warnings(findings: &[Finding]) -> Option<String> {
    let grave = |finding: &&Finding| matches!(finding.state, FindingState::Warning | FindingState::Bad);
    let names = findings.iter().filter(grave).map(|finding| finding.check.as_str()).collect::<Vec<_>>();
    (!names.is_empty()).then(|| names.join(", "))
}

/// Formats `cluster: subject s1 (32 CPUs); load l1 (8 CPUs), l2 (8 CPUs); started by ssh` and warnings about machines.
fn words(cluster: &Cluster) -> String {
    let (subject, load) = (cluster.subject.words(), cluster.generators.words());
    let launcher = launcher_words(cluster.generators.launcher);
    let mut text = format!("cluster: subject {subject}; load {load}{launcher}");
    for node in &cluster.nodes() {
        if let Some(names) = doctor_warnings(&node.doctor) {
            text += &format!("\ndoctor warnings on {}: {names}", node.name);
        }
    }
    text
}

fn launcher_words(launcher: Launcher) -> &'static str {
    match launcher {
        Launcher::Mpirun => {
            "; started by mpirun, whose own connections are not encrypted (docs/reference/cluster.md#safety)"
        }
        Launcher::Start => "; started by the command of `start`",
        Launcher::Auto | Launcher::Ssh | Launcher::Local => "",
    }
}

pub(crate) fn build(exe: &Path) -> Result<String> {
    lab::cluster::hash(exe).map_err(cannot(Exit::Machine, "read", exe))
}
