//! Measures the current speed and load of a CPU with a short, fixed piece of work.

use std::hint::black_box;

use study::record::Probe;

use crate::lab_clocks;

/// Number of steps in a probe: 10 ms at 3 billion dependent operations per second. It must never change, because
/// probes are compared between runs; a new number needs a new field in the record.
const STEPS: u32 = 5_000_000;
/// Maximum number of CPUs probed per side, so that probes do not keep a large machine busy.
const PROCESSORS_MAX: usize = 4;

/// Probes the first 4 CPUs of each side, all at once. Omits CPUs on which no thread can run.
pub fn run(subject: &[u32], generator: &[u32]) -> Vec<Probe> {
    let mut cpus = [subject, generator].map(|cpus| &cpus[..cpus.len().min(PROCESSORS_MAX)]).concat();
    cpus.sort_unstable();
    cpus.dedup();
    crate::exec::on_each_cpu(&cpus, |number| {
        let (begun, cpu_begun) = (lab_clocks::now(), lab_clocks::thread_cpu_time());
        black_box(stats::random::xorshift(black_box(1), STEPS));
        let (cpu, wall) = (lab_clocks::thread_cpu_time() - cpu_begun, lab_clocks::now() - begun);
        Probe { cpu: number, wall_ns: lab_clocks::nanos(wall), cpu_ns: lab_clocks::nanos(cpu) }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn omits_missing_cpus() {
        let cpus = crate::host_facts::read(std::path::Path::new("/")).cpus;
        let probes = run(&[cpus[0].index, 1_000_000], &[cpus[0].index, 1_000]);
        assert_eq!(probes.iter().map(|probe| probe.cpu).collect::<Vec<_>>(), [cpus[0].index]);
        assert!(probes[0].cpu_ns > 0, "{probes:?}");
        assert_eq!(run(&[], &[]), []);
    }
}
