//! Handles other processes that use CPUs during a comparison: names them, waits for them to finish, and gives advice.

use std::time::Duration;

use analysis::Findings;
use analysis::findings::{GateTest, GateVerdict, Mark};
use analysis::number::count;
use lab::other_processes::User;

use crate::{output, signals};

/// Length of one observation of other processes.
const LOOK: Duration = Duration::from_millis(500);
/// Number of consecutive quiet observations that end the wait.
const LOOKS: u32 = 4;

/// Waits up to `max` until other processes use at most [`lab::other_processes::BUSY`] CPUs; names the busiest ones.
pub(crate) fn wait(max: Duration) {
    wait_with(max, &signals::is_interrupted, || lab::other_processes::users(LOOK), output::message);
}

fn wait_with(
    max: Duration,
    interrupted: &dyn Fn() -> bool,
    mut look: impl FnMut() -> Vec<User>,
    mut tell: impl FnMut(&str),
) {
    let (mut quiet, mut named, mut waited) = (0, None, Duration::ZERO);
    while quiet < LOOKS && !interrupted() {
        let users = look();
        let Some(words) = lab::other_processes::words(&users) else {
            quiet += 1;
            continue;
        };
        quiet = 0;
        waited += LOOK;
        if waited >= max {
            let max = output::time_words(max.as_secs_f64());
            return tell(&format!("warning: still not quiet after {max}: {words}"));
        }
        // The message is repeated when the busiest process changes.
        let first = users.first().map(|user| user.pid);
        if first != named {
            named = first;
            tell(&format!("waiting for a quiet machine: {words}"));
        }
    }
}

pub(crate) fn warn() {
    if let Some(words) = lab::other_processes::words(&lab::other_processes::users(LOOK)) {
        let hint = "ratios hold, but take more pairs; `--wait-quiet 10m` waits until they are done";
        output::message(&format!("warning: {words}\n  = help: {hint}"));
    }
}

fn is_open(test: &GateTest) -> bool {
    matches!(test.verdict, GateVerdict::Undecided | GateVerdict::NoVerdict)
}

/// Early warning that a comparison is unlikely to reach a verdict in its remaining time `left`; `None` otherwise.
pub(crate) fn outlook(findings: &Findings, left: Option<Duration>) -> Option<String> {
    let gate = findings.gate.as_ref()?;
    let tests = gate.tests.iter().filter(|test| !test.is_about_errors()).collect::<Vec<_>>();
    if let Some(reason) = tests.iter().map(|test| test.reason.as_deref()).collect::<Option<Vec<_>>>() {
        return Some(format!("no verdict is likely: {}", reason.first()?));
    }
    let needed = tests.iter().filter(|test| is_open(test)).map(|test| test.more_ns).collect::<Vec<_>>();
    let least = needed.iter().flatten().min().map(|ns| Duration::from_nanos(*ns));
    let (least, left) = least.zip(left)?;
    let is_hopeless = needed.len() == tests.len() && least > left;
    is_hopeless.then(|| {
        let [least, left] = [least, left].map(|time| output::time_words(time.as_secs_f64()));
        format!("a verdict is likely to take about {least} more; `--max-time` leaves {left}")
    })
}

/// Advice for a comparison that reached no verdict; `None` if it reached one.
pub(crate) fn advice(findings: &Findings) -> Option<String> {
    let gate = findings.gate.as_ref()?;
    let open = gate.tests.iter().filter(|test| is_open(test) && !test.is_about_errors()).collect::<Vec<_>>();
    let is_decided = gate.tests.iter().any(|test| matches!(test.verdict, GateVerdict::Worse));
    if open.is_empty() || is_decided || findings.rows.iter().any(|row| row.n == 0) {
        return None;
    }
    let has = |mark: Mark| findings.rows.iter().any(|row| row.marks.contains(&mark));
    let mut advice = Vec::new();
    if open.iter().any(|test| test.verdict == GateVerdict::NoVerdict) && has(Mark::GeneratorBound) {
        let text = "the generator was the limit: offer less load (`-c`), give it more CPUs, or compare by \
                    `subject_cpu_per_request` or `subject_rss`, which it does not limit";
        advice.push(text.to_owned());
    }
    if let Some(words) = lab::other_processes::words(&lab::other_processes::users(LOOK)) {
        advice.push(format!("`--wait-quiet 10m` waits for a quiet machine ({words})"));
    } else if has(Mark::Shared) {
        advice.push("`--wait-quiet 10m` waits for a quiet machine".to_owned());
    }
    let first = u64::from(stats::gate::FIRST_LOOK);
    let too_few = open.iter().map(|test| test.pairs).min().filter(|pairs| *pairs < first).map(|pairs| {
        let missing = first - pairs;
        (missing, gate.cost_ns / pairs.max(1) * missing)
    });
    let more = open.iter().filter_map(|test| test.more_pairs.zip(test.more_ns)).min();
    if let Some((pairs, ns)) = too_few.or(more) {
        let time = (gate.cost_ns.saturating_add(ns)).div_ceil(60_000_000_000);
        advice.push(format!("`--max-time {time}m` allows {} more, which may decide", count(pairs, "pair")));
    }
    (!advice.is_empty()).then(|| format!("next    {}", advice.join("; or ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the messages and the number of observations of a wait of at most 2 s. Each number in `busy` is the
    /// process that uses a CPU during one observation; 0 means none.
    fn waited(busy: &[u32]) -> (Vec<String>, usize) {
        let (mut messages, mut looks) = (Vec::new(), 0);
        let look = || {
            let pid = busy.get(looks).copied().unwrap_or(0);
            looks += 1;
            let user = User { pid, name: format!("cc{pid}"), share: 1.0 };
            Some(user).filter(|_| pid > 0).into_iter().collect()
        };
        wait_with(Duration::from_secs(2), &|| false, look, |text| messages.push(text.to_owned()));
        (messages, looks)
    }

    #[test]
    fn waits_until_the_machine_stays_quiet() {
        assert_eq!(waited(&[]), (vec![], 4));
        let (messages, looks) = waited(&[7, 7, 0, 0, 0, 8]);
        assert_eq!(looks, 10, "four quiet observations in a row");
        let told = |pid: u32| {
            format!("waiting for a quiet machine: other processes use 100 % of a CPU: process {pid} `cc{pid}` 100 %")
        };
        assert_eq!(messages, [told(7), told(8)]);
    }

    #[test]
    fn waits_no_longer_than_allowed() {
        let (messages, looks) = waited(&[7; 20]);
        assert_eq!(looks, 4, "2 s of observations of 500 ms");
        let last = "warning: still not quiet after 2 s: other processes use 100 % of a CPU: process 7 `cc7` 100 %";
        assert_eq!(messages.last().map(String::as_str), Some(last));
    }
}
