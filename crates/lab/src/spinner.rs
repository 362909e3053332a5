use std::path::Path;
use std::time::Duration;

use crate::cpus;
use crate::process::{Child, Launch, Supervisor};

pub(crate) struct Spinner {
    child: Child,
    pub(crate) cpus: Vec<u32>,
}

impl Spinner {
    pub(crate) fn start(used: &[u32], supervisor: &Supervisor, directory: &Path) -> Result<Self, String> {
        let words = ["quintain", "spin", "--cpus", &cpus::format(used)].map(str::to_owned);
        let launch = Launch { cpus: used, ..Launch::new(&words, directory) };
        let child = supervisor.spawn(launch).map_err(|error| error.to_string())?;
        let mut spinner = Self { child, cpus: used.to_vec() };
        // A spinner that cannot work ends at once; later trials check again.
        spinner.child.wait(Duration::from_millis(50));
        spinner.check()?;
        Ok(spinner)
    }

    pub(crate) fn check(&mut self) -> Result<(), String> {
        match self.child.wait(Duration::ZERO) {
            None => Ok(()),
            Some(exit) => Err(format!("{exit} {}", self.child.last_words()).trim().to_owned()),
        }
    }
}
