//! Packets on which the classifier and the model once disagreed. Each run begins with them.

/// The frames of these packets.
pub const FRAMES: &[&[u8]] = &[
    // An EtherType of 0 was taken for the end of the packet.
    &[2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 0, 0, 0x46, 0x22, 0, 0x2c, 0, 2, 0x1f, 0xff, 0x40, 0x2f, 0, 0],
    // The same EtherType behind a VLAN tag.
    &[2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 0x91, 0, 0xc0, 1, 0, 0, 0, 1, 0x91, 0, 0x8f, 0xfe, 8, 0, 0x46, 0x2b],
];
