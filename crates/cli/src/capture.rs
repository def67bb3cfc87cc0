//! Frames of a capture file.

use crate::failure::Failure;
use pcap_file::pcap::PcapReader;
use pcap_file::pcapng::{Block, PcapNgReader};
use pcap_file::{DataLink, PcapError};
use std::fs;
use std::path::Path;

/// The first so many frames of a file.
pub fn frames(path: &Path, most: usize) -> Result<Vec<Vec<u8>>, Failure> {
    let bytes = fs::read(path).map_err(|error| {
        Failure::input(&format!("{}: {error}", path.display()), "give a capture file, as tcpdump -w writes it")
    })?;
    frames_in(&path.display().to_string(), &bytes, most)
}

/// The first so many frames of what a file of this name holds. Packets that were captured without an Ethernet header get one.
pub fn frames_in(name: &str, bytes: &[u8], most: usize) -> Result<Vec<Vec<u8>>, Failure> {
    let broken = |error: PcapError| {
        Failure::input(
            &format!("{name} is not a capture that can be read: {error}"),
            "give a file in the format pcap or pcapng, as tcpdump -w and Wireshark write it",
        )
    };
    let packets = if bytes.starts_with(&[0x0a, 0x0d, 0x0d, 0x0a]) { pcapng(bytes, most) } else { pcap(bytes, most) };
    packets.map_err(broken)?.into_iter().map(|(link, bytes)| framed(name, link, bytes)).collect()
}

type Captured = Vec<(DataLink, Vec<u8>)>;

fn pcap(bytes: &[u8], most: usize) -> Result<Captured, PcapError> {
    let mut reader = PcapReader::new(bytes)?;
    let link = reader.header().datalink;
    let mut found = Vec::new();
    while let Some(packet) = reader.next_packet() {
        if found.len() == most {
            break;
        }
        found.push((link, packet?.data.into_owned()));
    }
    Ok(found)
}

fn pcapng(bytes: &[u8], most: usize) -> Result<Captured, PcapError> {
    let mut reader = PcapNgReader::new(bytes)?;
    let (mut links, mut found) = (Vec::new(), Vec::new());
    while let Some(block) = reader.next_block() {
        if found.len() == most {
            break;
        }
        match block? {
            Block::InterfaceDescription(interface) => links.push(interface.linktype),
            Block::EnhancedPacket(packet) => {
                let link = links.get(packet.interface_id as usize).copied().unwrap_or(DataLink::ETHERNET);
                found.push((link, packet.data.into_owned()));
            }
            _ => {}
        }
    }
    Ok(found)
}

fn framed(name: &str, link: DataLink, bytes: Vec<u8>) -> Result<Vec<u8>, Failure> {
    let mut frame = match link {
        DataLink::ETHERNET => bytes,
        DataLink::RAW | DataLink::IPV4 | DataLink::IPV6 => {
            let ethertype: [u8; 2] =
                if bytes.first().is_some_and(|first| first >> 4 == 6) { [0x86, 0xdd] } else { [0x08, 0x00] };
            [&[2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1], &ethertype[..], &bytes].concat()
        }
        other => {
            return Err(Failure::input(
                &format!("{name}: packets of link type {other:?} are not known"),
                "capture on one interface (tcpdump -i eth0 -w FILE), not on `any`",
            ));
        }
    };
    // The classifier is run on whole Ethernet headers, and on no more than fits a page.
    frame.resize(frame.len().clamp(14, 3000), 0);
    Ok(frame)
}
