//! How nodes come to be: as children, through ssh, or all at once through mpirun.

use std::fs::File;
use std::net::{IpAddr, ToSocketAddrs};
use std::path::Path;
use std::time::{Duration, Instant};

use study::node::{Hello, PROTOCOL, Said};
use study::record::Role;
use study::words;

use crate::cluster::file::{HostPlan, Hosts, Launcher};
use crate::cluster::link::Link;
use crate::cluster::{ClusterError, Member, Reach};
use crate::end::{End, saying};
use crate::process::{Exit, Launch, Supervisor};
use crate::{clock, cpus};

/// All nodes must have said hello within this, whatever hangs.
const HELLO: Duration = Duration::from_secs(20);
/// A binary must have been copied within this.
const DEPLOY: Duration = Duration::from_secs(120);
/// Where copies are, in the home of the user there, each by its hash.
const DEPLOYED: &str = ".cache/quintain";

/// Starts all, and waits for all; every one that is not there has its line in the error.
pub(super) fn all(
    hosts: &Hosts,
    reach: &Reach<'_>,
    supervisor: &Supervisor,
) -> Result<Vec<(Role, Member)>, ClusterError> {
    let deadline = clock::now() + HELLO;
    let started = hosts.hosts.iter().map(|host| {
        let address = address(&host.address)?;
        let link = one(hosts, host, reach, supervisor)?;
        Ok::<_, String>((host, address, link))
    });
    // Each must be started before the first is waited for.
    let started = started.collect::<Vec<_>>();
    let (mut members, mut mistakes) = (Vec::new(), Vec::new());
    for (started, host) in started.into_iter().zip(&hosts.hosts) {
        let member = started.and_then(|(host, address, link)| {
            let hello = hello(&link, deadline, reach)?;
            let cpus = cpus_of(host, &hello)?;
            check(host, &hello, reach)?;
            Ok((host.role, Member { name: host.name.clone(), address, cpus, hello, link, path: None }))
        });
        match member {
            Ok(member) => members.push(member),
            Err(_) if (reach.interrupted)() => return Err(ClusterError::Interrupted),
            Err(text) => mistakes.push(format!("{}: {text}", label(host))),
        }
    }
    if mistakes.is_empty() { Ok(members) } else { Err(ClusterError::Machines(mistakes)) }
}

/// Copies this binary to the machines that ssh reaches, all at once, where they lack it; every one that could not have it has its line in the error.
pub(super) fn deploy(hosts: &Hosts, reach: &Reach<'_>, supervisor: &Supervisor) -> Result<(), ClusterError> {
    let copy = |host: &HostPlan| {
        let (folder, file) = (DEPLOYED, &reach.build);
        // A half of a file has another name, also where two labs copy at the same time.
        let script = format!(
            "mkdir -p {folder} && cd {folder} && {{ test -x {file} || {{ cat > {file}.$$ && chmod 755 {file}.$$ && mv {file}.$$ {file}; }}; }}"
        );
        let mut words = ssh(host.ssh.as_deref().unwrap_or(&host.address), &script);
        words.insert(1, "-C".to_owned());
        let environment = Default::default();
        let launch =
            Launch { cpus: &[], words: &words, directory: Path::new("/"), environment: &environment, talk: true };
        let mut child = supervisor.spawn(&launch).map_err(|error| format!("cannot start `ssh`: {error}"))?;
        let mut binary = File::open(&reach.exe).map_err(|error| format!("cannot read this binary: {error}"))?;
        if let Some(mut input) = child.input.take() {
            // A machine that has it does not read.
            std::thread::spawn(move || std::io::copy(&mut binary, &mut input));
        }
        Ok::<_, String>(child)
    };
    let remote = || hosts.hosts.iter().filter(|host| launcher(hosts, host) != Launcher::Local);
    let copies = remote().map(copy).collect::<Vec<_>>();
    let deadline = clock::now() + DEPLOY;
    let mut mistakes = Vec::new();
    for (host, copy) in remote().zip(copies) {
        let done = copy.and_then(|mut child| {
            loop {
                match child.wait(Duration::from_millis(50)) {
                    Some(Exit::Code(0)) => break Ok(()),
                    Some(exit) => break Err(format!("ssh: {exit}{}", saying(&child.last_words()))),
                    None if (reach.interrupted)() => break Err("interrupted".to_owned()),
                    None if clock::now() >= deadline => break Err(format!("not there after {DEPLOY:?}")),
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

/// What starts the node of a machine.
fn launcher(hosts: &Hosts, host: &HostPlan) -> Launcher {
    host.launcher.unwrap_or(hosts.launcher)
}

/// `l2 (10.0.0.13)`.
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

/// Starts one node, or the client that reaches its machine.
fn one(hosts: &Hosts, host: &HostPlan, reach: &Reach<'_>, supervisor: &Supervisor) -> Result<Link, String> {
    let directory = host.directory.clone().unwrap_or_else(|| reach.directory.display().to_string());
    let node =
        |program: &str| ["exec", program, "node", "--stdio", "--directory", &directory].map(str::to_owned).to_vec();
    let deployed = format!("{DEPLOYED}/{}", reach.build);
    let command = match launcher(hosts, host) {
        Launcher::Local => node("quintain")[1..].to_vec(),
        Launcher::Ssh => {
            let there = if hosts.deploy { Some(deployed.as_str()) } else { host.quintain.as_deref() };
            let words = words::join(&node(there.unwrap_or("quintain")));
            ssh(host.ssh.as_deref().unwrap_or(&host.address), &words)
        }
    };
    let environment = Default::default();
    let launch =
        Launch { cpus: &[], words: &command, directory: Path::new("/"), environment: &environment, talk: true };
    let started = supervisor.spawn(&launch).and_then(|mut child| {
        let lacks = || std::io::Error::other("no pipe");
        let (input, output) = (child.input.take().ok_or_else(lacks)?, child.output.take().ok_or_else(lacks)?);
        Link::new(label(host), input, output, Some(child))
    });
    started.map_err(|error| format!("cannot start `{}`: {error}", command[0]))
}

/// A session that asks nothing, and whose end is noticed.
fn ssh(host: &str, command: &str) -> Vec<String> {
    let options = ["BatchMode=yes", "ConnectTimeout=10", "ServerAliveInterval=2", "ServerAliveCountMax=3"]
        .map(|option| ["-o", option]);
    let mut words = vec!["ssh", "-T"];
    words.extend(options.iter().flatten());
    words.extend(["--", host, command]);
    words.into_iter().map(str::to_owned).collect()
}

fn hello(link: &Link, deadline: Instant, reach: &Reach<'_>) -> Result<Hello, String> {
    let pick = |said| if let Said::Hello(hello) = said { Some(*hello) } else { None };
    link.wait(Some(deadline), reach.interrupted, pick).map_err(|end| match end {
        End::Lost(why) => why.strip_prefix(&format!("lost {}: ", link.name)).unwrap_or(&why).to_owned(),
        End::Failed(failure) => failure.message,
        End::Interrupted => "interrupted".to_owned(),
    })
}

fn cpus_of(host: &HostPlan, hello: &Hello) -> Result<Vec<study::record::Cpu>, String> {
    let all = &hello.host.cpus;
    let Some(wanted) = &host.cpus else { return Ok(all.clone()) };
    let missing = wanted.iter().copied().filter(|wanted| all.iter().all(|cpu| cpu.index != *wanted));
    let missing = missing.collect::<Vec<_>>();
    if missing.is_empty() {
        return Ok(all.iter().filter(|cpu| wanted.contains(&cpu.index)).copied().collect());
    }
    let has = cpus::format(&all.iter().map(|cpu| cpu.index).collect::<Vec<_>>());
    Err(format!("`cpus` names CPU {}, which is not there: it has {has}", cpus::format(&missing)))
}

/// Whether it can be worked with.
fn check(_host: &HostPlan, hello: &Hello, reach: &Reach<'_>) -> Result<(), String> {
    if hello.protocol != PROTOCOL || hello.build != reach.build {
        let short = |build: &str| build.chars().take(12).collect::<String>();
        return Err(format!(
            "has another build of quintain ({}, {}) than this one ({}): copy this binary there, or use `--deploy`",
            hello.version,
            short(&hello.build),
            short(&reach.build)
        ));
    }
    Ok(())
}
