//! The memory that the machine has left.

/// Bytes that could be had without swapping, as /proc/meminfo estimates (proc(5), MemAvailable). None: it does not tell.
pub(crate) fn available_bytes() -> Option<u64> {
    available(&std::fs::read_to_string("/proc/meminfo").ok()?)
}

fn available(text: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    let kib: u64 = line.trim().strip_suffix(" kB")?.trim().parse().ok()?;
    Some(kib * 1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_is_found() {
        let text = "MemTotal:        2048 kB\nMemFree:            8 kB\nMemAvailable:    1024 kB\n";
        assert_eq!(available(text), Some(1 << 20));
        assert_eq!([available("MemTotal: 1 kB\n"), available("MemAvailable: much\n")], [None, None]);
    }
}
