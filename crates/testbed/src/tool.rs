//! The programs that the lab calls, with their paths and packages.

use std::collections::BTreeMap;
use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

use sluice_error::{Error, Kind, Result};

/// A program and its Debian package.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tool {
    /// The program's name.
    pub program: &'static str,
    /// The package's name.
    pub package: &'static str,
}

/// Configures namespaces, links, addresses and routes.
pub const IP: Tool = Tool { program: "ip", package: "iproute2" };
/// Configures qdiscs.
pub const TC: Tool = Tool { program: "tc", package: "iproute2" };
/// Sends and times the packets of games and calls.
pub const IRTT: Tool = Tool { program: "irtt", package: "irtt" };
/// Sends the downloads.
pub const IPERF3: Tool = Tool { program: "iperf3", package: "iperf3" };
/// Sends pings.
pub const PING: Tool = Tool { program: "ping", package: "iputils-ping" };
/// Serves pages.
pub const BUSYBOX: Tool = Tool { program: "busybox", package: "busybox-static" };
/// Fetches pages.
pub const CURL: Tool = Tool { program: "curl", package: "curl" };
/// Reads and sets offloads.
pub const ETHTOOL: Tool = Tool { program: "ethtool", package: "ethtool" };

/// The programs that `sluice lab run` calls.
pub const LAB: [Tool; 8] = [IP, TC, IRTT, IPERF3, PING, BUSYBOX, CURL, ETHTOOL];

/// Serves pages to many clients.
pub const NGINX: Tool = Tool { program: "nginx", package: "nginx" };
/// Asks for a page a number of times.
pub const SIEGE: Tool = Tool { program: "siege", package: "siege" };
/// Asks for pages as fast as they are answered.
pub const WRK: Tool = Tool { program: "wrk", package: "wrk" };
/// Has a program write line by line.
pub const STDBUF: Tool = Tool { program: "stdbuf", package: "coreutils" };

/// The programs that `sluice lab run` also calls for chains of port forwards.
pub const CHAIN: [Tool; 4] = [NGINX, SIEGE, WRK, STDBUF];

/// The programs that contenders forward ports with.
pub const FORWARDERS: [Tool; 3] = [
    Tool { program: "haproxy", package: "haproxy" },
    Tool { program: "nft", package: "nftables" },
    Tool { program: "socat", package: "socat" },
];

/// The programs that contenders observe packets with.
pub const OBSERVERS: [Tool; 2] =
    [Tool { program: "nft", package: "nftables" }, Tool { program: "tcpdump", package: "tcpdump" }];

/// The versions of the programs that print one, by name.
pub fn versions(tools: &[Tool]) -> BTreeMap<String, String> {
    let of = |tool: &Tool| {
        let option = match tool.program {
            // It writes to the home directory even then.
            "siege" => return None,
            "irtt" => "version",
            "ip" | "tc" | "ping" | "socat" => "-V",
            "haproxy" | "nginx" | "wrk" => "-v",
            "busybox" => "--help",
            _ => "--version",
        };
        let output = Command::new(tool.find()?).arg(option).output().ok()?;
        let text = if output.stdout.is_empty() { output.stderr } else { output.stdout };
        let text = String::from_utf8_lossy(&text);
        let version = text
            .lines()
            .take(2)
            .flat_map(|line| line.split([' ', '-', '(', ',', '/']))
            .find(|word| word.trim_start_matches('v').starts_with(|c: char| c.is_ascii_digit()))?;
        Some((tool.program.to_owned(), version.trim_start_matches('v').to_owned()))
    };
    tools.iter().filter_map(of).collect()
}

impl Tool {
    /// Path of the program. The administrator's directories count even when PATH lacks them.
    pub fn find(self) -> Option<PathBuf> {
        search_path().into_iter().map(|directory| directory.join(self.program)).find(|path| path.is_file())
    }
}

/// The directories in which programs are looked for.
pub fn search_path() -> Vec<PathBuf> {
    let mut directories: Vec<PathBuf> =
        env::var_os("PATH").map(|path| env::split_paths(&path).collect()).unwrap_or_default();
    for more in ["/usr/sbin", "/sbin", "/usr/bin", "/bin"] {
        if !directories.iter().any(|directory| directory == Path::new(more)) {
            directories.push(PathBuf::from(more));
        }
    }
    directories
}

/// An error that names every tool that is missing and how to get all of them.
pub fn require(tools: &[Tool]) -> Result<()> {
    let missing: Vec<Tool> = tools.iter().copied().filter(|tool| tool.find().is_none()).collect();
    if missing.is_empty() {
        return Ok(());
    }
    let programs: Vec<&str> = missing.iter().map(|tool| tool.program).collect();
    let mut packages: Vec<&str> = missing.iter().map(|tool| tool.package).collect();
    packages.sort_unstable();
    packages.dedup();
    let what = format!("programs that this calls are not installed: {}", programs.join(", "));
    Err(Error::new(Kind::Unsupported, what).help(format!("apt-get install {}", packages.join(" "))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_tools_are_named_with_their_packages() {
        let tools = [
            Tool { program: "sluice-no-such-a", package: "package-b" },
            Tool { program: "sluice-no-such-b", package: "package-b" },
        ];
        let error = require(&tools).unwrap_err();
        assert_eq!(error.kind, Kind::Unsupported);
        assert!(error.what.contains("sluice-no-such-a, sluice-no-such-b"));
        assert_eq!(error.cure.as_deref(), Some("apt-get install package-b"));
    }
}
