//! The command line.

use crate::dpdk::{self, Unstarted};
use clap::Parser;
use sluice_abi as abi;
use sluice_core::level_backpressure::{LISTS, PLACES};
use sluice_error::{Doing, Error, Result};
use sluice_policy::Rate;
use std::time::Duration;

/// Bytes of a packet's memory: DPDK's buffer, its headroom, its description, and what a pool adds.
const PACKET_BYTES: u64 = 2560;
/// Memory for rings, ports and DPDK itself, MiB.
const OTHER_MIB: u64 = 64;
/// Packets that rings of a port without such a number hold: net_ring's have 1,024 places.
const LEAST_DESCRIPTORS: u32 = 1024;

/// Queue what passes between two DPDK ports by the classes of a policy, and hold back at each port what it takes no more of.
#[derive(Debug, Parser)]
#[command(name = "sluice-dpdk", version = version())]
pub struct Arguments {
    /// Policy file, or the name of a profile
    #[arg(long, value_name = "FILE")]
    pub policy: String,

    /// Rate of what arrives at the first port, and of what arrives at the second one; the policy's own without it
    #[arg(long, value_name = "RATE[/RATE]")]
    rate: Option<String>,

    /// The two ports, as DPDK names devices: net_af_packet0,iface=eth0, net_tap0, 0000:01:00.0
    #[arg(num_args = 2, required = true, value_name = "PORT")]
    pub ports: Vec<String>,

    /// Arguments for DPDK itself (EAL)
    #[arg(last = true, value_name = "EAL")]
    eal: Vec<String>,

    /// Tx queues of a port: one for each level of classes, or one for all [default: one for each if the port has so many]
    #[arg(long, value_name = "HOW", value_parser = ["each", "one"])]
    queues: Option<String>,

    /// Packets that a tx queue holds, as far as the driver lets it be chosen
    #[arg(long, value_name = "NUMBER", default_value_t = 512, value_parser = clap::value_parser!(u16).range(32..))]
    pub descriptors: u16,

    /// Packets of all classes together that may wait in each direction
    #[arg(long, value_name = "NUMBER", default_value_t = 8192, value_parser = clap::value_parser!(u32).range(64..=i64::from(abi::SL_SLOTS)))]
    pub packets: u32,

    /// Use huge pages, which a card without an IOMMU needs
    #[arg(long)]
    huge_pages: bool,

    /// Never sleep
    #[arg(long)]
    pub busy: bool,

    /// Print a line of counters so often, as in 1s
    #[arg(long, value_name = "TIME", value_parser = time)]
    pub every: Option<Duration>,

    /// Write the counters to a file as JSON in the end (-: standard output)
    #[arg(long, value_name = "FILE")]
    pub json: Option<String>,

    /// End when no packet has come or gone for this time, as in 200ms: for captures
    #[arg(long, value_name = "TIME", value_parser = time)]
    pub end_when_idle: Option<Duration>,
}

fn version() -> String {
    format!("{} ({})", env!("CARGO_PKG_VERSION"), dpdk::version())
}

fn time(text: &str) -> std::result::Result<Duration, String> {
    let (number, unit) = text.split_at(text.find(|c: char| c.is_ascii_alphabetic()).unwrap_or(text.len()));
    let number: u64 = number.trim().parse().map_err(|_| "write a number and a unit, as in 200ms or 1s".to_owned())?;
    match unit {
        "ms" => Ok(Duration::from_millis(number)),
        "s" => Ok(Duration::from_secs(number)),
        _ => Err("the units are ms and s".to_owned()),
    }
}

impl Arguments {
    /// The rates of both ways.
    ///
    /// # Errors
    ///
    /// One cannot be read.
    pub fn rates(&self) -> Result<[Option<Rate>; 2]> {
        let Some(text) = &self.rate else { return Ok([None, None]) };
        let rate = |text: &str| match text.parse::<Rate>() {
            Ok(rate) if rate < Rate::MIN => {
                Err(Error::input(format!("--rate {text}: no packet passes at this rate")).help("give 8bit or more"))
            }
            Ok(rate) => Ok(Some(rate)),
            Err(error) => Err(Error::input(format!("--rate {text}: {}", error.cause)).help(error.cure)),
        };
        match text.split_once('/').filter(|(_, second)| *second != "s") {
            Some((first, second)) => Ok([rate(first)?, rate(second)?]),
            None => Ok([rate(text)?; 2]),
        }
    }

    /// The tx queues of a port for so many levels.
    ///
    /// # Errors
    ///
    /// It has fewer than were asked for.
    pub fn tx_queues(&self, port: &Unstarted, levels: u32) -> Result<u16> {
        let has = u32::from(port.max_tx_queues);
        match self.queues.as_deref() {
            Some("one") => Ok(1),
            Some(_) if has < levels => {
                let told = format!(
                    "{}: the policy has {levels} levels of classes, and the port {has} tx queues ({})",
                    port.name, port.driver
                );
                Err(Error::input(told).help("leave out `--queues each`, or give classes equal priorities"))
            }
            _ if has < levels => Ok(1),
            _ => Ok(levels as u16),
        }
    }

    /// The packets for which there must be memory, if the ports have so many tx queues at most.
    pub fn pool_pkts(&self, queues: &[u32; 2]) -> u32 {
        let descriptors = u32::from(self.descriptors).max(LEAST_DESCRIPTORS);
        let of_port = |queues: &u32| queues * (descriptors + LEAST_DESCRIPTORS);
        2 * (self.packets + LISTS * PLACES + 512) + queues.iter().map(of_port).sum::<u32>()
    }

    /// The arguments of DPDK's environment: ours, and behind them those of the command line, which replace ours.
    ///
    /// # Errors
    ///
    /// The system does not say on which processors this process may run.
    pub fn environment(&self, queues: &[u32; 2]) -> Result<Vec<String>> {
        let given = |names: &[&str]| self.eal.iter().any(|own| names.iter().any(|name| own.starts_with(name)));
        let mut all = vec!["sluice-dpdk".to_owned()];
        let mut add = |own: &[&str]| all.extend(own.iter().map(|text| (*text).to_owned()));
        add(&["--no-telemetry"]);
        if !given(&["--log-level"]) {
            add(&["--log-level=warning"]);
        }
        if self.huge_pages {
            add(&["--in-memory"]);
        } else {
            add(&["--no-huge", "--no-shconf"]);
            if !given(&["-m"]) {
                let mib = ((u64::from(self.pool_pkts(queues)) * PACKET_BYTES) >> 20) + OTHER_MIB;
                add(&["-m", &mib.to_string()]);
            }
        }
        if !given(&["--lcores", "-l", "-c"]) {
            // One thread, on whatever processor the system lets it run.
            let own = nix::sched::sched_getaffinity(nix::unistd::Pid::from_raw(0))
                .doing(|| "asking for processors".to_owned())?;
            let list = (0..nix::sched::CpuSet::count()).filter(|cpu| own.is_set(*cpu).unwrap_or(false));
            let list: Vec<String> = list.map(|cpu| cpu.to_string()).collect();
            add(&[&format!("--lcores=0@({})", list.join(","))]);
        }
        if !given(&["-a", "--allow", "-b", "--block", "--no-pci"]) {
            // Only the cards that are named are touched.
            let cards: Vec<&str> = self.ports.iter().map(String::as_str).filter(|port| is_pci(port)).collect();
            match cards[..] {
                [] => add(&["--no-pci"]),
                _ => cards.iter().for_each(|card| add(&["-a", card])),
            }
        }
        all.extend(self.eal.iter().cloned());
        Ok(all)
    }
}

/// Whether a device is named by a PCI address, such as 0000:01:00.0 or 01:00.0.
fn is_pci(device: &str) -> bool {
    let address = device.split(',').next().unwrap_or(device);
    address.contains(':') && address.chars().all(|c| c.is_ascii_hexdigit() || ":.".contains(c))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(more: &[&str]) -> Arguments {
        let all = ["sluice-dpdk", "--policy", "p.json", "net_null0", "net_ring0"].iter().chain(more);
        Arguments::try_parse_from(all).unwrap_or_else(|error| panic!("{error}"))
    }

    #[test]
    fn both_ways_have_a_rate() {
        let rate = |bits| Some(Rate(bits));
        assert_eq!(read(&["--rate", "10mbit/2mbit"]).rates().ok(), Some([rate(10_000_000), rate(2_000_000)]));
        assert_eq!(read(&["--rate", "10mbit"]).rates().ok(), Some([rate(10_000_000); 2]));
        assert_eq!(read(&["--rate", "10 Mbit/s"]).rates().ok(), Some([rate(10_000_000); 2]));
        assert_eq!(read(&[]).rates().ok(), Some([None; 2]));
        assert!(read(&["--rate", "10"]).rates().is_err_and(|error| error.exit_code() == 2));
        assert!(read(&["--rate", "1bit"]).rates().is_err_and(|error| error.exit_code() == 2));
    }

    #[test]
    fn arguments_of_dpdk_replace_ours() {
        let ours = read(&[]).environment(&[1, 1]).expect("known");
        for own in ["--no-huge", "--no-pci", "-m"] {
            assert!(ours.iter().any(|text| text == own), "{own} in {ours:?}");
        }
        let given = read(&["--", "-m", "77", "-l", "1", "-a", "01:00.0"]).environment(&[1, 1]).expect("known");
        assert_eq!(given.iter().filter(|text| *text == "-m").count(), 1, "{given:?}");
        assert!(!given.iter().any(|text| text == "--no-pci" || text.starts_with("--lcores")), "{given:?}");
        assert_eq!(given.last().map(String::as_str), Some("01:00.0"));
        let huge = read(&["--huge-pages"]).environment(&[1, 1]).expect("known");
        assert!(!huge.iter().any(|text| text == "--no-huge" || text == "-m"), "{huge:?}");
    }

    #[test]
    fn cards_are_named_by_their_addresses() {
        assert!(is_pci("0000:01:00.0") && is_pci("01:00.1,queues=4"));
        assert!(!is_pci("net_tap0") && !is_pci("net_af_packet0,iface=eth0:1"));
    }

    #[test]
    fn times_have_units() {
        assert_eq!(time("200ms"), Ok(Duration::from_millis(200)));
        assert_eq!(time("2s"), Ok(Duration::from_secs(2)));
        assert!(time("2").is_err() && time("s").is_err() && time("2h").is_err());
    }
}
