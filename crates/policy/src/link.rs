//! The link below the scheduler: its rate, the cost of a packet on it, and the treatment of large packets.

use crate::bytes::Bytes;
use crate::rate::Rate;

/// The link a policy shapes to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Link {
    /// The rate to shape departures to, bits per second; `--rate` overrides it. `None`: the link is not shaped.
    pub rate: Option<Rate>,
    /// The rate to shape arrivals to, bits per second; `--ingress-rate` overrides it. `None`: arrivals are not queued.
    pub ingress_rate: Option<Rate>,
    /// The cost of a packet on the link.
    pub framing: Framing,
    /// The burst of the link's bucket, in bytes. None: the engine's own choice.
    pub burst: Option<Bytes>,
    /// Whether packets larger than a frame (GSO) are split before they are queued.
    pub split_gso: SplitGso,
    /// The tx queues of the interface that are used.
    pub queues: LinkQueues,
}

/// The cost of a packet on the link beyond its IP length.
///
/// The default is the kernel's own length of a packet: the 14 bytes of an Ethernet header, nothing else.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Framing {
    /// Bytes added to the IP packet's length, -64 to 256 (the range of tc-cake).
    pub overhead_bytes: i32,
    /// Shortest length a packet is counted as, overhead included, in bytes, 0 to 256.
    pub mpu_bytes: u32,
    /// The encapsulation of the link.
    pub cells: Cells,
}

impl Framing {
    /// The presets of `link.overhead`, with the values of tc-cake(8) in iproute2, all relative to the IP packet.
    pub const PRESETS: &[(&str, Framing)] = &[
        // cake `ethernet`: header 14, frame check 4, preamble 8, gap 12; a frame is at least 64 + 20 on the wire.
        ("ethernet", Framing { overhead_bytes: 38, mpu_bytes: 84, cells: Cells::None }),
        // cake `docsis`: header 14 and frame check 4, the way a cable modem's own shaper counts; at least 64.
        ("docsis", Framing { overhead_bytes: 18, mpu_bytes: 64, cells: Cells::None }),
        // cake `pppoe-ptm`: VDSL2 with PPPoE, sent as 64b/65b.
        ("ptm", Framing { overhead_bytes: 30, mpu_bytes: 0, cells: Cells::Ptm }),
        // cake `pppoe-llcsnap`: ADSL with PPPoE over LLC, sent in cells.
        ("atm", Framing { overhead_bytes: 40, mpu_bytes: 0, cells: Cells::Atm }),
        // PPPoE on Ethernet, as behind most fibre and on modems without cells: 8 bytes more in each frame.
        ("pppoe", Framing { overhead_bytes: 46, mpu_bytes: 84, cells: Cells::None }),
        ("ether-vlan", Framing { overhead_bytes: 42, mpu_bytes: 84, cells: Cells::None }),
        ("raw", Framing { overhead_bytes: 0, mpu_bytes: 0, cells: Cells::None }),
        ("conservative", Framing { overhead_bytes: 48, mpu_bytes: 0, cells: Cells::Atm }),
        ("pppoe-ptm", Framing { overhead_bytes: 30, mpu_bytes: 0, cells: Cells::Ptm }),
        ("bridged-ptm", Framing { overhead_bytes: 22, mpu_bytes: 0, cells: Cells::Ptm }),
        ("pppoe-llcsnap", Framing { overhead_bytes: 40, mpu_bytes: 0, cells: Cells::Atm }),
        ("pppoe-vcmux", Framing { overhead_bytes: 32, mpu_bytes: 0, cells: Cells::Atm }),
        ("bridged-llcsnap", Framing { overhead_bytes: 32, mpu_bytes: 0, cells: Cells::Atm }),
        ("bridged-vcmux", Framing { overhead_bytes: 24, mpu_bytes: 0, cells: Cells::Atm }),
        ("pppoa-llc", Framing { overhead_bytes: 14, mpu_bytes: 0, cells: Cells::Atm }),
        ("pppoa-vcmux", Framing { overhead_bytes: 10, mpu_bytes: 0, cells: Cells::Atm }),
        ("ipoa-llcsnap", Framing { overhead_bytes: 16, mpu_bytes: 0, cells: Cells::Atm }),
        ("ipoa-vcmux", Framing { overhead_bytes: 8, mpu_bytes: 0, cells: Cells::Atm }),
    ];
}

impl Default for Framing {
    fn default() -> Framing {
        Framing { overhead_bytes: 14, mpu_bytes: 0, cells: Cells::None }
    }
}

/// The encapsulation in which a link sends frames.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Cells {
    /// Whole frames.
    #[default]
    None,
    /// ATM: whole cells of 53 bytes, each carrying 48.
    Atm,
    /// PTM: 65 bytes sent for every 64.
    Ptm,
}

impl Cells {
    /// Every kind with its name in policy files.
    pub const NAMES: &[(&str, Cells)] = &[("none", Cells::None), ("atm", Cells::Atm), ("ptm", Cells::Ptm)];
}

/// Whether packets larger than a frame (GSO) are split before they are queued.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum SplitGso {
    /// If one such packet would hold the link for too long; the engine decides.
    #[default]
    Auto,
    /// Always.
    On,
    /// Never.
    Off,
}

impl SplitGso {
    /// Every choice with its name in policy files.
    pub const NAMES: &[(&str, SplitGso)] = &[("auto", SplitGso::Auto), ("on", SplitGso::On), ("off", SplitGso::Off)];
}

/// The tx queues that departures use where they are shaped and the interface has several.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum LinkQueues {
    /// All of them if the rate is so high that one lock could be too slow, and the policy holds over several queues; else one.
    #[default]
    Auto,
    /// One queue with one lock.
    One,
    /// Each has a scheduler, and all of them share the rate.
    All,
}

impl LinkQueues {
    /// Every choice with its name in policy files.
    pub const NAMES: &[(&str, LinkQueues)] =
        &[("auto", LinkQueues::Auto), ("one", LinkQueues::One), ("all", LinkQueues::All)];
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn presets_have_the_names_of_cake() {
        let of = |name: &str| {
            let text = format!(
                r#"{{ "scheduler": "round_robin", "link": {{ "overhead": "{name}", "ingress_rate": "30mbit" }},
                "classes": [{{ "id": 0 }}] }}"#
            );
            crate::parse(&crate::Source::new("mine.json", text)).unwrap_or_else(|found| panic!("{found}")).link
        };
        for (name, bytes) in [("pppoe", 46), ("pppoe-ptm", 30), ("bridged-llcsnap", 32), ("ether-vlan", 42), ("raw", 0)]
        {
            assert_eq!(of(name).framing.overhead_bytes, bytes, "{name}");
        }
        assert_eq!(of("pppoe").ingress_rate, Some(Rate(30_000_000)));
        assert_eq!(of("pppoa-llc").framing.cells, Cells::Atm);
    }
}
