//! Handling of SIGINT, SIGTERM and SIGHUP.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use crate::message::{Exit, Problem};

/// A flag set by Ctrl-C, SIGTERM or a closed terminal. A second Ctrl-C ends the process at once,
/// and the watchdog cleans up.
pub(crate) fn interrupted() -> Result<Arc<AtomicBool>, Problem> {
    let flag = Arc::new(AtomicBool::new(false));
    let set = || -> std::io::Result<()> {
        let mut asked = Signals::new([SIGINT])?;
        let end = move || {
            if asked.forever().nth(1).is_some() {
                signal_hook::low_level::exit(130);
            }
        };
        std::thread::Builder::new().name("signals".to_owned()).spawn(end)?;
        for signal in [SIGINT, SIGTERM, SIGHUP] {
            signal_hook::flag::register(signal, Arc::clone(&flag))?;
        }
        Ok(())
    };
    set().map_err(failed)?;
    Ok(flag)
}

pub(crate) fn ignore() -> Result<(), Problem> {
    for signal in [SIGINT, SIGTERM, SIGHUP] {
        signal_hook::flag::register(signal, Arc::default()).map_err(failed)?;
    }
    Ok(())
}

/// Calls `ask` on every SIGINT or SIGTERM, with whether an earlier one came.
pub(crate) fn on_end(ask: impl Fn(bool) + Send + 'static) -> Result<(), Problem> {
    watch(&[SIGINT, SIGTERM], move |count| ask(count > 0))
}

pub(crate) fn on_hangup(ask: impl Fn() + Send + 'static) -> Result<(), Problem> {
    watch(&[SIGHUP], move |_| ask())
}

/// Calls `ask` on every signal, with the number of earlier ones.
fn watch(signals: &[i32], ask: impl Fn(usize) + Send + 'static) -> Result<(), Problem> {
    let mut signals = Signals::new(signals).map_err(failed)?;
    let wait = move || signals.forever().enumerate().for_each(|(count, _)| ask(count));
    std::thread::Builder::new().name("signals".to_owned()).spawn(wait).map_err(failed)?;
    Ok(())
}

fn failed(error: std::io::Error) -> Problem {
    Problem::new(Exit::Machine, anyhow::Error::new(error).context("cannot watch for signals"))
}

pub(crate) fn is_set(flag: &AtomicBool) -> bool {
    flag.load(Ordering::Relaxed)
}
