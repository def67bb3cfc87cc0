//! The pcap format: a header, then packets (draft-ietf-opsawg-pcap).

use super::bytes::{Input, Order};
use super::{MAX_PACKET_BYTES, Packet, Reader};
use std::io::Read;

/// Bits of the link type; the higher bits are about the frame check sequence.
const LINK_BITS: u32 = 0x03ff_ffff;

/// A pcap file.
pub(super) struct Packets<R> {
    input: Input<R>,
    order: Order,
    link: u32,
    /// The extra bytes that a patched libpcap writes after each packet's header.
    more_header: u64,
}

impl<R: Read> Packets<R> {
    /// Reads the file header; `magic` is its first four bytes, read before.
    pub fn new(magic: [u8; 4], mut input: Input<R>) -> Result<Packets<R>, String> {
        // The magic numbers for microseconds, nanoseconds, and microseconds with longer packet headers.
        const MAGICS: [(u32, u64); 3] = [(0xa1b2_c3d4, 0), (0xa1b2_3c4d, 0), (0xa1b2_cd34, 8)];
        let known =
            |order: Order| MAGICS.iter().find(|(known, _)| *known == order.u32(&magic)).map(|found| (order, *found));
        let (order, (_, more_header)) =
            known(Order::Little).or_else(|| known(Order::Big)).ok_or("its first bytes are of no such format")?;
        let header: [u8; 20] = input.array()?;
        Ok(Packets { input, order, link: order.u32(&header[16..]) & LINK_BITS, more_header })
    }
}

impl<R: Read> Reader for Packets<R> {
    fn next(&mut self) -> Result<Option<Packet>, String> {
        let Some(header) = self.input.array_or_end::<16>()? else { return Ok(None) };
        let captured = self.order.u32(&header[8..]);
        if captured > MAX_PACKET_BYTES {
            return Err(format!("a packet of {captured} bytes is none, so the file is damaged there"));
        }
        self.input.skip(self.more_header)?;
        Ok(Some(Packet { link: self.link, bytes: self.input.packet(captured)? }))
    }
}
