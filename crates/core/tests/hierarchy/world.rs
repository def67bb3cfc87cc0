//! A tree of classes that a trace is played to, and a device that takes its packets. Order within a leaf and slots are checked here, for
//! every law.

use crate::traces::{Case, Step};
use proptest::{prelude::*, test_runner::TestCaseResult};
use sluice_abi::SL_FIRST_INNER as LINK;
use sluice_core::hierarchy::{Node, Refusal, Tree, TreeCore, Verdict};
use std::collections::{BTreeMap, HashSet, VecDeque};

/// The granularity of the wheel, ns.
pub const TICK_NS: u64 = 1 << sluice_abi::SL_WHEEL_TICK_BITS;

#[derive(Debug)]
pub enum Event {
    Arrived {
        leaf: u32,
        taken: bool,
    },
    Sent {
        leaf: u32,
        bytes: u32,
    },
    /// Nothing may leave before this time.
    Waits(u64),
    /// The node was configured, or removed if it is not among the nodes any more.
    Edited(u32),
    Dropped(u32),
}

pub struct World {
    pub tree: Tree,
    pub now_ns: u64,
    /// Every node that is configured.
    pub nodes: BTreeMap<u32, Node>,
    /// Slot and bytes of what each leaf holds, in the order of arrival.
    pub queues: BTreeMap<u32, VecDeque<(u32, u32)>>,
    /// Leaves that get a packet for each that they send.
    pub backlogged: HashSet<u32>,
    taken: HashSet<u32>,
    random: u32,
}

/// What a law says of an event.
pub type Observer<'a> = dyn FnMut(&World, &Event) -> TestCaseResult + 'a;

impl World {
    pub fn new(core: &'static TreeCore, case: &Case) -> World {
        let link = Node { ceil: Some(case.link), serves_by_priority: case.link_by_priority, ..Node::below(LINK) };
        let mut world = World {
            tree: Tree::of(core),
            now_ns: 1_000_000_000,
            nodes: BTreeMap::new(),
            queues: BTreeMap::new(),
            backlogged: HashSet::new(),
            taken: HashSet::new(),
            random: case.seed,
        };
        for (number, node) in [(LINK, link)].iter().chain(case.nodes()) {
            world.tree.configure(*number, node, world.now_ns).expect("parents come first");
            world.nodes.insert(*number, *node);
        }
        world
    }

    /// The nodes from this one to the link.
    pub fn way(&self, node: u32) -> Vec<u32> {
        let mut way = vec![node];
        while way[way.len() - 1] != LINK {
            way.push(self.nodes[&way[way.len() - 1]].parent);
        }
        way
    }

    /// The leaves that hold packets.
    pub fn busy(&self) -> impl Iterator<Item = u32> + '_ {
        self.queues.iter().filter(|(_, queue)| !queue.is_empty()).map(|(leaf, _)| *leaf)
    }

    /// A length of 64 to 1,514 bytes.
    pub fn length(&mut self) -> u32 {
        self.random = self.random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        64 + (self.random >> 8) % 1451
    }

    pub fn arrive(&mut self, leaf: u32, bytes: u32, observer: &mut Observer<'_>) -> TestCaseResult {
        let slot = self.tree.enqueue(leaf, bytes, self.now_ns);
        if let Some(slot) = slot {
            prop_assert!(self.taken.insert(slot), "slot {} was given twice", slot);
            self.queues.entry(leaf).or_default().push_back((slot, bytes));
        }
        observer(self, &Event::Arrived { leaf, taken: slot.is_some() })
    }

    /// The device takes packets until this time, or until none is left.
    pub fn advance(&mut self, until_ns: u64, observer: &mut Observer<'_>) -> TestCaseResult {
        let mut vain = 0;
        loop {
            match self.tree.dequeue(self.now_ns) {
                Verdict::Idle => {
                    prop_assert!(
                        self.busy().next().is_none(),
                        "idle, and {:?} have packets",
                        self.busy().collect::<Vec<_>>()
                    );
                    break;
                }
                Verdict::Wait(wake_ns) => {
                    prop_assert!(wake_ns > self.now_ns, "waits until {} at {}", wake_ns, self.now_ns);
                    vain += 1;
                    prop_assert!(vain < 10_000, "no packet leaves");
                    observer(self, &Event::Waits(wake_ns))?;
                    if wake_ns > until_ns {
                        break;
                    }
                    self.now_ns = wake_ns;
                }
                Verdict::Send { slot, leaf, bytes } => {
                    vain = 0;
                    let first = self.queues.get_mut(&leaf).and_then(VecDeque::pop_front);
                    prop_assert_eq!(first, Some((slot, bytes)), "leaf {} sends", leaf);
                    self.taken.remove(&slot);
                    observer(self, &Event::Sent { leaf, bytes })?;
                    if self.backlogged.contains(&leaf) {
                        let bytes = self.length();
                        self.arrive(leaf, bytes, observer)?;
                    }
                }
            }
        }
        self.now_ns = self.now_ns.max(until_ns);
        Ok(())
    }

    /// These leaves hold packets from now on.
    pub fn keep_busy(&mut self, leaves: &[u32], observer: &mut Observer<'_>) -> TestCaseResult {
        for &leaf in leaves {
            for _ in 0..4 {
                let bytes = self.length();
                self.arrive(leaf, bytes, observer)?;
            }
            self.backlogged.insert(leaf);
        }
        Ok(())
    }

    pub fn configure(&mut self, number: u32, node: Node, observer: &mut Observer<'_>) -> Result<(), TestCaseError> {
        let answer = self.tree.configure(number, &node, self.now_ns);
        prop_assert_eq!(answer, Ok(()), "node {} as {:?}", number, node);
        self.nodes.insert(number, node);
        observer(self, &Event::Edited(number))
    }

    /// Everything that a leaf holds is dropped.
    pub fn empty(&mut self, leaf: u32, observer: &mut Observer<'_>) -> TestCaseResult {
        while let Some(slot) = self.tree.drop_first(leaf) {
            let first = self.queues.get_mut(&leaf).and_then(VecDeque::pop_front);
            prop_assert_eq!(first.map(|(slot, _)| slot), Some(slot), "leaf {} drops", leaf);
            self.taken.remove(&slot);
            observer(self, &Event::Dropped(leaf))?;
        }
        prop_assert!(self.queues.get(&leaf).is_none_or(VecDeque::is_empty), "leaf {} is not emptied", leaf);
        Ok(())
    }

    fn step(&mut self, case: &Case, step: &Step, observer: &mut Observer<'_>) -> TestCaseResult {
        let leaf = |pick: usize| case.leaves[pick % case.leaves.len()].0;
        match *step {
            Step::Arrive { leaf: pick, bytes } => self.arrive(leaf(pick), bytes, observer),
            Step::Limit { node, ceil, rate, weight } => {
                let all: Vec<u32> = case.nodes().map(|(number, _)| *number).collect();
                let number = all[node % all.len()];
                let node = Node { ceil, rate, weight, ..self.nodes[&number] };
                self.configure(number, node, observer)
            }
            Step::Move { leaf: pick, parent } => {
                let parents: Vec<u32> = self.nodes.keys().copied().filter(|number| *number >= LINK).collect();
                let node = Node { parent: parents[parent % parents.len()], ..self.nodes[&leaf(pick)] };
                self.configure(leaf(pick), node, observer)
            }
            Step::Empty { leaf: pick } => self.empty(leaf(pick), observer),
            Step::Renew { leaf: pick } => {
                let number = leaf(pick);
                prop_assert_eq!(self.tree.remove(number).is_err(), self.busy().any(|busy| busy == number));
                self.empty(number, observer)?;
                let _ = self.tree.remove(number);
                let node = self.nodes.remove(&number).expect("every leaf is configured");
                observer(self, &Event::Edited(number))?;
                prop_assert_eq!(self.tree.enqueue(number, 64, self.now_ns), None, "a removed leaf takes a packet");
                prop_assert_eq!(self.tree.remove(number), Err(Refusal::NoNode));
                self.configure(number, node, observer)
            }
            Step::Join { .. } | Step::Remove { .. } => Ok(()),
        }
    }
}

/// Plays the trace of a case, and takes packets until none is left.
pub fn run(core: &'static TreeCore, case: &Case, observer: &mut Observer<'_>) -> Result<World, TestCaseError> {
    let mut world = World::new(core, case);
    for (gap_ns, step) in &case.steps {
        world.advance(world.now_ns + gap_ns, observer)?;
        world.step(case, step, observer)?;
    }
    // The slowest ceiling sends a packet in 25 ms, after a burst that it owes.
    world.advance(world.now_ns + 200_000_000_000, observer)?;
    prop_assert!(world.busy().next().is_none(), "packets never leave");
    prop_assert_eq!(world.tree.state().pkts, 0);
    Ok(world)
}
