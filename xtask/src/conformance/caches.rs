//! The caches that are checked without being named.

use std::path::Path;

use study::verification::{CaseOutcome, CaseResult, Suite};

use super::{Outcome, chosen};

/// The servers that are checked unless one is named: ours on both backends, and those whose protocols it speaks, where they are installed.
pub(super) fn standard() -> Result<Vec<Standard>, String> {
    let ours = crate::built::quintain()?;
    let ours =
        |backend| format!("'{}' serve cache --threads 2 --backend {backend} --drain 300ms -p {{port}}", ours.display());
    // memcached changes to another user where it is root.
    let user = if rustix::process::geteuid().is_root() { " -u nobody" } else { "" };
    let memcached = format!("memcached -l 127.0.0.1 -c 4096{user} -p {{port}}");
    let redis = "redis-server --save '' --port {port}".to_owned();
    let slow = "memcached looks after SIGTERM once a second, and the contract gives it one";
    Ok(vec![
        Standard { name: "serve cache, epoll", command: ours("epoll"), spared: &[], why: "" },
        Standard { name: "serve cache, io_uring", command: ours("io_uring"), spared: &[], why: "" },
        Standard { name: "memcached", command: memcached, spared: &["sigterm", "sigterm-idle", "restart"], why: slow },
        Standard { name: "redis-server", command: redis, spared: &[], why: "" },
    ])
}

/// A server that is checked without being asked for.
pub(super) struct Standard {
    pub(super) name: &'static str,
    pub(super) command: String,
    /// The cases that it is not held to, and why.
    spared: &'static [&'static str],
    why: &'static str,
}

impl Standard {
    /// Checks it, where it is installed.
    pub(super) fn check(&self, names: &[String], root: &Path) -> Outcome {
        if !is_installed(&self.command) {
            return Outcome::Skipped("not installed".to_owned());
        }
        let (spared, held): (Vec<String>, Vec<String>) =
            chosen(Suite::Cache, names, &[]).into_iter().partition(|name| self.spared.contains(&name.as_str()));
        match super::check(Suite::Cache, &self.command, root, &held, &[]) {
            Outcome::Checked(mut cases) => {
                cases.extend(spared.into_iter().map(|name| CaseResult {
                    promise: name.clone(),
                    name,
                    outcome: CaseOutcome::Skipped { reason: self.why.to_owned() },
                    elapsed_ns: 0,
                }));
                Outcome::Checked(cases)
            }
            other => other,
        }
    }
}

/// Whether a program is somewhere in `PATH`; one of a path of its own is.
fn is_installed(command: &str) -> bool {
    let name = command.split(' ').next().unwrap_or_default();
    let paths = std::env::var_os("PATH").unwrap_or_default();
    name.starts_with('\'') || std::env::split_paths(&paths).any(|folder| folder.join(name).is_file())
}
