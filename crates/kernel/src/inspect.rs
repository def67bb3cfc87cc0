//! Looking at managed interfaces without changing them: one packet's way, readings one after the other, events, counts and records of packets. Only `steal` keeps packets from the host, as it is asked to.

pub mod connections;
pub mod events;
pub mod explain;
pub mod probe;
pub mod reader;
pub mod steal;
pub mod telemetry;
