//! The interfaces of default routes, as the kernel lists its main tables in /proc/net.

use sluice_error::{Doing, Result};
use std::fs;
use std::io;

const RTF_REJECT: u32 = 0x200;

/// Whether a default route of IPv4 or IPv6 leads through the interface.
pub fn is_default(interface: &str) -> Result<bool> {
    Ok(read("/proc/thread-self/net/route")?.lines().skip(1).any(|line| is_default_v4(line, interface))
        || read("/proc/thread-self/net/ipv6_route")?.lines().any(|line| is_default_v6(line, interface)))
}

/// A kernel without the family has no file.
fn read(path: &str) -> Result<String> {
    match fs::read_to_string(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(String::new()),
        read => read.doing(|| path.to_owned()),
    }
}

/// Iface Destination Gateway Flags RefCnt Use Metric Mask ...
fn is_default_v4(line: &str, interface: &str) -> bool {
    let words: Vec<&str> = line.split_whitespace().collect();
    matches!(words.as_slice(), [name, "00000000", _, _, _, _, _, "00000000", ..] if *name == interface)
}

/// Destination, length of its prefix, source, length, next hop, metric, references, uses, flags, interface; all hexadecimal.
fn is_default_v6(line: &str, interface: &str) -> bool {
    let words: Vec<&str> = line.split_whitespace().collect();
    match words.as_slice() {
        [to, "00", _, _, _, _, _, _, flags, name] => {
            let refused = u32::from_str_radix(flags, 16).is_ok_and(|flags| flags & RTF_REJECT != 0);
            *name == interface && !refused && to.bytes().all(|digit| digit == b'0')
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn default_routes_are_told_from_others() {
        let v4 = "wan0\t00000000\t01004E0A\t0003\t0\t0\t0\t00000000\t0\t0\t0";
        assert!(is_default_v4(v4, "wan0") && !is_default_v4(v4, "wan"));
        assert!(!is_default_v4(&v4.replace("00000000\t01004E0A", "00004E0A\t00000000"), "wan0"));
        let zeroes = "0".repeat(32);
        let v6 = |flags: &str| format!("{zeroes} 00 {zeroes} 00 {zeroes} 00000400 00000001 00000000 {flags} wan0");
        assert!(is_default_v6(&v6("00000003"), "wan0"));
        assert!(!is_default_v6(&v6("00200200"), "wan0"), "unreachable");
        assert!(!is_default_v6(&v6("00000003"), "lan0"));
    }
}
