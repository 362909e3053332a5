//! Resource usage of all processes of a server, sampled ten times per second without disturbing it. One read per
//! process gives CPU time, memory and threads. A search for members, once per second, reads only new processes. Reads
//! whose cost grows with the server (PSS, sockets, threads) take at most 1 / [`COST_SHARE`] of the time.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use study::record::{Sample, SubjectUse};

use crate::cgroup_usage::{Cgroup, Usage};
use crate::lab_clocks::{self, thread_cpu_time};
use crate::procfs::{self, Stat, number, tick_ns};
use crate::thread_counters::{Counts, Threads, Waits};

const EVERY: Duration = Duration::from_millis(100);
const EVERY_COSTLY: Duration = Duration::from_secs(1);
/// Maximum age of the list of members at the start and end of measuring.
const FRESH: Duration = Duration::from_millis(50);
/// Time for which unfinished waits are followed after measuring, because real-time tasks may run for 0.95 s (sched(7)).
const FOLLOWED: Duration = Duration::from_secs(1);
/// Minimum interval between costly reads, as a multiple of the CPU time that the last one took.
const COST_SHARE: u32 = 200;

/// Start and end of an interval.
pub(crate) type Moments = (Instant, Instant);

pub(crate) struct Sampler {
    proc: PathBuf,
    group: u32,
    started: Instant,
    cpus: Vec<u32>,
    cgroup: Option<Cgroup>,
    members: Vec<u32>,
    members_at: Option<Instant>,
    strangers: BTreeSet<u32>,
    pub(crate) next: Instant,
    next_costly: Instant,
    next_threads: Instant,
    threads: Threads,
    pub(crate) samples: Vec<Sample>,
    /// Readings at the start and at the end of measuring.
    readings: Vec<Reading>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Reading {
    /// Time of the reading in ns since the start of the server: the midpoint of reading the CPU times.
    at_ns: u64,
    /// Time in ns that the server's CPUs were busy or taken by the host; `None` if the kernel does not report it.
    busy_ns: Option<u64>,
    user_ns: u64,
    system_ns: u64,
    threads: Counts,
    /// Unfinished waits for a CPU, which `threads` does not include yet.
    waits: Waits,
    processes: usize,
    rss_max_bytes: u64,
    /// Usage of the control group; unknown for processes without a container.
    cgroup: Usage,
}

impl Reading {
    /// CPU time in user mode and in the kernel since `begin`, ns. A control group reports both in ns. Otherwise, both
    /// are in ticks, and are scaled to the sum of the threads' exact times if it agrees within the rounding.
    fn cpu_since(&self, begin: &Self) -> (u64, u64) {
        if let Some((begin, end)) = begin.cgroup.cpu_ns.zip(self.cgroup.cpu_ns) {
            return (end.0.saturating_sub(begin.0), end.1.saturating_sub(begin.1));
        }
        let user_ns = self.user_ns.saturating_sub(begin.user_ns);
        let system_ns = self.system_ns.saturating_sub(begin.system_ns);
        let run_ns = self.threads.run_ns.saturating_sub(begin.threads.run_ns);
        let ticks_ns = user_ns + system_ns;
        // User and system time are each rounded at both ends.
        let doubt_ns = 2 * tick_ns() * self.processes.max(begin.processes) as u64;
        if run_ns == 0 || run_ns.abs_diff(ticks_ns) > doubt_ns {
            return (user_ns, system_ns);
        }
        let user_share = if ticks_ns == 0 { 0.0 } else { user_ns as f64 / ticks_ns as f64 };
        let user_ns = (run_ns as f64 * user_share).round() as u64;
        (user_ns, run_ns.saturating_sub(user_ns))
    }
}

impl Sampler {
    pub(crate) fn new(proc: &Path, group: u32, started: Instant, cpus: &[u32]) -> Self {
        Self {
            proc: proc.to_owned(),
            group,
            started,
            cpus: cpus.to_vec(),
            cgroup: None,
            members: Vec::new(),
            members_at: None,
            strangers: BTreeSet::new(),
            next: started,
            next_costly: started,
            next_threads: started,
            threads: Threads::default(),
            samples: Vec::new(),
            readings: Vec::new(),
        }
    }

    /// Switches to the control group for usage and members. Returns `false` if its usage cannot be read.
    pub(crate) fn reads_cgroup(&mut self) -> bool {
        self.cgroup = Cgroup::of(&self.proc, self.group);
        self.cgroup.is_some()
    }

    pub(crate) fn tick(&mut self) {
        let begun = lab_clocks::now();
        if begun < self.next {
            return;
        }
        let costly = begun >= self.next_costly;
        if costly {
            self.find_members();
        }
        let mut sample = Sample { at_ns: lab_clocks::nanos(begun - self.started), ..Sample::default() };
        for stat in self.member_stats() {
            sample.cpu_ns += stat.user_ns + stat.system_ns;
            sample.rss_bytes += stat.rss_bytes;
            sample.threads += stat.threads;
        }
        if let Some((user_ns, system_ns)) = self.cgroup.as_ref().and_then(|group| group.usage().cpu_ns) {
            sample.cpu_ns = user_ns + system_ns;
        }
        if costly {
            // CPU time is the cost of a read even if the thread has to wait for a CPU.
            let before = thread_cpu_time();
            let pss_bytes = |pid: &u32| Some(number(&procfs::read(&self.proc, *pid, "smaps_rollup")?, "Pss")? * 1024);
            sample.pss_bytes = sum(self.members.iter().map(pss_bytes));
            let sockets = |pid: &u32| Some(crate::process_sockets::sockets(&self.proc, *pid).ok()?.len() as u64);
            sample.sockets = sum(self.members.iter().map(sockets)).and_then(|count| u32::try_from(count).ok());
            self.next_costly = begun + EVERY_COSTLY.max(thread_cpu_time().saturating_sub(before) * COST_SHARE);
        }
        if begun >= self.next_threads {
            let before = thread_cpu_time();
            self.threads.look(&self.proc, &self.members);
            self.next_threads = begun + EVERY.max(thread_cpu_time().saturating_sub(before) * COST_SHARE);
        }
        // Without threads, all processes have ended.
        if sample.threads > 0 {
            self.samples.push(sample);
        }
        self.next = begun + EVERY;
    }

    /// Takes a full sample now, because even a short trial needs one while all connections are open.
    pub(crate) fn tick_in_full(&mut self) {
        self.next = lab_clocks::now();
        self.next_costly = self.next;
        self.tick();
    }

    pub(crate) fn prepare(&mut self) {
        let now = lab_clocks::now();
        if self.members_at.is_none_or(|at| now.duration_since(at) > FRESH) {
            self.find_members();
        }
    }

    /// Takes a reading at the start or at the end of measuring.
    pub(crate) fn read(&mut self) {
        self.prepare();
        // CPU times are read first: the other values are less sensitive to delay.
        let before = lab_clocks::now();
        self.threads.look(&self.proc, &self.members);
        let mut reading =
            Reading { threads: self.threads.total(), processes: self.members.len(), ..Reading::default() };
        reading.cgroup = self.cgroup.as_ref().map(Cgroup::usage).unwrap_or_default();
        for stat in self.member_stats() {
            reading.user_ns += stat.user_ns;
            reading.system_ns += stat.system_ns;
        }
        reading.busy_ns = fs::read_to_string(self.proc.join("stat")).ok().and_then(|text| busy_ns(&text, &self.cpus));
        let took = lab_clocks::now() - before;
        reading.at_ns = lab_clocks::nanos(before + took / 2 - self.started);
        for &pid in &self.members {
            let status = procfs::read(&self.proc, pid, "status").unwrap_or_default();
            reading.rss_max_bytes += number(&status, "VmHWM").unwrap_or(0) * 1024;
        }
        self.readings.push(reading);
    }

    /// Adds unfinished waits for a CPU to the latest reading. The kernel does not report waits until they end.
    pub(crate) fn add_waits(&mut self) {
        if let Some(reading) = self.readings.last_mut() {
            reading.waits = self.threads.waits(self.started + Duration::from_nanos(reading.at_ns), FOLLOWED);
        }
    }

    /// Writes the results to `used`. Requests were counted during `span`. Without both readings, none counts.
    pub(crate) fn finish(self, span: Option<Moments>, used: &mut SubjectUse) {
        let (mut usage, mut peak) = ([Usage::default(); 2], None);
        if let [begin, end] = &self.readings[..] {
            (usage, peak) = ([begin.cgroup, end.cgroup], Some(end.rss_max_bytes).filter(|bytes| *bytes > 0));
            (used.user_ns, used.system_ns) = end.cpu_since(begin);
            let busy_ns = end.busy_ns.zip(begin.busy_ns).map(|(end_ns, begin_ns)| end_ns.saturating_sub(begin_ns));
            used.others_ns = busy_ns.map(|ns| ns.saturating_sub(used.user_ns + used.system_ns));
            let is_known = end.threads.run_ns > 0;
            let waited_ns = end.threads.wait_ns + end.waits.total_ns;
            used.run_queue_ns = is_known.then(|| waited_ns.saturating_sub(begin.threads.wait_ns));
            used.waited_at_end_ns = is_known.then_some(end.waits.longest_ns);
            let at = |reading: &Reading| self.started + Duration::from_nanos(reading.at_ns);
            used.measured_share = span.and_then(|span| share_within((at(begin), at(end)), span));
            used.measured_ns = end.at_ns.saturating_sub(begin.at_ns);
            used.measured_from_ns = begin.at_ns;
            used.switches_voluntary = end.threads.voluntary.saturating_sub(begin.threads.voluntary);
            used.switches_involuntary = end.threads.involuntary.saturating_sub(begin.threads.involuntary);
        }
        if let (Some(container), Some(group)) = (&mut used.container, &self.cgroup) {
            container.cgroup = Some(group.used(usage));
        }
        used.rss_max_bytes = self.samples.iter().map(|sample| sample.rss_bytes).max().max(peak);
        used.pss_max_bytes = self.samples.iter().filter_map(|sample| sample.pss_bytes).max();
        used.threads_max = self.samples.iter().map(|sample| sample.threads).max().unwrap_or(0);
        used.sockets_max = self.samples.iter().filter_map(|sample| sample.sockets).max().unwrap_or(0);
        used.samples = self.samples;
    }

    fn member_stats(&self) -> impl Iterator<Item = Stat> {
        self.members.iter().filter_map(|pid| Stat::read(&self.proc, *pid))
    }

    /// Searches for members: processes of the group, and children of members that have left it.
    fn find_members(&mut self) {
        self.members_at = Some(lab_clocks::now());
        if let Some(members) = self.cgroup.as_ref().and_then(Cgroup::members) {
            self.members = members;
            return;
        }
        let alive: BTreeSet<u32> = procfs::pids(&self.proc).collect();
        self.members.retain(|pid| alive.contains(pid));
        self.strangers.retain(|pid| alive.contains(pid));
        let new = alive.into_iter().filter(|pid| !self.members.contains(pid) && !self.strangers.contains(pid));
        let parents = new.filter_map(|pid| {
            let stat = Stat::read(&self.proc, pid)?;
            Some((pid, stat.parent, pid == self.group || stat.group == self.group))
        });
        let mut left = parents.collect::<Vec<_>>();
        while let Some(at) = left.iter().position(|(_, parent, is_ours)| *is_ours || self.members.contains(parent)) {
            self.members.push(left.swap_remove(at).0);
        }
        self.strangers.extend(left.into_iter().map(|(pid, ..)| pid));
    }
}

/// Share of `span` covered by the time between `readings`; `None` if `span` is empty or the two do not overlap.
fn share_within(readings: Moments, span: Moments) -> Option<f64> {
    let whole = span.1.saturating_duration_since(span.0);
    let part = readings.1.min(span.1).saturating_duration_since(readings.0.max(span.0));
    (!part.is_zero()).then(|| part.as_secs_f64() / whole.as_secs_f64())
}

/// Time in ns during which `cpus` ran processes or were taken by the host of a virtual machine; `text` is `/proc/stat`.
/// Excludes interrupts, because network interrupts serve the server. `None` if unknown. Source: proc_stat(5).
fn busy_ns(text: &str, cpus: &[u32]) -> Option<u64> {
    let of = |cpu: &u32| {
        let line = text.lines().find_map(|line| line.strip_prefix(&format!("cpu{cpu} ")))?;
        let ticks = line.split_ascii_whitespace().map_while(|word| word.parse().ok()).collect::<Vec<u64>>();
        let [user, nice, system, _idle, _iowait, _irq, _softirq, steal, ..] = ticks[..] else { return None };
        Some((user + nice + system + steal) * tick_ns())
    };
    if cpus.is_empty() { None } else { cpus.iter().map(of).sum() }
}

fn sum(mut values: impl Iterator<Item = Option<u64>>) -> Option<u64> {
    let first = values.by_ref().flatten().next()?;
    Some(first + values.flatten().sum::<u64>())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stat_of(pid: u32, parent: u32, group: u32) -> String {
        format!("{pid} (x) S {parent} {group} 1 0 -1 0 0 0 0 0 10 20 0 0 20 0 2 0 1000 9999 30 1 1 1 0 0")
    }

    fn process(proc: &Path, pid: u32, parent: u32, group: u32) {
        let task = proc.join(format!("{pid}/task/{pid}"));
        fs::create_dir_all(&task).unwrap();
        fs::create_dir_all(proc.join(format!("{pid}/fd"))).unwrap();
        fs::write(proc.join(format!("{pid}/stat")), stat_of(pid, parent, group)).unwrap();
        fs::write(proc.join(format!("{pid}/status")), "Name: x\nVmHWM:\t     12 kB\n").unwrap();
        fs::write(proc.join(format!("{pid}/smaps_rollup")), "0-1 [rollup]\nRss:  9 kB\nPss:   5 kB\nPss_Dirty: 1 kB\n")
            .unwrap();
        fs::write(task.join("status"), "voluntary_ctxt_switches:\t7\nnonvoluntary_ctxt_switches:\t3\n").unwrap();
        let _ = std::os::unix::fs::symlink("socket:[123]", proc.join(format!("{pid}/fd/3")));
        let _ = std::os::unix::fs::symlink("/dev/null", proc.join(format!("{pid}/fd/0")));
    }

    #[test]
    fn counts_the_group_and_children_that_left_it() {
        let folder = tempfile::tempdir().unwrap();
        let proc = folder.path();
        process(proc, 70, 1, 70); // the leader
        process(proc, 71, 70, 70); // a worker
        process(proc, 69, 71, 69); // a child that left the group, listed before its parent
        process(proc, 80, 1, 80); // an unrelated process
        let cpu_times = |user: u64| {
            format!("cpu  9 9 9 9 9 9 9 9 0 0\ncpu1 {user} 5 10 70 1 2 3 4 0 0\ncpu2 1 0 0 9 0 0 0 0 0 0\n")
        };
        fs::write(proc.join("stat"), cpu_times(20)).unwrap();
        fs::write(proc.join("71/task/71/schedstat"), "0 5000 9\n").unwrap();
        let started = lab_clocks::now();
        let mut sampler = Sampler::new(proc, 70, started, &[1, 2]);
        sampler.read();
        sampler.tick();
        let stat = stat_of(71, 70, 70).replace(" 10 20 0 0 ", " 110 25 0 0 ");
        fs::write(proc.join("71/stat"), stat).unwrap();
        fs::write(proc.join("71/task/71/status"), "voluntary_ctxt_switches:\t17\nnonvoluntary_ctxt_switches:\t4\n")
            .unwrap();
        fs::write(proc.join("stat"), cpu_times(20 + 130)).unwrap();
        fs::write(proc.join("71/task/71/schedstat"), "1 45000 9\n").unwrap();
        sampler.read();
        let [begin, end] = [0, 1].map(|nth| sampler.readings[nth]);
        let mut used = SubjectUse::default();
        let at = |ns| started + Duration::from_nanos(ns);
        sampler.finish(Some((at(begin.at_ns - 1_000), at(end.at_ns))), &mut used);
        assert_eq!((used.run_queue_ns, used.others_ns), (Some(40_000), Some(250_000_000)));
        let (whole, part) = ((end.at_ns - begin.at_ns + 1_000) as f64, (end.at_ns - begin.at_ns) as f64);
        assert!(used.measured_share.is_some_and(|share| (share - part / whole).abs() < 1e-9), "{used:?}");
        assert_eq!((used.user_ns, used.system_ns), (1_000_000_000, 50_000_000));
        assert_eq!((used.switches_voluntary, used.switches_involuntary), (10, 1));
        assert_eq!((used.threads_max, used.sockets_max), (6, 3));
        assert_eq!(used.pss_max_bytes, Some(15 * 1024));
        let page = rustix::param::page_size() as u64;
        assert_eq!(used.rss_max_bytes, Some((90 * page).max(36 * 1024)));
        assert_eq!(used.samples.len(), 1);
        assert_eq!(used.samples[0].cpu_ns, 900_000_000);
    }

    #[test]
    fn cpu_time_is_exact_when_both_sources_agree() {
        let tick_ns = tick_ns();
        let cpu = |user_ticks: u64, system_ticks: u64, run_ns: u64, processes: usize| {
            let begin = Reading::default();
            let threads = Counts { run_ns, ..Counts::default() };
            let (user_ns, system_ns) = (user_ticks * tick_ns, system_ticks * tick_ns);
            Reading { user_ns, system_ns, threads, processes, ..begin }.cpu_since(&begin)
        };
        assert_eq!(cpu(3, 1, 4 * tick_ns + 800, 1), (3 * tick_ns + 600, tick_ns + 200));
        assert_eq!(cpu(0, 0, 7_000, 1), (0, 7_000), "less than a tick of anything");
        assert_eq!(cpu(3, 1, 0, 1), (3 * tick_ns, tick_ns), "no exact time from the kernel");
        assert_eq!(cpu(3, 9, 4 * tick_ns, 1), (3 * tick_ns, 9 * tick_ns), "threads ended unseen");
        assert_eq!(
            cpu(0, 8, 12 * tick_ns, 2),
            (0, 12 * tick_ns),
            "the times of both processes were rounded down to ticks"
        );
    }

    #[test]
    fn computes_the_share_between_two_readings() {
        let zero = lab_clocks::now();
        let at = |ms: u64| zero + Duration::from_millis(ms);
        for (begin, end, share) in [
            (100, 600, Some(1.0)),
            (90, 650, Some(1.0)),  // one reading early, one late
            (150, 600, Some(0.9)), // the first reading late
            (100, 350, Some(0.5)), // the second reading early
            (600, 700, None),
        ] {
            assert_eq!(share_within((at(begin), at(end)), (at(100), at(600))), share, "{begin} to {end}");
        }
        assert_eq!(share_within((at(0), at(9)), (at(5), at(5))), None);
    }

    #[test]
    fn busy_time_of_unknown_cpus_is_none() {
        let text = "cpu  1 1 1 1 1 1 1 1\ncpu0 1 2 3 4 5 6 7 8 9 9\ncpu10 1 1\n";
        assert_eq!(busy_ns(text, &[0]), Some(14 * tick_ns()));
        for cpus in [&[][..], &[1], &[0, 10]] {
            assert_eq!(busy_ns(text, cpus), None, "{cpus:?}");
        }
    }

    #[test]
    fn ended_server_leaves_no_sample() {
        let folder = tempfile::tempdir().unwrap();
        let mut sampler = Sampler::new(folder.path(), 70, lab_clocks::now(), &[]);
        sampler.tick();
        let mut used = SubjectUse::default();
        sampler.finish(None, &mut used);
        assert_eq!(used, SubjectUse::default());
    }
}
