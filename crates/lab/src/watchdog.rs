//! `quintain watchdog`: kills everything that the lab has started when the lab dies. The kernel already kills the lab's
//! children (see [`crate::exec`]); the watchdog kills their descendants. It reads a pipe that only the lab writes to.
//! Each line is `+` and a thing to clean up, or `-` and a thing that has ended: `group PGID`, `mark NAME=VALUE` (in the
//! environment of all processes of the lab), `container NAME CLIENT`, `scratch PATH` or `worktrees REPOSITORY PATH`. At
//! the end of the pipe it kills the remaining groups, then all marked processes, because a process in its own session
//! has left its group but kept its environment. Containers are removed last, when their processes are dead.

use std::collections::BTreeSet;
use std::io::{self, BufRead, BufReader, Read};
use std::path::{Component, Path, PathBuf};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group, setsid};

use crate::process_start_and_stop::{Job, SCRATCH, kill_marked};

/// Reads `input` to its end, then cleans up everything registered. Fails if reading fails, but only after the cleanup.
/// Starts its own session, safe from Ctrl-C in the lab's terminal. Callers must ignore SIGINT, SIGTERM and SIGHUP.
pub fn run(input: impl Read) -> io::Result<()> {
    // This fails only for a group leader, which is not in the terminal's foreground group anyway.
    let _ = setsid();
    let mut left = BTreeSet::new();
    let read = read(input, &mut left);
    let of = |kind: &'static str| left.iter().filter_map(move |line| line.strip_prefix(kind));
    for group in of("group ").filter_map(group) {
        // The group may have ended by itself.
        let _ = kill_process_group(group, Signal::KILL);
    }
    of("mark ").filter(|mark| mark.contains('=')).for_each(kill_marked);
    of("scratch ").filter_map(scratch).for_each(|folder| remove_scratch(&folder));
    of("worktrees ").for_each(crate::git_worktrees::remove_all);
    of("container ").filter_map(Job::parse).for_each(|job| _ = job.remove(true));
    read
}

fn read(input: impl Read, left: &mut BTreeSet<String>) -> io::Result<()> {
    for line in BufReader::new(input).lines() {
        match line?.split_at_checked(1) {
            Some(("+", what)) => _ = left.insert(what.to_owned()),
            Some(("-", what)) => _ = left.remove(what),
            _ => {}
        }
    }
    Ok(())
}

/// Parses a process group above 1. Group 0 would be our own, and group 1 becomes `kill(-1)`, all processes (kill(2)).
fn group(text: &str) -> Option<Pid> {
    Pid::from_raw(text.parse().ok().filter(|group| *group > 1)?)
}

fn remove_scratch(folder: &Path) {
    // The killed processes that wrote there may take a moment to end.
    for _ in 0..100 {
        match std::fs::remove_dir_all(folder) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => std::thread::sleep(Duration::from_millis(20)),
            _ => break,
        }
    }
}

/// Returns the path of a directory from [`crate::process_start_and_stop::Supervisor::scratch`]; `None` for any other.
fn scratch(path: &str) -> Option<PathBuf> {
    let path = PathBuf::from(path);
    let is_ours = path.file_name()?.to_str()?.starts_with(SCRATCH);
    let is_plain = path.is_absolute() && path.components().all(|part| part != Component::ParentDir);
    (is_ours && is_plain).then_some(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(input: &str, left: &[&str]) {
        let mut registered = BTreeSet::new();
        read(input.as_bytes(), &mut registered).unwrap();
        assert_eq!(registered.iter().map(String::as_str).collect::<Vec<_>>(), left, "{input:?}");
    }

    #[test]
    fn keeps_unfinished_entries() {
        check("+group 70\n+group 71\n\n-group 70\n+mark A=1-\n+group 72\n", &["group 71", "group 72", "mark A=1-"]);
    }
    #[test]
    fn truncated_last_line_counts() {
        check("+group 70\n+group 71", &["group 70", "group 71"]);
    }
    #[test]
    fn never_kills_itself_or_all_processes() {
        assert_eq!(["0", "1", "-1", "x", ""].map(group), [None; 5]);
        assert_eq!(group("70"), Pid::from_raw(70));
    }
    #[test]
    fn removes_only_containers_of_labs() {
        let job =
            |name: &str| Job { client: vec!["podman".to_owned(), "--root=/a b".to_owned()], name: name.to_owned() };
        let (first, second) = (job("quintain-7-1-0-0"), job("quintain-7-1-0-1"));
        let lines = [first.line('+'), second.line('+'), first.line('-')];
        check(&lines.join("\n"), &[&second.line('+')[1..]]);
        let parsed = Job::parse(second.line('+').strip_prefix("+container ").unwrap()).unwrap();
        assert_eq!((parsed.name, parsed.client), (second.name, second.client));
        for line in ["db podman", "quintain-1", "quintain-1 ", "quintain-1 'x"] {
            assert!(Job::parse(line).is_none(), "{line}");
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
            format!("{}", ours.display()),
            format!("{}-gone", ours.display()),
            format!("{}", other.display()),
            format!("{}/../precious/../precious/../quintain-scratch-b", ours.display()),
            "quintain-scratch-relative".to_owned(),
        ];
        lines.iter().filter_map(|line| scratch(line)).for_each(|folder| remove_scratch(&folder));
        assert_eq!((ours.exists(), other.exists()), (false, true));
    }
}
