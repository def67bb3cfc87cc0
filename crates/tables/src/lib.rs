//! The last pure stage of the configuration pipeline: a resolved policy becomes the numbers that the maps hold.
//!
//! Nothing here touches a kernel. [`compile`] gives the same tables for the same input, byte for byte.

mod addresses;
mod bitmap;
mod bucket;
mod by_port;
pub mod each_host;
mod error;
pub mod forward;
mod keys;
mod levels;
mod matcher;
mod queues;
mod ranges;
mod rule;
mod shared;
#[cfg(test)]
mod testing;
pub mod tree;
mod virtual_queue;

pub use addresses::{
    ADDRESS_TABLE_WORDS, AddressError, Addresses, NoReaders, Readers, address_table_words, build as build_addresses,
};
pub use bucket::{cost, duration_ns};
pub use error::MatchError;
pub use ipnet::IpNet;
pub use shared::frame_bytes;
pub use sluice_policy::network::Address;
pub use sluice_policy::rank_resolution;

use sluice_abi as abi;
use sluice_policy::{Bytes, Ceiling, ClassFrom, Exceed, Malformed, Mode, Rate, Resolved};

const _: () = assert!(sluice_policy::PIFO_BUCKETS == abi::SL_PIFO_BUCKETS);

/// The inputs of the tables besides the policy.
#[derive(Debug, Clone, Copy)]
pub struct Context<'a> {
    /// Number of this configuration on its interface, 1 or more.
    pub generation: u32,
    /// 1 to 511: the mark of this policy on packets whose class is handed on.
    pub tag: u16,
    /// The buffer, of two, that the tables go into.
    pub buffer: u32,
    /// The rate at which departures are shaped, if they are.
    pub egress_rate: Option<Rate>,
    /// The rate at which arrivals are shaped, if they are.
    pub ingress_rate: Option<Rate>,
    /// Whether programs cannot look into the queue of arrivals, so that each class gets a virtual one, by which packets are dropped early.
    pub virtual_queues: bool,
    /// Number of queues with a scheduler each; 0: one scheduler serves all. If their direction is shaped, they share its rate.
    pub queues: u32,
    /// The direction that has them: departures of tx queues, or on a wire arrivals of receive queues.
    pub queues_of: Queues,
    /// Bytes of link-layer header that the host counts in a packet's length: 14 for Ethernet, 0 without a header.
    pub header_bytes: u32,
    /// Largest network-layer packet that is no super-packet, bytes.
    pub mtu_bytes: u32,
    /// The interfaces of the machine: name and index.
    pub interfaces: &'a [(String, u32)],
}

impl<'a> Context<'a> {
    /// An Ethernet interface with one scheduler, whose traffic is not shaped, at its first configuration.
    pub fn ethernet(interfaces: &'a [(String, u32)]) -> Context<'a> {
        Context {
            generation: 1,
            tag: 1,
            buffer: 0,
            egress_rate: None,
            ingress_rate: None,
            virtual_queues: false,
            queues: 0,
            queues_of: Queues::Transmit,
            header_bytes: 14,
            mtu_bytes: 1500,
            interfaces,
        }
    }
}

/// The queues of which each has a scheduler.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Queues {
    /// Those that packets depart by.
    Transmit,
    /// Those that packets arrive by, on a wire.
    Receive,
}

impl Queues {
    /// The direction of their packets (`enum sl_direction`).
    pub fn direction(self) -> u32 {
        match self {
            Queues::Transmit => abi::SL_EGRESS,
            Queues::Receive => abi::SL_INGRESS,
        }
    }
}

/// The values of the maps.
pub struct Compiled {
    /// The value of `tables`, in the context's buffer.
    pub tables: Box<abi::sl_tables>,
    /// The values of the buffer's map in `rows`. Empty: all of them are in `tables`.
    pub rows: Vec<abi::sl_row>,
    /// The value of each of the buffer's maps in `ranges`, by `enum sl_range_field`; none where no rule asks.
    pub ranges: [Option<Box<abi::sl_ranges>>; abi::SL_RANGE_FIELDS as usize],
    /// The classes that take from a bucket of the machine, each with its name.
    pub shared: Vec<(u8, String)>,
    /// The values of `sched_conf` for this buffer, by direction.
    pub sched: [Box<abi::sl_sched_conf>; abi::SL_DIRECTIONS as usize],
    /// The value of `shared_conf` for this buffer; zeroes if schedulers share nothing.
    pub shared_link: Box<abi::sl_shared_conf>,
}

/// Lowers a resolved policy. Fails where the rules need more room than the tables have, or name an interface that the
/// machine does not have.
pub fn compile(policy: &Resolved, context: &Context) -> Result<Compiled, MatchError> {
    let rules = rule::ordered(policy, context)?;
    let mut tables = abi::boxed_zeroed::<abi::sl_tables>();
    tables.default_class = policy.default_class.0;
    let matcher::MatchTables { rows, ranges, by_ports } = matcher::fill(&mut tables, &rules)?;
    tables.buffer = context.buffer as u8;
    tables.abi_version = abi::SL_ABI_VERSION;
    tables.generation = context.generation;
    tables.tag = context.tag;
    tables.urgent_class = policy.urgent_class.0;
    tables.drop_malformed = u8::from(policy.malformed == Malformed::Drop);
    tables.rules = rules.len() as u32;
    for (i, rule) in rules.iter().enumerate() {
        tables.rule[i] = rule.describe();
        tables.rule_class[i] = rule.class.0;
    }
    let control_from = rules.iter().position(rule::Match::matches_everything);
    tables.control_from = control_from.map_or(abi::SL_RULES, |rule| rule as u32);
    fill_classes(&mut tables, policy);
    let from_rules = u32::from(tables.class_from) == abi::SL_FROM_RULES;
    let asks_each = tables.metadata | tables.metadata_mark != 0 || tables.fields & abi::SL_FIELD_LENGTH as u16 != 0;
    let by_flow = from_rules && !asks_each;
    let ways = [(from_rules && by_ports, abi::SL_PLAIN_BY_PORTS), (by_flow, abi::SL_PLAIN_BY_FLOW)];
    tables.plain = ways.iter().filter(|(may, _)| *may).map(|(_, way)| *way as u8).sum();
    virtual_queue::fill(&mut tables, policy, context);
    fill_limits(&mut tables, policy);
    let shared = policy
        .classes
        .iter()
        .filter_map(|class| Some((class.id.0, class.shared_ceil.as_ref()?.name.clone())))
        .collect();
    Ok(Compiled {
        tables,
        rows,
        ranges,
        shared,
        sched: [queues::conf(policy, context, abi::SL_EGRESS), queues::conf(policy, context, abi::SL_INGRESS)],
        shared_link: shared::conf(policy, context),
    })
}

fn fill_classes(tables: &mut abi::sl_tables, policy: &Resolved) {
    tables.class_from = match policy.mode {
        Mode::ScheduleOnly { by: ClassFrom::Dscp } => abi::SL_FROM_DSCP,
        Mode::ScheduleOnly { by: ClassFrom::Mark } => abi::SL_FROM_MARK,
        Mode::Full | Mode::ClassifyOnly => abi::SL_FROM_RULES,
    } as u8;
    tables.dscp_class = [policy.default_class.0; 64];
    let mut marks = 0;
    for class in &policy.classes {
        let id = usize::from(class.id.0);
        tables.classes |= 1 << id;
        tables.class_name[id] = name(&class.name);
        for &dscp in &class.dscp {
            tables.dscp_class[usize::from(dscp & 63)] = class.id.0;
        }
        for &mark in &class.marks {
            if let Some(slot) = tables.mark.get_mut(marks) {
                *slot = abi::sl_mark { mark, class: u32::from(class.id.0) };
                marks += 1;
            }
        }
        if let (Exceed::Police, Some(ceil)) = (class.exceed, class.ceil) {
            let burst = class.burst.unwrap_or(Bytes(0));
            for direction in &mut tables.police {
                direction[id] = bucket::police(ceil, burst);
            }
            if let Some(peak) = class.peak {
                tables.peak_police[id] = bucket::police(peak.rate, peak.burst());
            }
        }
    }
    tables.marks = marks as u32;
}

/// The buckets before the queues. Those of a class are there already.
fn fill_limits(tables: &mut abi::sl_tables, policy: &Resolved) {
    let bucket = |ceiling: Ceiling| bucket::police(ceiling.rate, ceiling.burst());
    for class in &policy.classes {
        let id = usize::from(class.id.0);
        if let Some(ceiling) = class.flow_ceil {
            tables.flow_police[id] = bucket(ceiling);
        }
        if let Some(shared) = &class.shared_ceil {
            tables.shared_police[id] = bucket(shared.ceiling);
        }
    }
    for (direction, ceiling) in [(abi::SL_EGRESS, policy.limits.egress), (abi::SL_INGRESS, policy.limits.ingress)] {
        let direction = direction as usize;
        if let Some(ceiling) = ceiling {
            tables.interface_police[direction] = bucket(ceiling);
        }
        let limited = |id: usize| {
            let early = direction == abi::SL_INGRESS as usize && tables.virtual_queue[id].cost > 0;
            let of_class = [tables.police[direction][id], tables.flow_police[id], tables.shared_police[id]];
            early || ceiling.is_some() || of_class.iter().any(|bucket| bucket.cost > 0)
        };
        tables.limited[direction] = (0..abi::SL_CLASSES as usize).filter(|&id| limited(id)).map(|id| 1 << id).sum();
    }
}

/// A name as the tables hold it: NUL-terminated, cut at a character.
fn name(text: &str) -> [std::ffi::c_char; abi::SL_NAME_BYTES as usize] {
    let mut out = [0; abi::SL_NAME_BYTES as usize];
    let mut end = text.len().min(out.len() - 1);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    for (to, from) in out.iter_mut().zip(&text.as_bytes()[..end]) {
        *to = *from as std::ffi::c_char;
    }
    out
}
