//! `quintain node`: works for a lab on another machine.

use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::time::Duration;

use lab::cluster::tls::{self, Pipes};
use study::node::{Hello, PROTOCOL};

use crate::cli::NodeArgs;
use crate::cluster::build;
use crate::message::{Done, Exit, Result, exe, machine, usage};
use crate::{built_in, doctor, output};

/// Time limit for joining, after which no lab can still be listening.
const JOINING: Duration = Duration::from_secs(60);

/// Works for a lab until it is gone.
pub(crate) fn run(args: &NodeArgs) -> Done {
    let exe = exe()?;
    // Connect first, before slower work, because the lab is waiting.
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
    let is_built_in = args.directory == Path::new(built_in::DIRECTORY);
    let directory = if is_built_in { built_in::unpack()? } else { args.directory.clone() };
    let host = lab::host::facts(&directory);
    let hello = Hello {
        protocol: PROTOCOL,
        rank,
        version: env!("CARGO_PKG_VERSION").to_owned(),
        build: build(&exe)?,
        doctor: doctor::examine(&host),
        interfaces: lab::host::interfaces(),
        boot_id: lab::cluster::boot_id(),
        host,
    };
    let options = lab::cluster::node::Options { exe, directory, probe: lab::probe::run };
    lab::cluster::node::serve(input, output, &options, hello).map_err(machine)?;
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
    let pipes = tls::join(address, fingerprint, rank, &ticket, JOINING);
    Ok((rank, pipes.map_err(machine)?))
}
