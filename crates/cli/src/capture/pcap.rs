//! The older format: a header, then packets (draft-ietf-opsawg-pcap).

use super::bytes::{Input, Order};
use super::{MAX_PACKET_BYTES, Packet, Reader};
use std::io::Read;

/// Of the link type; the bits above are of the frame check sequence.
const LINK_BITS: u32 = 0x03ff_ffff;

/// A file in this format.
pub(super) struct Packets<R> {
    input: Input<R>,
    order: Order,
    link: u32,
    /// The bytes that a patched libpcap writes after the usual header of each packet.
    more_header: u64,
}

impl<R: Read> Packets<R> {
    /// `magic`: the first bytes, read already.
    pub fn new(magic: [u8; 4], mut input: Input<R>) -> Result<Packets<R>, String> {
        // Microseconds, nanoseconds, microseconds with longer headers.
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
