//! Children that come, send and leave, as a slow model of a discipline needs them: derived from packets, of trees in which only the link has a ceiling.

use crate::{
    traces::{Case, LONGEST},
    world::{Event, Queued, World, run},
};
use proptest::test_runner::TestCaseResult;
use sluice_abi::{SL_DROP_OVERFLOW, SL_FIRST_INNER as LINK};
use sluice_core::hierarchy::TreeCore;
use std::collections::{BTreeMap, BTreeSet};

/// A child below its parent, at the time of the event.
pub struct Child<'a> {
    pub world: &'a World,
    pub parent: u32,
    pub number: u32,
    /// Its first packet, if it is a leaf and has one.
    pub first: Option<Queued>,
}

/// A model of a discipline.
pub trait Model {
    /// The child may send from now on.
    fn joins(&mut self, child: &Child<'_>) -> TestCaseResult;
    /// The child is chosen, of those that may send.
    fn is_chosen(&mut self, child: &Child<'_>) -> TestCaseResult;
    /// The child that was chosen has sent so many bytes. It leaves afterwards if it has no other packet.
    fn sends(&mut self, child: &Child<'_>, bytes: u32) -> TestCaseResult;
    /// The child may not send any more.
    fn leaves(&mut self, child: &Child<'_>) -> TestCaseResult;
    /// Packets at the head of a leaf were dropped.
    fn loses(&mut self, child: &Child<'_>) -> TestCaseResult;
}

/// The case with packets that come about as fast as the link sends: queues are short and long, and children come and leave.
fn crowded(case: &Case) -> Case {
    let mut case = case.clone();
    let packet_ns = u64::from(LONGEST / 2) * 8_000_000_000 / case.link.bits_per_second;
    case.steps.iter_mut().for_each(|(gap_ns, _)| *gap_ns %= 3 * packet_ns);
    case
}

/// Plays a case whose packets come closer, and tells a model of it.
pub fn follow(core: &'static TreeCore, case: &Case, model: &mut dyn Model) -> TestCaseResult {
    let case = &crowded(case);
    // Children that may send, by their parent.
    let mut active: BTreeMap<u32, BTreeSet<u32>> = BTreeMap::new();
    // The leaf of a packet that came to an empty tree, and stands in no list.
    let mut lone = None;
    let mut shrunk = BTreeSet::new();
    run(core, case, &mut |world, event| {
        let child = |number: u32| Child {
            world,
            parent: world.nodes[&number].parent,
            number,
            first: if number < LINK { world.queued(number).next() } else { None },
        };
        let rise = |model: &mut dyn Model, active: &mut BTreeMap<u32, BTreeSet<u32>>, leaf: u32| -> TestCaseResult {
            let mut at = leaf;
            while at != LINK {
                let one = child(at);
                let siblings = active.entry(one.parent).or_default();
                let was_ready = !siblings.is_empty();
                if !siblings.insert(at) {
                    break;
                }
                model.joins(&one)?;
                if was_ready {
                    break;
                }
                at = one.parent;
            }
            Ok(())
        };
        match *event {
            Event::Arrived { leaf, refused } => {
                if let Some(first) = lone.take() {
                    rise(model, &mut active, first)?;
                }
                for leaf in std::mem::take(&mut shrunk) {
                    model.loses(&child(leaf))?;
                }
                if refused.is_some() {
                    return Ok(());
                }
                if world.tree.state().pkts == 1 {
                    lone = Some(leaf);
                } else if world.queued(leaf).count() == 1 {
                    rise(model, &mut active, leaf)?;
                }
            }
            Event::Dropped { leaf, reason: SL_DROP_OVERFLOW } => drop(shrunk.insert(leaf)),
            Event::Sent { leaf, bytes, .. } => {
                if lone.take().is_some() {
                    return Ok(());
                }
                let way: Vec<u32> = world.way(leaf).into_iter().filter(|node| *node != LINK).collect();
                for node in way.iter().rev() {
                    model.is_chosen(&child(*node))?;
                }
                for node in way {
                    let one = child(node);
                    model.sends(&one, bytes)?;
                    let is_empty = match one.first {
                        Some(_) => false,
                        None => active.get(&node).is_none_or(BTreeSet::is_empty),
                    };
                    if is_empty {
                        active.entry(one.parent).or_default().remove(&node);
                        model.leaves(&one)?;
                    }
                }
            }
            _ => {}
        }
        Ok(())
    })?;
    Ok(())
}
