//! The state of a scheduler, by which the disciplines of the core decide.

use serde::Serialize;
use sluice_abi as abi;

/// The state of a scheduler at one moment. Only engine `qdisc` has it, and only where one scheduler serves the whole interface.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SchedulerState {
    /// Packet slots that the scheduler may use.
    pub slots: u32,
    /// Packets that the scheduler holds.
    pub backlog_pkts: u32,
    /// The system's virtual time, of disciplines that have one: bytes that a class of weight 1 has been served.
    pub virtual_time: f64,
    /// Classes that may send now, by number.
    pub ready: Vec<u8>,
    /// Classes that have packets and wait for tokens of their ceiling, by number.
    pub held: Vec<u8>,
    /// Classes with a guarantee that they have not used up, by number.
    pub guarantee_left: Vec<u8>,
    /// Class whose turn it is, by level, of disciplines with turns. Only levels that classes of the policy have.
    pub turns: Vec<Turn>,
}

/// The class whose turn it is at a level.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Turn {
    /// The level; 0 goes first.
    pub level: u8,
    /// The class, by number.
    pub class: u8,
}

/// The state that the scheduler keeps of a class. Except for the level, a field that the discipline in force does not use is 0.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct ClassState {
    /// Level of the class; 0 goes first.
    pub level: u8,
    /// Bytes that the class may still send in this round; negative: debt.
    pub deficit_bytes: i64,
    /// Start of the next packet, in virtual time (see [`SchedulerState::virtual_time`]).
    pub virtual_start: f64,
    /// Deadline of the request, in virtual time.
    pub virtual_deadline: f64,
    /// Service that the class was owed when it last left, in virtual time; negative: debt.
    pub virtual_lag: f64,
    /// Bytes that came into the queue since it was last empty, with rank least_attained_service.
    pub attained_bytes: u64,
}

/// The number of a class's flow queues in each state.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct FlowQueues {
    /// Flow queues that the class has.
    pub queues: u32,
    /// Flow queues that have hardly sent: served first.
    pub sparse: u32,
    /// Flow queues that have not used up their allowance: served next.
    pub swift: u32,
    /// Flow queues that take turns.
    pub bulk: u32,
}

impl FlowQueues {
    pub(super) fn add(&mut self, place: u8) {
        match u32::from(place) {
            abi::SL_FLOW_SPARSE => self.sparse += 1,
            abi::SL_FLOW_SWIFT => self.swift += 1,
            abi::SL_FLOW_BULK => self.bulk += 1,
            _ => {}
        }
    }
}

/// Bytes of a virtual time, which is counted in bytes << 32.
fn virtual_bytes(time: f64) -> f64 {
    time / f64::from(2u32.pow(16)) / f64::from(2u32.pow(16))
}

fn members(bits: u64) -> Vec<u8> {
    (0..abi::SL_CLASSES as u8).filter(|class| bits >> class & 1 == 1).collect()
}

/// The state that the discipline in force keeps of a class.
pub(super) fn of_class(kind: u32, own: &abi::sl_class) -> ClassState {
    let mut state = ClassState {
        level: own.level,
        deficit_bytes: 0,
        virtual_start: 0.0,
        virtual_deadline: 0.0,
        virtual_lag: 0.0,
        attained_bytes: 0,
    };
    if has_virtual_time(kind) {
        state.virtual_start = virtual_bytes(own.state_of::<abi::sl_virtual_class>().start as f64);
    }
    match kind {
        abi::SL_STRICT_PRIORITY | abi::SL_DEFICIT_ROUND_ROBIN => {
            state.deficit_bytes = own.state_of::<abi::sl_drr_class>().deficit_bytes.into();
        }
        abi::SL_EEVDF => {
            let kept = own.state_of::<abi::sl_eevdf_class>();
            state.virtual_deadline = virtual_bytes(kept.deadline as f64);
            state.virtual_lag = virtual_bytes(kept.lag as f64);
        }
        abi::SL_ELASTIC_ROUND_ROBIN => {
            let own = own.state_of::<abi::sl_err_class>();
            let surplus = i64::try_from(own.surplus_bytes).unwrap_or(i64::MAX);
            state.deficit_bytes = if own.left_bytes > 0 { own.left_bytes } else { -surplus };
        }
        abi::SL_PIFO => state.attained_bytes = own.state_of::<abi::sl_pifo_class>().attained_bytes,
        _ => {}
    }
    state
}

fn has_virtual_time(kind: u32) -> bool {
    matches!(kind, abi::SL_WEIGHTED_FAIR_QUEUING | abi::SL_EEVDF | abi::SL_PIFO)
}

/// The class whose turn it is, by level; `None` of a discipline without turns.
///
/// # Safety
/// `from` points at a whole `sl_sched` that stays readable meanwhile.
unsafe fn cursors(kind: u32, from: *const abi::sl_sched) -> Option<[u8; abi::SL_CLASSES as usize]> {
    const LEVELS: usize = abi::SL_CLASSES as usize;
    // SAFETY: as the caller guarantees.
    unsafe {
        match kind {
            abi::SL_STRICT_PRIORITY | abi::SL_DEFICIT_ROUND_ROBIN => {
                Some(abi::sl_sched::state_at::<abi::sl_drr_sched>(from).cursor)
            }
            abi::SL_ROUND_ROBIN => Some([abi::sl_sched::state_at::<abi::sl_rr_sched>(from).cursor; LEVELS]),
            abi::SL_ELASTIC_ROUND_ROBIN => Some([abi::sl_sched::state_at::<abi::sl_err_sched>(from).cursor; LEVELS]),
            _ => None,
        }
    }
}

/// The state of a scheduler with these classes.
pub(super) fn of_scheduler(head: &Head, classes: impl Iterator<Item = u8>) -> SchedulerState {
    let mut levels: Vec<u8> = classes.map(|class| head.classes[usize::from(class)].level).collect();
    levels.sort_unstable();
    levels.dedup();
    let turn = |level: u8| head.cursor.map(|cursor| Turn { level, class: cursor[usize::from(level) % cursor.len()] });
    SchedulerState {
        slots: head.slots,
        backlog_pkts: head.backlog_pkts,
        virtual_time: virtual_bytes(head.virtual_time as f64),
        ready: members(head.ready),
        held: members(head.held),
        guarantee_left: members(head.guarantee_left),
        turns: levels.into_iter().filter_map(turn).collect(),
    }
}

/// The part of a scheduler that is read each time: all but its packets, hosts and ranks.
pub(super) struct Head {
    pub kind: u32,
    pub tx_queue: u16,
    pub slots: u32,
    pub backlog_pkts: u32,
    pub ready: u64,
    pub held: u64,
    pub guarantee_left: u64,
    pub virtual_time: u64,
    pub cursor: Option<[u8; abi::SL_CLASSES as usize]>,
    pub link: abi::sl_bucket,
    pub classes: Box<[abi::sl_class; abi::SL_CLASSES as usize]>,
}

impl Head {
    /// Reads the part of a scheduler while programs write it.
    ///
    /// # Safety
    /// `from` points at a whole `sl_sched` that stays readable meanwhile.
    pub unsafe fn read(from: *const abi::sl_sched) -> Head {
        macro_rules! field {
            ($name:ident) => {
                // SAFETY: a field of what `from` points at, aligned, and any bits are a valid integer.
                unsafe { std::ptr::addr_of!((*from).$name).read_volatile() }
            };
        }
        let kind = field!(kind);
        Head {
            kind,
            tx_queue: field!(tx_queue),
            slots: field!(slots),
            backlog_pkts: field!(backlog_pkts),
            ready: field!(ready),
            held: field!(held),
            guarantee_left: field!(guarantee_left),
            virtual_time: if has_virtual_time(kind) {
                // SAFETY: as the caller guarantees.
                unsafe { abi::sl_sched::state_at::<abi::sl_virtual_sched>(from) }.time
            } else {
                0
            },
            // SAFETY: as the caller guarantees.
            cursor: unsafe { cursors(kind, from) },
            link: field!(link),
            classes: Box::new(field!(classes)),
        }
    }
}
