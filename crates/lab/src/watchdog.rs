//! `quintain watchdog`: kills everything the lab has started when the lab dies, however it dies. The kernel already
//! kills the lab's children (see [`crate::exec`]); the watchdog kills their descendants. It reads a pipe that only the
//! lab writes to: `+PGID` and `-PGID` for process groups, `mark NAME=VALUE` for the mark in the environment of all
//! processes of this lab, `container+NAME CLIENT` and `container-NAME CLIENT` for containers, `scratch PATH` for
//! directories. At the end of the pipe it kills the remaining groups, then all marked processes: one with its own
//! session has left its group but kept its environment. Containers are removed last, when their processes are dead.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, BufRead, BufReader, Read};
use std::path::{Component, Path, PathBuf};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group, setsid};

use crate::process::Job;
use crate::process::{SCRATCH, kill_marked};

/// Reads `input` to its end, then kills everything registered, even if `input` cannot be read, the only error. Starts
/// its own session, safe from Ctrl-C in the lab's terminal; the caller ignores SIGINT, SIGTERM and SIGHUP.
pub fn run(input: impl Read) -> io::Result<()> {
    // Fails only for a group leader, which is not in the terminal's foreground group anyway.
    let _ = setsid();
    let mut left = Registered::default();
    let read = left.read(input);
    for group in left.groups.iter().copied().filter_map(Pid::from_raw) {
        // The group may have ended by itself.
        let _ = kill_process_group(group, Signal::KILL);
    }
    if let Some(mark) = &left.mark {
        kill_marked(mark);
    }
    left.scratch.iter().for_each(|folder| remove_scratch(folder));
    for (name, client) in left.containers {
        Job { client, name }.remove(true);
    }
    read
}

#[derive(Debug, Default, PartialEq, Eq)]
struct Registered {
    groups: BTreeSet<i32>,
    mark: Option<String>,
    containers: BTreeMap<String, Vec<String>>,
    scratch: BTreeSet<PathBuf>,
}

fn remove_scratch(folder: &Path) {
    // The processes that wrote there were killed but may take a moment to end.
    for _ in 0..100 {
        match std::fs::remove_dir_all(folder) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => std::thread::sleep(Duration::from_millis(20)),
            _ => break,
        }
    }
}

impl Registered {
    fn read(&mut self, input: impl Read) -> io::Result<()> {
        for line in BufReader::new(input).lines() {
            let line = line?;
            // Group 0 would be our own; group 1 becomes `kill(-1)`, all processes (kill(2)).
            let group = |text: &str| text.parse::<i32>().ok().filter(|group| *group > 1);
            if let Some(mark) = line.strip_prefix("mark ") {
                self.mark = Some(mark.to_owned()).filter(|mark| mark.contains('='));
            } else if let Some(job) = line.strip_prefix("container+").and_then(Job::parse) {
                self.containers.insert(job.name, job.client);
            } else if let Some(job) = line.strip_prefix("container-").and_then(Job::parse) {
                self.containers.remove(&job.name);
            } else if let Some(folder) = line.strip_prefix("scratch ").and_then(scratch) {
                self.scratch.insert(folder);
            } else if let Some(group) = line.strip_prefix('+').and_then(group) {
                self.groups.insert(group);
            } else if let Some(group) = line.strip_prefix('-').and_then(group) {
                self.groups.remove(&group);
            }
        }
        Ok(())
    }
}

/// Accepts only directories created by [`crate::process::Supervisor::scratch`].
fn scratch(path: &str) -> Option<PathBuf> {
    let path = PathBuf::from(path);
    let is_ours = path.file_name()?.to_str()?.starts_with(SCRATCH);
    let is_plain = path.is_absolute() && path.components().all(|part| part != Component::ParentDir);
    (is_ours && is_plain).then_some(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn registered(input: &str) -> Registered {
        let mut registered = Registered::default();
        registered.read(input.as_bytes()).unwrap();
        registered
    }

    fn check(input: &str, groups: &[i32], mark: Option<&str>) {
        let left = registered(input);
        assert_eq!(left.groups.into_iter().collect::<Vec<_>>(), groups, "{input:?}");
        assert_eq!(left.mark.as_deref(), mark, "{input:?}");
    }

    #[test]
    fn keeps_groups_that_have_not_ended() {
        check("+70\n+71\n-70\n+72\n", &[71, 72], None);
    }
    #[test]
    fn truncated_last_line_counts() {
        check("+70\n+71", &[70, 71], None);
    }
    #[test]
    fn never_kills_itself_or_all_processes() {
        check("+0\n+1\n+-1\n+x\n\nmark \nmark all\n", &[], None);
    }
    #[test]
    fn tracks_containers_by_name() {
        let of =
            |name: &str| Job { client: vec!["podman".to_owned(), "--root=/a b".to_owned()], name: name.to_owned() };
        let (first, second) = (of("quintain-7-1-0-0"), of("quintain-7-1-0-1"));
        let lines = [first.line('+'), second.line('+'), first.line('-')];
        let left = registered(&lines.join("\n"));
        assert_eq!(left.containers, BTreeMap::from([(second.name, second.client)]));
        for line in ["container+db podman", "container+quintain-1", "container+quintain-1 ", "container+quintain-1 'x"]
        {
            assert_eq!(registered(line), Registered::default(), "{line}");
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
        registered(&lines.join("\n")).scratch.iter().for_each(|folder| remove_scratch(folder));
        assert_eq!((ours.exists(), other.exists()), (false, true));
    }
    #[test]
    fn mark() {
        check("mark A=1-\n+70\n", &[70], Some("A=1-"));
    }
}
