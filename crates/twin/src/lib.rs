//! Twin tests: one trace of random operations is played to the core as BPF, in the kernel, and to the native build. Every
//! answer and the whole state afterwards must be equal, byte for byte. So the proven laws of the native core hold in the
//! kernel.

mod addresses;
mod kernel;
pub mod queue;
mod random;
mod tree;

pub use addresses::{Changed, change_while_looked_up};
pub use kernel::Cost;

use rand::SeedableRng;
use rand::rngs::SmallRng;
use sluice_abi as abi;
use sluice_tables::{Addresses, NoReaders, address_table_words};
use std::fmt;

unsafe extern "C" {
    fn sl_native_play(s: *mut abi::sl_sched, trace: *mut abi::sl_trace, confs: *const abi::sl_sched_conf);
    fn sl_native_tree_play(s: *mut abi::sl_tree, trace: *mut abi::sl_tree_trace);
    fn sl_native_addresses_play(s: *const abi::sl_addresses, trace: *mut abi::sl_address_trace);
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

impl From<sluice_tables::AddressError> for Error {
    fn from(error: sluice_tables::AddressError) -> Error {
        Error(error.to_string())
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

/// A batch of operations with their answers.
trait Batch: abi::Pod {
    type Operation: abi::Pod;

    fn operations(&self) -> &[Self::Operation];

    /// The answers to an operation, in words.
    fn answer(of: &Self::Operation) -> String;
}

impl Batch for abi::sl_trace {
    type Operation = abi::sl_op;

    fn operations(&self) -> &[abi::sl_op] {
        &self.op[..self.count as usize]
    }

    fn answer(op: &abi::sl_op) -> String {
        format!(
            "kind {} slot {}, action {} slot {} class {} wake {}",
            op.kind, op.slot, op.action, op.out_slot, op.out_class, op.wake_ns
        )
    }
}

impl Batch for abi::sl_tree_trace {
    type Operation = abi::sl_tree_op;

    fn operations(&self) -> &[abi::sl_tree_op] {
        &self.op[..self.count as usize]
    }

    fn answer(op: &abi::sl_tree_op) -> String {
        format!(
            "kind {} result {}, action {} slot {} leaf {} wake {}",
            op.kind, op.result, op.action, op.slot, op.leaf, op.wake_ns
        )
    }
}

impl Batch for abi::sl_address_trace {
    type Operation = abi::sl_address_op;

    fn operations(&self) -> &[abi::sl_address_op] {
        &self.op[..self.count as usize]
    }

    fn answer(op: &abi::sl_address_op) -> String {
        format!("{} has leaf {}", abi::address(op.address), op.leaf)
    }
}

/// Plays a batch to both builds. Returns it with the answers, if these and the states are equal. `before`: operations played before.
fn play<S: abi::Pod, B: Batch>(
    kernel: &mut kernel::Kernel,
    state: &mut S,
    mut batch: Box<B>,
    natively: impl FnOnce(&mut S, &mut B),
    seed: u64,
    before: u64,
) -> Result<Box<B>, Error> {
    let answers = kernel.play(&*batch)?;
    natively(state, &mut batch);
    let at = |n: usize| format!("seed {seed}, operation {}", before + n as u64);
    let pairs = || batch.operations().iter().zip(answers.operations());
    if let Some(n) = pairs().position(|(ours, theirs)| abi::bytes_of(ours) != abi::bytes_of(theirs)) {
        let [ours, theirs] = [&batch.operations()[n], &answers.operations()[n]].map(B::answer);
        return Err(Error(format!("{}: natively {ours}, in the kernel {theirs}", at(n))));
    }
    match kernel.first_difference(abi::bytes_of(state))? {
        None => Ok(batch),
        Some(byte) => {
            Err(Error(format!("after {}: byte {byte} of the state differs", at(batch.operations().len() - 1))))
        }
    }
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
    // SAFETY: all three are whole values, and the configurations are as many as the mask allows.
    let natively = |state: &mut _, batch: &mut _| unsafe { sl_native_play(state, batch, confs.as_ptr()) };
    while summary.operations < operations {
        summary.count(&*play(&mut kernel, &mut *state, source.batch(), natively, seed, summary.operations)?);
    }
    Ok(summary)
}

/// As [`compare`], of the tree of classes.
pub fn compare_trees(operations: u64, seed: u64) -> Result<Summary, Error> {
    let mut kernel = kernel::Kernel::load(kernel::TREE)?;
    let mut state = abi::boxed_zeroed::<abi::sl_tree>();
    let mut source = tree::Source::new(SmallRng::seed_from_u64(seed));
    let mut summary = Summary::default();
    // SAFETY: both are whole values.
    let natively = |state: &mut _, batch: &mut _| unsafe { sl_native_tree_play(state, batch) };
    while summary.operations < operations {
        summary.count_tree(&*play(&mut kernel, &mut *state, source.batch(), natively, seed, summary.operations)?);
    }
    Ok(summary)
}

/// Counts of addresses that were looked up.
#[derive(Debug, Default, Clone, Copy)]
pub struct LookUps {
    /// Addresses.
    pub addresses: u64,
    /// Addresses that have a leaf.
    pub found: u64,
    /// Prefixes in the table at last.
    pub prefixes: usize,
}

/// Looks at least so many addresses up, chosen by this seed, in a table that changes between batches. The first difference is an error.
pub fn compare_addresses(addresses: u64, seed: u64) -> Result<LookUps, Error> {
    let mut kernel = kernel::Kernel::load(kernel::ADDRESSES)?;
    let mapping = kernel.map_state::<abi::sl_addresses>()?;
    let mut source = addresses::Source::new(SmallRng::seed_from_u64(seed));
    let mut state = abi::boxed_zeroed::<abi::sl_addresses>();
    state.seed = source.seed();
    kernel.set_state(&*state)?;
    let mut theirs = Addresses::open(mapping.words(), NoReaders);
    let mut sum = LookUps::default();
    // SAFETY: both are whole values.
    let natively = |state: &mut _, batch: &mut _| unsafe { sl_native_addresses_play(state, batch) };
    while sum.addresses < addresses {
        let mut ours = Addresses::open(address_table_words(&mut state), NoReaders);
        source.changes(|prefix, leaf| addresses::change_both(&mut ours, &mut theirs, prefix, leaf))?;
        let answers = play(&mut kernel, &mut *state, source.batch(), natively, seed, sum.addresses)?;
        sum.addresses += u64::from(answers.count);
        sum.found += answers.operations().iter().filter(|op| op.leaf != abi::SL_ADDRESS_NO_LEAF).count() as u64;
    }
    sum.prefixes = theirs.len();
    Ok(sum)
}

/// As [`cost`], of the address table.
pub fn cost_of_addresses() -> Result<Cost, Error> {
    Ok(kernel::Kernel::load(kernel::ADDRESSES)?.cost())
}

/// As [`cost`], of the tree of classes.
pub fn cost_of_trees() -> Result<Cost, Error> {
    Ok(kernel::Kernel::load(kernel::TREE)?.cost())
}

/// Verified instructions and load time of the core with every discipline (`None`) or with this one alone.
pub fn cost(kind: Option<u32>) -> Result<Cost, Error> {
    Ok(kernel::Kernel::load(kind.map_or(kernel::ALL, |kind| kernel::ALONE[kind as usize]))?.cost())
}

impl Summary {
    fn count(&mut self, trace: &abi::sl_trace) {
        for op in trace.operations() {
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

    fn count_tree(&mut self, trace: &abi::sl_tree_trace) {
        for op in trace.operations() {
            self.operations += 1;
            match op.kind {
                abi::SL_TREE_OP_ENQUEUE if op.result < 0 => self.refused += 1,
                abi::SL_TREE_OP_ENQUEUE => self.taken += 1,
                abi::SL_TREE_OP_DEQUEUE if op.action == SEND => {
                    self.sent += 1;
                    self.marked += u64::from(op.mark);
                }
                abi::SL_TREE_OP_DEQUEUE if op.action == WAIT => self.waits += 1,
                abi::SL_TREE_OP_DROP | abi::SL_TREE_OP_REAP if op.result >= 0 => self.dropped += 1,
                abi::SL_TREE_OP_CONFIGURE if op.result == 0 => self.configurations += 1,
                _ => {}
            }
        }
    }
}

/// `enum sl_action` of sched/core.h, and `enum sl_tree_action` of sched/hierarchy.h.
const WAIT: u32 = 1;
const SEND: u32 = 2;
