//! What `quintain watchdog` does: when the lab dies, however it dies, kill what it had started.
//!
//! The kernel already kills the lab's children (see [`crate::exec`]); the watchdog is for what those have started. It holds
//! the reading end of a pipe whose writing end only the lab has. A line says `+PGID` when a process group begins, `-PGID`
//! when it is gone, and `mark NAME=VALUE` what every process of this lab carries at the beginning of an entry of its
//! environment, and `container+NAME CLIENT` and `container-NAME CLIENT` likewise of containers. `scratch PATH` is a directory that may be left. At the end of the pipe the groups that are left are killed, then all that carries the mark: a process that
//! made a session of its own has left its group but kept its environment. Last go the containers, whose processes are dead by then.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, BufRead, BufReader, Read};
use std::path::{Component, PathBuf};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group, setsid};

use crate::container::Job;
use crate::process::{Charge, SCRATCH, kill_marked};

/// Reads `input` to its end, then kills what is registered. Makes a session of its own first, so that Ctrl-C in the
/// terminal of the lab does not reach it; who calls this ignores SIGINT, SIGTERM and SIGHUP.
///
/// Fails only when `input` cannot be read; what is registered is killed then too.
pub fn run(input: impl Read) -> io::Result<()> {
    // Fails only for the leader of a group, which then is no member of the terminal's foreground group either.
    let _ = setsid();
    let (left, read) = registered(input);
    for group in left.groups.iter().copied().filter_map(Pid::from_raw) {
        // It may have gone by itself.
        let _ = kill_process_group(group, Signal::KILL);
    }
    if let Some(mark) = &left.mark {
        kill_marked(mark);
    }
    left.remove_scratch();
    for (name, client) in left.containers {
        Job { client, name }.remove(true);
    }
    read
}

#[derive(Debug, Default, PartialEq, Eq)]
struct Registered {
    groups: BTreeSet<i32>,
    mark: Option<String>,
    /// The client of each by its name.
    containers: BTreeMap<String, Vec<String>>,
    scratch: BTreeSet<PathBuf>,
}

impl Registered {
    fn remove_scratch(&self) {
        for folder in &self.scratch {
            // Those that wrote there have been killed, and may need a moment to go.
            for _ in 0..100 {
                match std::fs::remove_dir_all(folder) {
                    Err(error) if error.kind() != io::ErrorKind::NotFound => {
                        std::thread::sleep(Duration::from_millis(20));
                    }
                    _ => break,
                }
            }
        }
    }
}

fn registered(input: impl Read) -> (Registered, io::Result<()>) {
    let mut registered = Registered::default();
    for line in BufReader::new(input).lines() {
        let line = match line {
            Ok(line) => line,
            Err(error) => return (registered, Err(error)),
        };
        // Group 0 would be our own, group 1 everybody's (kill(2)).
        let group = |text: &str| text.parse::<i32>().ok().filter(|group| *group > 1);
        if let Some(mark) = line.strip_prefix("mark ") {
            registered.mark = Some(mark.to_owned()).filter(|mark| mark.contains('='));
        } else if let Some(job) = line.strip_prefix("container+").and_then(Job::parse) {
            registered.containers.insert(job.name, job.client);
        } else if let Some(job) = line.strip_prefix("container-").and_then(Job::parse) {
            registered.containers.remove(&job.name);
        } else if let Some(folder) = line.strip_prefix("scratch ").and_then(scratch) {
            registered.scratch.insert(folder);
        } else if let Some(group) = line.strip_prefix('+').and_then(group) {
            registered.groups.insert(group);
        } else if let Some(group) = line.strip_prefix('-').and_then(group) {
            registered.groups.remove(&group);
        }
    }
    (registered, Ok(()))
}

/// A directory that [`crate::process::Supervisor::scratch`] has made, and no other.
fn scratch(path: &str) -> Option<PathBuf> {
    let path = PathBuf::from(path);
    let is_ours = path.file_name()?.to_str()?.starts_with(SCRATCH);
    let is_plain = path.is_absolute() && path.components().all(|part| part != Component::ParentDir);
    (is_ours && is_plain).then_some(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(input: &str, groups: &[i32], mark: Option<&str>) {
        let (left, _) = registered(input.as_bytes());
        assert_eq!(left.groups.into_iter().collect::<Vec<_>>(), groups, "{input:?}");
        assert_eq!(left.mark.as_deref(), mark, "{input:?}");
    }

    #[test]
    fn what_began_and_did_not_end() {
        check("+70\n+71\n-70\n+72\n", &[71, 72], None);
    }
    #[test]
    fn a_line_cut_off_still_counts() {
        check("+70\n+71", &[70, 71], None);
    }
    #[test]
    fn never_ourselves_nor_everybody() {
        check("+0\n+1\n+-1\n+x\n\nmark \nmark all\n", &[], None);
    }
    #[test]
    fn containers_by_name() {
        let of =
            |name: &str| Job { client: vec!["podman".to_owned(), "--root=/a b".to_owned()], name: name.to_owned() };
        let (first, second) = (of("quintain-7-1-0-0"), of("quintain-7-1-0-1"));
        let lines = [first.line('+'), second.line('+'), first.line('-')];
        let (left, _) = registered(lines.join("\n").as_bytes());
        assert_eq!(left.containers, BTreeMap::from([(second.name, second.client)]));
        for line in ["container+db podman", "container+quintain-1", "container+quintain-1 ", "container+quintain-1 'x"]
        {
            assert_eq!(registered(line.as_bytes()).0, Registered::default(), "{line}");
        }
    }
    #[test]
    fn scratch_directories_are_removed_and_no_others() {
        let folder = tempfile::tempdir().unwrap();
        let [ours, other] = ["quintain-scratch-a", "precious"].map(|name| folder.path().join(name));
        for path in [&ours, &other] {
            std::fs::create_dir_all(path.join("ompi.host.0")).unwrap();
        }
        let lines = [
            format!("scratch {}", ours.display()),
            format!("scratch {}-gone", ours.display()),
            format!("scratch {}", other.display()),
            format!("scratch {}/../precious/../precious/../quintain-scratch-b", ours.display()),
            "scratch quintain-scratch-relative".to_owned(),
        ];
        registered(lines.join("\n").as_bytes()).0.remove_scratch();
        assert_eq!((ours.exists(), other.exists()), (false, true));
    }
    #[test]
    fn mark() {
        check("mark A=1-\n+70\n", &[70], Some("A=1-"));
    }
}
