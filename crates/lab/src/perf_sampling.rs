//! Runs `perf` during a trial, from before the load until measuring ends, and folds the samples of the measured time.

use std::cell::{Cell, RefCell};
use std::io::{self, Read};
use std::os::fd::AsFd;
use std::time::Duration;

use study::cpu_profile::CpuProfile;
use study::generator_messages::Span;
use tempfile::TempDir;

use crate::fold_stacks::{FIELDS, Fold};
use crate::lab_clocks;
use crate::process_start_and_stop::{Child, Launch, Supervisor, wait_readable};

/// Samples per second of CPU time. It must not divide the kernel's tick rates, or samples would coincide with ticks.
const FREQUENCY_HZ: u32 = 997;
/// Time limit for `perf` to attach. The load begins afterwards.
const ATTACH: Duration = Duration::from_secs(5);
/// Delay between the first bytes in perf's output file, which appear once the counters are open, and the first sample.
const SETTLE: Duration = Duration::from_millis(50);
/// Time limit for `perf` to write its data at the end.
const FLUSH: Duration = Duration::from_secs(10);
const SCRIPT: Duration = Duration::from_secs(60);
const SCRIPT_MAX_BYTES: usize = 512 << 20;
/// Option that limits the size of perf's output file, which is removed at the end.
const FILE_MAX: &str = "--max-size=128M";
/// Maximum number of server processes that `perf` attaches to. Children that they start later are included.
const PROCESSES_MAX: usize = 256;

pub(crate) struct Perf<'a> {
    supervisor: &'a Supervisor,
    interrupted: &'a dyn Fn() -> bool,
    folder: TempDir,
    /// The running `perf record`, if any, or why samples are missing.
    recording: RefCell<Result<Option<Child>, String>>,
    /// The measured time; `None` until it has ended.
    pub(crate) span: Cell<Option<Span>>,
}

impl<'a> Perf<'a> {
    pub(crate) fn new(supervisor: &'a Supervisor, interrupted: &'a dyn Fn() -> bool) -> Result<Self, String> {
        let folder = tempfile::Builder::new().prefix("quintain-perf-").tempdir();
        let folder = folder.map_err(|error| format!("no directory for samples: {error}"))?;
        Ok(Self { supervisor, interrupted, folder, recording: RefCell::new(Ok(None)), span: Cell::default() })
    }

    pub(crate) fn begin(&self, processes: &[u32]) {
        *self.recording.borrow_mut() = self.attach(processes).map(Some);
    }

    fn attach(&self, processes: &[u32]) -> Result<Child, String> {
        let processes = processes.iter().take(PROCESSES_MAX).map(ToString::to_string).collect::<Vec<_>>().join(",");
        // `perf` uses the CPU clock if there is no cycle counter, as in most virtual machines.
        let words = format!(
            "perf record -e cycles -F {FREQUENCY_HZ} -g -k CLOCK_MONOTONIC -B -N {FILE_MAX} -o {DATA} -p {processes}"
        );
        let words = words.split(' ').collect::<Vec<_>>();
        let mut child = self.spawn(&words, false)?;
        let file = self.folder.path().join(DATA);
        let deadline = lab_clocks::now() + ATTACH;
        loop {
            let is_begun = std::fs::metadata(&file).is_ok_and(|file| file.len() > 0);
            if let Some(exit) = child.wait(if is_begun { SETTLE } else { Duration::from_millis(10) }) {
                return Err(why(&child.last_words(), &exit.to_string(), paranoid()));
            }
            if is_begun {
                return Ok(child);
            }
            if lab_clocks::now() >= deadline || (self.interrupted)() {
                return Err(format!("`perf record` did not begin within {ATTACH:?}"));
            }
        }
    }

    fn spawn(&self, words: &[&str], talk: bool) -> Result<Child, String> {
        let words = words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
        // The user's settings and symbol servers must not affect the result.
        let environment = [("PERF_CONFIG", "/dev/null"), ("DEBUGINFOD_URLS", ""), ("LC_ALL", "C")];
        let environment = environment.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
        let launch = Launch { environment: &environment, talk, ..Launch::new(&words, self.folder.path()) };
        self.supervisor.spawn(launch).map_err(|error| format!("cannot start `perf`: {error}"))
    }

    pub(crate) fn end(&self) {
        let mut recording = self.recording.borrow_mut();
        let Some(mut child) = recording.as_mut().ok().and_then(Option::take) else { return };
        if child.wait(Duration::ZERO).is_some() {
            let words = child.last_words();
            let last = words.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or_default().trim().to_owned();
            *recording =
                Err(format!("`perf record` ended before the measurement did, so later samples are missing: {last}"));
            return;
        }
        child.stop(FLUSH);
    }

    pub(crate) fn profile(self) -> CpuProfile {
        self.end();
        let profile = self.span.get().map_or_else(CpuProfile::default, |span| {
            self.fold(span).unwrap_or_else(|why| CpuProfile { problem: Some(why), ..CpuProfile::default() })
        });
        let problem = self.recording.into_inner().err();
        CpuProfile { problem: problem.or(profile.problem), frequency_hz: FREQUENCY_HZ, ..profile }
    }

    fn fold(&self, span: Span) -> Result<CpuProfile, String> {
        let seconds = |ns: u64| format!("{}.{:09}", ns / 1_000_000_000, ns % 1_000_000_000);
        let time = format!("{},{}", seconds(span.from_ns), seconds(span.until_ns));
        // Inlined functions would need `addr2line`, which takes minutes.
        let words = ["perf", "script", "-i", DATA, "--no-inline", "--time", &time, "-F", FIELDS];
        let mut child = self.spawn(&words, true)?;
        let mut output = child.output.take().ok_or("`perf script` has no output")?;
        let deadline = lab_clocks::now() + SCRIPT;
        let (mut fold, mut buffer, mut bytes) = (Fold::default(), vec![0; 64 << 10], 0);
        loop {
            if lab_clocks::now() >= deadline || bytes > SCRIPT_MAX_BYTES || (self.interrupted)() {
                return Err(format!("`perf script` took longer than {SCRIPT:?} or printed more than 512 MiB"));
            }
            if !wait_readable(&[output.as_fd()], Duration::from_millis(50))[0] {
                continue;
            }
            match output.read(&mut buffer) {
                Ok(0) => break,
                Ok(count) => {
                    bytes += count;
                    fold.push(&buffer[..count]);
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(format!("cannot read what `perf script` prints: {error}")),
            }
        }
        let profile = fold.finish();
        let exit = child.wait(FLUSH).map(|exit| exit.to_string());
        match exit.unwrap_or_default() {
            _ if profile.samples > 0 => {}
            exit if exit == "exit 0" => return Err("no sample was taken: the server used too little CPU".to_owned()),
            exit => return Err(why(&child.last_words(), &exit, paranoid())),
        }
        Ok(CpuProfile { duration_ns: span.until_ns.saturating_sub(span.from_ns), ..profile })
    }
}

const DATA: &str = "perf.data";

/// Value of `perf_event_paranoid`; `None` if the kernel lacks performance events.
fn paranoid() -> Option<i32> {
    std::fs::read_to_string("/proc/sys/kernel/perf_event_paranoid").ok()?.trim().parse().ok()
}

fn why(words: &str, exit: &str, paranoid: Option<i32>) -> String {
    let Some(paranoid) = paranoid else {
        return "this kernel has no performance events (CONFIG_PERF_EVENTS)".to_owned();
    };
    let denied = ["perf_event_paranoid", "not permitted", "Permission denied", "No permission"];
    if denied.iter().any(|text| words.contains(text)) {
        return format!(
            "`perf` is not permitted to sample the server: `sysctl kernel.perf_event_paranoid=1` (now {paranoid}) permits one's own processes, CAP_PERFMON or root \
             all; in a container, its seccomp profile has to permit perf_event_open"
        );
    }
    let line = words.lines().map(str::trim).find(|line| !line.is_empty() && !line.starts_with("Warning"));
    format!("`perf` ended ({exit}): {}", line.unwrap_or("it said nothing"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn explains_why_there_is_no_profile() {
        let denied = "Error:\nAccess to performance monitoring and observability operations is limited.\n\
                      Consider adjusting /proc/sys/kernel/perf_event_paranoid setting\n";
        for (words, paranoid, expected) in [
            (denied, Some(3), "`sysctl kernel.perf_event_paranoid=1` (now 3)"),
            ("perf_event_open(...) failed: Operation not permitted", Some(2), "seccomp"),
            (denied, None, "CONFIG_PERF_EVENTS"),
            (
                "Warning: x\n\n  Couldn't create thread/CPU maps: No such process\n",
                Some(2),
                "`perf` ended (exit 244): Couldn't create",
            ),
            ("", Some(2), "it said nothing"),
        ] {
            let found = why(words, "exit 244", paranoid);
            assert!(found.contains(expected), "{found}");
        }
    }
}
