//! Packets that a new forward would take from others: those to addresses that are not this host's, and to ports that its own sockets hold.

use super::routes;
use crate::system::{interface, iproute};
use sluice_error::{Error, Result};
use sluice_policy::Forward;
use std::collections::BTreeSet;
use std::net::IpAddr;

/// The most findings that one message names.
const NAMED: usize = 4;

/// A socket that waits for connections or datagrams.
#[derive(Debug, PartialEq, Eq)]
struct Held {
    protocol: u8,
    /// The address; none: every address of both families.
    address: Option<IpAddr>,
    /// Name of the interface to which the socket is bound.
    device: Option<String>,
    port: u16,
    /// Name of the process.
    by: Option<String>,
}

/// An objection to a forward, and the cure.
struct Finding {
    what: String,
    help: String,
}

/// The scrutiny of a forward that was not there before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Scrutiny {
    /// All.
    Full,
    /// That no route leads to it: what it takes from others is a note.
    Forced,
    /// Nothing is an error: it has been in force before.
    Restored,
}

impl Scrutiny {
    /// The scrutiny that `--force` leaves.
    pub(crate) fn forced(force: bool) -> Scrutiny {
        if force { Scrutiny::Forced } else { Scrutiny::Full }
    }
}

/// Checks the forwards of an interface that were not there before. What speaks against them is an error, or a note.
pub(crate) fn check(interface: &str, before: &[Forward], now: &[Forward], scrutiny: Scrutiny) -> Result<Vec<String>> {
    let new: Vec<&Forward> = now.iter().filter(|forward| !before.contains(forward)).collect();
    if new.is_empty() {
        return Ok(Vec::new());
    }
    if scrutiny != Scrutiny::Restored {
        routes::require(&new)?;
    }
    let all = interface::addresses()?;
    let held: Vec<Held> =
        iproute::run("ss", &["-H", "-l", "-t", "-u", "-n", "-p"])?.lines().filter_map(socket).collect();
    let mut findings: Vec<Finding> = new.iter().filter_map(|forward| foreign(forward, &all)).collect();
    findings.extend(new.iter().filter_map(|forward| taken(interface, forward, &all, &held)));
    if scrutiny != Scrutiny::Full || findings.is_empty() {
        let mut notes: Vec<String> = findings.into_iter().map(|finding| finding.what).collect();
        notes.extend(not_a_router(&new));
        return Ok(notes);
    }
    let first = &findings[0];
    let named: Vec<&str> = findings.iter().take(NAMED).map(|finding| finding.what.as_str()).collect();
    let more = findings.len() - named.len();
    let more = if more > 0 { format!("\n  and {more} more") } else { String::new() };
    Err(Error::input(named.join("\n  ") + &more).help(first.help.clone()))
}

/// A note for each family whose packets this host does not forward, so that no forward does either.
fn not_a_router(new: &[&Forward]) -> Vec<String> {
    let of = |forward: &&Forward| [forward.is_ipv4(), forward.is_ipv4() != forward.translates()];
    let families: BTreeSet<&str> = new.iter().flat_map(of).map(routes::sysctl).collect();
    let note = |name: &&str| {
        format!("{name} is 0: this host sends no packets on, and forwards only to itself; sysctl -w {name}=1")
    };
    families.iter().filter(|name| !routes::is_router(name)).map(note).collect()
}

/// A listen address that no interface has.
fn foreign(forward: &Forward, all: &[(String, IpAddr)]) -> Option<Finding> {
    let listen = forward.listen?;
    if all.iter().any(|(_, address)| *address == listen) {
        return None;
    }
    let same = |address: &&IpAddr| address.is_ipv4() == listen.is_ipv4() && !address.is_loopback();
    let own: Vec<String> = all.iter().map(|(_, address)| address).filter(same).map(IpAddr::to_string).collect();
    Some(Finding {
        what: format!("forward \"{}\": {listen} is not an address of this host", forward.name),
        help: format!(
            "the addresses here are: {}; with --force, what arrives for that address is forwarded all the same",
            if own.is_empty() { "none".to_owned() } else { own.join(", ") }
        ),
    })
}

/// The first socket of this host that gets what a forward would take.
fn taken(interface: &str, forward: &Forward, all: &[(String, IpAddr)], held: &[Held]) -> Option<Finding> {
    let here = |address: IpAddr| match forward.listen {
        Some(listen) => listen == address,
        None => {
            address.is_ipv4() == forward.is_ipv4() && all.iter().any(|(name, own)| name == interface && *own == address)
        }
    };
    let gets = |one: &&Held| {
        (forward.ports.0..=forward.ports.1).contains(&one.port)
            && forward.transport.protocols().contains(&one.protocol)
            && one.device.as_deref().is_none_or(|device| device == interface)
            && one.address.is_none_or(|address| {
                if address.is_unspecified() { address.is_ipv4() == forward.is_ipv4() } else { here(address) }
            })
    };
    let one = held.iter().find(gets)?;
    let protocol = if one.protocol == 6 { "TCP" } else { "UDP" };
    let by = one.by.as_ref().map_or(String::new(), |by| format!(" ({})", by.escape_debug()));
    Some(Finding {
        what: format!("forward \"{}\": a socket of this host{by} has {protocol} port {}", forward.name, one.port),
        help: "name another port, or end what listens there; with --force, the forward takes what arrives here for it"
            .to_owned(),
    })
}

/// A line of `ss -H -l -t -u -n -p`: protocol, state, two lengths, local address, peer, and the processes that have the socket.
fn socket(line: &str) -> Option<Held> {
    let mut words = line.split_whitespace();
    let protocol = match words.next()? {
        "tcp" => 6,
        "udp" => 17,
        _ => return None,
    };
    let (address, port) = words.nth(3)?.rsplit_once(':')?;
    let (address, device) = match address.split_once('%') {
        Some((address, device)) => (address, Some(device.trim_end_matches(']').to_owned())),
        None => (address, None),
    };
    let address = address.trim_start_matches('[').trim_end_matches(']');
    let by = line.split_once("users:((\"").and_then(|(_, rest)| rest.split_once('"')).map(|(name, _)| name.to_owned());
    Some(Held {
        protocol,
        address: if address == "*" { None } else { Some(address.parse().ok()?) },
        device,
        port: port.parse().ok()?,
        by,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sockets_are_read() {
        let held = |protocol, address: Option<&str>, device: Option<&str>, port, by: Option<&str>| {
            let address = address.map(|address| address.parse().expect("an address"));
            Some(Held { protocol, address, device: device.map(str::to_owned), port, by: by.map(str::to_owned) })
        };
        for (line, expected) in [
            (
                "tcp LISTEN 0 128 0.0.0.0:22 0.0.0.0:* users:((\"sshd\",pid=7,fd=3))",
                held(6, Some("0.0.0.0"), None, 22, Some("sshd")),
            ),
            ("tcp LISTEN 0 511 *:80 *:* users:((\"a b\",pid=1,fd=6))", held(6, None, None, 80, Some("a b"))),
            ("udp UNCONN 0 0 127.0.0.53%lo:53 0.0.0.0:*", held(17, Some("127.0.0.53"), Some("lo"), 53, None)),
            ("udp UNCONN 0 0 [fe80::1]%eth0:546 [::]:*", held(17, Some("fe80::1"), Some("eth0"), 546, None)),
            ("tcp LISTEN 0 9 [::]:443 [::]:*", held(6, Some("::"), None, 443, None)),
            ("u_str LISTEN 0 9 /run/x 1 * 0", None),
            ("", None),
        ] {
            assert_eq!(socket(line), expected, "{line}");
        }
    }
}
