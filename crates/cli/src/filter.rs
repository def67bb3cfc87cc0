//! Filters of packets in words: `udp dst 198.51.100.2 dport 3074`.

use crate::failure::Failure;
use sluice_kernel::events::Filter;

/// The filter that a text describes; an empty one lets every packet through.
///
/// # Errors
///
/// A word that is no key, a value that does not fit, a filter that no packet can pass.
pub fn parse(text: &str) -> Result<Filter, Failure> {
    const CURE: &str = "write a protocol (udp, tcp, icmp or a number) and any of src ADDRESS, dst ADDRESS, sport PORT, \
                        dport PORT: udp dst 198.51.100.2 dport 3074";
    let bad = |what: String| Failure::input(&format!("the filter \"{text}\": {what}"), CURE);
    let mut filter = Filter { one_in: 1, ..Filter::default() };
    let mut words = text.split_whitespace();
    while let Some(word) = words.next() {
        let protocol = match word {
            "udp" => Some(17),
            "tcp" => Some(6),
            "icmp" => Some(1),
            "icmpv6" => Some(58),
            number => number.parse::<u16>().ok().filter(|number| *number < 256),
        };
        let once = |is_known: bool| {
            if is_known { Err(bad(format!("\"{word}\" comes after another of its kind"))) } else { Ok(()) }
        };
        if protocol.is_some() {
            once(filter.protocol.is_some())?;
            filter.protocol = protocol;
            continue;
        }
        let value = words.next().ok_or_else(|| bad(format!("\"{word}\" is no protocol, or needs a value")))?;
        let address = || value.parse().map_err(|_| bad(format!("\"{value}\" is no address")));
        let port = || value.parse().map_err(|_| bad(format!("\"{value}\" is no port")));
        once(match word {
            "src" => filter.src.replace(address()?).is_some(),
            "dst" => filter.dst.replace(address()?).is_some(),
            "sport" => filter.src_port.replace(port()?).is_some(),
            "dport" => filter.dst_port.replace(port()?).is_some(),
            _ => return Err(bad(format!("\"{word}\" is not a key"))),
        })?;
    }
    // A filter that contradicts itself passes no packet.
    if filter.src.zip(filter.dst).is_some_and(|(src, dst)| src.is_ipv4() != dst.is_ipv4()) {
        return Err(bad("one address is of IPv4, the other of IPv6".to_owned()));
    }
    if (filter.src_port.is_some() || filter.dst_port.is_some()) && matches!(filter.protocol, Some(1 | 58)) {
        return Err(bad("ICMP has no ports".to_owned()));
    }
    Ok(filter)
}
