//! A packet that the arrival hook has handed over.

use sluice_abi as abi;
use sluice_core::Packet;

/// The findings of the hook about a packet.
pub struct Handed {
    /// The tag of the policy that its class is of.
    pub tag: u16,
    /// Its class.
    pub class: u32,
    /// The leaf that its address leads to; `SL_ADDRESS_NO_LEAF`: none.
    pub leaf: u32,
    /// The properties that the scheduler is to know besides.
    pub packet: Packet,
}

impl Handed {
    /// Reads the metadata of the hook in front of a packet of so many bytes. None: no hook of ours has handed it over.
    pub fn read(front: &[u8], length_bytes: u32) -> Option<Handed> {
        let at = front.len().checked_sub(size_of::<abi::sl_wire_meta>())?;
        let meta: abi::sl_wire_meta = abi::read_small(&front[at..])?;
        if meta.meta.magic != abi::SL_XDP_MAGIC {
            return None;
        }
        let packet = Packet {
            class: 0,
            len_bytes: length_bytes,
            segments: 1,
            flow_hash: meta.flow_hash,
            src_host: meta.src_host,
            dst_host: meta.dst_host,
            ecn: meta.ecn,
        };
        let class = u32::from(meta.meta.handed) & (abi::SL_CLASSES - 1);
        Some(Handed { tag: meta.meta.handed >> abi::SL_CLASS_BITS, class, leaf: meta.leaf, packet })
    }
}
