//! Starts the process that takes a change back unless it is confirmed: in a transient unit of systemd where systemd runs, which
//! needs neither the command that began it, nor its service, nor a terminal.

mod unit;

use crate::record::Record;
use crate::record::unconfirmed::Unconfirmed;
use crate::system::ancestry;
use sluice_error::{Doing, Result};
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

/// Name of the waiting process's command; it gets the record's key and the deadline.
pub const WAITING: &str = "await-confirmation";

/// Starts the waiting process, if the record's change has to be confirmed.
pub(crate) fn start_waiting(record: &Record) -> Result<()> {
    match &record.unconfirmed {
        Some(unconfirmed) if !unit::start(record, unconfirmed) => start_process(record, unconfirmed),
        _ => Ok(()),
    }
}

/// Starts the process that waits: this program, in a session of its own.
fn start_process(record: &Record, unconfirmed: &Unconfirmed) -> Result<()> {
    // The mounts of `ip netns exec` hide the pins, and the process whose mounts show them may have ended by then.
    let mounts = ancestry::outer_mounts();
    let mut command = Command::new("/proc/self/exe");
    command
        .arg0("sluice")
        .args([WAITING, &record.key, &unconfirmed.deadline_ms.to_string()])
        .current_dir("/")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    // SAFETY: between fork and exec only system calls that take numbers.
    unsafe {
        command.pre_exec(move || {
            nix::unistd::setsid()?;
            if let Some(mounts) = &mounts {
                // A process without the right to enter those mounts sees the pins only while its caller lives.
                let _ = nix::sched::setns(mounts, nix::sched::CloneFlags::CLONE_NEWNS);
            }
            // Inherited descriptors would hold the lock as long as the process waits.
            libc::close_range(3, libc::c_uint::MAX, libc::CLOSE_RANGE_CLOEXEC as libc::c_int);
            Ok(())
        })
    };
    let mut waiting = command.spawn().doing(|| "starting the process that waits for the confirmation".to_owned())?;
    // A command ends long before; a parent that stays, such as the server, leaves no zombie.
    std::thread::spawn(move || waiting.wait());
    Ok(())
}
