//! The offloads of a device by `ethtool -k`: they decide how large the packets are that a queue sees.

use sluice_testbed::Namespace;
use sluice_testbed::tool::ETHTOOL;

/// The offloads that make packets larger than a frame.
const NAMES: [&str; 3] = ["tcp-segmentation-offload", "generic-segmentation-offload", "generic-receive-offload"];

/// A line such as "tcp-segmentation-offload on, ...", or the reason why it is not known.
pub fn describe(host: &Namespace, device: &str) -> String {
    if ETHTOOL.find().is_none() {
        return format!("not known: {} is not installed", ETHTOOL.program);
    }
    match host.run(ETHTOOL.program, &["-k", device]) {
        Ok(text) => summary(&text),
        Err(error) => format!("not known: {}", error.what),
    }
}

fn summary(text: &str) -> String {
    let state = |name: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
        Some(format!("{name} {}", line.split_whitespace().next()?))
    };
    NAMES.iter().filter_map(|name| state(name)).collect::<Vec<String>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn recorded_output_is_parsed() {
        let text = "Features for eth0:\nrx-checksumming: on\ntcp-segmentation-offload: on\n\ttx-tcp-segmentation: on\ngeneric-segmentation-offload: off [requested on]\ngeneric-receive-offload: off\n";
        assert_eq!(
            summary(text),
            "tcp-segmentation-offload on, generic-segmentation-offload off, generic-receive-offload off"
        );
    }
}
