//! Frames with numbers, captures of them, and packet sockets.

#![allow(missing_docs)]

use etherparse::{PacketBuilder, SlicedPacket, TransportSlice};
use pcap_file::pcap::{PcapPacket, PcapReader, PcapWriter};
use std::fs::File;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::time::Duration;

/// A frame of UDP for this port, with a number and so many bytes in it.
pub fn frame(port: u16, number: u32, bytes: usize) -> Vec<u8> {
    let mut payload = number.to_be_bytes().to_vec();
    payload.resize(bytes, 7);
    let mut out = Vec::new();
    let step = PacketBuilder::ethernet2([2, 0, 0, 0, 0, 1], [2, 0, 0, 0, 0, 2]);
    let step = step.ipv4([10, 98, 0, 1], [10, 98, 0, 2], 64).udp(5000, port);
    step.write(&mut out, &payload).expect("memory");
    out
}

/// A frame of ours that was seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Seen {
    pub port: u16,
    pub number: u32,
}

fn look(bytes: &[u8]) -> Option<Seen> {
    let packet = SlicedPacket::from_ethernet(bytes).ok()?;
    let Some(TransportSlice::Udp(udp)) = packet.transport else { return None };
    let number = udp.payload().get(..4)?.try_into().ok()?;
    (udp.source_port() == 5000).then(|| Seen { port: udp.destination_port(), number: u32::from_be_bytes(number) })
}

/// A capture that is written.
pub struct Capture(PcapWriter<File>);

impl Capture {
    pub fn new(path: &str) -> Capture {
        Capture(PcapWriter::new(File::create(path).expect("a file")).expect("a header"))
    }

    pub fn write(&mut self, frame: &[u8]) {
        let packet = PcapPacket::new(Duration::ZERO, frame.len() as u32, frame);
        self.0.write_packet(&packet).expect("written");
    }
}

/// A frame of another protocol than IP, with so many bytes in it.
pub fn of_type(ethertype: u16, bytes: usize) -> Vec<u8> {
    let mut out = [[255; 6], [2, 0, 0, 0, 0, 2]].concat();
    out.extend(ethertype.to_be_bytes());
    out.resize(14 + bytes, 0);
    out
}

/// The ethertypes of all frames in a capture.
pub fn ethertypes(path: &str) -> Vec<u16> {
    let mut reader = PcapReader::new(File::open(path).expect("a capture")).expect("a header");
    let mut all = Vec::new();
    while let Some(packet) = reader.next_packet() {
        let packet = packet.expect("a packet");
        all.push(u16::from_be_bytes([packet.data[12], packet.data[13]]));
    }
    all
}

/// The frames of ours in a capture.
pub fn read(path: &str) -> Vec<Seen> {
    let mut reader = PcapReader::new(File::open(path).expect("a capture")).expect("a header");
    let mut all = Vec::new();
    while let Some(packet) = reader.next_packet() {
        all.extend(look(&packet.expect("a packet").data));
    }
    all
}

/// A packet socket on an interface.
pub struct Socket(OwnedFd);

impl Socket {
    /// In the namespace of the thread.
    pub fn open(interface: &str) -> Socket {
        let name = std::ffi::CString::new(interface).expect("no NUL");
        let protocol = (libc::ETH_P_ALL as u16).to_be();
        // SAFETY: the calls take numbers, a string and an address that live through them; the descriptor is ours alone.
        unsafe {
            let fd = libc::socket(libc::AF_PACKET, libc::SOCK_RAW | libc::SOCK_CLOEXEC, protocol.into());
            assert!(fd >= 0, "a packet socket: {}", std::io::Error::last_os_error());
            let socket = OwnedFd::from_raw_fd(fd);
            let mut address: libc::sockaddr_ll = std::mem::zeroed();
            address.sll_family = libc::AF_PACKET as u16;
            address.sll_protocol = protocol;
            address.sll_ifindex = libc::if_nametoindex(name.as_ptr()) as i32;
            assert!(address.sll_ifindex > 0, "no interface {interface}");
            let bound = libc::bind(fd, (&raw const address).cast(), size_of::<libc::sockaddr_ll>() as u32);
            assert_eq!(bound, 0, "binding: {}", std::io::Error::last_os_error());
            // Frames that leave by the interface have not arrived.
            let one: libc::c_int = 1;
            libc::setsockopt(fd, libc::SOL_PACKET, libc::PACKET_IGNORE_OUTGOING, (&raw const one).cast(), 4);
            Socket(socket)
        }
    }

    pub fn send(&self, frame: &[u8]) {
        // SAFETY: the frame lives through the call.
        let sent = unsafe { libc::send(self.0.as_raw_fd(), frame.as_ptr().cast(), frame.len(), 0) };
        assert_eq!(sent, frame.len() as isize, "sending: {}", std::io::Error::last_os_error());
    }

    /// The frames of ours that come until none has come for this time.
    pub fn seen(&self, patience: Duration) -> Vec<Seen> {
        let mut all = Vec::new();
        let mut bytes = [0u8; 2048];
        loop {
            let mut poll = libc::pollfd { fd: self.0.as_raw_fd(), events: libc::POLLIN, revents: 0 };
            // SAFETY: one descriptor and one buffer, which live through the calls.
            unsafe {
                if libc::poll(&mut poll, 1, patience.as_millis() as i32) < 1 {
                    return all;
                }
                let got = libc::recv(self.0.as_raw_fd(), bytes.as_mut_ptr().cast(), bytes.len(), libc::MSG_DONTWAIT);
                if let Ok(got) = usize::try_from(got) {
                    all.extend(look(&bytes[..got]));
                }
            }
        }
    }
}
