//! Starts all processes of the lab through `quintain exec`, each in its own process group, and registers them with the
//! watchdog. The kernel kills them when the lab dies. An environment variable marks descendants outside the group.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::rc::Rc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::process::{
    Pid, PidfdFlags, Signal, WaitId, WaitIdOptions, kill_process, kill_process_group, pidfd_open, pidfd_send_signal,
    waitid,
};
use study::shell_words;

use crate::lab_clocks;
use crate::output_tail::Tail;
use crate::procfs::{self, Stat};
use crate::trial_end_reason::saying;

const PROC: &str = "/proc";
pub(crate) const MARK: &str = "QUINTAIN_CHILD";

/// Environment variable that passes the secret of a cluster to its nodes.
pub const TICKET: &str = "QUINTAIN_TICKET";

const LAST_WORDS: Duration = Duration::from_millis(500);

/// Creates a command. Other modules must call this function, so that no process starts unsupervised.
#[expect(clippy::disallowed_methods, reason = "this module owns the starting of processes")]
pub(crate) fn command(program: impl AsRef<OsStr>) -> Command {
    Command::new(program)
}

pub(crate) struct Supervisor {
    exe: PathBuf,
    watchdog: Rc<Watchdog>,
    /// Prefix of the value of [`MARK`], unique to this supervisor; each child adds its number.
    mark: String,
    next: Cell<u32>,
    /// Process that keeps these CPUs awake (`quintain spin`).
    spinner: RefCell<Option<(Vec<u32>, Child)>>,
}

pub(crate) const SCRATCH: &str = "quintain-scratch-";

/// A container, which outlives its client unless the watchdog removes it.
pub(crate) struct Job {
    pub(crate) client: Vec<String>,
    pub(crate) name: String,
}

impl Job {
    /// Parses a watchdog line after `container `: the container's name, then the client's command. `None` if invalid.
    pub(crate) fn parse(text: &str) -> Option<Job> {
        let (name, client) = text.split_once(' ')?;
        let client = shell_words::split(client).ok().filter(|client| !client.is_empty())?;
        name.starts_with("quintain-").then(|| Job { client, name: name.to_owned() })
    }

    /// Builds the line for the watchdog. `sign` is `+` before the container is created, and `-` once it is gone.
    pub(crate) fn line(&self, sign: char) -> String {
        format!("{sign}container {} {}", self.name, shell_words::join(&self.client))
    }
}

pub(crate) struct Launch<'a> {
    pub(crate) cpus: &'a [u32],
    pub(crate) words: &'a [String],
    pub(crate) directory: &'a Path,
    pub(crate) environment: &'a BTreeMap<String, String>,
    /// Whether stdin and stdout are pipes to this process. If not, stdin is null and stdout joins stderr.
    pub(crate) talk: bool,
    /// Container that the command starts; it ends no later than the child.
    pub(crate) container: Option<Job>,
}

impl<'a> Launch<'a> {
    pub(crate) fn new(words: &'a [String], directory: &'a Path) -> Self {
        static NO_VARIABLES: BTreeMap<String, String> = BTreeMap::new();
        Self { cpus: &[], words, directory, environment: &NO_VARIABLES, talk: false, container: None }
    }
}

impl Supervisor {
    pub(crate) fn start(exe: &Path) -> io::Result<Self> {
        let watchdog =
            command(exe).arg("watchdog").stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null()).spawn()?;
        let watchdog = Rc::new(Watchdog(RefCell::new(watchdog)));
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        // The mark is unique even if the process ID is reused.
        let mark = format!("{}-{}-{count}-", std::process::id(), lab_clocks::unix_seconds());
        let supervisor = Self { exe: exe.to_owned(), watchdog, mark, next: Cell::new(0), spinner: RefCell::default() };
        supervisor.register(&format!("mark {MARK}={}", supervisor.mark))?;
        Ok(supervisor)
    }

    /// Fails if the watchdog is gone; nothing may be started without one.
    pub(crate) fn check(&self) -> io::Result<()> {
        self.watchdog.tell("")
    }

    #[cfg(test)]
    pub(crate) fn kill_watchdog(&self) {
        let mut watchdog = self.watchdog.0.borrow_mut();
        watchdog.kill().unwrap();
        watchdog.wait().unwrap();
    }

    pub(crate) fn container_name(&self) -> String {
        format!("quintain-{}", self.next_mark())
    }

    fn next_mark(&self) -> String {
        let number = self.next.replace(self.next.get() + 1);
        format!("{}{number}", self.mark)
    }

    /// Creates a temporary directory for files of children, which the watchdog removes if the lab dies.
    pub(crate) fn scratch(&self) -> io::Result<tempfile::TempDir> {
        let folder = tempfile::Builder::new().prefix(SCRATCH).tempdir()?;
        self.register(&format!("scratch {}", folder.path().display()))?;
        Ok(folder)
    }

    /// Has the watchdog clean up `what` when the lab dies or drops this supervisor. Fails if the watchdog is gone.
    pub(crate) fn register(&self, what: &str) -> io::Result<()> {
        self.watchdog.tell(&format!("+{what}"))
    }

    /// Starts a child, which ends at the latest when its [`Child`] is dropped. Fails if the watchdog is gone.
    pub(crate) fn spawn(&self, launch: Launch<'_>) -> io::Result<Child> {
        launch.container.iter().try_for_each(|container| self.watchdog.tell(&container.line('+')))?;
        let mark = self.next_mark() + "-";
        let mut command = command(&self.exe);
        command.arg("exec");
        if !launch.cpus.is_empty() {
            command.args(["--cpus", &crate::cpu_list::format(launch.cpus)]);
        }
        command.args(["--parent", &std::process::id().to_string(), "--"]);
        match launch.words {
            [program, arguments @ ..] if program == "quintain" => command.arg(&self.exe).args(arguments),
            words => command.args(words),
        };
        // The secret of a cluster must not reach processes that a node starts.
        command.current_dir(launch.directory).env_remove(TICKET).envs(launch.environment).env(MARK, &mark);
        let family = (self.watchdog.clone(), format!("{MARK}={mark}"));
        Child::spawn(command, launch.talk, Some(family), launch.container)
    }

    /// Keeps `cpus` awake: starts a spinner, or checks that it is still running. Fails with its last output.
    pub(crate) fn keep_awake(&self, cpus: &[u32]) -> Result<(), String> {
        let mut spinner = match self.spinner.take() {
            Some((known, spinner)) if known == cpus => spinner,
            _ => {
                let words = ["quintain", "spin", "--cpus", &crate::cpu_list::format(cpus)].map(str::to_owned);
                let launch = Launch { cpus, ..Launch::new(&words, Path::new("/")) };
                let mut spinner = self.spawn(launch).map_err(|error| error.to_string())?;
                // A spinner that cannot work ends at once. Later trials check again.
                spinner.wait(Duration::from_millis(50));
                spinner
            }
        };
        if let Some(exit) = spinner.wait(Duration::ZERO) {
            return Err(format!("{exit} {}", spinner.last_words()).trim().to_owned());
        }
        self.spinner.replace(Some((cpus.to_vec(), spinner)));
        Ok(())
    }
}

struct Watchdog(RefCell<std::process::Child>);

impl Watchdog {
    fn tell(&self, line: &str) -> io::Result<()> {
        let written = match &mut self.0.borrow_mut().stdin {
            Some(pipe) => pipe.write_all(format!("{line}\n").as_bytes()),
            None => Err(io::ErrorKind::BrokenPipe.into()),
        };
        written.map_err(|error| match error.kind() {
            // The watchdog reads the pipe until it ends.
            io::ErrorKind::BrokenPipe => {
                let status = self.0.borrow_mut().wait();
                let how = status.map_or_else(|_| String::new(), |status| format!(" ({status})"));
                io::Error::new(error.kind(), format!("it ended{how}, and without it nothing is started; start again"))
            }
            _ => error,
        })
    }
}

impl Drop for Watchdog {
    fn drop(&mut self) {
        let _ = self.0.borrow_mut().wait();
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Exit {
    #[error("exit {0}")]
    Code(i32),
    #[error("signal {0}")]
    Signal(i32),
    /// Killed by [`Child::stop`] after this time, because it was still running after SIGTERM.
    #[error("forced after {0:?}")]
    Forced(Duration),
}

impl Exit {
    pub(crate) fn ignored_sigterm(self) -> Option<String> {
        let Exit::Forced(after) = self else { return None };
        Some(format!("ignored SIGTERM: still running after {after:?}, then killed (`stop_timeout`)"))
    }
}

/// Watchdog that tracks a process group, and the mark of all descendants.
type Family = (Rc<Watchdog>, String);

pub(crate) struct Child {
    pid: Pid,
    pidfd: OwnedFd,
    exit: Option<Exit>,
    /// Number of descendants that were still running when the process ended.
    left: usize,
    tail: Tail,
    family: Option<Family>,
    container: Option<Job>,
    /// Process ID of the first process in its container; `None` without a container.
    pub(crate) contained: Option<u32>,
    pub(crate) input: Option<File>,
    pub(crate) output: Option<File>,
}

impl Child {
    fn spawn(mut command: Command, talk: bool, family: Option<Family>, container: Option<Job>) -> io::Result<Self> {
        let (reader, writer) = io::pipe()?;
        let tail = Tail::of(reader)?;
        command.process_group(0);
        let pipes = (Stdio::piped(), Stdio::piped());
        let (input, output) = if talk { pipes } else { (Stdio::null(), writer.try_clone()?.into()) };
        command.stdin(input).stdout(output).stderr(writer);
        let mut child = command.spawn()?;
        drop(command); // The command holds a writing end of the pipe, which must close for the tail to end.
        let pid = Pid::from_child(&child);
        // From here on, dropping `this` kills the process if the rest of the start fails.
        let pidfd = pidfd_open(pid, PidfdFlags::empty()).inspect_err(|_| {
            let _ = child.kill();
            let _ = child.wait();
        })?;
        let input = child.stdin.take().map(|pipe| OwnedFd::from(pipe).into());
        let output = child.stdout.take().map(|pipe| OwnedFd::from(pipe).into());
        let this = Self { pid, pidfd, exit: None, left: 0, tail, family, container, contained: None, input, output };
        let tell = |(watchdog, _): &Family| watchdog.tell(&format!("+group {}", pid.as_raw_pid()));
        this.family.iter().try_for_each(tell).map(|()| this)
    }

    pub(crate) fn pid(&self) -> u32 {
        self.pid.as_raw_pid().cast_unsigned()
    }

    /// IDs of the child and its descendants, found by mark or by group: programs such as nginx overwrite the mark.
    pub(crate) fn family(&self) -> Vec<u32> {
        let mut family = vec![self.pid()];
        if let Some((_, mark)) = &self.family {
            // A process that has ended has no environment.
            let is_of_group = |stat: Stat| stat.runs && stat.group == self.pid();
            let is_member = |pid: &u32| carries(*pid, mark) || Stat::read(PROC.as_ref(), *pid).is_some_and(is_of_group);
            family.extend(procfs::pids(PROC.as_ref()).filter(|pid| *pid != self.pid()).filter(is_member));
        }
        family
    }

    /// Process IDs that may belong to the server: all except the client of a container.
    pub(crate) fn servers(&self) -> Vec<u32> {
        self.family().split_off(usize::from(self.container.is_some()))
    }

    pub(crate) fn exited(&self, exit: Exit, when: &str) -> String {
        format!("exited ({exit}) {when}{}{}", self.left_behind(), saying(&self.last_words()))
    }

    /// Clause `, but N processes it had started kept running ...`; empty if all have ended or the child failed.
    fn left_behind(&self) -> String {
        let processes = match self.left {
            // After a crash, the workers may end a little later, so they are not reported.
            left if left == 0 || self.exit != Some(Exit::Code(0)) => return String::new(),
            1 => "a process it had started".to_owned(),
            left => format!("{left} processes it had started"),
        };
        format!(
            ", but {processes} kept running in the background, unsupervised: start it in the foreground \
             (`daemon off;`, `--foreground`, `exec` in a script)"
        )
    }

    pub(crate) fn pidfd(&self) -> BorrowedFd<'_> {
        self.pidfd.as_fd()
    }

    /// Waits up to `timeout` for the child to end, then kills its remaining descendants. `None` if it still runs.
    pub(crate) fn wait(&mut self, timeout: Duration) -> Option<Exit> {
        if self.exit.is_none() && wait_readable(&[self.pidfd()], timeout)[0] {
            self.finish();
        }
        self.exit
    }

    /// Sends SIGTERM to the process group, and SIGKILL if it still runs after `timeout`.
    pub(crate) fn stop(&mut self, timeout: Duration) -> Exit {
        if let Some(exit) = self.wait(Duration::ZERO) {
            return exit;
        }
        match self.contained.filter(|pid| !hears_sigterm(PROC.as_ref(), *pid)) {
            Some(deaf) => drop(kill(deaf)),
            None => drop(kill_process_group(self.pid, Signal::TERM)),
        }
        self.wait(timeout).unwrap_or_else(|| {
            self.kill();
            Exit::Forced(timeout)
        })
    }

    /// Sends SIGTERM only to the process, which must end its descendants itself.
    pub(crate) fn terminate(&self) -> io::Result<()> {
        Ok(kill_process(self.pid, Signal::TERM)?)
    }

    /// Waits up to `limit` until the child and its descendants have ended. Fails with the number of processes left.
    pub(crate) fn wait_gone(&mut self, limit: Duration) -> Result<(), String> {
        let deadline = lab_clocks::now() + limit;
        // `wait` would kill the descendants.
        let has_ended = self.exit.is_some() || wait_readable(&[self.pidfd()], limit)[0];
        while has_ended && self.family().len() > 1 && lab_clocks::now() < deadline {
            std::thread::sleep(Duration::from_millis(2));
        }
        if !has_ended {
            return Err(format!("it did not end within {limit:?}: processes left: {}", self.family().len()));
        }
        self.wait(Duration::ZERO);
        match self.left {
            0 => Ok(()),
            left => Err(format!("its children did not end within {limit:?}: processes left: {left}")),
        }
    }

    pub(crate) fn kill(&mut self) {
        if self.exit.is_none() {
            let _ = kill_process_group(self.pid, Signal::KILL);
            // The wait is bounded, because SIGKILL does not end an uninterruptible sleep in the kernel.
            if wait_readable(&[self.pidfd()], Duration::from_secs(10))[0] {
                self.finish();
            }
        }
    }

    /// Last output: stderr, and stdout unless piped. It is complete only after the process has ended.
    pub(crate) fn last_words(&self) -> String {
        self.tail.text(if self.exit.is_some() { LAST_WORDS } else { Duration::ZERO })
    }

    /// Kills the descendants before the process is reaped, while its ID cannot be reused.
    fn finish(&mut self) {
        self.left = self.family().len() - 1;
        let _ = kill_process_group(self.pid, Signal::KILL);
        self.family.iter().for_each(|(_, mark)| kill_marked(mark));
        let status = waitid(WaitId::Pid(self.pid), WaitIdOptions::EXITED).ok().flatten();
        self.exit = Some(match status {
            Some(status) if status.exited() => Exit::Code(status.exit_status().unwrap_or_default()),
            Some(status) => Exit::Signal(status.terminating_signal().unwrap_or_default()),
            None => Exit::Signal(Signal::KILL.as_raw()),
        });
        if let Some((watchdog, _)) = self.family.take() {
            // The check before the next trial notices a lost watchdog.
            let _ = watchdog.tell(&format!("-group {}", self.pid.as_raw_pid()));
            let killed = matches!(self.exit, Some(Exit::Signal(_)));
            // If removal fails, the watchdog tries again.
            if let Some(container) = self.container.take().filter(|container| container.remove(killed)) {
                let _ = watchdog.tell(&container.line('-'));
            }
        }
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Runs a short-lived tool such as `git` unpinned and returns its output. `None` if it fails or takes over ten seconds.
pub(crate) fn capture(words: &[&str], directory: &Path) -> Option<String> {
    let (exit, text) = output(words, directory, Duration::from_secs(10)).ok()?;
    (exit == Exit::Code(0)).then_some(text)
}

pub(crate) fn output(words: &[&str], directory: &Path, patience: Duration) -> io::Result<(Exit, String)> {
    let (program, arguments) = words.split_first().ok_or(io::ErrorKind::InvalidInput)?;
    let mut command = command(program);
    command.args(arguments).current_dir(directory);
    let mut child = Child::spawn(command, false, None, None)?;
    let late = || io::Error::new(io::ErrorKind::TimedOut, format!("`{program}` did not end within {patience:?}"));
    let exit = child.wait(patience).ok_or_else(late)?;
    Ok((exit, child.last_words()))
}

pub(crate) fn kill(pid: u32) -> bool {
    pid_of(pid).is_some_and(|pid| kill_process(pid, Signal::KILL).is_ok())
}

pub(crate) fn pid_of(pid: u32) -> Option<Pid> {
    Pid::from_raw(i32::try_from(pid).ok()?)
}

/// Whether SIGTERM ends a process. The first process of a container needs a handler (pid_namespaces(7)).
pub(crate) fn hears_sigterm(proc: &Path, pid: u32) -> bool {
    let Some(status) = procfs::read(proc, pid, "status") else { return true };
    let pids = procfs::value(&status, "NSpid");
    let is_first = pids.is_some_and(|pids| pids.split_whitespace().count() > 1 && pids.ends_with("\t1"));
    let caught = procfs::value(&status, "SigCgt").and_then(|mask| u64::from_str_radix(mask, 16).ok());
    const SIGTERM: u64 = 1 << (15 - 1);
    !is_first || caught.is_none_or(|caught| caught & SIGTERM != 0)
}

/// Waits until one of `handles` is readable or `timeout` has passed. Returns one flag per handle.
pub(crate) fn wait_readable(handles: &[BorrowedFd<'_>], timeout: Duration) -> Vec<bool> {
    let deadline = lab_clocks::now() + timeout;
    let mut polled = handles.iter().map(|handle| PollFd::from_borrowed_fd(*handle, PollFlags::IN)).collect::<Vec<_>>();
    while poll(&mut polled, Some(&lab_clocks::left(deadline))) == Err(rustix::io::Errno::INTR) {}
    polled.iter().map(|handle| !handle.revents().is_empty()).collect()
}

/// Kills all other processes that have an environment entry beginning with `mark`, such as `NAME=VALUE`.
pub(crate) fn kill_marked(mark: &str) {
    // One search may miss a forking process, so repeat it. The limit keeps endless forking from blocking the caller.
    for _ in 0..10 {
        let others = procfs::pids(PROC.as_ref()).filter(|pid| *pid != std::process::id());
        let killed = others.filter(|pid| {
            // Opening the handle first ensures that the ID is not reused after the check.
            let handle = pid_of(*pid).and_then(|pid| pidfd_open(pid, PidfdFlags::empty()).ok());
            handle.is_some_and(|handle| carries(*pid, mark) && pidfd_send_signal(&handle, Signal::KILL).is_ok())
        });
        if killed.count() == 0 {
            return;
        }
    }
}

fn carries(pid: u32, mark: &str) -> bool {
    let environment = std::fs::read(format!("{PROC}/{pid}/environ")).unwrap_or_default();
    environment.split(|byte| *byte == 0).any(|entry| entry.starts_with(mark.as_bytes()))
}
