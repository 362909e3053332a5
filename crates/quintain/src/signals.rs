//! Handling of SIGINT, SIGTERM and SIGHUP.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, LazyLock};

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use crate::command_result::{Exit, Result, because};

const FAILED: &str = "cannot watch for signals";

/// Whether SIGINT, SIGTERM or SIGHUP has arrived since [`watch_interrupts`] was called.
pub(crate) static INTERRUPTED: LazyLock<Arc<AtomicBool>> = LazyLock::new(Arc::default);

pub(crate) fn is_interrupted() -> bool {
    INTERRUPTED.load(Ordering::Relaxed)
}

/// Makes signals set [`INTERRUPTED`]. A second Ctrl-C ends the process at once, and the watchdog cleans up.
pub(crate) fn watch_interrupts() -> Result<()> {
    watch(&[SIGINT], |count| {
        if count == 1 {
            signal_hook::low_level::exit(130);
        }
    })?;
    register(&INTERRUPTED)
}

/// Makes signals set `flag` instead of ending the process.
pub(crate) fn register(flag: &Arc<AtomicBool>) -> Result<()> {
    for signal in [SIGINT, SIGTERM, SIGHUP] {
        signal_hook::flag::register(signal, Arc::clone(flag)).map_err(because(Exit::Machine, FAILED))?;
    }
    Ok(())
}

/// Calls `ask` at every SIGINT or SIGTERM. The argument is whether an earlier signal has arrived.
pub(crate) fn on_end(ask: impl Fn(bool) + Send + 'static) -> Result<()> {
    watch(&[SIGINT, SIGTERM], move |count| ask(count > 0))
}

/// Calls `ask` in a new thread at every signal, with the number of earlier signals. Fails if signals cannot be watched.
pub(crate) fn watch(signals: &[i32], ask: impl Fn(usize) + Send + 'static) -> Result<()> {
    let mut signals = Signals::new(signals).map_err(because(Exit::Machine, FAILED))?;
    let wait = move || signals.forever().enumerate().for_each(|(count, _)| ask(count));
    std::thread::Builder::new().name("signals".to_owned()).spawn(wait).map_err(because(Exit::Machine, FAILED))?;
    Ok(())
}
