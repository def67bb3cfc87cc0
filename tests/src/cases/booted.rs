//! The units under systemd: as the first process of a PID, mount, cgroup and network namespace of its own, with our units and no others.
//!
//! There is no udev in it, so the unit's tie to the interface's device is left out; the sandbox is as installed.

use crate::command::{await_that, run};
use crate::lab::{Lab, binary};
use crate::needs::Need;
use crate::suite::Suite;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

const BOOT: &str = include_str!("booted/boot.sh");
const FIRST: &str = include_str!("booted/first.sh");
const SECOND: &str = include_str!("booted/second.sh");
const UNITS: [(&str, &str); 5] = [
    ("sluice@.service", include_str!("../../../packaging/sluice@.service")),
    ("sluice-wire@.service", include_str!("../../../packaging/sluice-wire@.service")),
    ("sluice-serve.service", include_str!("../../../packaging/sluice-serve.service")),
    ("sluice-ensure.service", include_str!("../../../packaging/sluice-ensure.service")),
    ("sluice-ensure.timer", include_str!("../../../packaging/sluice-ensure.timer")),
];
/// Empty targets that our units refer to.
const TARGETS: [&str; 8] = ["sysinit", "basic", "network", "multi-user", "timers", "shutdown", "umount", "final"];
const LONG: Duration = Duration::from_secs(20);

pub fn suite() -> Suite {
    Suite::new("booted").alike_everywhere().any(
        "units_under_systemd",
        &[Need::Systemd, Need::Equipped],
        units_under_systemd,
    )
}

/// The parts of a machine that outlive a reboot.
struct Machine {
    directory: PathBuf,
    cgroup: PathBuf,
}

impl Machine {
    fn new(lab: &Lab) -> Machine {
        let directory = lab.file("machine", "").with_file_name("booted");
        for part in ["units", "sluice", "state", "out"] {
            fs::create_dir_all(directory.join(part)).expect("creating a directory");
        }
        let unified = Path::new("/sys/fs/cgroup/unified");
        let root = if unified.exists() { unified } else { Path::new("/sys/fs/cgroup") };
        let machine = Machine { cgroup: root.join(format!("slt-{}", std::process::id())), directory };
        machine.install();
        machine
    }

    fn install(&self) {
        let unit = |name: &str, text: &str| fs::write(self.directory.join("units").join(name), text).expect("writing");
        let log = self.directory.join("out/units.log").display().to_string();
        let output = format!("[Service]\nStandardOutput=append:{log}\nStandardError=append:{log}\n");
        for (name, text) in UNITS {
            let kept = text.lines().filter(|line| !line.starts_with("BindsTo=") && !line.starts_with("After="));
            unit(name, &(kept.collect::<Vec<_>>().join("\n").replace("@BINDIR@", "/run/bin") + "\n"));
            if name.ends_with(".service") {
                let more = self.directory.join("units").join(format!("{name}.d"));
                fs::create_dir_all(&more).expect("creating a directory");
                fs::write(more.join("output.conf"), &output).expect("writing");
            }
        }
        for target in TARGETS {
            unit(&format!("{target}.target"), "[Unit]\nDefaultDependencies=no\n");
        }
        for name in ["exit.target", "systemd-exit.service"] {
            unit(name, &fs::read_to_string(Path::new("/lib/systemd/system").join(name)).expect("a unit of systemd"));
        }
        let act = self.directory.join("act.sh").display().to_string();
        unit(
            "act.service",
            &format!(
                "[Unit]\nDefaultDependencies=no\n[Service]\nType=oneshot\nExecStart=/bin/sh {act}\n{}",
                &output[10..]
            ),
        );
        let configuration = "SLUICE_POLICY=gaming\nSLUICE_OPTS=--rate 19mbit\n";
        fs::write(self.directory.join("sluice/eth9.conf"), configuration).expect("writing");
        let wire = "SLUICE_INTERFACES=w0 w1\nSLUICE_POLICY=default\nSLUICE_RATE=5mbit\n";
        fs::write(self.directory.join("sluice/wire-uplink.conf"), wire).expect("writing");
        fs::write(self.directory.join("boot.sh"), BOOT).expect("writing");
    }

    /// Boots, runs a script, and shuts down. Returns the output, with that of the units.
    fn boot(&self, act: &str) -> String {
        fs::write(self.directory.join("act.sh"), act).expect("writing");
        fs::create_dir_all(&self.cgroup).expect("a cgroup");
        let program = fs::canonicalize(binary()).expect("SLUICE_BIN names the program");
        let line = format!(
            "echo 0 > {0}/cgroup.procs && exec unshare -p -f -m -C -n --kill-child --mount-proc sh {1}/boot.sh {1} {2}",
            self.cgroup.display(),
            self.directory.display(),
            program.display()
        );
        let ended = run(Command::new("sh").args(["-c", &line]));
        let printed = fs::read_to_string(self.directory.join("out/units.log")).unwrap_or_default();
        assert_eq!(ended.code, Some(0), "{ended}\n{printed}");
        printed
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        // Inner cgroups are removed first.
        let empty = || {
            let all = run(Command::new("find").arg(&self.cgroup).args(["-depth", "-type", "d"])).stdout;
            all.lines().for_each(|path| drop(fs::remove_dir(path)));
            !self.cgroup.exists()
        };
        if !std::thread::panicking() {
            await_that("the cgroup is gone", LONG, empty);
        } else {
            empty();
        }
        let _ = fs::remove_dir_all(&self.directory);
    }
}

fn units_under_systemd(lab: &Lab) {
    let machine = Machine::new(lab);
    let printed = machine.boot(FIRST);
    assert!(printed.contains("all is well"), "{printed}");
    assert!(printed.contains("a change waits") && printed.contains("was deleted; it is back"), "{printed}");
    let printed = machine.boot(SECOND).split("all is well").nth(1).expect("the second boot").to_owned();
    assert!(printed.contains("the policy default is restored") && printed.contains("the second is well"), "{printed}");
}
