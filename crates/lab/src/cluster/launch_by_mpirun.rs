//! Starts nodes on all machines with one command, either mpirun or the user's own. The nodes then join over TLS.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::path::Path;
use std::time::{Duration, Instant};

use study::shell_words;
use tempfile::TempDir;

use crate::cluster::Reach;
use crate::cluster::file::{HostPlan, Hosts};
use crate::cluster::join::{Event, Listener, Why};
use crate::json_lines::Channel;
use crate::process_start_and_stop::{Child, Exit, Launch, Supervisor, TICKET, capture};

/// Major version of Open MPI with which this code is tested. Version 5 has different names for the settings.
const TESTED: u32 = 4;
pub(super) const SSH_OPTIONS: &str =
    "-o BatchMode=yes -o ConnectTimeout=10 -o ServerAliveInterval=2 -o ServerAliveCountMax=3";
const SETTINGS: &[(&str, &str)] = &[
    // Otherwise each node and its children are bound to one CPU.
    ("OMPI_MCA_hwloc_base_binding_policy", "none"),
    // Otherwise, machines start daemons on each other and need ssh keys for each other.
    ("OMPI_MCA_plm_rsh_no_tree_spawn", "1"),
    // Otherwise mpirun does not notice a daemon that dies before it has connected back.
    ("OMPI_MCA_orte_leave_session_attached", "1"),
    ("OMPI_MCA_plm_rsh_args", SSH_OPTIONS),
    ("OMPI_MCA_orte_keep_fqdn_hostnames", "1"),
    // Otherwise mpirun takes minutes to notice a lost machine. The lab, which can name it, notices sooner than this.
    ("OMPI_MCA_oob_tcp_keepalive_time", "2"),
    ("OMPI_MCA_oob_tcp_keepalive_intvl", "1"),
    ("OMPI_MCA_oob_tcp_keepalive_probes", "5"),
];
const AS_ROOT: &[(&str, &str)] = &[("OMPI_ALLOW_RUN_AS_ROOT", "1"), ("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1")];
/// Time that the command gets to end by itself, because mpirun crashes if it is stopped while it is ending.
const ENDING: Duration = Duration::from_secs(4);

pub(super) struct Gang {
    process: Child,
    /// Directory for files that mpirun leaves behind when it is killed.
    _scratch: TempDir,
}

impl Drop for Gang {
    fn drop(&mut self) {
        self.process.wait(ENDING);
    }
}

/// Finds mpirun and returns its version. Fails with one sentence if it is missing or its version is unsupported.
pub(super) fn mpirun() -> Result<String, String> {
    let said = capture(&["mpirun", "--version"], Path::new("/")).ok_or("there is no `mpirun` here")?;
    let version = version(&said)
        .ok_or_else(|| format!("`mpirun` is not Open MPI: {}", said.lines().next().unwrap_or_default()))?;
    let major = version.split('.').next().and_then(|major| major.parse::<u32>().ok());
    let other = || format!("`mpirun` is Open MPI {version}, and only {TESTED} was tested; use ssh, or `start`");
    if major == Some(TESTED) { Ok(version.to_owned()) } else { Err(other()) }
}

fn version(said: &str) -> Option<&str> {
    said.lines().next()?.split_once("(Open MPI) ").map(|(_, version)| version.trim())
}

/// Starts the nodes of at least one machine and waits until each has joined or can no longer join. Returns the channel
/// of each node, or why it did not join. Fails with a one-line message.
pub(super) fn start(
    hosts: &Hosts,
    machines: &[(&HostPlan, IpAddr)],
    programs: &[Vec<String>],
    deadline: Instant,
    reach: &Reach<'_>,
    supervisor: &Supervisor,
) -> Result<(Gang, Vec<Result<Channel, String>>), String> {
    let (_, first) = machines[0];
    let address = towards(first).map_err(|error| format!("no way to {first}: {error}"))?;
    let expected = machines.iter().map(|(_, address)| *address).collect::<Vec<_>>();
    let mut listener = Listener::bind(SocketAddr::new(address, 0), &expected, deadline)
        .map_err(|why| format!("cannot listen on {address}: {why}"))?;
    let mut environment = BTreeMap::from([(TICKET.to_owned(), listener.ticket.clone())]);
    let join = ["--join", &listener.address.to_string(), "--lab", &listener.fingerprint].map(str::to_owned);
    let nodes = programs.iter().map(|program| [&program[..], &join].concat()).collect::<Vec<_>>();
    let command = match &hosts.start {
        Some(template) if hosts.deploy => {
            let from_home = ["sh".to_owned(), "-c".to_owned(), format!("cd && exec {}", shell_words::join(&nodes[0]))];
            filled(template, &from_home, machines)
        }
        Some(template) => filled(template, &nodes[0], machines),
        None => {
            mpirun()?;
            let root = if rustix::process::geteuid().is_root() { AS_ROOT } else { &[] };
            let unset = SETTINGS.iter().chain(root).filter(|(name, _)| (reach.variable)(name).is_none());
            environment.extend(unset.map(|(name, value)| ((*name).to_owned(), (*value).to_owned())));
            contexts(machines, &nodes)
        }
    };
    let scratch = supervisor.scratch().map_err(|why| format!("cannot make a directory for `{}`: {why}", command[0]))?;
    environment.insert("TMPDIR".to_owned(), scratch.path().display().to_string());
    let launch = Launch { environment: &environment, ..Launch::new(&command, Path::new("/")) };
    let process = supervisor.spawn(launch).map_err(|error| format!("cannot start `{}`: {error}", command[0]))?;
    let mut gang = Gang { process, _scratch: scratch };
    let mut channels = machines.iter().map(|_| None).collect::<Vec<_>>();
    loop {
        match listener.next(Duration::from_millis(50)) {
            Some(Event::Joined(rank, joined)) => channels[rank as usize] = Some(joined),
            Some(Event::Refused(from, Why::Twice(rank))) => {
                return Err(format!(
                    "two nodes claim rank {rank}, one of them from {from}: one of them does not belong to this run"
                ));
            }
            Some(Event::Refused(from, why)) => (reach.note)(&format!("refused a connection from {from}: {why}")),
            Some(Event::Over(refused)) => {
                if refused > 0 {
                    (reach.note)(&format!("connections refused while nodes joined: {refused}"));
                }
                let late = || "no node came from there in time".to_owned();
                return Ok((gang, channels.into_iter().map(|channel| channel.ok_or_else(late)).collect()));
            }
            None if (reach.interrupted)() => return Err("interrupted".to_owned()),
            // A command that only submits a job may succeed before the nodes join.
            None => match gang.process.wait(Duration::ZERO) {
                None | Some(Exit::Code(0)) => {}
                Some(exit) => {
                    let (program, words) = (&command[0], gang.words());
                    return Err(format!("`{program}` ended before all nodes had joined ({exit}){words}"));
                }
            },
        }
    }
}

impl Gang {
    fn words(&self) -> String {
        let text = self.process.last_words();
        let is_rule = |line: &str| line.trim().is_empty() || line.chars().all(|c| c == '-');
        let lines = text.lines().filter(|line| !is_rule(line)).map(|line| format!("\n  {}", line.trim_end()));
        let lines = lines.collect::<Vec<_>>();
        if lines.len() > 1 { lines.concat() } else { crate::trial_end_reason::saying(&text) }
    }
}

/// Returns this machine's own address on the route to `address`. Fails without a route.
fn towards(address: IpAddr) -> std::io::Result<IpAddr> {
    let any: IpAddr = if address.is_ipv4() { [0; 4].into() } else { [0; 16].into() };
    let socket = UdpSocket::bind((any, 0))?;
    socket.connect((address, 9))?;
    Ok(socket.local_addr()?.ip())
}

fn contexts(machines: &[(&HostPlan, IpAddr)], nodes: &[Vec<String>]) -> Vec<String> {
    let mut words = vec!["mpirun".to_owned()];
    for ((host, _), node) in machines.iter().zip(nodes) {
        if words.len() > 1 {
            words.push(":".to_owned());
        }
        let name = host.ssh.as_ref().unwrap_or(&host.address);
        // `-x` passes the ticket by name, which hides its value from other users. Each node needs its own `-x`.
        words.extend(["-np", "1", "--host", name, "-x", TICKET, "sh", "-c"].map(str::to_owned));
        words.push(format!("cd && exec {}", shell_words::join(node)));
    }
    words
}

fn filled(template: &[String], node: &[String], machines: &[(&HostPlan, IpAddr)]) -> Vec<String> {
    let all = machines.iter().map(|(host, _)| host.ssh.as_ref().unwrap_or(&host.address).as_str()).collect::<Vec<_>>();
    let (all, count) = (all.join(","), machines.len().to_string());
    let fill = |word: &String| match word.as_str() {
        "{node}" => node.to_vec(),
        word => {
            let word = word.replace("{node}", &shell_words::join(node));
            vec![word.replace("{hosts}", &all).replace("{count}", &count)]
        }
    };
    template.iter().flat_map(fill).collect()
}

/// Returns the rank of this process from variables of Open MPI, PMIx (PRRTE), Slurm or Kubernetes; `None` without any.
pub fn rank(variable: &dyn Fn(&str) -> Option<String>) -> Option<u32> {
    let names = ["OMPI_COMM_WORLD_RANK", "PMIX_RANK", "SLURM_PROCID", "JOB_COMPLETION_INDEX"];
    names.iter().find_map(|name| variable(name)?.parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::file;

    #[test]
    fn parses_the_version_of_open_mpi() {
        assert_eq!(
            version("mpirun (Open MPI) 4.1.4\n\nReport bugs to http://www.open-mpi.org/community/help/\n"),
            Some("4.1.4")
        );
        assert_eq!(version("HYDRA build details:\n    Version: 4.0.2\n"), None);
    }

    fn machines(hosts: &Hosts) -> Vec<(&HostPlan, IpAddr)> {
        hosts.hosts.iter().map(|host| (host, host.address.parse().unwrap())).collect()
    }

    #[test]
    fn creates_one_context_per_machine() {
        let hosts = file::short("subject=10.0.0.1,load=10.0.0.2", file::STUDY).unwrap();
        let node = |name: &str| ["/opt/my quintain", "node", "--directory", name].map(str::to_owned).to_vec();
        let words = contexts(&machines(&hosts), &[node("/a"), node("/b")]);
        let expected = [
            "mpirun",
            "-np",
            "1",
            "--host",
            "10.0.0.1",
            "-x",
            "QUINTAIN_TICKET",
            "sh",
            "-c",
            "cd && exec '/opt/my quintain' node --directory /a",
            ":",
            "-np",
            "1",
            "--host",
            "10.0.0.2",
            "-x",
            "QUINTAIN_TICKET",
            "sh",
            "-c",
            "cd && exec '/opt/my quintain' node --directory /b",
        ];
        assert_eq!(words, expected);
    }

    #[test]
    fn fills_in_a_start_command() {
        let hosts = file::short("subject=10.0.0.1,load=10.0.0.2", file::STUDY).unwrap();
        let template = ["srun", "-N{count}", "-w", "{hosts}", "{node}"].map(str::to_owned);
        let node = ["quintain", "node"].map(str::to_owned);
        assert_eq!(
            filled(&template, &node, &machines(&hosts)),
            ["srun", "-N2", "-w", "10.0.0.1,10.0.0.2", "quintain", "node"]
        );
        let template = ["sh", "-c", "exec {node} &"].map(str::to_owned);
        assert_eq!(filled(&template, &node, &machines(&hosts))[2], "exec quintain node &");
    }

    #[test]
    fn reads_ranks_of_several_launchers() {
        let of = |set: &[(&str, &str)]| {
            rank(&|name| set.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned()))
        };
        assert_eq!(of(&[("OMPI_COMM_WORLD_RANK", "3"), ("SLURM_PROCID", "0")]), Some(3), "mpirun within an allocation");
        assert_eq!(of(&[("SLURM_PROCID", "7")]), Some(7));
        assert_eq!(of(&[("PMIX_RANK", "x"), ("JOB_COMPLETION_INDEX", "2")]), Some(2));
        assert_eq!(of(&[]), None);
    }

    #[test]
    fn finds_the_local_address_towards_a_machine() {
        assert_eq!(towards([127, 0, 0, 1].into()).unwrap(), IpAddr::from([127, 0, 0, 1]));
    }
}
