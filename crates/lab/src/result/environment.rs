//! The environment of a measurement: enough to judge it, nothing that identifies a machine, a person or a place.

use std::fs;
use std::thread;

use serde::{Deserialize, Serialize};

/// The value of an unknown property.
pub const UNKNOWN: &str = "unknown";

/// The properties of the machine that figures depend on.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Environment {
    /// The processor's model.
    pub cpu: String,
    /// The number of usable cores.
    pub cores: usize,
    /// Kernel version as "x.y".
    pub kernel: String,
    /// The distribution's name and version.
    pub distribution: String,
}

impl Environment {
    /// Reads the properties of this machine.
    pub fn read() -> Environment {
        let file = |path: &str| fs::read_to_string(path).unwrap_or_default();
        Environment {
            cpu: cpu_model(&file("/proc/cpuinfo")),
            cores: thread::available_parallelism().map_or(1, usize::from),
            kernel: kernel_version(&file("/proc/sys/kernel/osrelease")),
            distribution: distribution(&file("/etc/os-release")),
        }
    }
}

fn cpu_model(cpuinfo: &str) -> String {
    let field = |name: &str| cpuinfo.lines().find_map(|line| line.strip_prefix(name)?.trim_start().strip_prefix(':'));
    field("model name").map_or_else(|| std::env::consts::ARCH.to_owned(), |model| model.trim().to_owned())
}

fn kernel_version(release: &str) -> String {
    let numbers: Vec<&str> = release.split(|c: char| !c.is_ascii_digit()).take(2).collect();
    if numbers.iter().any(|number| number.is_empty()) { UNKNOWN.to_owned() } else { numbers.join(".") }
}

fn distribution(os_release: &str) -> String {
    let name = os_release.lines().find_map(|line| line.strip_prefix("PRETTY_NAME="));
    name.map_or_else(|| UNKNOWN.to_owned(), |name| name.trim_matches('"').to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn local_parts_are_left_out() {
        assert_eq!(kernel_version("6.12.41-local-7+deb13-amd64\n"), "6.12");
        assert_eq!(kernel_version(""), UNKNOWN);
        assert_eq!(cpu_model("processor\t: 0\nmodel name\t: A Fast CPU\n"), "A Fast CPU");
        assert_eq!(
            distribution("NAME=x\nPRETTY_NAME=\"Debian GNU/Linux 12 (bookworm)\"\n"),
            "Debian GNU/Linux 12 (bookworm)"
        );
    }
}
