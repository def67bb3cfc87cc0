//! A transient unit of systemd for the process that takes a change back: the unit outlives the service, the session and the
//! mounts of the command that made the change. (A timer unit would not count the time that the machine sleeps.)

use super::{Unconfirmed, WAITING};
use crate::record::Record;
use crate::system::{iproute, netns};
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Stdio;

/// Directory that exists where systemd is the machine's first process (sd_booted(3)).
const BOOTED: &str = "/run/systemd/system";
/// Directory in which `ip netns` keeps namespaces.
const NAMESPACES: &str = "/run/netns";

/// Starts the unit. Returns whether it runs; if not, the caller must start the process itself.
pub(super) fn start(record: &Record, unconfirmed: &Unconfirmed) -> bool {
    let program = std::env::current_exe().ok().filter(|path| path.exists());
    let Some((program, place)) = program.zip(place(record.netns)).filter(|_| Path::new(BOOTED).is_dir()) else {
        return false;
    };
    let mut command = iproute::command("systemd-run");
    command.args(arguments(record, unconfirmed, &program, &place));
    command.stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok_and(|status| status.success())
}

/// The network namespace in which the unit runs.
#[derive(Debug, PartialEq, Eq)]
enum Place {
    /// The machine's own network namespace.
    Machine,
    /// The network namespace that is mounted at this path.
    Namespace(PathBuf),
}

/// The place of a network namespace, by its number. None: it has no mount that systemd finds.
fn place(inode: u64) -> Option<Place> {
    if netns::first_inode() == Some(inode) {
        return Some(Place::Machine);
    }
    let mut named = fs::read_dir(NAMESPACES).ok()?.flatten().map(|entry| entry.path());
    named.find(|path| fs::metadata(path).is_ok_and(|about| about.ino() == inode)).map(Place::Namespace)
}

fn arguments(record: &Record, unconfirmed: &Unconfirmed, program: &Path, place: &Place) -> Vec<String> {
    let deadline = unconfirmed.deadline_ms.to_string();
    let mut all = vec!["--quiet".to_owned(), "--collect".to_owned()];
    all.push(format!("--unit=sluice-confirm-{}-{deadline}", record.ifindex));
    all.push(format!("--description=Take back the unconfirmed change of {}", record.interface));
    if let Place::Namespace(path) = place {
        all.push(format!("--property=NetworkNamespacePath={}", path.display()));
    }
    // A dollar begins a variable in the command line of a unit.
    let literal = |text: &str| text.replace('$', "$$");
    all.extend(["--".to_owned(), literal(&program.display().to_string())]);
    all.extend([WAITING, &record.key, &deadline].map(literal));
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_systemd_run_is_asked_for() {
        let record = include_str!("../../../tests/records/tc-unconfirmed.json");
        let record: Record = serde_json::from_str(record).expect("a record");
        let unconfirmed = Unconfirmed { deadline_ms: 7, ..record.unconfirmed.clone().expect("it waits") };
        let place = Place::Namespace("/run/netns/home".into());
        let all = arguments(&record, &unconfirmed, Path::new("/usr/bin/sluice$x"), &place);
        assert_eq!(
            all,
            [
                "--quiet",
                "--collect",
                "--unit=sluice-confirm-2-7",
                "--description=Take back the unconfirmed change of eth0",
                "--property=NetworkNamespacePath=/run/netns/home",
                "--",
                "/usr/bin/sluice$$x",
                "await-confirmation",
                "eth0",
                "7",
            ]
        );
        assert!(!arguments(&record, &unconfirmed, Path::new("/x"), &Place::Machine).concat().contains("Namespace"));
    }
}
