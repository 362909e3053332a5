//! Hidden commands that the lab starts from this binary: `exec`, `watchdog`, `spin` and `node`.

use std::ffi::OsString;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use lab::cluster::join::{self, Pipes};
use study::node_messages::{Hello, PROTOCOL};

use crate::cli::{Cpus, NodeArgs};
use crate::command_result::{Done, Exit, Result, because, exe, machine, usage};
use crate::start_cluster::build;
use crate::{built_in, doctor, output, signals};

pub(crate) fn exec(cpus: Option<Cpus>, parent: Option<u32>, command: &[OsString]) -> Done {
    let error = lab::exec::become_command(&cpus.unwrap_or_default(), parent, command);
    let name = command[0].to_string_lossy().into_owned();
    // The lab reads this line and marks the row as not runnable, because the machine lacks the program.
    if error.kind() == std::io::ErrorKind::NotFound && !name.contains('/') {
        output::message(&format!("cannot run here: `{name}` is not installed"));
    }
    Err(because(Exit::Machine, format!("cannot start `{name}`"))(error))
}

pub(crate) fn watchdog() -> Done {
    // The signals that end the lab must not end its cleanup.
    signals::register(&Arc::default())?;
    lab::watchdog::run(std::io::stdin().lock()).map_err(machine)?;
    Ok(Exit::Fine)
}

/// Keeps CPUs awake at the lowest priority until killed.
pub(crate) fn spin(cpus: Cpus) -> Done {
    let spinners = cpus.into_iter().map(|cpu| {
        std::thread::spawn(move || -> std::io::Result<()> {
            net::thread_and_process::set_affinity(&[cpu])?;
            net::thread_and_process::sched_idle()?;
            loop {
                std::hint::spin_loop();
            }
        })
    });
    for spinner in spinners.collect::<Vec<_>>() {
        if let Ok(Err(error)) = spinner.join() {
            return Err(because(Exit::Machine, "cannot spin")(error));
        }
    }
    Ok(Exit::Fine)
}

/// Time limit for joining a lab, which does not listen for longer.
const JOINING: Duration = Duration::from_secs(60);

pub(crate) fn node(args: &NodeArgs) -> Done {
    let exe = exe()?;
    // The lab is waiting, so connecting comes before slower work.
    let (input, output, rank): (OwnedFd, OwnedFd, _) = match (&args.join, &args.lab) {
        (Some(address), Some(fingerprint)) => {
            let (rank, pipes) = join(args, *address, fingerprint)?;
            (pipes.input.into(), pipes.output.into(), Some(rank))
        }
        _ => {
            let pipe = |file: &dyn std::os::fd::AsFd| file.as_fd().try_clone_to_owned().map_err(machine);
            (pipe(&std::io::stdin())?, pipe(&std::io::stdout())?, None)
        }
    };
    let lab = lab::cluster::order_execution::Lab::new(input, output).map_err(machine)?;
    let is_built_in = args.directory == Path::new(built_in::DIRECTORY);
    let directory = if is_built_in { built_in::unpack()? } else { args.directory.clone() };
    let host = lab::host_facts::facts(&directory);
    let hello = Hello {
        protocol: PROTOCOL,
        rank,
        version: env!("CARGO_PKG_VERSION").to_owned(),
        build: build(&exe)?,
        doctor: doctor::examine(&host),
        interfaces: lab::host_facts::interfaces(),
        boot_id: lab::cluster::boot_id(),
        host,
    };
    lab::cluster::order_execution::serve(lab, &exe, &directory, hello).map_err(machine)?;
    Ok(Exit::Fine)
}

fn join(args: &NodeArgs, address: SocketAddr, fingerprint: &str) -> Result<(u32, Pipes)> {
    let usage = |text: &str, hint: &str| usage(text).hint(hint);
    let rank = args.rank.or_else(|| lab::cluster::rank(&output::variable));
    let rank = rank.ok_or_else(|| usage("no launcher says which of the nodes this is", "`--rank N`, from 0"))?;
    let ticket = output::variable(lab::cluster::TICKET);
    let ticket = ticket.ok_or_else(|| {
        usage("the environment has no `QUINTAIN_TICKET`", "the lab sets it for the launcher, which must pass it on")
    })?;
    let pipes = join::join(address, fingerprint, rank, &ticket, JOINING);
    Ok((rank, pipes.map_err(machine)?))
}
