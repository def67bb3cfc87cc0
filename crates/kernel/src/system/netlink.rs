//! Asks the kernel about links and qdiscs (rtnetlink(7)), and by other families (generic_netlink.rs). The headers and
//! attributes that are read are those of linux/rtnetlink.h and linux/if_link.h; all others are passed over, so that a
//! newer kernel's answers can be read.

use netlink_packet_core::{
    NLM_F_ACK, NLM_F_CREATE, NLM_F_DUMP, NLM_F_DUMP_INTR, NLM_F_REQUEST, NLMSG_DONE, NLMSG_ERROR, NetlinkBuffer,
    NlaBuffer, NlasIterator,
};
use netlink_sys::{Socket, SocketAddr, protocols::NETLINK_ROUTE};
use sluice_error::{Error, Result};

/// Attempts at a dump, which a change may interrupt.
const DUMPS: u32 = 8;

/// struct nlmsghdr.
const NLMSGHDR_BYTES: usize = 16;
/// struct tcmsg: family, index of the interface, handle, parent, info.
const TCMSG_BYTES: usize = 20;
/// struct ifinfomsg: family, type, index, flags, change.
const IFINFOMSG_BYTES: usize = 16;
pub(super) const TCA_KIND: u16 = 1;
const IFLA_INFO_KIND: u16 = 1;
const IFLA_XDP_ATTACHED: u16 = 2;
const RTEXT_FILTER_SKIP_STATS: u32 = 1 << 3;

/// A qdisc, as a dump of all has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Qdisc {
    /// Number of the qdisc's interface.
    pub ifindex: u32,
    /// Number, major << 16 | minor; 0 for one that the kernel chose by default.
    pub handle: u32,
    /// The class that it serves, or TC_H_ROOT.
    pub parent: u32,
    /// Kind of the qdisc: fq_codel, htb, mq ...
    pub kind: String,
}

/// A link.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Link {
    /// Hardware type, ARPHRD_...
    pub hardware: u16,
    /// Flags, IFF_...
    pub flags: u32,
    pub name: String,
    pub mtu_bytes: u32,
    pub tx_queues: u32,
    pub rx_queues: u32,
    /// Kind of the root qdisc, "noqueue" if there is none.
    pub root_qdisc: String,
    /// Kind of a virtual link: veth, bridge, bond ...; none for a real interface.
    pub kind: Option<String>,
    /// Whether an XDP program is attached.
    pub has_xdp: bool,
    /// Whether the other end of the link is in another network namespace.
    pub peer_elsewhere: bool,
}

/// The qdiscs of all interfaces in the process's network namespace.
pub(crate) fn qdiscs() -> Result<Vec<Qdisc>> {
    for _ in 0..DUMPS {
        let answers = ask(libc::RTM_GETQDISC, NLM_F_DUMP, &[0; TCMSG_BYTES])?;
        if !answers.interrupted {
            return Ok(answers.messages.iter().filter_map(|message| qdisc(message)).collect());
        }
    }
    Err(Error::system("listing qdiscs: they change all the time"))
}

fn qdisc(message: &[u8]) -> Option<Qdisc> {
    let (header, attributes) = message.split_at_checked(TCMSG_BYTES)?;
    let kind =
        attributes_of(attributes).find(|attribute| attribute.kind() == TCA_KIND).map(|kind| text(kind.value()))?;
    Some(Qdisc { ifindex: word(header, 4)?, handle: word(header, 8)?, parent: word(header, 12)?, kind })
}

/// The link of a number, in the process's network namespace.
pub(crate) fn link(ifindex: u32) -> Result<Option<Link>> {
    let mut request = [0; IFINFOMSG_BYTES + 8];
    request[4..8].copy_from_slice(&ifindex.to_ne_bytes());
    request[16..18].copy_from_slice(&8u16.to_ne_bytes());
    request[18..20].copy_from_slice(&libc::IFLA_EXT_MASK.to_ne_bytes());
    request[20..].copy_from_slice(&RTEXT_FILTER_SKIP_STATS.to_ne_bytes());
    match ask(libc::RTM_GETLINK, 0, &request) {
        Ok(answers) => Ok(answers.messages.iter().find_map(|message| link_of(message))),
        Err(Failure::Kernel(error)) if error.raw_os_error() == Some(libc::ENODEV) => Ok(None),
        Err(failure) => Err(failure.into()),
    }
}

fn link_of(message: &[u8]) -> Option<Link> {
    let (header, attributes) = message.split_at_checked(IFINFOMSG_BYTES)?;
    let mut link = Link {
        hardware: u16::from_ne_bytes(header[2..4].try_into().ok()?),
        flags: word(header, 8)?,
        name: String::new(),
        mtu_bytes: 0,
        tx_queues: 0,
        rx_queues: 0,
        root_qdisc: String::new(),
        kind: None,
        has_xdp: false,
        peer_elsewhere: false,
    };
    for attribute in attributes_of(attributes) {
        let value = attribute.value();
        let inside = |kind| attributes_of(value).find(|attribute| attribute.kind() == kind);
        match attribute.kind() {
            libc::IFLA_IFNAME => link.name = text(value),
            libc::IFLA_MTU => link.mtu_bytes = word(value, 0)?,
            libc::IFLA_QDISC => link.root_qdisc = text(value),
            libc::IFLA_NUM_TX_QUEUES => link.tx_queues = word(value, 0)?,
            libc::IFLA_NUM_RX_QUEUES => link.rx_queues = word(value, 0)?,
            libc::IFLA_LINKINFO => link.kind = inside(IFLA_INFO_KIND).map(|kind| text(kind.value())),
            libc::IFLA_LINK_NETNSID => link.peer_elsewhere = true,
            libc::IFLA_XDP => {
                link.has_xdp = inside(IFLA_XDP_ATTACHED).is_some_and(|attached| attached.value().first() != Some(&0));
            }
            _ => {}
        }
    }
    Some(link)
}

/// The reason why there is no answer.
#[derive(Debug)]
pub(super) enum Failure {
    Socket(std::io::Error),
    /// The kernel's refusal.
    Kernel(std::io::Error),
    Unreadable,
}

impl From<Failure> for Error {
    fn from(failure: Failure) -> Error {
        match failure {
            Failure::Socket(error) => Error::system(format!("a netlink socket: {error}")),
            Failure::Kernel(error) => Error::system(format!("netlink: {error}")),
            Failure::Unreadable => Error::system("netlink: the kernel's answer cannot be read"),
        }
    }
}

pub(super) struct Answers {
    /// Payload of each message, behind its header.
    pub(super) messages: Vec<Vec<u8>>,
    /// Whether the list changed while it was read.
    interrupted: bool,
}

/// Makes a filter, or replaces the one that has its handle.
pub(super) fn make_filter(request: &[u8]) -> std::io::Result<()> {
    match ask(libc::RTM_NEWTFILTER, NLM_F_CREATE | NLM_F_ACK, request) {
        Ok(_) => Ok(()),
        Err(Failure::Socket(error) | Failure::Kernel(error)) => Err(error),
        Err(Failure::Unreadable) => Err(std::io::ErrorKind::InvalidData.into()),
    }
}

/// An attribute, as a request has it.
pub(super) fn attribute(kind: u16, value: &[u8]) -> Vec<u8> {
    let length = 4 + value.len();
    let mut bytes = Vec::with_capacity(length.next_multiple_of(4));
    bytes.extend((length as u16).to_ne_bytes());
    bytes.extend(kind.to_ne_bytes());
    bytes.extend(value);
    bytes.resize(length.next_multiple_of(4), 0);
    bytes
}

fn ask(kind: u16, flags: u16, request: &[u8]) -> std::result::Result<Answers, Failure> {
    ask_by(NETLINK_ROUTE, kind, flags, request)
}

/// Asks by a protocol of netlink.
pub(super) fn ask_by(protocol: isize, kind: u16, flags: u16, request: &[u8]) -> std::result::Result<Answers, Failure> {
    let mut message = vec![0; NLMSGHDR_BYTES];
    message.extend(request);
    let length = message.len() as u32;
    let mut header = NetlinkBuffer::new(&mut message);
    header.set_length(length);
    header.set_message_type(kind);
    header.set_flags(NLM_F_REQUEST | flags);
    header.set_sequence_number(1);
    let socket = Socket::new(protocol).map_err(Failure::Socket)?;
    socket.connect(&SocketAddr::new(0, 0)).map_err(Failure::Socket)?;
    socket.send(&message, 0).map_err(Failure::Socket)?;
    let mut answers = Answers { messages: Vec::new(), interrupted: false };
    loop {
        let (datagram, _) = socket.recv_from_full().map_err(Failure::Socket)?;
        let mut rest = datagram.as_slice();
        while !rest.is_empty() {
            let message = NetlinkBuffer::new_checked(rest).map_err(|_| Failure::Unreadable)?;
            answers.interrupted |= message.flags() & NLM_F_DUMP_INTR != 0;
            match message.message_type() {
                NLMSG_DONE => return Ok(answers),
                NLMSG_ERROR => {
                    let code = word(message.payload(), 0).ok_or(Failure::Unreadable)? as i32;
                    if code == 0 {
                        return Ok(answers);
                    }
                    return Err(Failure::Kernel(std::io::Error::from_raw_os_error(-code)));
                }
                _ => answers.messages.push(message.payload().to_vec()),
            }
            let aligned = (message.length() as usize).next_multiple_of(4);
            rest = rest.get(aligned..).unwrap_or_default();
        }
        if flags & NLM_F_DUMP == 0 {
            return Ok(answers);
        }
    }
}

pub(super) fn attributes_of(bytes: &[u8]) -> impl Iterator<Item = NlaBuffer<&[u8]>> {
    NlasIterator::new(bytes).map_while(std::result::Result::ok)
}

pub(super) fn word(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

pub(super) fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes.split(|byte| *byte == 0).next().unwrap_or_default()).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_loopback_interface_is_read() {
        let ifindex = nix::net::if_::if_nametoindex("lo").expect("every namespace has one");
        let link = link(ifindex).unwrap_or_else(|error| panic!("{error}")).expect("it is there");
        assert_eq!((link.name.as_str(), link.hardware), ("lo", libc::ARPHRD_LOOPBACK));
        assert_eq!(link.root_qdisc, "noqueue");
        assert!(link.tx_queues > 0 && link.mtu_bytes >= 1500 && link.kind.is_none(), "{link:?}");
    }

    #[test]
    fn a_number_that_no_link_has_is_no_error() {
        assert_eq!(link(0x7fff_fffe).unwrap_or_else(|error| panic!("{error}")), None);
    }

    #[test]
    fn a_message_that_is_cut_short_is_passed_over() {
        let mut message = vec![0; TCMSG_BYTES];
        message[4] = 3;
        message.extend([8, 0, 1, 0, b'm', b'q', 0, 0]);
        let mq = Qdisc { ifindex: 3, handle: 0, parent: 0, kind: "mq".into() };
        assert_eq!(qdisc(&message), Some(mq));
        for length in 0..message.len() - 1 {
            assert_eq!(qdisc(&message[..length]), None, "{length}");
        }
    }
}
