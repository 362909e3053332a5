//! Hidden commands that the lab starts from this binary: `exec`, `watchdog`, `spin`, `node` and `load --spec`.

use std::ffi::OsString;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::path::Path;
use std::sync::atomic::Ordering;
use std::sync::{Arc, mpsc};
use std::time::Duration;

use lab::Channel;
use lab::cluster::join;
use load::{Gate, LoadError};
use serde::Deserialize;
use serde_json::value::RawValue;
use study::Json;
use study::generator_messages::{HOLD_MAX, Heard, Told};
use study::node_messages::{Hello, PROTOCOL};
use study::spec::LoadSpec;

use crate::cli::{Cpus, NodeArgs};
use crate::command_result::{Done, Exit, Result, because, cannot, exe, machine, usage};
use crate::start_cluster::build;
use crate::{built_in, doctor, os_limits, output, signals};

pub(crate) fn exec(cpus: Option<Cpus>, parent: Option<u32>, command: &[OsString]) -> Done {
    let Err(error) = lab::exec::become_command(&cpus.unwrap_or_default(), parent, command);
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
    let (rank, channel) = match (&args.join, &args.lab) {
        (Some(address), Some(fingerprint)) => {
            let (rank, channel) = join(args, *address, fingerprint)?;
            (Some(rank), channel)
        }
        _ => (None, Channel::of_stdio().map_err(machine)?),
    };
    let lab = lab::cluster::order_execution::Lab::new(channel).map_err(machine)?;
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

fn join(args: &NodeArgs, address: SocketAddr, fingerprint: &str) -> Result<(u32, Channel)> {
    let usage = |text: &str, hint: &str| usage(text).hint(hint);
    let rank = args.rank.or_else(|| lab::cluster::rank(&output::variable));
    let rank = rank.ok_or_else(|| usage("no launcher says which of the nodes this is", "`--rank N`, from 0"))?;
    let ticket = output::variable(lab::cluster::TICKET);
    let ticket = ticket.ok_or_else(|| {
        usage("the environment has no `QUINTAIN_TICKET`", "the lab sets it for the launcher, which must pass it on")
    })?;
    let channel = join::join(address, fingerprint, rank, &ticket, JOINING);
    Ok((rank, channel.map_err(machine)?))
}

/// Runs as the generator process of the lab, with the messages of [`study::generator_messages`].
pub(crate) fn generator(path: &str) -> Done {
    let mut input: Box<dyn BufRead + Send> = match path {
        "-" => Box::new(BufReader::new(std::io::stdin())),
        _ => Box::new(BufReader::new(File::open(path).map_err(cannot(Exit::Usage, "read", Path::new(path)))?)),
    };
    let end = |told: Told, exit: Exit| output::json_line(told.to_json()).map(|()| exit);
    let spec = match value::<LoadSpec>(&mut input) {
        Ok(spec) => spec,
        Err(error) => return end(Told::Error(format!("cannot parse the specification: {error}")), Exit::Usage),
    };
    if let Err(problem) = os_limits::make_room(&spec) {
        return end(Told::Error(problem.to_string()), Exit::Machine);
    }
    signals::watch_interrupts()?;
    // The thread below ends when the input or the process ends. After a specification in a file, the input is empty.
    let (sender, read) = mpsc::channel();
    let gate = Arc::new(Gate::default());
    let (lab_gate, mut waits) = (gate.clone(), spec.gate);
    std::thread::spawn(move || {
        while let Ok(heard) = value(&mut input) {
            match heard {
                Heard::Go { at_ns } => {
                    lab_gate.open(at_ns);
                    waits = false;
                }
                Heard::Read {} if sender.send(()).is_err() => return,
                Heard::Read {} => {}
            }
        }
        if waits {
            signals::INTERRUPTED.store(true, Ordering::Relaxed);
        }
    });
    let mut tell = |told: Told| {
        let is_over = matches!(told, Told::Measured(_));
        // A failed write is ignored: it means that the lab is gone, and this process ends with the lab.
        let _ = output::json_line(told.to_json());
        if is_over {
            // Connections stay open until the lab has read the line or is gone, or until the timeout.
            let _ = read.recv_timeout(HOLD_MAX);
        }
    };
    match load::run_with_events(&spec, &mut tell, Some(&gate), &signals::INTERRUPTED) {
        Ok(measurement) => end(Told::Measurement(Box::new(measurement)), Exit::Fine),
        Err(error @ LoadError::Unreachable { .. }) => end(Told::Unreachable(error.to_string()), Exit::Subject),
        Err(error) => end(Told::Error(error.to_string()), Exit::Machine),
    }
}

/// Reads exactly one JSON object and nothing after it.
fn value<T: Json>(input: &mut impl BufRead) -> serde_json::Result<T> {
    T::from_json(Box::<RawValue>::deserialize(&mut serde_json::Deserializer::from_reader(input))?.get())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_need_no_line_breaks_between_them() {
        let mut input = BufReader::new(&b"{\n  \"go\": {\"at_ns\": 1}\n}{\"read\":{}}\n"[..]);
        assert_eq!(value::<Heard>(&mut input).unwrap(), Heard::Go { at_ns: 1 });
        assert_eq!(value::<Heard>(&mut input).unwrap(), Heard::Read {});
        assert!(value::<Heard>(&mut input).unwrap_err().is_eof());
    }
}
