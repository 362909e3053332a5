//! A process with everything it starts, as one family that ends with this program at the latest: its group, and whoever left that but carries
//! its mark in the environment, which a new session does not change.

use std::fs;
use std::io::Read;
use std::net::{Ipv4Addr, TcpListener};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use rustix::process::{Pid, Signal, getppid, kill_process, kill_process_group, set_parent_process_death_signal};

/// The hidden verb that this program starts itself with to become a command.
pub(crate) const BOUND: &str = "become-bound";

/// Name of the environment variable that carries the mark of a family.
const MARK: &str = "XTASK_CHILD";

/// How often a condition is looked at that nothing reports.
const GLANCE: Duration = Duration::from_millis(2);

/// What is kept of the standard error of a process, bytes.
const LAST_WORDS: usize = 4096;

/// Ties this process to its parent, so that an interrupted or killed suite leaves no server behind, and becomes a command.
/// The arguments are the parent's process id and the command, for a shell.
pub(crate) fn become_bound(arguments: &[String]) -> Result<(), String> {
    let [parent, command] = arguments else { return Err(format!("usage: xtask {BOUND} PARENT COMMAND")) };
    set_parent_process_death_signal(Some(Signal::KILL)).map_err(|error| format!("prctl: {error}"))?;
    let orphan = getppid().is_none_or(|pid| pid.as_raw_nonzero().to_string() != *parent);
    if orphan {
        return Err("the parent has ended".to_owned());
    }
    Err(format!("{command}: {}", Command::new("sh").args(["-c", &format!("exec {command}")]).exec()))
}

/// A running process; dropping it kills its whole family.
pub(crate) struct Process {
    child: Child,
    group: Pid,
    /// The entry of the environment that its family has, and nobody else.
    mark: String,
    last_words: Arc<Mutex<Vec<u8>>>,
}

impl Process {
    /// Starts a simple command (one that a shell could `exec`) in a folder.
    pub(crate) fn start(command: &str, directory: &Path) -> Result<Process, String> {
        static STARTED: AtomicU32 = AtomicU32::new(0);
        let (own, number) = (std::process::id(), STARTED.fetch_add(1, Ordering::Relaxed));
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos();
        let mark = format!("{own}-{since}-{number}");
        let program = std::env::current_exe().map_err(|error| format!("the path of this program: {error}"))?;
        let mut child = Command::new(program)
            .args([BOUND, &std::process::id().to_string(), command])
            .current_dir(directory)
            .env(MARK, &mark)
            .process_group(0)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(|error| format!("cannot start `{command}`: {error}"))?;
        let last_words = Arc::new(Mutex::new(Vec::new()));
        if let Some(mut pipe) = child.stderr.take() {
            let kept = Arc::clone(&last_words);
            // Ends with the pipe. It is not joined: a process that left the group might hold the pipe for ever.
            thread::spawn(move || {
                let mut bytes = [0; LAST_WORDS];
                while let Ok(got @ 1..) = pipe.read(&mut bytes) {
                    let mut kept = kept.lock().expect("nothing panics while it holds the lock");
                    kept.extend_from_slice(&bytes[..got]);
                    let excess = kept.len().saturating_sub(LAST_WORDS);
                    kept.drain(..excess);
                }
            });
        }
        let group = Pid::from_child(&child);
        Ok(Process { child, group, mark: format!("{MARK}={mark}"), last_words })
    }

    /// Its process id, which becoming the command does not change.
    pub(crate) fn id(&self) -> i32 {
        self.group.as_raw_nonzero().get()
    }

    /// How it ended, if it did.
    pub(crate) fn ended(&mut self) -> Option<ExitStatus> {
        self.child.try_wait().ok().flatten()
    }

    /// Waits until it ended; `None` after `limit`.
    pub(crate) fn wait(&mut self, limit: Duration) -> Option<ExitStatus> {
        until(limit, || self.ended())
    }

    /// The processes of its family that still run. A zombie has ended: only its parent has not asked how.
    pub(crate) fn members(&self) -> Vec<Pid> {
        // What has ended has no environment any more.
        let marked = |pid: &Pid| {
            let environment = fs::read(format!("/proc/{}/environ", pid.as_raw_nonzero())).unwrap_or_default();
            environment.split(|byte| *byte == 0).any(|entry| entry == self.mark.as_bytes())
        };
        let group = self.group.as_raw_nonzero().to_string();
        let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
        let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok().and_then(Pid::from_raw));
        pids.filter(|pid| {
            let stat = fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_nonzero())).unwrap_or_default();
            // After the name, which may hold anything, in brackets: state, parent, group.
            let mut fields = stat.rsplit(") ").next().unwrap_or_default().split(' ');
            fields.next().is_some_and(|state| !["Z", "X"].contains(&state))
                && (fields.nth(1) == Some(&group) || marked(pid))
        })
        .collect()
    }

    /// The end of its standard error.
    pub(crate) fn last_words(&self) -> String {
        let kept = self.last_words.lock().expect("nothing panics while it holds the lock");
        String::from_utf8_lossy(&kept).trim().to_owned()
    }

    /// What stands behind `prefix` on a line of its last words. Its standard error may arrive a little after its end.
    pub(crate) fn confession(&self, prefix: &str) -> Option<String> {
        let said =
            || self.last_words().lines().find_map(|line| line.strip_prefix(prefix).map(|rest| rest.trim().to_owned()));
        until(Duration::from_millis(100), said)
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // The kernel may give the number of a group away once nothing is left of it.
        if self.ended().is_none() || !self.members().is_empty() {
            let _ = kill_process_group(self.group, Signal::KILL);
            // One that forks while we look may slip through once; with a bound, because one that forks for ever may win for ever.
            for _ in 0..10 {
                let left = self.members();
                if left.is_empty() {
                    break;
                }
                for pid in left {
                    let _ = kill_process(pid, Signal::KILL);
                }
            }
            let _ = self.child.wait();
        }
    }
}

/// A port that nobody listens on.
pub(crate) fn free_port() -> Result<u16, String> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).and_then(|listener| listener.local_addr());
    listener.map(|address| address.port()).map_err(|error| format!("error: no free port: {error}"))
}

/// Looks until there is something to see; `None` after `limit`.
pub(crate) fn until<T>(limit: Duration, mut look: impl FnMut() -> Option<T>) -> Option<T> {
    let start = Instant::now();
    loop {
        let seen = look();
        if seen.is_some() || start.elapsed() >= limit {
            return seen;
        }
        thread::sleep(GLANCE);
    }
}
