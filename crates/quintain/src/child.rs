//! What the lab starts of this binary besides the generator: the step that becomes a subject, the watchdog, spinners.

use crate::cli::{ExecArgs, SpinArgs, SweepArgs};
use crate::message::{Done, Exit, Problem};
use crate::output;

/// Becomes a command, pinned, bound to the life of its parent.
pub(crate) fn exec(args: ExecArgs) -> Done {
    let cpus = args.cpus.map(|cpus| cpus.0).unwrap_or_default();
    let error = lab::exec::become_command(&cpus, args.parent, &args.command);
    let name = args.command[0].to_string_lossy().into_owned();
    // A program that is looked for on the path is one of the machine's: the lab takes this line for a row of the report, not a failure.
    if error.kind() == std::io::ErrorKind::NotFound && !name.contains('/') {
        output::message(&format!("cannot run here: `{name}` is not installed"));
    }
    Err(Problem::new(Exit::Machine, anyhow::Error::new(error).context(format!("cannot start `{name}`"))))
}

/// Kills what a lab that died had started.
pub(crate) fn watchdog() -> Done {
    // What ends the lab must not end what clears up after it.
    crate::signals::ignore()?;
    lab::watchdog::run(std::io::stdin().lock()).map_err(|error| Problem::new(Exit::Machine, error))?;
    Ok(Exit::Fine)
}

/// Removes worktrees when the lab has ended.
pub(crate) fn sweep(args: &SweepArgs) -> Done {
    lab::worktree::sweep(std::io::stdin().lock(), &args.repository, &args.folder);
    Ok(Exit::Fine)
}

/// Keeps processors awake at the lowest priority, until killed.
pub(crate) fn spin(args: SpinArgs) -> Done {
    let failed = |error: std::io::Error| Problem::new(Exit::Machine, anyhow::Error::new(error).context("cannot spin"));
    let spinners = args.cpus.0.into_iter().map(|cpu| {
        std::thread::spawn(move || -> std::io::Result<()> {
            net::thread::pin_current_thread(cpu)?;
            net::thread::sched_idle()?;
            loop {
                std::hint::spin_loop();
            }
        })
    });
    // A spinner returns only when it could not begin.
    for spinner in spinners.collect::<Vec<_>>() {
        if let Ok(Err(error)) = spinner.join() {
            return Err(failed(error));
        }
    }
    Ok(Exit::Fine)
}
