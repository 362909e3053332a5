//! What the kernel counts for each thread alone: context switches, CPU time to the nanosecond, waits for a processor.
//!
//! A thread takes its counts with it when it ends, as those of a thread-per-client server do with the load. So they are looked at
//! often, and what was last seen of a thread that has ended stays in the sum.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

/// The number after `name` at the beginning of a line.
pub(crate) fn field(text: &str, name: &str) -> Option<u64> {
    text.lines().find_map(|line| line.strip_prefix(name))?.split_whitespace().next()?.parse().ok()
}

/// Sums over threads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    /// Voluntary context switches.
    pub(crate) voluntary: u64,
    /// Involuntary ones.
    pub(crate) involuntary: u64,
    /// Time on a processor, ns (`schedstat`); 0 where the kernel does not tell.
    pub(crate) run_ns: u64,
    /// Time ready to run without a processor, ns; likewise.
    pub(crate) wait_ns: u64,
}

impl Counts {
    fn plus(self, other: Self) -> Self {
        Self {
            voluntary: self.voluntary + other.voluntary,
            involuntary: self.involuntary + other.involuntary,
            run_ns: self.run_ns + other.run_ns,
            wait_ns: self.wait_ns + other.wait_ns,
        }
    }

    fn of(thread: &Path) -> Option<Self> {
        let status = fs::read_to_string(thread.join("status")).ok()?;
        let schedstat = fs::read_to_string(thread.join("schedstat")).unwrap_or_default();
        // Source: Documentation/scheduler/sched-stats.rst of Linux, "/proc/<pid>/schedstat".
        let mut times = schedstat.split_ascii_whitespace().map_while(|word| word.parse().ok());
        Some(Self {
            voluntary: field(&status, "voluntary_ctxt_switches:")?,
            involuntary: field(&status, "nonvoluntary_ctxt_switches:")?,
            run_ns: times.next().unwrap_or(0),
            wait_ns: times.next().unwrap_or(0),
        })
    }
}

/// The threads of a group of processes.
#[derive(Debug, Default)]
pub(crate) struct Threads {
    alive: BTreeMap<u32, Counts>,
    ended: Counts,
}

impl Threads {
    /// Looks at every thread of these processes under `proc`.
    pub(crate) fn look(&mut self, proc: &Path, processes: &[u32]) {
        let mut now = BTreeMap::new();
        for pid in processes {
            let Ok(threads) = fs::read_dir(proc.join(pid.to_string()).join("task")) else { continue };
            for thread in threads.flatten() {
                let number = thread.file_name().to_str().and_then(|name| name.parse().ok());
                now.extend(number.zip(Counts::of(&thread.path())));
            }
        }
        self.see(now);
    }

    /// What all have counted, those that have ended too.
    pub(crate) fn total(&self) -> Counts {
        self.alive.values().fold(self.ended, |sum, counts| sum.plus(*counts))
    }

    fn see(&mut self, now: BTreeMap<u32, Counts>) {
        for (thread, before) in std::mem::replace(&mut self.alive, now) {
            // A smaller count under the same number is another thread.
            let same = |now: &Counts| {
                now.voluntary >= before.voluntary
                    && now.involuntary >= before.involuntary
                    && now.run_ns >= before.run_ns
                    && now.wait_ns >= before.wait_ns
            };
            if !self.alive.get(&thread).is_some_and(same) {
                self.ended = self.ended.plus(before);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(looks: &[&[(u32, u64)]], total: u64) {
        let mut threads = Threads::default();
        for look in looks {
            let counts = |n: u64| Counts { voluntary: n, involuntary: 2 * n, run_ns: 3 * n, wait_ns: 4 * n };
            threads.see(look.iter().map(|(thread, n)| (*thread, counts(*n))).collect());
        }
        assert_eq!(
            threads.total(),
            Counts { voluntary: total, involuntary: 2 * total, run_ns: 3 * total, wait_ns: 4 * total },
            "{looks:?}"
        );
    }

    #[test]
    fn threads_that_live_count_once() {
        check(&[&[(70, 5), (71, 100)], &[(70, 8), (71, 100)]], 108);
    }
    #[test]
    fn a_thread_that_has_ended_still_counts() {
        check(&[&[(70, 5), (71, 100)], &[(70, 8)], &[]], 108);
    }
    #[test]
    fn a_number_given_again_is_another_thread() {
        check(&[&[(71, 100)], &[(71, 2)], &[(71, 1)], &[(71, 4)]], 106);
    }
    #[test]
    fn of_this_process() {
        let mut threads = Threads::default();
        threads.look(Path::new("/proc"), &[std::process::id()]);
        assert!(threads.total().run_ns > 0);
    }
}
