//! Measures how quiet a CPU is: the share of a busy loop's time that others took.

use std::time::Duration;

use crate::clock;
use crate::exec::on_each_cpu;

/// Minimum length of an interruption, ns. The loop reads the clock about every 50 ns.
const STEP_NS: u64 = 5_000;

/// Interruptions of a busy loop on one CPU.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Noise {
    /// CPU number.
    pub cpu: u32,
    /// Share of the time in which the loop did not run, as a fraction.
    pub lost: f64,
    /// The longest interruption, ns.
    pub longest_ns: u64,
}

/// Measures all of `cpus` at once for `duration`; omits CPUs that the loop cannot be pinned to.
pub fn listen(cpus: &[u32], duration: Duration) -> Vec<Noise> {
    on_each_cpu(cpus, |cpu| listen_on(cpu, duration))
}

fn listen_on(cpu: u32, duration: Duration) -> Noise {
    let begun = clock::now();
    let length = clock::nanos(duration);
    let steps = std::iter::repeat_with(|| clock::nanos(clock::now() - begun));
    let mut ended = false;
    // Includes the first reading after the end, to count an interruption across it.
    let steps = steps.take_while(|at| !std::mem::replace(&mut ended, *at >= length));
    Noise { cpu, ..of_steps(steps) }
}

fn of_steps(steps: impl Iterator<Item = u64>) -> Noise {
    let (mut before, mut lost_ns, mut longest_ns) = (0, 0, 0);
    for at in steps {
        let step = at.saturating_sub(before);
        if step > STEP_NS {
            lost_ns += step;
            longest_ns = longest_ns.max(step);
        }
        before = at;
    }
    Noise { cpu: 0, lost: if before == 0 { 0.0 } else { lost_ns as f64 / before as f64 }, longest_ns }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn even_steps_are_quiet() {
        assert_eq!(of_steps((0..1000).map(|step| step * 100)), Noise::default());
    }

    #[test]
    fn sums_interruptions_and_keeps_the_longest() {
        let noise = of_steps([1_000, 21_000, 22_000, 92_000, 100_000].into_iter());
        assert_eq!((noise.lost, noise.longest_ns), (0.98, 70_000));
    }

    #[test]
    fn no_readings_means_no_noise() {
        assert_eq!(of_steps(std::iter::empty()), Noise::default());
    }

    #[test]
    fn omits_missing_cpus() {
        let cpus: Vec<u32> = crate::host::read(std::path::Path::new("/")).cpus.iter().map(|cpu| cpu.index).collect();
        let heard = listen(&[cpus[0], 1_000_000], Duration::from_millis(5));
        assert_eq!(heard.iter().map(|noise| noise.cpu).collect::<Vec<_>>(), [cpus[0]]);
        assert!((0.0..=1.0).contains(&heard[0].lost), "{heard:?}");
    }
}
