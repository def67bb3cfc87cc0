//! Trees of classes that share a link. Each has all children of the link; each child's packets come to one tree.

use crate::builds::{Call, DEQUEUE, STOP, Stepped};
use crate::cases::{Case, FRAME, Random, START_NS};
use crate::interleaving::{self, Instances};
use sluice_abi as abi;
use sluice_abi::SL_FIRST_INNER as LINK;
use sluice_core::hierarchy::{Bucket, Discipline, Node, Tree};
use sluice_core::shared_tree::part;

/// A child of the link: a leaf.
#[derive(Debug, Clone)]
pub struct Child {
    pub home: usize,
    pub node: Node,
    pub backlogged: bool,
}

/// A packet that was sent: when, by which child, and its bytes.
#[derive(Debug, Clone, Copy)]
pub struct Sent {
    pub at_ns: u64,
    pub child: u32,
    pub bytes: u32,
}

pub struct Forest {
    pub link: Box<abi::sl_shared_trees>,
    pub trees: Vec<Tree>,
    pub parts: Vec<abi::sl_tree_part>,
    pub children: Vec<Child>,
    /// The length of packets; 0: any.
    bytes: u32,
    pub sent: Vec<Sent>,
}

pub type World = interleaving::World<Forest>;

/// The ceiling of the link.
pub fn rate_of(case: &Case) -> Bucket {
    Bucket { bits_per_second: case.rate, burst_ns: case.burst_ns as u32 }
}

impl Instances for Forest {
    fn count(&self) -> usize {
        self.trees.len()
    }

    fn call(&mut self, n: usize, kind: u32, now_ns: u64) -> Call {
        let tree = self.trees[n].as_ptr();
        Call { kind, now_ns, tree, part: &mut self.parts[n], link: &mut *self.link, ..Call::default() }
    }

    fn ended(&mut self, _: usize, call: &Call, now_ns: u64, random: &mut Random) -> Option<u64> {
        let verdict = call.verdict;
        match verdict.action {
            2 => {
                self.sent.push(Sent { at_ns: now_ns, child: verdict.leaf, bytes: verdict.len_bytes });
                if self.children[verdict.leaf as usize].backlogged {
                    self.enqueue(verdict.leaf, now_ns, random);
                }
                Some(now_ns)
            }
            1 => Some(verdict.wake_ns.max(now_ns + 1)),
            _ => None,
        }
    }
}

impl Forest {
    fn enqueue(&mut self, child: u32, now_ns: u64, random: &mut Random) {
        let bytes = if self.bytes == 0 { 64 + random.below(1437) as u32 } else { self.bytes };
        let home = self.children[child as usize].home;
        self.trees[home].enqueue(child, bytes, now_ns).expect("there is room");
    }

    /// Bytes of a child that were sent from a time on.
    pub fn bytes_of(&self, child: u32, from_ns: u64) -> u64 {
        let sent = self.sent.iter().filter(|sent| sent.child == child && sent.at_ns >= from_ns);
        sent.map(|sent| u64::from(sent.bytes)).sum()
    }

    /// Bytes of all of them, and when.
    pub fn charges(&self) -> impl Iterator<Item = (u64, u32)> {
        self.sent.iter().map(|sent| (sent.at_ns, sent.bytes))
    }

    /// The rate that all share.
    pub fn rate(&self) -> abi::sl_shared_rate {
        self.parts[0].rate
    }

    /// How often trees have gone to shared words.
    pub fn draws(&self) -> u64 {
        self.parts.iter().map(|part| part.draws).sum()
    }
}

impl World {
    /// Trees of a link with these children, those of which that are backlogged have packets.
    pub fn grown(stepped: &'static Stepped, case: &Case, children: Vec<Child>, bytes: u32) -> World {
        let n = case.instances;
        let tree = || {
            let mut tree = Tree::default();
            let link = Node { ceil: Some(rate_of(case)), discipline: Discipline::Fair, ..Node::below(LINK) };
            tree.configure(LINK, &link, START_NS).expect("a link");
            for (number, child) in (0..).zip(&children) {
                tree.configure(number, &child.node, START_NS).expect("a child of the link");
            }
            tree
        };
        let forest = Forest {
            link: abi::boxed_zeroed(),
            trees: (0..n).map(|_| tree()).collect(),
            parts: (0..n).map(|number| part(number, n, FRAME)).collect(),
            children: Vec::new(),
            bytes,
            sent: Vec::new(),
        };
        let mut world = World::of(stepped, forest, DEQUEUE, Random::new(case.seed));
        let backlogged: Vec<bool> = children.iter().map(|child| child.backlogged).collect();
        world.children = children.into_iter().map(|child| Child { backlogged: false, ..child }).collect();
        (0..).zip(backlogged).for_each(|(child, is)| world.set_backlogged(child, is));
        world
    }

    /// A child always has packets from now on, or gets none.
    pub fn set_backlogged(&mut self, child: u32, backlogged: bool) {
        let home = self.children[child as usize].home;
        let begins = backlogged && !self.children[child as usize].backlogged;
        self.finish(home);
        self.children[child as usize].backlogged = backlogged;
        if begins {
            let now_ns = self.now_ns;
            self.touch(|forest, random| (0..2).for_each(|_| forest.enqueue(child, now_ns, random)));
            self.wake(home);
        }
    }

    /// The link gets another rate, in all trees.
    pub fn set_rate(&mut self, rate: Bucket) {
        let link = Node { ceil: Some(rate), discipline: Discipline::Fair, ..Node::below(LINK) };
        for n in 0..self.trees.len() {
            self.finish(n);
            let now_ns = self.now_ns;
            self.trees[n].configure(LINK, &link, now_ns).expect("a link");
            self.wake(n);
        }
    }

    /// All trees end, interleaved at random.
    pub fn stop_all(&mut self) {
        self.call_all(STOP);
    }
}
