//! `quintain exec`: pins itself, arranges to die with its parent, and becomes another program, pinned from its start.

use std::convert::Infallible;
use std::ffi::OsString;
use std::io;
use std::os::unix::process::CommandExt;

use rustix::process::{Pid, Signal, getppid, set_parent_process_death_signal};
use rustix::thread::{CpuSet, sched_setaffinity};

/// Pins this process to `cpus`, if any, has the kernel kill it when `parent` dies, and becomes `command`. Returns
/// only on failure: no command, an unusable CPU, a parent that has exited, or a missing program. The kernel watches the
/// *thread* that started the process (prctl(2), PR_SET_PDEATHSIG), so the lab starts everything from one thread.
pub fn become_command(cpus: &[u32], parent: Option<u32>, command: &[OsString]) -> io::Result<Infallible> {
    let Some((program, arguments)) = command.split_first() else {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "no command given"));
    };
    if !cpus.is_empty() {
        pin(cpus)?;
    }
    if let Some(parent) = parent {
        set_parent_process_death_signal(Some(Signal::KILL))?;
        // If the parent has died already, the kernel would never kill this process.
        if getppid().map(Pid::as_raw_pid) != i32::try_from(parent).ok() {
            return Err(io::Error::other(format!("parent process {parent} has exited")));
        }
    }
    Err(crate::process_start_and_stop::command(program).args(arguments).exec())
}

fn pin(cpus: &[u32]) -> io::Result<()> {
    let mut set = CpuSet::new();
    for &cpu in cpus {
        if cpu as usize >= CpuSet::MAX_CPU {
            let text = format!("CPU {cpu} is above the highest supported, {}", CpuSet::MAX_CPU - 1);
            return Err(io::Error::new(io::ErrorKind::InvalidInput, text));
        }
        set.set(cpu as usize);
    }
    sched_setaffinity(None, &set).map_err(|error| {
        io::Error::new(error.kind(), format!("cannot pin to {}: {error}", crate::cpu_list::format(cpus)))
    })
}

/// Runs `work` on all of `cpus` at once in pinned threads. Omits CPUs on which no thread can run.
pub(crate) fn on_each_cpu<T: Send>(cpus: &[u32], work: impl Fn(u32) -> T + Sync) -> Vec<T> {
    let pinned = |cpu| pin(&[cpu]).ok().map(|()| work(cpu));
    std::thread::scope(|scope| {
        let spawn = |&cpu: &u32| {
            let pinned = &pinned;
            std::thread::Builder::new().stack_size(64 * 1024).spawn_scoped(scope, move || pinned(cpu)).ok()
        };
        // `collect` starts all threads before the first one is joined.
        let threads: Vec<_> = cpus.iter().filter_map(spawn).collect();
        threads.into_iter().filter_map(|thread| thread.join().ok().flatten()).collect()
    })
}
