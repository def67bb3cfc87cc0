//! A tree of classes that a trace is played to, and a device that takes its packets. Order within a flow and slots are checked here, for
//! every law.

use crate::traces::{Case, Flow, Step};
use proptest::{prelude::*, test_runner::TestCaseResult};
use sluice_abi as abi;
use sluice_abi::SL_FIRST_INNER as LINK;
use sluice_core::Underway;
use sluice_core::hierarchy::{Early, Node, Refusal, Tree, TreeCore, Verdict};
use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};

/// The granularity of the wheel, ns.
pub const TICK_NS: u64 = 1 << sluice_abi::SL_WHEEL_TICK_BITS;

#[derive(Debug)]
pub enum Event {
    Arrived {
        leaf: u32,
        /// Why it was refused (`enum sl_drop`).
        refused: Option<u32>,
    },
    Sent {
        leaf: u32,
        bytes: u32,
        marked: bool,
        waited_ns: u64,
    },
    /// Nothing may leave before this time.
    Waits(u64),
    /// The node was configured, or removed if it is not among the nodes any more.
    Edited(u32),
    /// A packet that was queued, for this reason (`enum sl_drop`).
    Dropped {
        leaf: u32,
        reason: u32,
    },
}

/// A packet that a leaf holds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Queued {
    pub slot: u32,
    pub bytes: u32,
    /// It can be marked instead of dropped.
    pub ecn: bool,
    pub arrived_ns: u64,
}

pub struct World {
    pub tree: Tree,
    pub now_ns: u64,
    /// Every node that is configured.
    pub nodes: BTreeMap<u32, Node>,
    /// The packets of each flow of each leaf, in the order of arrival. A leaf with one FIFO has one flow, 0.
    pub flows: BTreeMap<(u32, u32), VecDeque<Queued>>,
    /// Leaves that get a packet for each that they send.
    pub backlogged: HashSet<u32>,
    /// The leaf and the flow of each slot that is taken.
    taken: HashMap<u32, (u32, u32)>,
    one_flow: Vec<bool>,
    /// The verdict that a hook would have had on the packet that has come last, before it came.
    pub early: Early,
    random: u32,
}

/// The findings of a law on an event.
pub type Observer<'a> = dyn FnMut(&World, &Event) -> TestCaseResult + 'a;

impl World {
    pub fn new(core: &'static TreeCore, case: &Case) -> World {
        let link = Node {
            ceil: Some(case.link),
            discipline: case.link_discipline,
            rank_function: case.seed % abi::SL_RANKS,
            ..Node::below(LINK)
        };
        let mut world = World {
            tree: Tree::of(core),
            now_ns: 1_000_000_000,
            nodes: BTreeMap::new(),
            flows: BTreeMap::new(),
            backlogged: HashSet::new(),
            taken: HashMap::new(),
            one_flow: case.queues.iter().map(|queue| queue.one_flow).collect(),
            early: Early::Passes,
            random: case.seed,
        };
        world.tree.set_up(&abi::sl_tree_conf {
            slots: case.slots,
            mpu_bytes: 0,
            overhead_bytes: case.overhead as i32,
            cells: 0,
        });
        for (number, queue) in (0..).zip(&case.queues) {
            world.tree.set_queue(number, queue);
        }
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

    /// The leaves that hold packets; each once for a flow that does.
    pub fn busy(&self) -> impl Iterator<Item = u32> + '_ {
        self.flows.iter().filter(|(_, queue)| !queue.is_empty()).map(|((leaf, _), _)| *leaf)
    }

    /// The divided leaf of which a leaf is a part.
    pub fn whole(&self, leaf: u32) -> Option<u32> {
        self.nodes.get(&leaf).map(|node| node.parent).filter(|parent| *parent < LINK)
    }

    /// Whether a node is a divided leaf.
    pub fn is_divided(&self, node: u32) -> bool {
        self.nodes[&node].queue == abi::SL_LEAF_DIVIDED
    }

    /// Whether a leaf, which is configured, has one queue.
    pub fn has_one_queue(&self, leaf: u32) -> bool {
        self.one_flow[self.nodes[&leaf].queue as usize]
    }

    /// The packets of a leaf.
    pub fn queued(&self, leaf: u32) -> impl Iterator<Item = Queued> + '_ {
        self.flows.range((leaf, 0)..=(leaf, u32::MAX)).flat_map(|(_, queue)| queue.iter().copied())
    }

    /// A length of 64 to 1,514 bytes.
    pub fn length(&mut self) -> u32 {
        self.random = self.random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        64 + (self.random >> 8) % 1451
    }

    pub fn arrive(&mut self, leaf: u32, bytes: u32, observer: &mut Observer<'_>) -> TestCaseResult {
        self.arrive_in(leaf, Flow::default(), bytes, observer)
    }

    pub fn arrive_in(&mut self, leaf: u32, flow: Flow, bytes: u32, observer: &mut Observer<'_>) -> TestCaseResult {
        let packet = flow.packet(leaf, bytes);
        self.early = self.tree.early(&mut Underway::default(), &packet, self.now_ns);
        let answer = self.tree.enqueue_packet(&packet, self.now_ns);
        if let Ok(slot) = answer {
            let queue = self.nodes.get(&leaf).map_or(0, |node| node.queue);
            let key = (leaf, if self.one_flow[queue as usize] { 0 } else { flow.hash });
            // The slot of a packet that was dropped to make room is not free before it is reaped.
            prop_assert!(self.taken.insert(slot, key).is_none(), "slot {} was given twice", slot);
            self.flows.entry(key).or_default().push_back(Queued {
                slot,
                bytes,
                ecn: flow.ecn,
                arrived_ns: self.now_ns,
            });
        }
        self.reap(observer)?;
        observer(self, &Event::Arrived { leaf, refused: answer.err() })
    }

    /// The first packet of its flow has left this slot.
    fn leaves(&mut self, slot: u32) -> Result<(u32, Queued), TestCaseError> {
        let key = self.taken.remove(&slot);
        let key = key.ok_or_else(|| TestCaseError::fail(format!("slot {slot} holds no packet")))?;
        let first = self.flows.get_mut(&key).and_then(VecDeque::pop_front).expect("its packet");
        prop_assert_eq!(first.slot, slot, "leaf {} and flow {}", key.0, key.1);
        Ok((key.0, first))
    }

    /// Frees what was dropped.
    fn reap(&mut self, observer: &mut Observer<'_>) -> TestCaseResult {
        while let Some(slot) = self.tree.reap() {
            let (leaf, _) = self.leaves(slot)?;
            let reason = u32::from(self.tree.state().slot[slot as usize].dropped_for);
            observer(self, &Event::Dropped { leaf, reason })?;
        }
        Ok(())
    }

    /// The device takes packets until this time, or until none is left.
    pub fn advance(&mut self, until_ns: u64, observer: &mut Observer<'_>) -> TestCaseResult {
        let mut vain = 0;
        loop {
            let verdict = self.tree.dequeue(self.now_ns);
            if let Verdict::Send { slot, leaf, bytes, mark } = verdict {
                vain = 0;
                // Packets that CoDel has dropped were in front of it.
                self.reap(observer)?;
                let (of, first) = self.leaves(slot)?;
                prop_assert_eq!((of, first.bytes), (leaf, bytes));
                prop_assert!(first.ecn || !mark, "a packet is marked that cannot be");
                let waited_ns = self.now_ns - first.arrived_ns;
                observer(self, &Event::Sent { leaf, bytes, marked: mark, waited_ns })?;
                if self.backlogged.contains(&leaf) {
                    let bytes = self.length();
                    self.arrive(leaf, bytes, observer)?;
                }
                continue;
            }
            prop_assert!(self.tree.reap().is_none(), "dropped while nothing was sent");
            match verdict {
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
                Verdict::Send { .. } => {}
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
        while let Some(slot) = self.tree.drop_next(leaf, self.now_ns) {
            self.reap(observer)?;
            let (of, _) = self.leaves(slot)?;
            prop_assert_eq!(of, leaf);
            observer(self, &Event::Dropped { leaf, reason: abi::SL_DROP_RESET })?;
        }
        prop_assert!(self.queued(leaf).next().is_none(), "leaf {} is not emptied", leaf);
        Ok(())
    }

    fn step(&mut self, case: &Case, step: &Step, observer: &mut Observer<'_>) -> TestCaseResult {
        let leaf = |pick: usize| case.leaves[pick % case.leaves.len()].0;
        match *step {
            Step::Arrive { leaf: pick, bytes, flow } => self.arrive_in(leaf(pick), flow, bytes, observer),
            Step::Limit { node, ceil, rate, weight, queue } => {
                let all: Vec<u32> = case.nodes().map(|(number, _)| *number).collect();
                let number = all[node % all.len()];
                let queue = if self.is_divided(number) { abi::SL_LEAF_DIVIDED } else { queue };
                let node = Node { ceil, rate, weight, queue, ..self.nodes[&number] };
                self.configure(number, node, observer)
            }
            Step::Serve { node, discipline } => {
                let all: Vec<u32> = case.inners.iter().map(|(number, _)| *number).chain([LINK]).collect();
                let number = all[node % all.len()];
                let node = Node { discipline, ..self.nodes[&number] };
                let answer = self.tree.configure(number, &node, self.now_ns);
                if answer.is_err() {
                    let is_busy = self.busy().any(|leaf| self.way(leaf).contains(&number));
                    prop_assert!(is_busy, "node {} without packets does not change: {:?}", number, answer);
                    return Ok(());
                }
                self.nodes.insert(number, node);
                observer(self, &Event::Edited(number))
            }
            Step::SetQueue { queue, conf } => {
                let queue = queue % self.one_flow.len();
                self.tree.set_queue(queue as u32, &conf);
                self.one_flow[queue] = conf.one_flow;
                Ok(())
            }
            Step::Move { leaf: pick, parent } => {
                let has_children = |number: &u32| *number >= LINK || self.is_divided(*number);
                let parents: Vec<u32> = self.nodes.keys().copied().filter(has_children).collect();
                let (was, parent) = (self.nodes[&leaf(pick)], parents[parent % parents.len()]);
                if was.parent.min(parent) < LINK && self.queued(leaf(pick)).next().is_some() {
                    return Ok(());
                }
                self.configure(leaf(pick), Node { parent, ..was }, observer)
            }
            Step::Empty { leaf: pick } => self.empty(leaf(pick), observer),
            Step::Renew { leaf: pick } => {
                let number = leaf(pick);
                prop_assert_eq!(self.tree.remove(number).is_err(), self.busy().any(|busy| busy == number));
                self.empty(number, observer)?;
                let _ = self.tree.remove(number);
                let node = self.nodes.remove(&number).expect("every leaf is configured");
                observer(self, &Event::Edited(number))?;
                let answer = self.tree.enqueue(number, 64, self.now_ns);
                prop_assert_eq!(answer, Err(abi::SL_DROP_LIMIT_PKTS), "a removed leaf takes a packet");
                prop_assert_eq!(self.tree.remove(number), Err(Refusal::NoNode));
                self.configure(number, node, observer)
            }
            Step::Join { .. } | Step::Remove { .. } => Ok(()),
        }
    }
}

/// Plays the trace of a case, and takes packets until none is left.
pub fn run(core: &'static TreeCore, case: &Case, observer: &mut Observer<'_>) -> Result<World, TestCaseError> {
    play(World::new(core, case), case, observer)
}

/// Plays the trace of a case in a world, and takes packets until none is left.
pub fn play(mut world: World, case: &Case, observer: &mut Observer<'_>) -> Result<World, TestCaseError> {
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
