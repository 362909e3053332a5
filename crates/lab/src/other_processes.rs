//! Finds other processes that use CPUs while the lab is idle.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::lab_clocks;
use crate::procfs::{self, Stat};

/// CPU time of other processes per wall time above which the machine counts as busy; 1 is one CPU.
pub const BUSY: f64 = 0.25;

/// A process that uses CPU time.
#[derive(Clone, Debug, PartialEq)]
pub struct User {
    /// Process ID.
    pub pid: u32,
    /// Process name, at most 15 bytes.
    pub name: String,
    /// CPU time per wall time; 1 is one CPU.
    pub share: f64,
}

type Processes = BTreeMap<u32, Stat>;

/// Observes other processes for `duration` and returns those that used a CPU, highest share first.
pub fn users(duration: Duration) -> Vec<User> {
    let (before, begun) = (other_processes(), lab_clocks::now());
    std::thread::sleep(duration);
    let seconds = (lab_clocks::now() - begun).as_secs_f64();
    between(&before, &other_processes(), seconds)
}

/// Describes the three busiest processes; `None` if their total share is at most [`BUSY`].
pub fn words(users: &[User]) -> Option<String> {
    let total = users.iter().map(|user| user.share).sum::<f64>();
    if total <= BUSY {
        return None;
    }
    let percent = |share: f64| format!("{:.0} %", share * 100.0);
    let most = users.iter().take(3).map(|user| format!("process {} `{}` {}", user.pid, user.name, percent(user.share)));
    let most = most.collect::<Vec<_>>().join(", ");
    Some(format!("other processes use {} of a CPU: {most}", percent(total)))
}

fn other_processes() -> Processes {
    let proc = std::path::Path::new("/proc");
    let others = procfs::pids(proc).filter(|pid| *pid != std::process::id());
    others.filter_map(|pid| Some((pid, Stat::read(proc, pid)?))).collect()
}

fn between(before: &Processes, after: &Processes, seconds: f64) -> Vec<User> {
    let user = |(pid, now): (&u32, &Stat)| {
        // A process that started after the first reading has used all its CPU time since then.
        let then = before.get(pid).filter(|then| then.started_ticks == now.started_ticks).map_or(0, |then| then.own_ns);
        let share = now.own_ns.saturating_sub(then) as f64 / 1e9 / seconds.max(1e-3);
        (share > 0.0).then(|| User { pid: *pid, name: now.name.clone(), share })
    };
    let mut users = after.iter().filter_map(user).collect::<Vec<_>>();
    users.sort_by(|a, b| b.share.total_cmp(&a.share));
    users
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(processes: &[(u32, &str, u64, u64)]) -> Processes {
        let process = |&(pid, name, ticks, started_ticks): &(u32, &str, u64, u64)| {
            (pid, Stat { name: name.to_owned(), own_ns: ticks * 10_000_000, started_ticks, ..Stat::default() })
        };
        processes.iter().map(process).collect()
    }

    #[test]
    fn sorts_by_highest_share() {
        let before = at(&[(1, "kworker/0:1-mm", 500, 0), (2, "rustc", 100, 7), (3, "gone", 9, 8), (5, "old", 900, 9)]);
        let after =
            at(&[(1, "kworker/0:1-events", 500, 0), (2, "rustc", 150, 7), (4, "new", 10, 50), (5, "reused", 2, 51)]);
        let users = between(&before, &after, 0.5);
        let seen = users.iter().map(|user| (user.pid, user.share)).collect::<Vec<_>>();
        assert_eq!(seen, [(2, 1.0), (4, 0.2), (5, 0.04)]);
        assert_eq!(
            words(&users).as_deref(),
            Some(
                "other processes use 124 % of a CPU: process 2 `rustc` 100 %, process 4 `new` 20 %, process 5 `reused` \
                 4 %"
            )
        );
        assert_eq!(words(&users[1..]), None, "a quarter of a CPU is not busy");
        assert_eq!(words(&[]), None);
    }

    #[test]
    fn excludes_this_process() {
        assert!(other_processes().keys().all(|pid| *pid != std::process::id()));
        assert!(users(Duration::from_millis(1)).iter().all(|user| user.share > 0.0));
    }
}
