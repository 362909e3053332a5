//! What a thread or process asks the kernel about itself: where it runs, how it is scheduled, what it has used.

use std::ffi::c_int;
use std::io;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use rustix::thread::CpuSet;
use rustix::time::ClockId;

use crate::driver::Nanos;

/// Keeps the calling thread, and the threads it starts from here on, on one CPU. Fails if that CPU does not exist or is
/// not available to this process.
pub fn pin_current_thread(cpu: u32) -> io::Result<()> {
    set_affinity(&[cpu])
}

/// Likewise, on several processors. One that does not exist is ignored while another of them does: so the kernel has
/// it.
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
        // The kernel's own words, "Invalid argument", name neither the CPU nor those it has.
        Err(rustix::io::Errno::INVAL) => {
            let list = |cpus: &[u32]| cpus.iter().map(u32::to_string).collect::<Vec<_>>().join(", ");
            let (asked, available) = (list(cpus), list(&affinity()?));
            let text = format!("no CPU {asked} is available to this process, which may use CPUs {available}");
            Err(io::Error::new(io::ErrorKind::InvalidInput, text))
        }
        other => Ok(other?),
    }
}

/// The processors that the calling thread may run on, ascending.
pub fn affinity() -> io::Result<Vec<u32>> {
    let set = rustix::thread::sched_getaffinity(None)?;
    Ok((0..CpuSet::MAX_CPU).filter(|&cpu| set.is_set(cpu)).map(|cpu| cpu as u32).collect())
}

/// Lets the calling thread run only where nobody else wants to (`SCHED_IDLE`). It cannot be taken back without
/// privilege on older kernels.
pub fn sched_idle() -> io::Result<()> {
    // From linux/sched.h and the C library; neither changes, and both are the same on every architecture.
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

/// Returns free memory of the allocator to the system. glibc keeps what a burst left behind; other C
/// libraries need no call.
pub fn release_memory() {
    #[cfg(target_env = "gnu")]
    {
        unsafe extern "C" {
            fn malloc_trim(pad: usize) -> c_int;
        }
        // SAFETY: glibc's own function, which takes its locks and may be called at any time, malloc_trim(3).
        unsafe { malloc_trim(0) };
    }
}

/// The monotonic clock, the one of the drivers on real sockets.
#[inline]
pub fn monotonic_ns() -> Nanos {
    clock(ClockId::Monotonic)
}

/// The processor time that the calling thread has used, user and system.
pub fn thread_cpu_ns() -> Nanos {
    clock(ClockId::ThreadCPUTime)
}

/// The processor time that this process has used, user and system, threads that ended included.
pub fn process_cpu_ns() -> Nanos {
    clock(ClockId::ProcessCPUTime)
}

#[inline]
fn clock(id: ClockId) -> Nanos {
    let time = rustix::time::clock_gettime(id);
    time.tv_sec as Nanos * 1_000_000_000 + time.tv_nsec as Nanos
}

/// The most memory that this process ever had resident, in bytes. From `VmHWM`: `getrusage` would also know of the
/// program that this process was before its `exec`.
pub fn process_peak_rss() -> io::Result<u64> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    peak_rss(&status).ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, "/proc/self/status has no VmHWM"))
}

fn peak_rss(status: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kib.checked_mul(1024)
}

/// Lets this process have `needed` files open (`RLIMIT_NOFILE`), and starts no lower than it was; the limit from then on, which is
/// `u64::MAX` where there is none. Privilege is used where the hard limit is too low.
///
/// # Errors
/// The highest limit that can be had, where it is below `needed`. It is in force then.
pub fn raise_open_files(needed: u64) -> Result<u64, u64> {
    let have = getrlimit(Resource::Nofile);
    let enough = |limit: Option<u64>| limit.is_none_or(|limit| limit >= needed);
    if enough(have.current) {
        return Ok(have.current.unwrap_or(u64::MAX));
    }
    let most = have.maximum.map_or(needed, |maximum| maximum.min(needed));
    let soft = Rlimit { current: Some(most), maximum: have.maximum };
    let both = Rlimit { current: Some(needed), maximum: Some(needed) };
    let raised = if enough(have.maximum) {
        setrlimit(Resource::Nofile, soft)
    } else {
        setrlimit(Resource::Nofile, both).or_else(|_| setrlimit(Resource::Nofile, soft))
    };
    let now = getrlimit(Resource::Nofile).current;
    match raised {
        Ok(()) if enough(now) => Ok(now.unwrap_or(u64::MAX)),
        _ => Err(now.unwrap_or(u64::MAX)),
    }
}

/// Files that this process has open, by `/proc/self/fd`.
///
/// # Errors
/// Where there is no `/proc`.
pub fn open_files() -> io::Result<u64> {
    // The directory that is being read is open too, and no longer counts when this returns.
    Ok(std::fs::read_dir("/proc/self/fd")?.count().saturating_sub(1) as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_stays_where_it_is_pinned() {
        std::thread::spawn(|| {
            let allowed = affinity().unwrap();
            let last = *allowed.last().unwrap();
            pin_current_thread(last).unwrap();
            assert_eq!(affinity().unwrap(), [last]);
            assert_eq!(rustix::thread::sched_getcpu(), last as usize);
            set_affinity(&allowed).unwrap();
            assert_eq!(affinity().unwrap(), allowed);
            assert!(pin_current_thread(u32::MAX).is_err());
            let missing = (0..CpuSet::MAX_CPU as u32).rev().find(|cpu| !allowed.contains(cpu)).unwrap();
            let error = pin_current_thread(missing).unwrap_err().to_string();
            let named =
                error.starts_with(&format!("no CPU {missing} ")) && error.contains(&format!("CPUs {}", allowed[0]));
            assert!(named, "{error}");
        })
        .join()
        .unwrap();
    }

    #[test]
    fn an_idle_thread_still_runs() {
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
    fn what_was_used_grows() {
        let (thread, process) = (thread_cpu_ns(), process_cpu_ns());
        let mut sum = 0u64;
        while thread_cpu_ns() == thread {
            sum = std::hint::black_box(sum + 1);
        }
        assert!(process_cpu_ns() > process);
    }

    #[test]
    fn more_files_than_the_kernel_allows_are_refused_with_what_it_does() {
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
    fn the_peak_is_in_bytes() {
        assert_eq!(peak_rss("Name:\tx\nVmHWM:\t    1024 kB\nVmRSS:\t 512 kB\n"), Some(1 << 20));
        assert_eq!(peak_rss("VmHWM:\t1024 MB\n"), None);
        assert_eq!(peak_rss(""), None);
        assert!(process_peak_rss().unwrap() > 100_000);
    }
}
