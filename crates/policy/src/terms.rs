//! Values of rules and sets as policies write them.

use crate::policy::Term;
use ipnet::IpNet;

/// A prefix as policies write it. `0.0.0.0/0` would be read as any address of either family.
pub(crate) fn prefix(net: &IpNet) -> String {
    match net {
        net if net.prefix_len() > 0 => net.to_string(),
        IpNet::V4(_) => "ipv4".into(),
        IpNet::V6(_) => "ipv6".into(),
    }
}

/// A port, or a range of them.
pub(crate) fn ports(&(min, max): &(u16, u16)) -> String {
    if min == max { min.to_string() } else { format!("{min}-{max}") }
}

/// A value, or the name of a set.
pub(crate) fn term<T>(term: &Term<T>, value: impl Fn(&T) -> String) -> String {
    match term {
        Term::Is(own) => value(own),
        Term::In(set) => format!("@{set}"),
    }
}
