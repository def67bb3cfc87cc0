//! Names of ports, as /etc/services has them.

use std::collections::HashMap;
use std::fs;

/// Names of ports.
#[derive(Debug, Default)]
pub struct Services(HashMap<(u16, u16), String>);

impl Services {
    /// The services of this machine; none without a list.
    pub fn of_machine() -> Services {
        Services::read(&fs::read_to_string("/etc/services").unwrap_or_default())
    }

    /// Parses a text in the format of services(5).
    fn read(text: &str) -> Services {
        let mut found = HashMap::new();
        for line in text.lines() {
            let mut words = line.split('#').next().unwrap_or_default().split_whitespace();
            let (Some(name), Some(port)) = (words.next(), words.next()) else { continue };
            let Some((number, protocol)) = port.split_once('/') else { continue };
            let Ok(number) = number.parse::<u16>() else { continue };
            let protocol = match protocol {
                "tcp" => 6,
                "udp" => 17,
                "sctp" => 132,
                "dccp" => 33,
                _ => continue,
            };
            found.entry((protocol, number)).or_insert_with(|| name.to_owned());
        }
        Services(found)
    }

    /// The name of a port of a protocol.
    pub fn name(&self, protocol: u16, port: u16) -> Option<&str> {
        self.0.get(&(protocol, port)).map(String::as_str)
    }

    /// The service of a flow: the name of the port that a server would have.
    pub fn of_flow(&self, protocol: u16, ports: [Option<u16>; 2]) -> Option<&str> {
        let mut ports: Vec<u16> = ports.into_iter().flatten().collect();
        ports.sort_unstable();
        ports.into_iter().find_map(|port| self.name(protocol, port))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn services_are_read() {
        let services =
            Services::read("# list\nhttps 443/tcp # web\nhttps 443/udp\ndomain 53/udp nameserver\nodd\nbad x/tcp\n");
        assert_eq!(services.name(6, 443), Some("https"));
        assert_eq!(services.name(17, 53), Some("domain"));
        assert_eq!(services.name(6, 53), None);
        assert_eq!(services.of_flow(6, [Some(50_000), Some(443)]), Some("https"));
        assert_eq!(services.of_flow(1, [None, None]), None);
    }
}
