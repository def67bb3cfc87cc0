//! Numbers and packets read from a stream that may end anywhere.

use super::FRAME_BYTES;
use std::io::{self, ErrorKind, Read};

/// A byte stream with its read position.
pub(super) struct Input<R> {
    from: R,
}

/// The byte order of a file's numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Order {
    Little,
    Big,
}

impl Order {
    pub fn u16(self, bytes: &[u8]) -> u16 {
        let array = [bytes[0], bytes[1]];
        if self == Order::Little { u16::from_le_bytes(array) } else { u16::from_be_bytes(array) }
    }

    pub fn u32(self, bytes: &[u8]) -> u32 {
        let array = [bytes[0], bytes[1], bytes[2], bytes[3]];
        if self == Order::Little { u32::from_le_bytes(array) } else { u32::from_be_bytes(array) }
    }
}

impl<R: Read> Input<R> {
    pub fn new(from: R) -> Input<R> {
        Input { from }
    }

    /// Reads `N` bytes; an early end of the stream is an error.
    pub fn array<const N: usize>(&mut self) -> Result<[u8; N], String> {
        self.array_or_end()?.ok_or_else(|| TRUNCATED.to_owned())
    }

    /// Reads `N` bytes, or `None` if the stream ends before the first of them.
    pub fn array_or_end<const N: usize>(&mut self) -> Result<Option<[u8; N]>, String> {
        let mut array = [0; N];
        let mut filled = 0;
        while filled < N {
            match self.from.read(&mut array[filled..]) {
                Ok(0) if filled == 0 => return Ok(None),
                Ok(0) => return Err(TRUNCATED.to_owned()),
                Ok(count) => filled += count,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error.to_string()),
            }
        }
        Ok(Some(array))
    }

    /// Reads a packet of `length` bytes; only the part that the classifier takes is kept.
    pub fn packet(&mut self, length: u32) -> Result<Vec<u8>, String> {
        let kept = (length as usize).min(*FRAME_BYTES.end());
        let mut bytes = vec![0; kept];
        self.from.read_exact(&mut bytes).map_err(truncated)?;
        self.skip(u64::from(length) - kept as u64)?;
        Ok(bytes)
    }

    /// Skips `count` bytes.
    pub fn skip(&mut self, count: u64) -> Result<(), String> {
        let passed = io::copy(&mut (&mut self.from).take(count), &mut io::sink()).map_err(truncated)?;
        if passed == count { Ok(()) } else { Err(TRUNCATED.to_owned()) }
    }
}

const TRUNCATED: &str = "the file is cut short there";

fn truncated(error: io::Error) -> String {
    if error.kind() == ErrorKind::UnexpectedEof { TRUNCATED.to_owned() } else { error.to_string() }
}
