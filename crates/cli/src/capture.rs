//! Frames of a capture file, read in order as tshark reads them: records that cannot be read become notes.

mod bytes;
mod link;
mod pcap;
mod pcapng;
#[cfg(test)]
mod tests;

use crate::failure::Failure;
use bytes::Input;
use std::fs::File;
use std::io::{BufReader, Read};
use std::path::Path;

/// Bounds of a frame that the classifier can run on: a whole Ethernet header, and no more than fits a page.
const FRAME_BYTES: std::ops::RangeInclusive<usize> = 14..=3000;
/// The longest packet length that a file may give, as in Wireshark (WTAP_MAX_PACKET_SIZE_STANDARD), bytes.
const MAX_PACKET_BYTES: u32 = 262_144;

/// A captured packet, cut to the longest frame that the classifier takes.
struct Packet {
    /// `LINKTYPE_` of tcpdump.org's list.
    link: u32,
    bytes: Vec<u8>,
}

/// The readable frames of a file.
#[derive(Debug, Default)]
pub struct Frames {
    /// The first frames, each with an Ethernet header.
    pub frames: Vec<Vec<u8>>,
    /// Notes on records that could not be read, one sentence each.
    pub notes: Vec<String>,
}

/// A reader of one capture format.
trait Reader {
    /// The next packet, or `None` at the end of the file; an error ends the reading.
    fn next(&mut self) -> Result<Option<Packet>, String>;
}

/// Reads the first `most` frames of a file.
pub fn frames(path: &Path, most: usize) -> Result<Frames, Failure> {
    let file = File::open(path).map_err(|error| unreadable(path, &error))?;
    if file.metadata().is_ok_and(|meta| meta.is_dir()) {
        return Err(unreadable(path, &std::io::Error::from(std::io::ErrorKind::IsADirectory)));
    }
    read(&path.display().to_string(), BufReader::new(file), most)
}

fn unreadable(path: &Path, error: &std::io::Error) -> Failure {
    Failure::input(&format!("{}: {error}", path.display()), "give a capture file, as tcpdump -w writes it")
}

/// Reads the first `most` frames from the bytes of a file with this name.
pub fn frames_in(name: &str, bytes: &[u8], most: usize) -> Result<Vec<Vec<u8>>, Failure> {
    Ok(read(name, bytes, most)?.frames)
}

fn read(name: &str, input: impl Read, most: usize) -> Result<Frames, Failure> {
    let broken = |what: &str| {
        let cure = "give a file in the format pcap or pcapng, as tcpdump -w and Wireshark write it";
        Failure::input(&format!("{name} is not a capture that can be read: {what}"), cure)
    };
    let mut input = Input::new(input);
    let magic: [u8; 4] = input.array().map_err(|_| broken("it is shorter than any header"))?;
    let mut reader: Box<dyn Reader + '_> = if magic == pcapng::SECTION {
        Box::new(pcapng::Sections::new(input).map_err(|what| broken(&what))?)
    } else if magic.starts_with(&[0x1f, 0x8b]) {
        return Err(Failure::input(&format!("{name} is compressed"), "unpack it first, as with gunzip"));
    } else {
        Box::new(pcap::Packets::new(magic, input).map_err(|what| broken(&what))?)
    };
    let mut found = Frames::default();
    let mut seen = 0;
    let mut refused = None;
    while found.frames.len() < most {
        match reader.next() {
            Ok(None) => break,
            Ok(Some(packet)) => {
                seen += 1;
                match link::framed(&packet) {
                    Ok(mut frame) => {
                        frame.resize(frame.len().clamp(*FRAME_BYTES.start(), *FRAME_BYTES.end()), 0);
                        found.frames.push(frame);
                    }
                    Err(unread) => {
                        found.notes.push(format!("{name}: packet {seen} is left out: {}", unread.what));
                        refused.get_or_insert(unread);
                    }
                }
            }
            Err(what) if seen == 0 => return Err(broken(&what)),
            Err(what) => {
                found.notes.push(format!("{name}: the reading ends after packet {seen}: {what}"));
                break;
            }
        }
    }
    match refused {
        Some(unread) if found.frames.is_empty() => {
            Err(Failure::input(&format!("{name}: {}", unread.what), unread.cure))
        }
        _ => Ok(found),
    }
}
