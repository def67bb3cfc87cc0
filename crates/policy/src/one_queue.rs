//! Whether a policy holds over several tx queues with a scheduler each, which share its rate.

use crate::ClassId;
use crate::diagnostic::{Diagnostic, Kind};
use crate::excerpt::excerpt;
use crate::link::LinkQueues;
use crate::network::{Network, NetworkPolicy, NodeScheduler};
use crate::policy::{Exceed, Mode, Policy};
use crate::rate::Rate;
use crate::resolved::{Resolved, ResolvedClass};
use crate::scheduler::Scheduler;
use crate::source::Origin;

/// A reason for one queue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OneQueue {
    /// The reason, as a sentence without its end.
    pub why: String,
    /// A change of the policy after which it holds over several queues.
    pub cure: &'static str,
    /// The key that is the reason, as a JSON pointer; of a class, behind its place.
    key: &'static str,
    /// The class of this key.
    class: Option<ClassId>,
}

impl Resolved {
    /// Whether packets of the policy wait for a rate.
    pub fn is_limited(&self) -> bool {
        let waits = |class: &ResolvedClass| class.ceil.is_some() || class.rate.is_some();
        self.network.is_some() || self.link_rate.is_some() || self.classes.iter().any(waits)
    }

    /// The reason why the rates of the policy hold in one queue of departures only. None: they hold over several queues too, or there are none.
    pub fn needs_one_queue(&self) -> Option<OneQueue> {
        match &self.network {
            Some(network) => self.needs_one_tree(network),
            None => self.needs_one_queue_at(self.link_rate),
        }
    }

    /// The reason why departures have one tree of classes.
    fn needs_one_tree(&self, network: &Network) -> Option<OneQueue> {
        let because = |why: &str, cure, key| Some(OneQueue { why: why.to_owned(), cure, key, class: None });
        if !network.groups.is_empty() {
            return because("groups of hosts need one queue", "list the hosts as subscribers", "/link/queues");
        }
        let shares = match network.link().scheduler {
            NodeScheduler::ElasticRoundRobin
            | NodeScheduler::DeficitRoundRobin
            | NodeScheduler::WeightedFairQueuing
            | NodeScheduler::Eevdf => true,
            NodeScheduler::StrictPriority | NodeScheduler::RoundRobin | NodeScheduler::Pifo(_) => false,
        };
        if !shares {
            let why = "trees of several queues share the link by weights";
            return because(why, "write `\"scheduler\": \"weighted_fair_queuing\"`", "/scheduler");
        }
        if self.link_rate.is_none() {
            let cure = "write the rate of the link, as in `\"link\": { \"rate\": \"10gbit\" }`";
            return because("trees of several queues share a rate of the link", cure, "/link/queues");
        }
        None
    }

    /// The reason why a wire with this policy has one worker only. None: its rates hold over several workers, too.
    pub fn needs_one_worker(&self) -> Option<OneQueue> {
        self.needs_one_queue_at(self.ingress_rate)
    }

    /// As [`Resolved::needs_one_queue`], of queues that are shaped to this rate.
    fn needs_one_queue_at(&self, link_rate: Option<Rate>) -> Option<OneQueue> {
        let because = |why: String, cure, key, class| Some(OneQueue { why, cure, key, class });
        if !self.arrivals_of.is_empty() {
            return because("arrivals of a group have one queue".to_owned(), "remove it", "/link/queues", None);
        }
        if let Some(network) = &self.network {
            let what = if network.is_class_tree() { "a class tree" } else { "subscribers" };
            return because(format!("{what} need one queue"), "use flat classes", "/link/queues", None);
        }
        if link_rate.is_none() && !self.is_limited() {
            return None;
        }
        let of_scheduler = match self.scheduler {
            Scheduler::PIFO => Some("ranks hold within a queue only"),
            Scheduler::ROUND_ROBIN => Some("round_robin counts packets, and queues share by bytes"),
            _ => None,
        };
        if let Some(why) = of_scheduler {
            let cure = "use \"weighted_fair_queuing\", with a \"rate\" for the urgent class";
            return because(why.to_owned(), cure, "/scheduler", None);
        }
        if link_rate.is_none() {
            let cure = "write the rate of the link, as in `\"link\": { \"rate\": \"10gbit\" }`";
            return because(
                "rates of classes are shared below a rate of the link only".to_owned(),
                cure,
                "/link/queues",
                None,
            );
        }
        let named = |class: &ResolvedClass| excerpt(&class.name).into_owned();
        if let Some(class) = self.classes.iter().find(|class| class.peak.is_some()) {
            let why = format!("the peak of class {} holds in one queue only", named(class));
            return because(why, "remove \"peak\"", "/peak", Some(class.id));
        }
        let policed = |class: &&ResolvedClass| class.exceed == Exceed::Police && class.ceil.is_some();
        if let Some(class) = self.classes.iter().find(policed) {
            let why = format!("class {} drops what exceeds its ceiling, which needs one queue", named(class));
            let cure = "write `\"shape\": true`";
            return because(why, cure, "/police", Some(class.id));
        }
        None
    }
}

/// The error of a policy that asks for all tx queues and needs one.
pub(crate) fn refused(policy: &Policy, resolved: &Resolved, on_a_wire: bool) -> Option<Diagnostic> {
    if policy.link.queues != LinkQueues::All || policy.mode == Mode::ClassifyOnly {
        return None;
    }
    let place_of = |id| policy.classes.iter().position(|class| class.id == id);
    refusal(&policy.origin, place_of, resolved, on_a_wire)
}

/// The same, of a policy with subscribers or a class tree.
pub(crate) fn refused_tree(policy: &NetworkPolicy, resolved: &Resolved, on_a_wire: bool) -> Option<Diagnostic> {
    if policy.link.queues != LinkQueues::All {
        return None;
    }
    refusal(&policy.origin, |_| None, resolved, on_a_wire)
}

/// `place_of`: the place of a class in the file.
fn refusal(
    origin: &Origin,
    place_of: impl Fn(ClassId) -> Option<usize>,
    resolved: &Resolved,
    on_a_wire: bool,
) -> Option<Diagnostic> {
    let needs = if on_a_wire { resolved.needs_one_worker() } else { resolved.needs_one_queue() };
    let OneQueue { why, cure, key, class } = needs?;
    let may_be_one = resolved.arrivals_of.is_empty();
    let or = if cure.starts_with("write") { "or" } else { "or write" };
    let cure = if may_be_one { format!("{cure}, {or} `\"queues\": \"one\"`") } else { cure.to_owned() };
    let what = if on_a_wire { "a worker for each receive queue cannot be had" } else { "all tx queues cannot be used" };
    let finding = Diagnostic::error(Kind::Conflict, format!("{what}: {why}"));
    let finding = finding.at(origin.span("/link/queues"), "asked for here").help(cure);
    let reason = match class.and_then(place_of) {
        Some(place) => origin.span(&format!("/classes/{place}{key}")),
        None => origin.span(key).filter(|_| class.is_none() && key != "/link/queues"),
    };
    Some(match reason {
        Some(reason) => finding.at(reason, "the reason"),
        None => finding,
    })
}
