//! Writes captures as pcapng files (draft-ietf-opsawg-pcapng).

use crate::failure::Failure;
use pcap_file::pcapng::PcapNgWriter;
use pcap_file::pcapng::blocks::enhanced_packet::{EnhancedPacketBlock, EnhancedPacketOption};
use pcap_file::pcapng::blocks::interface_description::{InterfaceDescriptionBlock, InterfaceDescriptionOption};
use pcap_file::pcapng::blocks::interface_statistics::{InterfaceStatisticsBlock, InterfaceStatisticsOption};
use pcap_file::pcapng::blocks::section_header::{SectionHeaderBlock, SectionHeaderOption};
use pcap_file::{DataLink, PcapError};
use std::fs;
use std::io::{self, BufWriter, Write};
use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Bytes that are collected before they are written.
const BUFFER: usize = 1 << 20;

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

/// A file that counts what was written to it.
struct Counted {
    file: BufWriter<fs::File>,
    bytes: u64,
}

impl Write for Counted {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.file.write(bytes)?;
        self.bytes += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

/// A capture file.
pub struct File {
    writer: PcapNgWriter<Counted>,
    path: String,
}

impl File {
    /// Creates a file for packets of these interfaces. Timestamps are in ns.
    ///
    /// # Errors
    ///
    /// The file is there already and may not be replaced, or cannot be written.
    pub fn create(path: &Path, interfaces: &[Described], replace: bool) -> Result<File, Failure> {
        let path_text = path.display().to_string();
        let mut options = fs::OpenOptions::new();
        options.write(true);
        if replace {
            options.create(true).truncate(true);
        } else {
            options.create_new(true);
        }
        let file = options.open(path).map_err(|error| match error.kind() {
            io::ErrorKind::AlreadyExists => Failure::input(
                &format!("{path_text} is there already"),
                "name another file, or replace it with --force",
            ),
            _ => Failure::input(&format!("{path_text}: {error}"), "give a path that can be written"),
        })?;
        let application = SectionHeaderOption::UserApplication(format!("sluice {}", env!("CARGO_PKG_VERSION")).into());
        let section = SectionHeaderBlock { options: vec![application], ..SectionHeaderBlock::default() };
        let file = Counted { file: BufWriter::with_capacity(BUFFER, file), bytes: 0 };
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

    /// Writes a packet of an interface, by the place of that among those of the file. at: time since 1970.
    pub fn packet(
        &mut self,
        interface: usize,
        at: Duration,
        length_bytes: u32,
        bytes: &[u8],
        comment: &str,
    ) -> Result<(), Failure> {
        let block = EnhancedPacketBlock {
            interface_id: interface as u32,
            timestamp: at,
            original_len: length_bytes.max(bytes.len() as u32),
            data: bytes.into(),
            options: vec![EnhancedPacketOption::Comment(comment.into())],
        };
        let written = self.writer.write_pcapng_block(block);
        written.map(drop).map_err(|error| cannot_write(&self.path, &error))
    }

    /// Writes how many packets of an interface passed the filter, and how many of these are missing in the file.
    pub fn statistics(&mut self, interface: usize, received: u64, missing: u64) -> Result<(), Failure> {
        let at = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let block = InterfaceStatisticsBlock {
            interface_id: interface as u32,
            // Two halves of 32 bits, the high one first: the writer puts a whole number, in the order of this machine.
            timestamp: (at.as_nanos() as u64).rotate_left(32),
            options: vec![
                InterfaceStatisticsOption::IsbIfRecv(received),
                InterfaceStatisticsOption::IsbIfDrop(missing),
            ],
        };
        let written = self.writer.write_pcapng_block(block);
        written.map(drop).map_err(|error| cannot_write(&self.path, &error))
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

fn cannot_write(path: &str, error: &dyn std::fmt::Display) -> Failure {
    Failure::system(format!("{path}: {error}; the packets before are in the file, the last one may be cut"))
}
