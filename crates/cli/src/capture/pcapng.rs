//! The pcapng format: sections of blocks (draft-ietf-opsawg-pcapng). Each section has its own byte order and interfaces.

use super::bytes::{Input, Order};
use super::{MAX_PACKET_BYTES, Packet, Reader};
use std::io::Read;

/// The type of a section header block, the same in either byte order.
pub(super) const SECTION: [u8; 4] = [0x0a, 0x0d, 0x0d, 0x0a];
const INTERFACE: u32 = 1;
const OLD_PACKET: u32 = 2;
const SIMPLE_PACKET: u32 = 3;
const ENHANCED_PACKET: u32 = 6;
/// Bytes of a block's frame: type, length and length again.
const FRAME_OF_BLOCK: u32 = 12;

struct Interface {
    link: u32,
    /// The most bytes of a packet that were captured; 0 means all.
    snap_bytes: u32,
}

/// A pcapng file.
pub(super) struct Sections<R> {
    input: Input<R>,
    order: Order,
    interfaces: Vec<Interface>,
}

impl<R: Read> Sections<R> {
    /// Starts after the first four bytes, which are read before.
    pub fn new(input: Input<R>) -> Result<Sections<R>, String> {
        let mut sections = Sections { input, order: Order::Little, interfaces: Vec::new() };
        sections.begin()?;
        Ok(sections)
    }

    /// Reads a section header block after its type.
    fn begin(&mut self) -> Result<(), String> {
        let head: [u8; 12] = self.input.array()?;
        self.order = match head[4..8] {
            [0x4d, 0x3c, 0x2b, 0x1a] => Order::Little,
            [0x1a, 0x2b, 0x3c, 0x4d] => Order::Big,
            _ => return Err("a section has no valid byte-order magic".to_owned()),
        };
        let version = self.order.u16(&head[8..]);
        if version != 1 {
            return Err(format!("version {version} of pcapng is not known"));
        }
        let length = self.order.u32(&head);
        self.interfaces.clear();
        // Type, length, order and version have been read.
        let rest = padded(length).checked_sub(16).ok_or("a section's header is too short")?;
        self.input.skip(rest)
    }

    /// Skips the rest of a block, `read` bytes of whose body have been read.
    fn end(&mut self, length: u32, read: u32) -> Result<(), String> {
        let read = u64::from(FRAME_OF_BLOCK) + u64::from(read);
        let rest = padded(length).checked_sub(read).ok_or("a block is too short for what it holds")?;
        self.input.skip(rest)?;
        let again = self.order.u32(&self.input.array::<4>()?);
        if again == length { Ok(()) } else { Err("a block's two lengths differ".to_owned()) }
    }

    fn interface(&self, number: u32) -> Result<&Interface, String> {
        let found = self.interfaces.get(number as usize);
        found.ok_or_else(|| format!("a packet is of interface {number}, which its section does not describe"))
    }

    fn packet(&mut self, length: u32, read: u32, link: u32, captured: u32) -> Result<Option<Packet>, String> {
        let room = length.saturating_sub(FRAME_OF_BLOCK + read);
        if captured > room || captured > MAX_PACKET_BYTES {
            return Err(format!("a packet of {captured} bytes does not fit its block"));
        }
        let bytes = self.input.packet(captured)?;
        self.end(length, read + captured)?;
        Ok(Some(Packet { link, bytes }))
    }

    /// The packet of a block, or `None` for a block without a packet.
    fn block(&mut self, kind: u32, length: u32) -> Result<Option<Packet>, String> {
        match kind {
            INTERFACE => {
                let head: [u8; 8] = self.input.array()?;
                let interface =
                    Interface { link: self.order.u16(&head).into(), snap_bytes: self.order.u32(&head[4..]) };
                self.interfaces.push(interface);
                self.end(length, 8)?;
                Ok(None)
            }
            ENHANCED_PACKET => {
                let head: [u8; 20] = self.input.array()?;
                let link = self.interface(self.order.u32(&head))?.link;
                self.packet(length, 20, link, self.order.u32(&head[12..]))
            }
            OLD_PACKET => {
                let head: [u8; 20] = self.input.array()?;
                let link = self.interface(self.order.u16(&head).into())?.link;
                self.packet(length, 20, link, self.order.u32(&head[12..]))
            }
            SIMPLE_PACKET => {
                let head: [u8; 4] = self.input.array()?;
                // A simple packet belongs to the first interface and has no captured length.
                let Interface { link, snap_bytes } = *self.interface(0)?;
                let snap_bytes = if snap_bytes == 0 { u32::MAX } else { snap_bytes };
                self.packet(length, 4, link, self.order.u32(&head).min(snap_bytes))
            }
            _ => self.end(length, 0).map(|()| None),
        }
    }
}

impl<R: Read> Reader for Sections<R> {
    fn next(&mut self) -> Result<Option<Packet>, String> {
        loop {
            let Some(kind) = self.input.array_or_end::<4>()? else { return Ok(None) };
            if kind == SECTION {
                self.begin()?;
                continue;
            }
            let length = self.order.u32(&self.input.array::<4>()?);
            if length < FRAME_OF_BLOCK {
                return Err("a block is shorter than any".to_owned());
            }
            if let Some(packet) = self.block(self.order.u32(&kind), length)? {
                return Ok(Some(packet));
            }
        }
    }
}

/// Blocks are padded to four bytes; some writers leave that out of the length.
fn padded(length: u32) -> u64 {
    u64::from(length).next_multiple_of(4)
}
