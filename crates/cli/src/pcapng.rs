//! Writes captures as pcapng files (draft-ietf-opsawg-pcapng).

use crate::failure::Failure;
use crate::interrupt::Interrupt;
use nix::poll::{PollFd, PollFlags, poll};
use pcap_file::pcapng::PcapNgWriter;
use pcap_file::pcapng::blocks::interface_description::{InterfaceDescriptionBlock, InterfaceDescriptionOption};
use pcap_file::pcapng::blocks::interface_statistics::{InterfaceStatisticsBlock, InterfaceStatisticsOption};
use pcap_file::pcapng::blocks::section_header::{SectionHeaderBlock, SectionHeaderOption};
use pcap_file::{DataLink, Endianness, PcapError};
use std::fs;
use std::io::{self, Seek, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::path::Path;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Bytes that are collected before they are written.
const BUFFER: usize = 1 << 20;
/// Bytes of addresses at the beginning of an Ethernet header, behind which a tag stands.
const ADDRESSES: usize = 12;
/// Time after which a signal is noticed while a reader takes nothing, as poll(2) wants it.
const LOOK_MS: u8 = 100;
/// Time that a reader has, after a signal, to take what is left.
const PATIENCE: Duration = Duration::from_secs(1);
/// Type of an enhanced packet block.
const ENHANCED_PACKET: u32 = 6;
/// Bytes of such a block in front of the packet: type, length, interface, time, bytes that follow, bytes of the packet.
const HEAD_BYTES: usize = 28;
/// Options of a block: the end of them, and a comment.
const END_OF_OPTIONS: u16 = 0;
const COMMENT: u16 = 1;

/// An interface whose packets are written.
#[derive(Debug, Clone)]
pub struct Described {
    /// Its name.
    pub name: String,
    /// Whether its packets begin with an Ethernet header.
    pub ethernet: bool,
    /// Bytes that are kept of each packet; 0: no limit is known.
    pub snap_bytes: u32,
}

/// A packet to be written.
#[derive(Debug, Clone, Copy)]
pub struct Packet<'a> {
    /// Its interface, by the place of that among those of the file.
    pub interface: usize,
    /// Time since 1970, ns.
    pub at_ns: u64,
    /// Bytes that it had, with its tag.
    pub length: u32,
    /// Its first bytes, or all.
    pub bytes: &'a [u8],
    /// A VLAN tag that the host has taken out of it.
    pub tag: Option<[u8; 4]>,
    /// Its comment.
    pub comment: &'a Comment,
}

/// A comment, as it stands in a block: many packets have the same one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Comment(Vec<u8>);

impl Comment {
    /// A comment of this text, of which a block holds 64 KiB at most.
    pub fn new(text: &str) -> Comment {
        let mut cut = text.len().min(usize::from(u16::MAX));
        while !text.is_char_boundary(cut) {
            cut -= 1;
        }
        let mut bytes = Vec::from(COMMENT.to_ne_bytes());
        bytes.extend((cut as u16).to_ne_bytes());
        bytes.extend(&text.as_bytes()[..cut]);
        bytes.resize(bytes.len().next_multiple_of(4), 0);
        bytes.extend(END_OF_OPTIONS.to_ne_bytes());
        bytes.extend(0u16.to_ne_bytes());
        Comment(bytes)
    }
}

/// The destination of a file's bytes. A pipe whose reader takes nothing does not keep a signal from ending the command.
struct Output {
    file: fs::File,
    interrupt: Option<Interrupt>,
    /// Since when a reader has been waited for after a signal.
    asked: Option<Instant>,
}

impl Output {
    fn wait(&mut self) -> io::Result<()> {
        let asked = self.interrupt.as_ref().is_some_and(Interrupt::is_asked);
        if asked && self.asked.get_or_insert_with(Instant::now).elapsed() > PATIENCE {
            return Err(io::Error::new(io::ErrorKind::TimedOut, "its reader takes nothing"));
        }
        match poll(&mut [PollFd::new(self.file.as_fd(), PollFlags::POLLOUT)], LOOK_MS) {
            Err(nix::errno::Errno::EINTR) | Ok(_) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }
}

impl Output {
    /// Cuts a regular file; whatever else it is, its reader has what was written.
    fn cut(&mut self, bytes: u64) -> io::Result<()> {
        if !self.file.metadata()?.is_file() {
            return Ok(());
        }
        self.file.set_len(bytes)?;
        self.file.seek(io::SeekFrom::Start(bytes)).map(drop)
    }
}

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        loop {
            match self.file.write(bytes) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => self.wait()?,
                result => return result,
            }
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

/// A block that was collected: where it ends, and the interface if it is a packet.
type Block = (usize, Option<usize>);

/// An output that collects blocks before they go on, and counts what has.
struct Counted {
    output: Output,
    collected: Vec<u8>,
    blocks: Vec<Block>,
    /// Bytes that are written, and those that are collected.
    bytes: u64,
    /// Interfaces of packets that a failure has kept out of the output.
    unwritten: Vec<usize>,
}

impl Counted {
    fn new(output: Output) -> Counted {
        // Room for the longest packet behind the last one that did not fill it.
        let collected = Vec::with_capacity(BUFFER + (1 << 17));
        Counted { output, collected, blocks: Vec::new(), bytes: 0, unwritten: Vec::new() }
    }

    /// Counts a block that was added, and hands all on if it is much.
    fn added(&mut self, bytes: usize, interface: Option<usize>) -> io::Result<()> {
        self.bytes += bytes as u64;
        self.blocks.push((self.collected.len(), interface));
        if self.collected.len() >= BUFFER { self.flush() } else { Ok(()) }
    }

    /// Writes what was collected. After a failure a regular file ends with its last whole block.
    fn hand_on(&mut self) -> io::Result<()> {
        let (mut written, mut result) = (0, Ok(()));
        while written < self.collected.len() && result.is_ok() {
            match self.output.write(&self.collected[written..]) {
                Ok(0) => result = Err(io::ErrorKind::WriteZero.into()),
                Ok(bytes) => written += bytes,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => result = Err(error),
            }
        }
        if result.is_err() {
            let whole = self.blocks.partition_point(|(end, _)| *end <= written);
            let end = whole.checked_sub(1).map_or(0, |last| self.blocks[last].0);
            self.unwritten.extend(self.blocks[whole..].iter().filter_map(|(_, interface)| *interface));
            let before = self.bytes - self.collected.len() as u64;
            self.bytes = before + end as u64;
            self.output.cut(self.bytes)?;
        }
        self.collected.clear();
        self.blocks.clear();
        result
    }
}

impl Write for Counted {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.collected.extend_from_slice(bytes);
        self.added(bytes.len(), None)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.hand_on()?;
        self.output.flush()
    }
}

/// A capture file.
pub struct File {
    writer: PcapNgWriter<Counted>,
    path: String,
}

impl File {
    /// Creates a file for packets of these interfaces. Timestamps are in ns. `interrupt`: ends to wait for the reader of a pipe.
    ///
    /// # Errors
    ///
    /// The file is there already and may not be replaced, or cannot be written.
    pub fn create(
        path: &Path,
        interfaces: &[Described],
        replace: bool,
        interrupt: Option<&Interrupt>,
    ) -> Result<File, Failure> {
        let path_text = path.display().to_string();
        let file = open(path, replace, interrupt).map_err(|error| match error.kind() {
            io::ErrorKind::AlreadyExists => Failure::input(
                &format!("{path_text} is there already"),
                "name another file, or replace it with --force",
            ),
            _ => Failure::input(&format!("{path_text}: {error}"), "give a path that can be written"),
        })?;
        let application = SectionHeaderOption::UserApplication(format!("sluice {}", env!("CARGO_PKG_VERSION")).into());
        let section = SectionHeaderBlock {
            endianness: Endianness::native(),
            options: vec![application],
            ..SectionHeaderBlock::default()
        };
        let file = Counted::new(Output { file, interrupt: interrupt.cloned(), asked: None });
        let broken = |error: PcapError| cannot_write(&path_text, &error);
        let mut writer = PcapNgWriter::with_section_header(file, section).map_err(broken)?;
        for interface in interfaces {
            let options = vec![
                InterfaceDescriptionOption::IfName(interface.name.clone().into()),
                InterfaceDescriptionOption::IfTsResol(9),
            ];
            let linktype = if interface.ethernet { DataLink::ETHERNET } else { DataLink::RAW };
            let described = InterfaceDescriptionBlock { linktype, snaplen: interface.snap_bytes, options };
            writer.write_pcapng_block(described).map_err(broken)?;
        }
        Ok(File { writer, path: path_text })
    }

    /// Writes a packet. Its block is laid out here, since there may be a million a second.
    pub fn packet(&mut self, packet: &Packet<'_>) -> Result<(), Failure> {
        let to = self.writer.get_mut();
        let before = to.collected.len();
        lay_out(&mut to.collected, packet);
        let written = to.added(to.collected.len() - before, Some(packet.interface));
        written.map_err(|error| cannot_write(&self.path, &error))
    }

    /// Writes how many packets of an interface passed the filter, and how many of these are missing in the file.
    pub fn statistics(&mut self, interface: usize, received: u64, missing: u64) -> Result<(), Failure> {
        let at = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos() as u64;
        let block = InterfaceStatisticsBlock {
            interface_id: interface as u32,
            // Two halves of 32 bits, the high one first: the writer puts a whole number, in the order of this machine.
            timestamp: if cfg!(target_endian = "little") { at.rotate_left(32) } else { at },
            options: vec![
                InterfaceStatisticsOption::IsbIfRecv(received),
                InterfaceStatisticsOption::IsbIfDrop(missing),
            ],
        };
        let written = self.writer.write_pcapng_block(block);
        written.map(drop).map_err(|error| cannot_write(&self.path, &error))
    }

    /// Interfaces of packets that a failure has kept out of the file since the last call.
    pub fn take_unwritten(&mut self) -> Vec<usize> {
        std::mem::take(&mut self.writer.get_mut().unwritten)
    }

    /// Bytes of the file.
    pub fn bytes(&self) -> u64 {
        self.writer.get_ref().bytes
    }

    /// Has all packets so far in the file.
    pub fn flush(&mut self) -> Result<(), Failure> {
        let path = &self.path;
        self.writer.get_mut().flush().map_err(|error| cannot_write(path, &error))
    }
}

/// Opens a file, or a pipe as soon as somebody reads it, until a signal comes.
fn open(path: &Path, replace: bool, interrupt: Option<&Interrupt>) -> io::Result<fs::File> {
    let mut options = fs::OpenOptions::new();
    options.write(true);
    if replace {
        options.create(true).truncate(true);
    } else {
        options.create_new(true);
    }
    let Some(interrupt) = interrupt.filter(|_| fs::metadata(path).is_ok_and(|there| there.file_type().is_fifo()))
    else {
        return options.open(path);
    };
    options.custom_flags(libc::O_NONBLOCK);
    loop {
        match options.open(path) {
            Err(error) if error.raw_os_error() == Some(libc::ENXIO) && !interrupt.is_asked() => {
                std::thread::sleep(Duration::from_millis(LOOK_MS.into()));
            }
            opened => return opened,
        }
    }
}

/// Adds an enhanced packet block.
fn lay_out(to: &mut Vec<u8>, packet: &Packet<'_>) {
    let (before, after) = match packet.tag {
        Some(_) if packet.bytes.len() >= ADDRESSES => packet.bytes.split_at(ADDRESSES),
        _ => (packet.bytes, &packet.bytes[..0]),
    };
    let tag = packet.tag.as_ref().filter(|_| packet.bytes.len() >= ADDRESSES);
    let tag = tag.map_or(&[][..], |tag| tag);
    let length = packet.bytes.len() + tag.len();
    let padding = length.next_multiple_of(4) - length;
    let total = (HEAD_BYTES + length + padding + packet.comment.0.len() + size_of::<u32>()) as u32;
    let words = [
        ENHANCED_PACKET,
        total,
        packet.interface as u32,
        (packet.at_ns >> 32) as u32,
        packet.at_ns as u32,
        length as u32,
        packet.length.max(length as u32),
    ];
    let mut head = [0; HEAD_BYTES];
    for (to, word) in head.chunks_exact_mut(size_of::<u32>()).zip(words) {
        to.copy_from_slice(&word.to_ne_bytes());
    }
    to.extend_from_slice(&head);
    to.extend_from_slice(before);
    to.extend_from_slice(tag);
    to.extend_from_slice(after);
    to.extend_from_slice(&[0; 3][..padding]);
    to.extend_from_slice(&packet.comment.0);
    to.extend_from_slice(&total.to_ne_bytes());
}

fn cannot_write(path: &str, error: &dyn std::fmt::Display) -> Failure {
    Failure::system(format!("{path}: {error}; the packets before are in the file"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use pcap_file::pcapng::blocks::enhanced_packet::EnhancedPacketOption;
    use pcap_file::pcapng::{Block, PcapNgReader};

    /// Packets of all lengths up to a few words, with and without a tag, read back by another's reader.
    #[test]
    fn packets_are_read_back() {
        let section = SectionHeaderBlock { endianness: Endianness::native(), ..SectionHeaderBlock::default() };
        let mut writer = PcapNgWriter::with_section_header(Vec::new(), section).expect("a header");
        let options = vec![InterfaceDescriptionOption::IfTsResol(9)];
        let described = InterfaceDescriptionBlock { linktype: DataLink::ETHERNET, snaplen: 0, options };
        writer.write_pcapng_block(described).expect("an interface");
        let bytes: Vec<u8> = (0..40).collect();
        let tag = [0x81, 0, 0x20, 5];
        let comments: Vec<Comment> = (0..9).map(|n| Comment::new(&"é".repeat(n))).collect();
        for length in 0..=bytes.len() {
            for tag in [None, Some(tag)] {
                let comment = &comments[length % comments.len()];
                let at_ns = 1_700_000_000_123_456_789 + length as u64;
                let packet = Packet { interface: 0, at_ns, length: 99, bytes: &bytes[..length], tag, comment };
                lay_out(writer.get_mut(), &packet);
            }
        }
        let mut reader = PcapNgReader::new(writer.get_ref().as_slice()).expect("a section");
        let mut count = 0;
        while let Some(block) = reader.next_block() {
            let Block::EnhancedPacket(packet) = block.expect("a block") else { continue };
            let (length, tagged) = (count / 2, count % 2 == 1 && count / 2 >= ADDRESSES);
            let mut expected = bytes[..length].to_vec();
            if tagged {
                expected.splice(ADDRESSES..ADDRESSES, tag);
            }
            assert_eq!(packet.data.as_ref(), expected);
            assert_eq!(packet.original_len, 99);
            assert_eq!(packet.timestamp.as_nanos(), 1_700_000_000_123_456_789 + length as u128);
            let text = "é".repeat(length % comments.len());
            assert_eq!(packet.options, [EnhancedPacketOption::Comment(text.into())]);
            count += 1;
        }
        assert_eq!(count, 2 * (bytes.len() + 1));
    }
}
