//! The filter on departures that calls a program, and then chooses the tx queue by the packet's hash (skbedit with `queue_mapping` and `skbhash`, from
//! Linux 5.19 on; net/sched/act_skbedit.c). It is set by netlink, since iproute2 does not know `skbhash`.

use crate::system::netlink::{self, TCA_KIND, attribute};
use crate::system::{iproute, qdiscs};
use sluice_error::Result;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

/// Preference of the filter: behind all others of ours, since it changes the packet's hash.
const PREF: u32 = 65_004;

// include/uapi/linux/pkt_sched.h, pkt_cls.h, tc_act/tc_skbedit.h
const TC_H_CLSACT_EGRESS: u32 = 0xffff_fff3;
const TCA_OPTIONS: u16 = 2;
const TCA_BPF_ACT: u16 = 1;
const TCA_BPF_FD: u16 = 6;
const TCA_BPF_NAME: u16 = 7;
const TCA_ACT_KIND: u16 = 1;
const TCA_ACT_OPTIONS: u16 = 2;
const TC_ACT_PIPE: u32 = 3;
const TCA_SKBEDIT_PARMS: u16 = 2;
const TCA_SKBEDIT_QUEUE_MAPPING: u16 = 4;
const TCA_SKBEDIT_FLAGS: u16 = 9;
const TCA_SKBEDIT_QUEUE_MAPPING_MAX: u16 = 10;
const SKBEDIT_F_TXQ_SKBHASH: u64 = 1 << 6;

/// struct tcmsg and the attributes of a filter that calls this program, and sends a packet by one of the first so many queues.
fn request(ifindex: u32, program: i32, queues: u32) -> Vec<u8> {
    let name = |name: &str| [name.as_bytes(), &[0]].concat();
    // struct tc_skbedit: index, capabilities, what follows, two counts.
    let parameters = [0, 0, TC_ACT_PIPE, 0, 0].map(u32::to_ne_bytes).concat();
    let action = [
        attribute(TCA_SKBEDIT_PARMS, &parameters),
        attribute(TCA_SKBEDIT_QUEUE_MAPPING, &0u16.to_ne_bytes()),
        attribute(TCA_SKBEDIT_QUEUE_MAPPING_MAX, &(queues.max(1) as u16 - 1).to_ne_bytes()),
        attribute(TCA_SKBEDIT_FLAGS, &SKBEDIT_F_TXQ_SKBHASH.to_ne_bytes()),
    ]
    .concat();
    let action = [attribute(TCA_ACT_KIND, &name("skbedit")), attribute(TCA_ACT_OPTIONS, &action)].concat();
    let options = [
        attribute(TCA_BPF_ACT, &attribute(1, &action)),
        attribute(TCA_BPF_FD, &program.to_ne_bytes()),
        attribute(TCA_BPF_NAME, &name("sluice_steer")),
    ]
    .concat();
    let protocol = u32::from((libc::ETH_P_ALL as u16).to_be());
    // Family and padding; the interface; handle 1; the place; preference and protocol.
    let header = [0, ifindex, 1, TC_H_CLSACT_EGRESS, PREF << 16 | protocol].map(u32::to_ne_bytes).concat();
    [header, attribute(TCA_KIND, &name("bpf")), attribute(TCA_OPTIONS, &options)].concat()
}

/// Sets the filter of an interface, in place of an earlier one.
///
/// # Errors
///
/// The kernel has no action skbedit, or no clsact is there.
pub(crate) fn set(ifindex: u32, program: BorrowedFd<'_>, queues: u32) -> io::Result<()> {
    netlink::make_filter(&request(ifindex, program.as_raw_fd(), queues))
}

/// Whether the filter is there.
pub(crate) fn is_there(interface: &str) -> Result<bool> {
    Ok(qdiscs::has_clsact(interface)?
        && iproute::tc(&format!("filter show dev {interface} egress"))?.contains(&format!("pref {PREF} ")))
}

/// Removes the filter, if it is there.
pub(crate) fn clear(interface: &str) -> Result<()> {
    if is_there(interface)? {
        iproute::tc(&format!("filter del dev {interface} egress pref {PREF}"))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::system::netlink::attributes_of;

    #[test]
    fn the_request_is_as_the_kernel_reads_it() {
        let bytes = request(7, 5, 8);
        let word = |at: usize| u32::from_ne_bytes(bytes[at..at + 4].try_into().expect("four"));
        assert_eq!([word(4), word(8), word(12), word(16) >> 16], [7, 1, TC_H_CLSACT_EGRESS, PREF]);
        let inside = |bytes: &[u8], kind: u16| -> Vec<u8> {
            attributes_of(bytes).find(|one| one.kind() == kind).map(|one| one.value().to_vec()).expect("it is there")
        };
        assert_eq!(inside(&bytes[20..], TCA_KIND), *b"bpf\0");
        let options = inside(&bytes[20..], TCA_OPTIONS);
        assert_eq!(inside(&options, TCA_BPF_FD), 5i32.to_ne_bytes());
        let action = inside(&inside(&options, TCA_BPF_ACT), 1);
        assert_eq!(inside(&action, TCA_ACT_KIND), *b"skbedit\0");
        let skbedit = inside(&action, TCA_ACT_OPTIONS);
        assert_eq!(inside(&skbedit, TCA_SKBEDIT_QUEUE_MAPPING_MAX), 7u16.to_ne_bytes());
        assert_eq!(inside(&skbedit, TCA_SKBEDIT_FLAGS), 64u64.to_ne_bytes());
    }
}
