//! The priority of programs that tell times: above all programs that have no deadlines, so that a time is how long a packet took and not
//! how long the program waited for a processor.

use std::fs;
use std::path::Path;
use std::sync::OnceLock;

/// How a program gets ahead of others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Priority {
    /// SCHED_FIFO with the lowest of its priorities (sched(7)).
    RealTime,
    /// The best nice value.
    Nice,
}

const FIRST: nix::libc::c_int = 1;
const BEST_NICE: nix::libc::c_int = -20;

impl Priority {
    /// The one that is sound on this machine. A kernel that schedules real-time tasks by groups (RT_GROUP_SCHED, with version 1 of
    /// control groups) throttles them: on Linux 6.18 it was seen to stop them for good.
    pub fn of_this_machine() -> Priority {
        static FOUND: OnceLock<Priority> = OnceLock::new();
        *FOUND.get_or_init(|| {
            let mounts = fs::read_to_string("/proc/mounts").unwrap_or_default();
            let mut directories = mounts.lines().filter_map(|line| line.split_whitespace().nth(1));
            let throttles = directories.any(|directory| Path::new(directory).join("cpu.rt_runtime_us").exists());
            if throttles { Priority::Nice } else { Priority::RealTime }
        })
    }

    /// Gives it to this process. Where the kernel refuses, as without root, the process keeps the priority it has.
    pub fn take(self) {
        match self {
            Priority::RealTime => {
                let priority = nix::libc::sched_param { sched_priority: FIRST };
                // SAFETY: the structure outlives the call, which only reads it.
                unsafe { nix::libc::sched_setscheduler(0, nix::libc::SCHED_FIFO, &raw const priority) };
            }
            // SAFETY: the call has no memory to do with.
            Priority::Nice => unsafe {
                nix::libc::setpriority(nix::libc::PRIO_PROCESS, 0, BEST_NICE);
            },
        }
    }
}
