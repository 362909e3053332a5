//! Per-thread counters of the kernel: context switches, CPU time in ns and waits for a CPU. They vanish with the
//! thread, so threads are sampled often, and the last counters of ended threads stay in the sum.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::lab_clocks;
use crate::procfs::{number, value};

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    pub(crate) voluntary: u64,
    pub(crate) involuntary: u64,
    /// Time on a CPU, ns (`schedstat`); 0 if the kernel does not report it.
    pub(crate) run_ns: u64,
    /// Time for which the thread was ready but had no CPU, ns; 0 if the kernel does not report it.
    pub(crate) wait_ns: u64,
}

impl Counts {
    fn values(self) -> [u64; 4] {
        [self.voluntary, self.involuntary, self.run_ns, self.wait_ns]
    }

    fn plus(self, other: Self) -> Self {
        let (own, other) = (self.values(), other.values());
        let [voluntary, involuntary, run_ns, wait_ns] = std::array::from_fn(|nth| own[nth] + other[nth]);
        Self { voluntary, involuntary, run_ns, wait_ns }
    }

    /// Reads the counters of a thread, and whether it is on a CPU or waiting for one. `None` if it has ended.
    fn of(thread: &Path) -> Option<(Self, bool)> {
        let status = fs::read_to_string(thread.join("status")).ok()?;
        let is_ready = value(&status, "State").is_some_and(|state| state.starts_with('R'));
        let schedstat = fs::read_to_string(thread.join("schedstat")).unwrap_or_default();
        // Source: Documentation/scheduler/sched-stats.rst of Linux, "/proc/<pid>/schedstat".
        let mut times = schedstat.split_ascii_whitespace().map_while(|word| word.parse().ok());
        let (run_ns, wait_ns) = (times.next().unwrap_or(0), times.next().unwrap_or(0));
        let voluntary = number(&status, "voluntary_ctxt_switches")?;
        let involuntary = number(&status, "nonvoluntary_ctxt_switches")?;
        Some((Self { voluntary, involuntary, run_ns, wait_ns }, is_ready))
    }
}

struct Thread {
    counts: Counts,
    /// Directory of the thread, and the time since which it has been ready with these counters; `None` if not ready.
    ready: Option<(PathBuf, Instant)>,
}

/// Unfinished waits for a CPU. The kernel counts a wait only when it ends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Waits {
    pub(crate) total_ns: u64,
    /// Length of the longest wait, ns: either unfinished, or counted between the latest two samples.
    pub(crate) longest_ns: u64,
}

#[derive(Default)]
pub(crate) struct Threads {
    alive: BTreeMap<u32, Thread>,
    ended: Counts,
    /// Longest wait of one thread counted between the latest two samples, ns.
    recent_ns: u64,
}

impl Threads {
    pub(crate) fn look(&mut self, proc: &Path, processes: &[u32]) {
        let (mut now, at) = (BTreeMap::new(), lab_clocks::now());
        for pid in processes {
            let Ok(threads) = fs::read_dir(proc.join(pid.to_string()).join("task")) else { continue };
            for thread in threads.flatten() {
                let number = thread.file_name().to_str().and_then(|name| name.parse().ok());
                let seen = number.zip(Counts::of(&thread.path()));
                now.extend(seen.map(|(number, (counts, is_ready))| {
                    (number, Thread { counts, ready: is_ready.then(|| (thread.path(), at)) })
                }));
            }
        }
        self.see(now);
    }

    pub(crate) fn total(&self) -> Counts {
        self.alive.values().fold(self.ended, |sum, thread| sum.plus(thread.counts))
    }

    /// Returns the waits that were unfinished at the latest sample, taken at `at`. Blocks up to `limit` until they end.
    pub(crate) fn waits(&self, at: Instant, limit: Duration) -> Waits {
        const STEP: Duration = Duration::from_millis(5);
        let mut waits = Waits { total_ns: 0, longest_ns: self.recent_ns };
        let mut add = |ns: u64| {
            waits.total_ns += ns;
            waits.longest_ns = waits.longest_ns.max(ns);
        };
        let ready = |thread: &Thread| thread.ready.clone().map(|(path, since)| (thread.counts, path, since));
        let mut left = self.alive.values().filter_map(ready).collect::<Vec<_>>();
        loop {
            let now = lab_clocks::now();
            left.retain(|(before, path, _)| {
                let Some((counts, is_ready)) = Counts::of(path) else { return false };
                let waited_ns = counts.wait_ns.saturating_sub(before.wait_ns);
                add(waited_ns.saturating_sub(lab_clocks::nanos(now - at)));
                // The kernel updates the time of a running thread only at ticks.
                waited_ns == 0 && counts.run_ns == before.run_ns && is_ready
            });
            if left.is_empty() || now >= at + limit {
                break;
            }
            std::thread::sleep(STEP);
        }
        left.iter().for_each(|(.., since)| add(lab_clocks::nanos(at.saturating_duration_since(*since))));
        waits
    }

    fn see(&mut self, now: BTreeMap<u32, Thread>) {
        self.recent_ns = 0;
        for (number, before) in std::mem::replace(&mut self.alive, now) {
            let counts = before.counts;
            // A smaller counter means that another thread has reused the ID.
            let same =
                |now: &&mut Thread| now.counts.values().iter().zip(counts.values()).all(|(now, old)| *now >= old);
            let Some(now) = self.alive.get_mut(&number).filter(same) else {
                self.ended = self.ended.plus(counts);
                continue;
            };
            self.recent_ns = self.recent_ns.max(now.counts.wait_ns - counts.wait_ns);
            if let Some(((_, since), (_, before))) = now.ready.as_mut().zip(before.ready)
                && now.counts == counts
            {
                *since = before;
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
            let seen = |(number, n): &(u32, u64)| (*number, Thread { counts: counts(*n), ready: None });
            threads.see(look.iter().map(seen).collect());
        }
        assert_eq!(
            threads.total(),
            Counts { voluntary: total, involuntary: 2 * total, run_ns: 3 * total, wait_ns: 4 * total },
            "{looks:?}"
        );
    }

    #[test]
    fn running_threads_count_once() {
        check(&[&[(70, 5), (71, 100)], &[(70, 8), (71, 100)]], 108);
    }
    #[test]
    fn ended_threads_still_count() {
        check(&[&[(70, 5), (71, 100)], &[(70, 8)], &[]], 108);
    }
    #[test]
    fn reused_id_is_another_thread() {
        check(&[&[(71, 100)], &[(71, 2)], &[(71, 1)], &[(71, 4)]], 106);
    }
    fn look(threads: &mut Threads, proc: &Path, state: &str, schedstat: &str) {
        let task = proc.join("70/task/71");
        fs::create_dir_all(&task).unwrap();
        let status = format!("State:\t{state}\nvoluntary_ctxt_switches:\t7\nnonvoluntary_ctxt_switches:\t3\n");
        fs::write(task.join("status"), status).unwrap();
        fs::write(task.join("schedstat"), schedstat).unwrap();
        threads.look(proc, &[70]);
    }

    #[test]
    fn unfinished_waits_count() {
        const MS: Duration = Duration::from_millis(1);
        let folder = tempfile::tempdir().unwrap();
        let proc = folder.path();
        let mut threads = Threads::default();
        look(&mut threads, proc, "S (sleeping)", "1000000 2000000 1");
        look(&mut threads, proc, "R (running)", "1000000 2000000 1");
        let first = lab_clocks::now();
        std::thread::sleep(20 * MS);
        look(&mut threads, proc, "R (running)", "1000000 2000000 1");
        let at = lab_clocks::now();
        let lasting = threads.waits(at, 10 * MS);
        let expected = lab_clocks::nanos(at - first);
        assert!(lasting.longest_ns >= expected && lasting.longest_ns < expected + 50_000_000, "{lasting:?}");
        assert_eq!(lasting.total_ns, lasting.longest_ns);

        // The thread gets a CPU after the sample, and the kernel then counts the whole wait.
        fs::write(proc.join("70/task/71/schedstat"), "1500000 902000000 2").unwrap();
        let ended = threads.waits(at, 10 * MS);
        assert!((1..=900_000_000).contains(&ended.total_ns), "{ended:?}");
        let mut running = Threads::default();
        look(&mut running, proc, "R (running)", "1000000 2000000 1");
        fs::write(proc.join("70/task/71/schedstat"), "5000000 2000000 1").unwrap();
        assert_eq!(running.waits(lab_clocks::now(), 10 * MS), Waits::default(), "it was on a CPU");
    }

    #[test]
    fn sleeping_and_stopped_threads_do_not_wait() {
        let folder = tempfile::tempdir().unwrap();
        for state in ["S (sleeping)", "D (disk sleep)", "T (stopped)"] {
            let mut threads = Threads::default();
            look(&mut threads, folder.path(), state, "1000000 2000000 1");
            look(&mut threads, folder.path(), state, "1000000 2000000 1");
            assert_eq!(threads.waits(lab_clocks::now(), Duration::ZERO), Waits::default(), "{state}");
        }
        let mut threads = Threads::default();
        look(&mut threads, folder.path(), "S (sleeping)", "1000000 2000000 1");
        look(&mut threads, folder.path(), "S (sleeping)", "1000000 302000000 2");
        let waits = threads.waits(lab_clocks::now(), Duration::ZERO);
        assert_eq!(waits, Waits { total_ns: 0, longest_ns: 300_000_000 }, "a wait that ended just before");
    }

    #[test]
    fn counts_the_threads_of_this_process() {
        let mut threads = Threads::default();
        threads.look(Path::new("/proc"), &[std::process::id()]);
        assert!(threads.total().run_ns > 0);
    }
}
