//! Starts the process that keeps CPUs awake (`quintain spin`).

use std::path::Path;
use std::time::Duration;

use crate::process_start_and_stop::{Child, Launch, Supervisor};

pub(crate) struct Spinner {
    child: Child,
    cpus: Vec<u32>,
}

impl Spinner {
    /// Keeps `cpus` awake: starts spinners, or checks that `running` ones are alive. Fails with their last output.
    pub(crate) fn keep(
        running: &mut Option<Self>,
        cpus: &[u32],
        supervisor: &Supervisor,
        directory: &Path,
    ) -> Result<(), String> {
        let mut spinner = match running.take().filter(|spinner| spinner.cpus == cpus) {
            Some(spinner) => spinner,
            None => {
                let words = ["quintain", "spin", "--cpus", &crate::cpu_list::format(cpus)].map(str::to_owned);
                let launch = Launch { cpus, ..Launch::new(&words, directory) };
                let mut child = supervisor.spawn(launch).map_err(|error| error.to_string())?;
                // A spinner that cannot work ends at once. Later trials check again.
                child.wait(Duration::from_millis(50));
                Self { child, cpus: cpus.to_vec() }
            }
        };
        if let Some(exit) = spinner.child.wait(Duration::ZERO) {
            return Err(format!("{exit} {}", spinner.child.last_words()).trim().to_owned());
        }
        *running = Some(spinner);
        Ok(())
    }
}
