//! Rows of an output: one for each packet, or one for each flow.

use sluice_kernel::Result;
use sluice_records::flow::Limits;
use sluice_records::{Flow, Flows, Labels, Packet, Sampling, Sequence, Writer};

/// What becomes of packets.
pub trait Rows {
    /// Adds a packet.
    fn add(&mut self, packet: &Packet, labels: &Labels) -> Result<()>;

    /// Ends a look at the rings that began at this time.
    fn end_look(&mut self, begun_ns: u64, labels: &Labels) -> Result<()>;

    /// Lets readers have what there is at this time.
    fn flush(&mut self, now_ns: u64, labels: &Labels) -> Result<()>;

    /// Writes the last rows, with the records that found no room at the end, and returns how many rows there are.
    fn finish(&mut self, now_ns: u64, missed: u64, labels: &Labels) -> Result<u64>;
}

/// A row for each packet.
pub struct PacketRows {
    writer: Box<dyn Writer<Packet>>,
    missed: u64,
}

impl PacketRows {
    pub fn new(writer: Box<dyn Writer<Packet>>) -> PacketRows {
        PacketRows { writer, missed: 0 }
    }
}

impl Rows for PacketRows {
    fn add(&mut self, packet: &Packet, labels: &Labels) -> Result<()> {
        self.missed += packet.missed;
        self.writer.write(packet, labels)
    }

    fn end_look(&mut self, _: u64, _: &Labels) -> Result<()> {
        Ok(())
    }

    fn flush(&mut self, _: u64, _: &Labels) -> Result<()> {
        self.writer.flush()
    }

    fn finish(&mut self, now_ns: u64, missed: u64, labels: &Labels) -> Result<u64> {
        self.writer.write(&Packet::end(now_ns, missed), labels)?;
        end(&mut *self.writer, self.missed + missed)
    }
}

/// A row for each flow.
pub struct FlowRows {
    sequence: Sequence,
    flows: Flows,
    writer: Box<dyn Writer<Flow>>,
    missed: u64,
}

impl FlowRows {
    /// `by_flow`: whether flows were sampled, and not packets.
    pub fn new(writer: Box<dyn Writer<Flow>>, limits: Limits, by_flow: bool) -> FlowRows {
        let sampling = if by_flow { Sampling::Flows } else { Sampling::Packets };
        FlowRows { sequence: Sequence::default(), flows: Flows::new(limits, sampling), writer, missed: 0 }
    }
}

impl Rows for FlowRows {
    fn add(&mut self, packet: &Packet, _: &Labels) -> Result<()> {
        self.missed += packet.missed;
        self.sequence.add(packet);
        Ok(())
    }

    fn end_look(&mut self, begun_ns: u64, labels: &Labels) -> Result<()> {
        let FlowRows { sequence, flows, writer, .. } = self;
        sequence.release(begun_ns, &mut |packet| flows.add(packet, &mut |flow| writer.write(flow, labels)))
    }

    fn flush(&mut self, now_ns: u64, labels: &Labels) -> Result<()> {
        self.flows.sweep(now_ns, &mut |flow| self.writer.write(flow, labels))?;
        self.writer.flush()
    }

    fn finish(&mut self, now_ns: u64, missed: u64, labels: &Labels) -> Result<u64> {
        let FlowRows { sequence, flows, writer, .. } = self;
        sequence.finish(&mut |packet| flows.add(packet, &mut |flow| writer.write(flow, labels)))?;
        let unwritten = self.flows.finish(&mut |flow| self.writer.write(flow, labels))?;
        self.writer.write(&Flow::end(now_ns, unwritten + missed), labels)?;
        end(&mut *self.writer, self.missed + missed)
    }
}

fn end<R>(writer: &mut dyn Writer<R>, missed: u64) -> Result<u64> {
    writer.finish(vec![("sluice.missed".to_owned(), missed.to_string())])?;
    Ok(writer.rows())
}
