//! Several machines: which they are, and what runs on each of them.

use std::path::Path;
use std::rc::Rc;

use lab::cluster::file::{self, Hosts, Launcher};
use lab::cluster::{Cluster, ClusterError, Reach};
use study::record::{FindingState, Role};

use crate::cli::ClusterArgs;
use crate::message::{Exit, Problem, exe, machine};
use crate::output;
use crate::study_file::mistaken;

/// The machines that the flags name, each with its node; `None`: this one alone.
pub(crate) fn start(args: &ClusterArgs, interrupted: &dyn Fn() -> bool) -> Result<Option<Rc<Cluster>>, Problem> {
    let Some(hosts) = hosts(args)? else { return Ok(None) };
    let directory = std::env::current_dir().map_err(machine)?;
    let exe = exe()?;
    let build = build(&exe)?;
    let note = |text: &str| output::message(&format!("cluster: {text}"));
    let reach = Reach { exe, directory, build, interrupted, note: &note, variable: &output::variable };
    let cluster = Cluster::start(&hosts, &reach).map_err(|error| match &error {
        ClusterError::Interrupted => Problem::new(Exit::Interrupted, error),
        ClusterError::Machines(_) | ClusterError::Watchdog(_) => Problem::new(Exit::Machine, error),
    })?;
    output::message(&words(&cluster));
    Ok(Some(Rc::new(cluster)))
}

/// The machines that the flags name.
fn hosts(args: &ClusterArgs) -> Result<Option<Hosts>, Problem> {
    let hosts = match (&args.cluster, &args.hosts) {
        (Some(path), _) => {
            let text = std::fs::read_to_string(path).map_err(|error| {
                Problem::new(
                    Exit::Usage,
                    anyhow::Error::new(error).context(format!("cannot read `{}`", path.display())),
                )
            })?;
            file::parse(&text).map_err(|mistakes| mistaken(path, &text, &mistakes))?
        }
        (None, Some(text)) => file::short(text).map_err(|wrong| {
            Problem::text(Exit::Usage, format!("`--hosts {text}`: {}", wrong.join("; ")))
                .hint("for example `--hosts subject=10.0.0.11,load=10.0.0.12-14`; `--cluster FILE` says more")
        })?,
        (None, None) if args.deploy => {
            return Err(Problem::text(Exit::Usage, "`--deploy` needs `--cluster FILE` or `--hosts LIST`"));
        }
        (None, None) => return Ok(None),
    };
    Ok(Some(Hosts { deploy: hosts.deploy || args.deploy, ..hosts }))
}

/// `cluster: subject s1 (32 CPUs); load l1 (8 CPUs), l2 (8 CPUs); started by ssh`, with what disturbs measurements there.
fn words(cluster: &Cluster) -> String {
    let nodes = cluster.nodes();
    let of = |role: Role| {
        let mine = nodes.iter().filter(|node| node.role == role);
        let mine = mine.map(|node| format!("{} ({} CPUs)", node.name, node.host.cpus.len()));
        format!("{} {}", role.word(), mine.collect::<Vec<_>>().join(", "))
    };
    let launcher = match cluster.launcher() {
        Launcher::Mpirun => "; started by mpirun, whose own connections are not encrypted (docs/CLUSTER.md#safety)",
        Launcher::Start => "; started by the command of `start`",
        Launcher::Auto | Launcher::Ssh | Launcher::Local => "",
    };
    let mut text = format!("cluster: {}; {}{launcher}", of(Role::Subject), of(Role::Load));
    for node in &nodes {
        let grave = node.doctor.iter().filter(|found| matches!(found.state, FindingState::Warning | FindingState::Bad));
        let names = grave.map(|finding| finding.check.as_str()).collect::<Vec<_>>();
        if !names.is_empty() {
            text += &format!("\ndoctor warnings on {}: {}", node.name, names.join(", "));
        }
    }
    text
}

/// SHA-256 of a quintain binary, hexadecimal.
pub(crate) fn build(exe: &Path) -> Result<String, Problem> {
    lab::cluster::hash(exe).map_err(|error| {
        Problem::new(Exit::Machine, anyhow::Error::new(error).context(format!("cannot read `{}`", exe.display())))
    })
}
