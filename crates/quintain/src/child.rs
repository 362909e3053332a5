//! Hidden commands that the lab starts from this binary: the step that becomes a server, the
//! watchdog and spinners.

use std::ffi::OsString;

use crate::cli::Cpus;
use crate::message::{Done, Exit, because, machine};
use crate::output;

pub(crate) fn exec(cpus: Option<Cpus>, parent: Option<u32>, command: &[OsString]) -> Done {
    let cpus = cpus.map(|cpus| cpus.0).unwrap_or_default();
    let error = lab::exec::become_command(&cpus, parent, command);
    let name = command[0].to_string_lossy().into_owned();
    // A program searched for in `PATH` belongs to the machine. The lab reads this line and marks
    // the row as not runnable instead of failed.
    if error.kind() == std::io::ErrorKind::NotFound && !name.contains('/') {
        output::message(&format!("cannot run here: `{name}` is not installed"));
    }
    Err(because(Exit::Machine, format!("cannot start `{name}`"))(error))
}

/// Kills the processes left behind by a lab that died.
pub(crate) fn watchdog() -> Done {
    // Signals that end the lab must not end its cleanup.
    crate::signals::ignore()?;
    lab::watchdog::run(std::io::stdin().lock()).map_err(machine)?;
    Ok(Exit::Fine)
}

/// Keeps CPUs awake at the lowest priority, until killed.
pub(crate) fn spin(cpus: Cpus) -> Done {
    let spinners = cpus.0.into_iter().map(|cpu| {
        std::thread::spawn(move || -> std::io::Result<()> {
            net::thread::set_affinity(&[cpu])?;
            net::thread::sched_idle()?;
            loop {
                std::hint::spin_loop();
            }
        })
    });
    // A spinner returns only if it could not start.
    for spinner in spinners.collect::<Vec<_>>() {
        if let Ok(Err(error)) = spinner.join() {
            return Err(because(Exit::Machine, "cannot spin")(error));
        }
    }
    Ok(Exit::Fine)
}
