//! `sluice trace`: the path of single packets.

use crate::args::Trace;
use crate::failure::Failure;
use crate::pcapng::{self, Comment, Described, File};
use crate::{events, explain, filter, terminal};
use sluice_kernel::connections::{Connection, Connections};
use sluice_kernel::events::{Event, EventKind, Filter, Listener, Packet, Subject, explained};
use sluice_kernel::explain::{Explanation, Fields, by_interface};
use std::time::Duration;

/// The shortest frame that the classifier can run on.
const ETHERNET_BYTES: usize = 14;

pub fn run(args: &Trace) -> Result<(), Failure> {
    let filter = wanted(args)?;
    let end = events::end(args.time.as_deref())?;
    let wanted = filter.clone();
    let mut listener = Listener::new(std::slice::from_ref(&args.interface), Subject::Packets(filter))?;
    let ethernet = sluice_kernel::Interface::find(&args.interface)?.ethernet;
    let mut capture = args
        .pcapng
        .as_ref()
        .map(|path| {
            let described = Described { name: args.interface.clone(), ethernet, snap_bytes: 0 };
            File::create(path, &[described], true, None)
        })
        .transpose()?;
    events::say_listening();
    let mut shown = 0;
    let mut connections = Connections::default();
    while let Some(left) = events::left(end).filter(|_| !terminal::has_no_reader()) {
        let event = listener.next(left.min(terminal::READER_POLL))?;
        if event.iter().any(|event| matches!(event.what, EventKind::Unmanaged)) {
            return Err(Failure::system(format!("{} is not managed any more", args.interface)));
        }
        let packets: Vec<(&Event, &Packet)> = event.iter().filter_map(|event| Some((event, packet(event)?))).collect();
        if packets.is_empty() {
            continue;
        }
        connections.renew()?;
        let asked: Vec<_> = packets.iter().map(|(_, packet)| (frame(packet, ethernet), packet.metadata)).collect();
        for ((event, packet), why) in packets.iter().zip(by_interface(&args.interface, &asked)?) {
            // The kernel reports every refused packet, whatever the filter.
            if !is_wanted(&wanted, &why) {
                continue;
            }
            let Fields { protocol, src, dst, src_port, dst_port, .. } = why.fields;
            let connection = connections.of(protocol, (src, src_port), (dst, dst_port))?;
            let line = way(packet, &why, connection.as_ref());
            if let Some(capture) = &mut capture {
                let at_ns = Duration::from_secs_f64(event.at_s).as_nanos() as u64;
                let (length, bytes) = (packet.length_bytes, packet.bytes.as_slice());
                let comment = &Comment::new(&line);
                capture.packet(&pcapng::Packet { interface: 0, at_ns, length, bytes, tag: None, comment })?;
                capture.flush()?;
            }
            let text = if args.json {
                json(event, &why, connection.as_ref())?
            } else {
                format!("{} {} | {line}", events::beginning(event), explain::packet_line(&why))
            };
            terminal::say(&(text + "\n"));
            shown += 1;
            if args.count.is_some_and(|count| shown >= count) {
                return Ok(());
            }
        }
    }
    Ok(())
}

fn packet(event: &Event) -> Option<&Packet> {
    match &event.what {
        EventKind::Packet(packet) => Some(packet),
        _ => None,
    }
}

/// The frame for the classifier: the packet's first bytes, behind an Ethernet header.
fn frame(packet: &Packet, ethernet: bool) -> Vec<u8> {
    let mut frame = Vec::new();
    if !ethernet {
        frame.resize(12, 0);
        frame.extend(if packet.bytes.first().is_some_and(|b| b >> 4 == 6) { [0x86, 0xdd] } else { [8, 0] });
    }
    frame.extend(&packet.bytes);
    frame.resize(frame.len().max(ETHERNET_BYTES), 0);
    frame
}

fn is_wanted(filter: &Filter, why: &Explanation) -> bool {
    let fields = &why.fields;
    filter.protocol.is_none_or(|protocol| fields.protocol == protocol)
        && filter.src.is_none_or(|src| fields.src == Some(src))
        && filter.dst.is_none_or(|dst| fields.dst == Some(dst))
        && filter.src_port.is_none_or(|port| fields.src_port == Some(port))
        && filter.dst_port.is_none_or(|port| fields.dst_port == Some(port))
}

/// Forward, rule, class, wait, verdict and reason of a packet.
fn way(packet: &Packet, why: &Explanation, connection: Option<&Connection>) -> String {
    let place = &packet.place;
    let wait = packet.wait_ms.map_or(String::new(), |wait| format!("waited {wait:.3} ms | "));
    let verdict = match packet.dropped {
        Some(reason) => format!("dropped: {reason}, {}", explained(reason)),
        None if packet.marked => "sent, and its flow is marked".to_owned(),
        None => "sent".to_owned(),
    };
    let forward = connection.map_or(String::new(), |connection| {
        let [arrives, leaves] = connection.ways().map(|(src, dst)| format!("{src} to {dst}"));
        format!("forward {}: {arrives} leaves as {leaves} | ", connection.forward)
    });
    let own_class = connection.and_then(|connection| connection.class);
    let rule = if own_class == Some(place.class) && place.direction == "egress" {
        "not asked: the forward has a class".to_owned()
    } else {
        explain::rule_line(why)
    };
    format!("{forward}rule {rule} | {} class {} {} | {wait}{verdict}", place.direction, place.class, place.name)
}

fn json(event: &Event, why: &Explanation, connection: Option<&Connection>) -> Result<String, Failure> {
    let broken = |error: serde_json::Error| Failure::system(error.to_string());
    let mut value = serde_json::to_value(event).map_err(broken)?;
    value["rule"] = serde_json::to_value(&why.rule).map_err(broken)?;
    value["connection"] = serde_json::to_value(connection).map_err(broken)?;
    value["fields"] = serde_json::to_value(&why.fields).map_err(broken)?;
    value["parsed"] = why.parsed.into();
    Ok(value.to_string())
}

fn wanted(args: &Trace) -> Result<Filter, Failure> {
    if args.one_in == Some(0) {
        return Err(Failure::input("--one-in: 0 would trace nothing", "write 1 for every packet, 100 for one in 100"));
    }
    let one_in = args.one_in.unwrap_or(if args.filter.is_empty() { 100 } else { 1 });
    Ok(Filter { one_in, ..filter::parse(&args.filter.join(" "))? })
}
