//! The priority of programs that measure times. It is above all programs without deadlines, so that a measured time is a
//! packet's and not the program's wait for a processor.

/// The scheduling priority of a program that measures times.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Priority {
    /// SCHED_FIFO with the lowest of its priorities (sched(7)).
    RealTime,
    /// The best nice value.
    Nice,
}

const FIFO_PRIORITY: nix::libc::c_int = 1;
const BEST_NICE: nix::libc::c_int = -20;

impl Priority {
    /// The safe priority for this machine. A virtual machine of ours runs nothing else. On other machines a real-time priority is a risk:
    /// irtt (Go) spins for a moment whenever it is idle, and was seen to be throttled for good by Linux 6.18 with RT_GROUP_SCHED.
    pub fn of_this_machine() -> Priority {
        if std::env::var_os("SLUICE_VM").is_some() { Priority::RealTime } else { Priority::Nice }
    }

    /// Gives this process the priority. Where the kernel refuses, as without root, the process keeps the priority it has.
    pub fn take(self) {
        match self {
            Priority::RealTime => {
                let priority = nix::libc::sched_param { sched_priority: FIFO_PRIORITY };
                // SAFETY: the structure outlives the call, which only reads it.
                unsafe { nix::libc::sched_setscheduler(0, nix::libc::SCHED_FIFO, &raw const priority) };
            }
            // SAFETY: the call takes numbers only.
            Priority::Nice => unsafe {
                nix::libc::setpriority(nix::libc::PRIO_PROCESS, 0, BEST_NICE);
            },
        }
    }
}
