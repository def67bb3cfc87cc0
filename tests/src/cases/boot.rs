//! The units: the one that brings a policy up at boot, and that of `sluice serve`.

use crate::command::run;
use crate::lab::{Lab, binary};
use crate::needs::Need;
use crate::suite::Suite;
use std::process::Command;

const UNIT: &str = include_str!("../../../packaging/sluice@.service");
const GROUP: &str = include_str!("../../../packaging/sluice-group@.service");
const WIRE: &str = include_str!("../../../packaging/sluice-wire@.service");
const SERVE: &str = include_str!("../../../packaging/sluice-serve.service");

const ENSURE: &str = include_str!("../../../packaging/sluice-ensure.service");
const TIMER: &str = include_str!("../../../packaging/sluice-ensure.timer");

pub fn suite() -> Suite {
    Suite::new("boot").alike_everywhere().any(
        "systemd_understands_the_units",
        &[Need::Systemd],
        systemd_understands_the_units,
    )
}

fn systemd_understands_the_units(lab: &Lab) {
    let program = std::fs::canonicalize(binary()).expect("SLUICE_BIN names the program");
    let bin = program.parent().expect("a directory").display().to_string();
    let path = lab.file("sluice@.service", UNIT.replace("@BINDIR@", &bin));
    let group = lab.file("sluice-group@.service", GROUP.replace("@BINDIR@", &bin));
    let wire = lab.file("sluice-wire@.service", WIRE.replace("@BINDIR@", &bin));
    let of_wire = wire.with_file_name("sluice-wire@uplink.service");
    let serve = lab.file("sluice-serve.service", SERVE.replace("@BINDIR@", &bin));
    let ensure = lab.file("sluice-ensure.service", ENSURE.replace("@BINDIR@", &bin));
    let timer = lab.file("sluice-ensure.timer", TIMER);
    let of_group = group.with_file_name("sluice-group@lines0.service");
    for unit in [path.with_file_name("sluice@eth0.service"), of_group, of_wire, serve, ensure, timer] {
        let output = run(Command::new("systemd-analyze").args(["verify", "--man=no"]).arg(&unit)).ok();
        let ours: Vec<&str> = output.stderr.lines().filter(|line| line.contains("sluice")).collect();
        assert!(ours.is_empty(), "systemd has remarks: {ours:?}");
    }
    let service = |unit: &'static str| unit.split_once("[Service]").and_then(|(_, rest)| rest.split_once("[Install]"));
    assert_eq!(service(UNIT).map(|(text, _)| text), service(GROUP).map(|(text, _)| text), "both run the same");
    // The check fails on a broken unit:
    let broken = lab.file("broken@.service", UNIT.replace("@BINDIR@", "/nowhere").replace("oneshot", "twoshot"));
    let broken = broken.with_file_name("broken@eth0.service");
    let output = run(Command::new("systemd-analyze").args(["verify", "--man=no"]).arg(&broken));
    assert!(output.code != Some(0) || output.stderr.contains("broken"), "{output}");
}
