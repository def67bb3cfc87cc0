//! Twin tests: one trace of random operations is played to the core as BPF, in the kernel, and to the native build. Every
//! answer and the whole state afterwards must be equal, byte for byte. So the proven laws of the native core hold in the
//! kernel.

mod kernel;
mod random;

pub use kernel::Cost;

use rand::SeedableRng;
use rand::rngs::SmallRng;
use sluice_abi as abi;
use std::fmt;

unsafe extern "C" {
    fn sl_native_play(s: *mut abi::sl_sched, trace: *mut abi::sl_trace, confs: *const abi::sl_sched_conf);
}

/// The kinds of configurations to try: each discipline alone by its number, then all in turn; and the name of each.
pub fn kinds() -> impl Iterator<Item = (Option<u32>, &'static str)> {
    abi::disciplines().map(|one| (Some(one.number), one.name)).chain([(None, "all disciplines")])
}

/// The reason why the builds cannot be compared, or their difference.
#[derive(Debug)]
pub struct Error(String);

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Error {}

impl From<libbpf_rs::Error> for Error {
    fn from(error: libbpf_rs::Error) -> Error {
        Error(format!("{error:#}"))
    }
}

/// Counts of a trace's operations, to judge whether it was worth playing.
#[derive(Debug, Default, Clone, Copy)]
pub struct Summary {
    /// Operations played.
    pub operations: u64,
    /// Packets taken.
    pub taken: u64,
    /// Packets refused.
    pub refused: u64,
    /// Packets sent.
    pub sent: u64,
    /// Packets sent with congestion marked.
    pub marked: u64,
    /// Packets dropped after they had been queued.
    pub dropped: u64,
    /// Dequeues with the answer to wait.
    pub waits: u64,
    /// New configurations, most of another discipline or rank.
    pub configurations: u64,
}

/// Plays at least so many operations, chosen by this seed. `kind`: the discipline of most configurations (`enum sl_kind`);
/// none: all in turn. The first difference is an error that says where it is.
pub fn compare(kind: Option<u32>, operations: u64, seed: u64) -> Result<Summary, Error> {
    let mut random = SmallRng::seed_from_u64(seed);
    let confs = random::configurations(&mut random, kind);
    let mut kernel = kernel::Kernel::load(kernel::ALL)?;
    kernel.configure(&confs)?;
    let mut state = abi::boxed_zeroed::<abi::sl_sched>();
    let mut source = random::Source::new(random);
    let mut summary = Summary::default();
    while summary.operations < operations {
        let mut native = source.batch();
        let answers = kernel.play(&native)?;
        // SAFETY: all three are whole values, and the configurations are as many as the mask allows.
        unsafe { sl_native_play(&mut *state, &mut *native, confs.as_ptr()) }
        let at = |n: usize| format!("seed {seed}, operation {}", summary.operations + n as u64);
        if let Some(n) = (0..native.op.len()).find(|&n| differs(&native.op[n], &answers.op[n])) {
            return Err(Error(format!(
                "{}: natively {}, in the kernel {}",
                at(n),
                answer(&native.op[n]),
                answer(&answers.op[n])
            )));
        }
        if let Some(byte) = kernel.first_difference(abi::bytes_of(&*state))? {
            return Err(Error(format!("after {}: byte {byte} of the state differs", at(native.op.len() - 1))));
        }
        summary.count(&native);
    }
    Ok(summary)
}

/// Verified instructions and load time of the core with every discipline (`None`) or with this one alone.
pub fn cost(kind: Option<u32>) -> Result<Cost, Error> {
    Ok(kernel::Kernel::load(kind.map_or(kernel::ALL, |kind| kernel::ALONE[kind as usize]))?.cost())
}

fn differs(a: &abi::sl_op, b: &abi::sl_op) -> bool {
    abi::bytes_of(a) != abi::bytes_of(b)
}

fn answer(op: &abi::sl_op) -> String {
    format!(
        "kind {} slot {}, action {} slot {} class {} wake {}",
        op.kind, op.slot, op.action, op.out_slot, op.out_class, op.wake_ns
    )
}

impl Summary {
    fn count(&mut self, trace: &abi::sl_trace) {
        for op in &trace.op[..trace.count as usize] {
            self.operations += 1;
            match op.kind {
                abi::SL_OP_ENQUEUE if op.slot < 0 => self.refused += 1,
                abi::SL_OP_ENQUEUE => self.taken += 1,
                abi::SL_OP_DEQUEUE if op.action == SEND => {
                    self.sent += 1;
                    self.marked += u64::from(op.mark);
                }
                abi::SL_OP_REAP if op.slot >= 0 => self.dropped += 1,
                abi::SL_OP_DEQUEUE if op.action == WAIT => self.waits += 1,
                abi::SL_OP_CONFIGURE => self.configurations += 1,
                _ => {}
            }
        }
    }
}

/// `enum sl_action` of sched/core.h.
const WAIT: u32 = 1;
const SEND: u32 = 2;
