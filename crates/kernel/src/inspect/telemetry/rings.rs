//! Reads the rings of all CPUs and interfaces, in turns, so that none waits for another.

use super::attachment::Attachment;
use libbpf_rs::{RingBuffer, RingBufferBuilder};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use sluice_error::{Doing, Result};
use std::cell::RefCell;
use std::os::fd::BorrowedFd;
use std::rc::Rc;
use std::time::Duration;

/// Records that a ring hands over in a turn.
const TURN: usize = 2048;
/// Programs wake a reader only when there is much to read.
const LOOK: Duration = Duration::from_millis(20);

/// Bytes of the records of a turn, one after the other, and of each its interface and where it ends.
#[derive(Default)]
struct Batch {
    bytes: Vec<u8>,
    ends: Vec<(usize, usize)>,
}

struct Ring {
    buffer: RingBuffer<'static>,
}

pub(super) struct Rings {
    rings: Vec<Ring>,
    batch: Rc<RefCell<Batch>>,
}

impl Rings {
    pub fn open(attachments: &[Attachment]) -> Result<Rings> {
        let batch = Rc::<RefCell<Batch>>::default();
        let mut rings = Vec::new();
        for (interface, attachment) in attachments.iter().enumerate() {
            for map in &attachment.rings {
                let to = Rc::clone(&batch);
                let take = move |record: &[u8]| {
                    let mut to = to.borrow_mut();
                    to.bytes.extend_from_slice(record);
                    let end = to.bytes.len();
                    to.ends.push((interface, end));
                    0
                };
                let mut builder = RingBufferBuilder::new();
                builder.add(map, take).doing(|| "opening a ring".to_owned())?;
                rings.push(Ring { buffer: builder.build().doing(|| "opening a ring".to_owned())? });
            }
        }
        Ok(Rings { rings, batch })
    }

    /// Collects a turn of each ring; if there is nothing, waits so long for something.
    pub fn collect(&mut self, limit: Duration) -> Result<usize> {
        let records = self.turn();
        if records > 0 || limit.is_zero() {
            return Ok(records);
        }
        self.wait(limit.min(LOOK))?;
        Ok(self.turn())
    }

    /// Hands over the records that were collected last.
    pub fn collected(&self, take: &mut dyn FnMut(usize, &[u8])) {
        let batch = self.batch.borrow();
        let mut first = 0;
        for &(interface, end) in &batch.ends {
            take(interface, &batch.bytes[first..end]);
            first = end;
        }
    }

    fn turn(&mut self) -> usize {
        {
            let mut batch = self.batch.borrow_mut();
            batch.bytes.clear();
            batch.ends.clear();
        }
        for ring in &self.rings {
            ring.buffer.consume_raw_n(TURN);
        }
        self.batch.borrow().ends.len()
    }

    fn wait(&self, limit: Duration) -> Result<()> {
        // SAFETY: each descriptor belongs to a ring that lives through the call.
        let borrowed = |ring: &Ring| unsafe { BorrowedFd::borrow_raw(ring.buffer.epoll_fd()) };
        let fds: Vec<BorrowedFd<'_>> = self.rings.iter().map(borrowed).collect();
        let mut fds: Vec<PollFd<'_>> = fds.iter().map(|fd| PollFd::new(*fd, PollFlags::POLLIN)).collect();
        match poll(&mut fds, PollTimeout::try_from(limit).unwrap_or(PollTimeout::ZERO)) {
            Err(nix::errno::Errno::EINTR) | Ok(_) => Ok(()),
            Err(error) => Err(error).doing(|| "waiting for records".to_owned()),
        }
    }
}
