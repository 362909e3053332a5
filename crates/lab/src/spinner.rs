use std::path::Path;
use std::time::Duration;

use crate::cpus;
use crate::process::{Child, Launch, Supervisor};

#[derive(Debug)]
pub(crate) struct Spinner(Child);

impl Spinner {
    pub(crate) fn start(used: &[u32], supervisor: &Supervisor, directory: &Path) -> Result<Self, String> {
        let words = ["quintain", "spin", "--cpus", &cpus::format(used)].map(str::to_owned);
        let launch = Launch { cpus: used, ..Launch::new(&words, directory) };
        let mut spinner = Self(supervisor.spawn(launch).map_err(|error| error.to_string())?);
        // A spinner that cannot work ends at once; later trials check again.
        spinner.0.wait(Duration::from_millis(50));
        spinner.check()?;
        Ok(spinner)
    }

    pub(crate) fn check(&mut self) -> Result<(), String> {
        match self.0.wait(Duration::ZERO) {
            None => Ok(()),
            Some(exit) => Err(format!("{exit} {}", self.0.last_words()).trim().to_owned()),
        }
    }
}
