//! Starts a node on each machine of a cluster, through a local child process or ssh, and copies the binary there.

use std::fs::File;
use std::net::{IpAddr, ToSocketAddrs};
use std::path::Path;
use std::time::Duration;

use study::node_messages::{Hello, PROTOCOL, Said};
use study::record::Node;

use crate::cluster::file::{HostPlan, Hosts, Launcher};
use crate::cluster::launch_by_mpirun::{self, Gang, SSH_OPTIONS};
use crate::cluster::node_channel::Link;
use crate::cluster::{ClusterError, Member, Reach};
use crate::json_lines::Channel;
use crate::process_start_and_stop::{Exit, Launch, Supervisor};
use crate::trial_end_reason::{End, saying};
use crate::{cpu_list, lab_clocks};

const DEPLOY: Duration = Duration::from_secs(120);
/// Directory of copied binaries in the user's home on each machine; the hash of a binary is its file name.
const DEPLOYED: &str = ".cache/quintain";

/// Environment variables of the allocations that mpirun supports: Slurm, PBS and Grid Engine.
const ALLOCATIONS: &[&str] = &["SLURM_JOB_ID", "PBS_JOBID", "PE_HOSTFILE"];

/// Starts all nodes. Returns them and the command that started several at once, if any.
pub(super) fn all(
    hosts: &Hosts,
    reach: &Reach<'_>,
    supervisor: &Supervisor,
) -> Result<(Vec<Member>, Option<Gang>), ClusterError> {
    let deadline = lab_clocks::now() + hosts.within;
    let addresses = hosts.hosts.iter().map(|host| address(&host.address)).collect::<Vec<_>>();
    let is_one = |host: &HostPlan| matches!(launcher(hosts, host), Launcher::Mpirun | Launcher::Start);
    let mine = hosts.hosts.iter().zip(&addresses).filter(|(host, _)| is_one(host)).collect::<Vec<_>>();
    // The command starts all nodes or none, so every machine needs an address.
    let wrong = mine.iter().filter_map(|(host, address)| Some(format!("{}: {}", label(host), address.as_ref().err()?)));
    let wrong = wrong.collect::<Vec<_>>();
    if !wrong.is_empty() {
        return Err(ClusterError::Machines(wrong));
    }
    let machines = mine.iter().filter_map(|(host, address)| Some((*host, *address.as_ref().ok()?))).collect::<Vec<_>>();
    let programs = machines.iter().map(|(host, _)| node(hosts, host, reach)).collect::<Vec<_>>();
    let (gang, joined) = match machines[..] {
        [] => (None, Vec::new()),
        _ => match launch_by_mpirun::start(hosts, &machines, &programs, deadline, reach, supervisor) {
            Ok((gang, joined)) => (Some(gang), joined),
            Err(_) if (reach.interrupted)() => return Err(ClusterError::Interrupted),
            Err(text) => return Err(ClusterError::Machines(vec![text])),
        },
    };
    let mut joined = joined.into_iter();
    let started = hosts.hosts.iter().zip(addresses).map(|(host, address)| {
        let address = address?;
        let link = match launcher(hosts, host) {
            Launcher::Mpirun | Launcher::Start => {
                let channel = joined.next().unwrap_or_else(|| Err("it was not started".to_owned()))?;
                Link::new(label(host), channel, None, reach.interrupted).map_err(|error| error.to_string())
            }
            Launcher::Ssh | Launcher::Auto | Launcher::Local => one(hosts, host, reach, supervisor),
        }?;
        Ok::<_, String>((host, address, link))
    });
    // `collect` starts all nodes before the lab waits for the first one.
    let started = started.collect::<Vec<_>>();
    let (mut members, mut mistakes) = (Vec::new(), Vec::new());
    for (started, host) in started.into_iter().zip(&hosts.hosts) {
        let member = started.and_then(|(host, address, link)| {
            let pick = |said| if let Said::Hello(hello) = said { Some(*hello) } else { None };
            let hello = link.wait(Some(deadline), pick).map_err(|end| match end {
                End::Lost(why) => why.strip_prefix(&format!("lost {}: ", link.name)).unwrap_or(&why).to_owned(),
                end => end.to_string(),
            })?;
            let cpus = cpus_of(host, &hello)?;
            if hello.protocol != PROTOCOL || hello.build != reach.build {
                let short = |build: &str| build.chars().take(12).collect::<String>();
                let (version, there, here) = (&hello.version, short(&hello.build), short(&reach.build));
                return Err(format!(
                    "has another build of quintain ({version}, {there}) than this one ({here}): copy this binary there, or use `--deploy`"
                ));
            }
            let text = address.to_string();
            let mut interfaces = hello.interfaces.into_iter();
            let node = Node {
                name: host.name.clone(),
                role: host.role,
                host: hello.host,
                doctor: hello.doctor,
                build: hello.build,
                interface: interfaces.find(|(_, addresses)| addresses.contains(&text)).map(|(found, _)| found),
                address: text,
                link: None,
            };
            Ok(Member { node, boot_id: hello.boot_id, address, cpus, link })
        });
        match member {
            Ok(member) => members.push(member),
            Err(_) if (reach.interrupted)() => return Err(ClusterError::Interrupted),
            Err(text) => mistakes.push(format!("{}: {text}", label(host))),
        }
    }
    if mistakes.is_empty() { Ok((members, gang)) } else { Err(ClusterError::Machines(mistakes)) }
}

pub(super) fn deploy(hosts: &Hosts, reach: &Reach<'_>, supervisor: &Supervisor) -> Result<(), ClusterError> {
    let copy = |host: &HostPlan| {
        let (directory, file) = (DEPLOYED, &reach.build);
        // Every partial copy gets its own name, in case two labs copy at the same time.
        let script = format!(
            "mkdir -p {directory} && cd {directory} && {{ test -x {file} || {{ cat > {file}.$$ && chmod 755 {file}.$$ && mv {file}.$$ {file}; }}; }}"
        );
        let mut words = ssh(host.ssh.as_deref().unwrap_or(&host.address), &script);
        words.insert(1, "-C".to_owned());
        let launch = Launch { talk: true, ..Launch::new(&words, Path::new("/")) };
        let mut child = supervisor.spawn(launch).map_err(|error| format!("cannot start `ssh`: {error}"))?;
        let mut binary = File::open(&reach.exe).map_err(|error| format!("cannot read this binary: {error}"))?;
        if let Some(mut input) = child.input.take() {
            // A machine that already has the binary does not read this input.
            std::thread::spawn(move || std::io::copy(&mut binary, &mut input));
        }
        Ok::<_, String>(child)
    };
    let remote = || hosts.hosts.iter().filter(|host| launcher(hosts, host) != Launcher::Local);
    let copies = remote().map(copy).collect::<Vec<_>>();
    let deadline = lab_clocks::now() + DEPLOY;
    let mut mistakes = Vec::new();
    for (host, copy) in remote().zip(copies) {
        let done = copy.and_then(|mut child| {
            loop {
                match child.wait(Duration::from_millis(50)) {
                    Some(Exit::Code(0)) => break Ok(()),
                    Some(exit) => break Err(format!("ssh: {exit}{}", saying(&child.last_words()))),
                    None if (reach.interrupted)() => break Err("interrupted".to_owned()),
                    None if lab_clocks::now() >= deadline => break Err(format!("not there after {DEPLOY:?}")),
                    None => {}
                }
            }
        });
        mistakes.extend(done.err().map(|why| format!("{}: cannot copy this binary: {why}", label(host))));
    }
    match mistakes.is_empty() {
        true => Ok(()),
        false if (reach.interrupted)() => Err(ClusterError::Interrupted),
        false => Err(ClusterError::Machines(mistakes)),
    }
}

fn launcher(hosts: &Hosts, host: &HostPlan) -> Launcher {
    host.launcher.unwrap_or(hosts.launcher)
}

/// Resolves `auto`: mpirun if it works and there is an allocation or more than two machines, otherwise ssh.
pub(super) fn resolve(hosts: &mut Hosts, reach: &Reach<'_>) {
    if hosts.launcher == Launcher::Auto {
        let remote = hosts.hosts.iter().filter(|host| launcher(hosts, host) == Launcher::Auto);
        // mpirun accepts only names and IPv4 addresses.
        let fits = remote.clone().all(|host| !host.ssh.as_ref().unwrap_or(&host.address).contains(['@', ':']));
        let is_allocated = ALLOCATIONS.iter().any(|name| (reach.variable)(name).is_some());
        let is_better = fits && (is_allocated || remote.count() > 2) && launch_by_mpirun::mpirun().is_ok();
        hosts.launcher = if is_better { Launcher::Mpirun } else { Launcher::Ssh };
    }
}

fn label(host: &HostPlan) -> String {
    if host.name == host.address { host.name.clone() } else { format!("{} ({})", host.name, host.address) }
}

fn address(text: &str) -> Result<IpAddr, String> {
    if let Ok(address) = text.parse() {
        return Ok(address);
    }
    let found = (text, 0).to_socket_addrs().map_err(|error| format!("cannot resolve `{text}`: {error}"))?;
    let found = found.map(|address| address.ip()).collect::<Vec<_>>();
    let first = found.iter().find(|address| address.is_ipv4()).or(found.first());
    first.copied().ok_or_else(|| format!("`{text}` has no address"))
}

fn node(hosts: &Hosts, host: &HostPlan, reach: &Reach<'_>) -> Vec<String> {
    let directory = host.directory.clone().unwrap_or_else(|| reach.directory.display().to_string());
    let deployed = format!("{DEPLOYED}/{}", reach.build);
    let is_deployed = hosts.deploy && launcher(hosts, host) != Launcher::Local;
    let program = if is_deployed { Some(deployed.as_str()) } else { host.quintain.as_deref() };
    [program.unwrap_or("quintain"), "node", "--directory", &directory].map(str::to_owned).to_vec()
}

fn one(hosts: &Hosts, host: &HostPlan, reach: &Reach<'_>, supervisor: &Supervisor) -> Result<Link, String> {
    let mut command = node(hosts, host, reach);
    command.push("--stdio".to_owned());
    if launcher(hosts, host) != Launcher::Local {
        let words = format!("exec {}", study::shell_words::join(&command));
        command = ssh(host.ssh.as_deref().unwrap_or(&host.address), &words);
    }
    let launch = Launch { talk: true, ..Launch::new(&command, Path::new("/")) };
    let started = supervisor.spawn(launch).and_then(|mut child| {
        let lacks = || std::io::Error::other("no pipe");
        let (input, output) = (child.input.take().ok_or_else(lacks)?, child.output.take().ok_or_else(lacks)?);
        Link::new(label(host), Channel::new(output, input)?, Some(child), reach.interrupted)
    });
    started.map_err(|error| format!("cannot start `{}`: {error}", command[0]))
}

fn ssh(host: &str, command: &str) -> Vec<String> {
    let words = format!("ssh -T {SSH_OPTIONS} --");
    words.split(' ').chain([host, command]).map(str::to_owned).collect()
}

fn cpus_of(host: &HostPlan, hello: &Hello) -> Result<Vec<study::record::Cpu>, String> {
    let all = &hello.host.cpus;
    let Some(wanted) = &host.cpus else { return Ok(all.clone()) };
    let missing = wanted.iter().copied().filter(|wanted| all.iter().all(|cpu| cpu.index != *wanted));
    let missing = missing.collect::<Vec<_>>();
    if missing.is_empty() {
        return Ok(all.iter().filter(|cpu| wanted.contains(&cpu.index)).copied().collect());
    }
    let has = cpu_list::format(&all.iter().map(|cpu| cpu.index).collect::<Vec<_>>());
    Err(format!("`cpus` names CPU {}, which is not there: it has {has}", cpu_list::format(&missing)))
}
