//! System calls about the current thread or process: CPU affinity, scheduling and resource usage.

use std::ffi::c_int;
use std::io;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use rustix::thread::CpuSet;
use rustix::time::ClockId;

use crate::driver::Nanos;

/// Pins this thread, and threads that it starts later, to these CPUs. Fails if none of the CPUs is available.
pub fn set_affinity(cpus: &[u32]) -> io::Result<()> {
    let mut set = CpuSet::new();
    for &cpu in cpus {
        let cpu = cpu as usize;
        if cpu >= CpuSet::MAX_CPU {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, format!("no CPU {cpu}")));
        }
        set.set(cpu);
    }
    match rustix::thread::sched_setaffinity(None, &set) {
        // The kernel's message, "Invalid argument", names neither the CPU nor the available ones.
        Err(rustix::io::Errno::INVAL) => {
            let list = |cpus: &[u32]| cpus.iter().map(u32::to_string).collect::<Vec<_>>().join(", ");
            let (asked, available) = (list(cpus), list(&affinity()?));
            let text = format!("no CPU {asked} is available to this process, which may use CPUs {available}");
            Err(io::Error::new(io::ErrorKind::InvalidInput, text))
        }
        other => Ok(other?),
    }
}

/// The CPUs on which the calling thread may run, in ascending order. Fails with the error of the system call.
pub fn affinity() -> io::Result<Vec<u32>> {
    let set = rustix::thread::sched_getaffinity(None)?;
    Ok((0..CpuSet::MAX_CPU).filter(|&cpu| set.is_set(cpu)).map(|cpu| cpu as u32).collect())
}

/// Runs this thread only on idle CPUs (`SCHED_IDLE`). Older kernels require privileges to undo this.
pub fn sched_idle() -> io::Result<()> {
    // The constant is from linux/sched.h, the function from the C library. Both are the same on every architecture.
    const SCHED_IDLE: c_int = 5;
    #[repr(C)]
    struct SchedParam {
        sched_priority: c_int,
    }
    unsafe extern "C" {
        fn sched_setscheduler(pid: c_int, policy: c_int, param: *const SchedParam) -> c_int;
    }
    // SAFETY: `param` is a whole `struct sched_param` of Linux, read during the call only; pid 0 is the calling thread.
    match unsafe { sched_setscheduler(0, SCHED_IDLE, &SchedParam { sched_priority: 0 }) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Returns freed memory to the system, which glibc would keep. Other C libraries need no call.
pub fn release_memory() {
    #[cfg(target_env = "gnu")]
    {
        unsafe extern "C" {
            fn malloc_trim(pad: usize) -> c_int;
        }
        // SAFETY: this glibc function takes its own locks and may be called at any time, see malloc_trim(3).
        unsafe { malloc_trim(0) };
    }
}

/// Time in ns of the monotonic clock, which drivers with real sockets use.
pub fn monotonic_ns() -> Nanos {
    clock(ClockId::Monotonic)
}

/// Time since 1970-01-01 00:00 UTC, in ns.
pub fn unix_ns() -> Nanos {
    clock(ClockId::Realtime)
}

/// CPU time of the calling thread in ns, user and system.
pub fn thread_cpu_ns() -> Nanos {
    clock(ClockId::ThreadCPUTime)
}

/// CPU time of this process in ns, user and system, including ended threads.
pub fn process_cpu_ns() -> Nanos {
    clock(ClockId::ProcessCPUTime)
}

fn clock(id: ClockId) -> Nanos {
    let time = rustix::time::clock_gettime(id);
    time.tv_sec as Nanos * 1_000_000_000 + time.tv_nsec as Nanos
}

/// Peak resident memory of this process in bytes, from `VmHWM`; `None` if it cannot be read. `getrusage` would
/// include the program that ran before `exec`.
pub fn process_peak_rss() -> Option<u64> {
    peak_rss(&std::fs::read_to_string("/proc/self/status").ok()?)
}

fn peak_rss(status: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kib.checked_mul(1024)
}

/// Raises the limit of open files (`RLIMIT_NOFILE`) to at least `needed`, which requires privileges if the hard limit
/// is lower. Returns the limit (`u64::MAX` if unlimited), as an error if it is still below `needed`.
pub fn raise_open_files(needed: u64) -> Result<u64, u64> {
    let have = getrlimit(Resource::Nofile);
    let now = have.current.unwrap_or(u64::MAX);
    if now >= needed {
        return Ok(now);
    }
    let both = Rlimit { current: Some(needed), maximum: have.maximum.map(|maximum| maximum.max(needed)) };
    let soft = Rlimit { current: have.maximum.map(|maximum| maximum.min(needed)), maximum: have.maximum };
    // If both fail, the current limit is still below `needed`.
    let _ = setrlimit(Resource::Nofile, both).or_else(|_| setrlimit(Resource::Nofile, soft));
    let now = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
    if now >= needed { Ok(now) } else { Err(now) }
}

/// Number of open files of this process, from `/proc/self/fd`. Fails without `/proc`.
pub fn open_files() -> io::Result<u64> {
    Ok(std::fs::read_dir("/proc/self/fd")?.count().saturating_sub(1) as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pinned_thread_stays_on_its_cpu() {
        std::thread::spawn(|| {
            let allowed = affinity().unwrap();
            let last = *allowed.last().unwrap();
            set_affinity(&[last]).unwrap();
            assert_eq!(affinity().unwrap(), [last]);
            assert_eq!(rustix::thread::sched_getcpu(), last as usize);
            set_affinity(&allowed).unwrap();
            assert_eq!(affinity().unwrap(), allowed);
            assert!(set_affinity(&[u32::MAX]).is_err());
            let missing = (0..CpuSet::MAX_CPU as u32).rev().find(|cpu| !allowed.contains(cpu)).unwrap();
            let error = set_affinity(&[missing]).unwrap_err().to_string();
            let named =
                error.starts_with(&format!("no CPU {missing} ")) && error.contains(&format!("CPUs {}", allowed[0]));
            assert!(named, "{error}");
        })
        .join()
        .unwrap();
    }

    #[test]
    fn sched_idle_thread_still_runs() {
        std::thread::spawn(|| {
            sched_idle().unwrap();
            let stat = std::fs::read_to_string("/proc/thread-self/stat").unwrap();
            let policy = stat.rsplit(')').next().unwrap().split_whitespace().nth(38).unwrap().to_owned();
            assert_eq!(policy, "5", "field 41 of proc_pid_stat(5)");
        })
        .join()
        .unwrap();
    }

    #[test]
    fn cpu_times_and_peak_memory_increase() {
        let (thread, process) = (thread_cpu_ns(), process_cpu_ns());
        let mut sum = 0u64;
        while thread_cpu_ns() == thread {
            sum = std::hint::black_box(sum + 1);
        }
        assert!(process_cpu_ns() > process);
    }

    #[test]
    fn excessive_file_limit_fails_with_highest_possible() {
        let before = getrlimit(Resource::Nofile);
        assert_eq!(raise_open_files(1), Ok(before.current.unwrap_or(u64::MAX)), "enough is left as it is");
        let most = raise_open_files(u64::MAX - 1).unwrap_err();
        let now = getrlimit(Resource::Nofile);
        assert_eq!(now.current, Some(most), "the most is in force");
        assert!(before.current.is_some_and(|current| most >= current));
        assert_eq!(raise_open_files(most), Ok(most));
        let (few, file) = (open_files().unwrap(), std::fs::File::open("/").unwrap());
        assert!(few >= 1);
        drop(file);
    }

    #[test]
    fn peak_memory_is_in_bytes() {
        assert_eq!(peak_rss("Name:\tx\nVmHWM:\t    1024 kB\nVmRSS:\t 512 kB\n"), Some(1 << 20));
        assert_eq!(peak_rss("VmHWM:\t1024 MB\n"), None);
        assert_eq!(peak_rss(""), None);
        assert!(process_peak_rss().unwrap() > 100_000);
    }
}
