//! The files of a capture, one after the other.

use crate::args::capture::Capture;
use crate::failure::Failure;
use crate::interrupt::Interrupt;
use crate::pcapng::{Described, File, Packet};
use sluice_kernel::telemetry::Totals;
use std::fs;
use std::path::{Path, PathBuf};

pub struct Files<'a> {
    args: &'a Capture,
    described: &'a [Described],
    rotate: Option<u64>,
    interrupt: &'a Interrupt,
    file: File,
    path: PathBuf,
    /// Files so far.
    number: u64,
    /// Packets in all files.
    packets: u64,
    /// Packets of each interface that are in no file since there were as many as wanted, or the output failed.
    surplus: Vec<u64>,
    /// Bytes of the files before.
    bytes: u64,
}

impl<'a> Files<'a> {
    pub fn create(
        args: &'a Capture,
        described: &'a [Described],
        rotate: Option<u64>,
        interrupt: &'a Interrupt,
    ) -> Result<Files<'a>, Failure> {
        let path = if rotate.is_some() { numbered(&args.output, 1) } else { args.output.clone() };
        let file = File::create(&path, described, args.force, Some(interrupt))?;
        Ok(Files {
            args,
            described,
            rotate,
            interrupt,
            file,
            path,
            number: 1,
            packets: 0,
            surplus: vec![0; described.len()],
            bytes: 0,
        })
    }

    /// The path of the present file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Packets in all files.
    pub fn packets(&self) -> u64 {
        self.packets
    }

    /// Packets of each interface that are in no file since there were as many as wanted, or the output failed.
    pub fn surplus(&self) -> &[u64] {
        &self.surplus
    }

    /// Counts a packet that is not written.
    pub fn skip(&mut self, packet: &Packet<'_>) {
        self.surplus[packet.interface] += 1;
    }

    /// Bytes of all files.
    pub fn bytes(&self) -> u64 {
        self.bytes + self.file.bytes()
    }

    /// Whether there are as many packets as wanted.
    pub fn are_full(&self) -> bool {
        self.args.packets.is_some_and(|wanted| self.packets >= wanted)
    }

    /// Writes a packet, unless there are as many as wanted. totals: of each interface until now, for the end of a file.
    pub fn write(&mut self, packet: &Packet<'_>, totals: &[Totals]) -> Result<(), Failure> {
        if self.are_full() {
            self.skip(packet);
            return Ok(());
        }
        self.packets += 1;
        let written = self.file.packet(packet);
        self.settle(written)?;
        if self.rotate.is_some_and(|most| self.file.bytes() >= most) {
            self.next(totals)?;
        }
        Ok(())
    }

    /// Begins another file, and removes the oldest if there are too many.
    fn next(&mut self, totals: &[Totals]) -> Result<(), Failure> {
        self.finish(totals)?;
        self.bytes += self.file.bytes();
        self.number += 1;
        self.path = numbered(&self.args.output, self.number);
        self.file = File::create(&self.path, self.described, self.args.force, Some(self.interrupt))?;
        if let Some(old) = self.args.files.and_then(|files| self.number.checked_sub(files)).filter(|old| *old > 0) {
            let path = numbered(&self.args.output, old);
            fs::remove_file(&path).map_err(|error| Failure::system(format!("removing {}: {error}", path.display())))?;
        }
        Ok(())
    }

    /// Writes the statistics of each interface, and has all in the file.
    pub fn finish(&mut self, totals: &[Totals]) -> Result<(), Failure> {
        // Numbers of packets must not change behind the statistics that tell them.
        self.flush()?;
        let written = self.statistics(totals);
        self.settle(written)
    }

    /// Ends a file that could not be written whole: it has its last whole packet, and statistics if there is room for them.
    pub fn close_after_failure(&mut self, totals: &[Totals]) {
        // The failure is told of already.
        let written = self.statistics(totals);
        let _ = self.settle(written);
    }

    fn statistics(&mut self, totals: &[Totals]) -> Result<(), Failure> {
        for (interface, totals) in totals.iter().enumerate() {
            self.file.statistics(interface, totals.seen_pkts, totals.missed_pkts)?;
        }
        self.file.flush()
    }

    /// Has all packets so far in the file.
    pub fn flush(&mut self) -> Result<(), Failure> {
        let written = self.file.flush();
        self.settle(written)
    }

    /// Takes packets out of the account that a failure has kept out of the file.
    fn settle(&mut self, written: Result<(), Failure>) -> Result<(), Failure> {
        for interface in self.file.take_unwritten() {
            self.packets -= 1;
            self.surplus[interface] += 1;
        }
        written
    }
}

/// The path of a numbered file: x-1.pcapng for x.pcapng.
fn numbered(path: &Path, number: u64) -> PathBuf {
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    let extension = path.extension().map_or(String::new(), |extension| format!(".{}", extension.to_string_lossy()));
    path.with_file_name(format!("{stem}-{number}{extension}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_numbered_before_the_extension() {
        assert_eq!(numbered(Path::new("/a/x.pcapng"), 3), Path::new("/a/x-3.pcapng"));
        assert_eq!(numbered(Path::new("x"), 1), Path::new("x-1"));
    }
}
