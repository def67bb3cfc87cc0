//! The network of a provider: sites, which form a tree below the link, and subscribers below them, from tables.
//!
//! The files of LibreQoS are read as they are: `network.json`, a tree of sites with their bandwidth, and `ShapedDevices.csv`, the subscribers
//! with their addresses, rates and parents. Every mistake is reported with its row, up to the number that [`Diagnostics`] shows, in a time that
//! grows with the table and not with the mistakes.

mod addresses;
mod checks;
mod rows;
mod shaped_devices;
mod sites;

use crate::rate::Rate;
use crate::source::{Source, Span};
use ipnet::IpNet;
use sluice_abi as abi;

pub use checks::check;
pub use shaped_devices::shaped_devices;
pub use sites::sites;

/// The most subscribers of a network, 32,768: each is a leaf of the tree of classes.
pub const MAX_SUBSCRIBERS: usize = abi::SL_FIRST_INNER as usize;
/// The most sites, 4,095: they and the link are the inner nodes.
pub const MAX_SITES: usize = abi::SL_INNERS as usize - 1;
/// The most sites from the link to a subscriber, 6: one more than the example of LibreQoS has.
pub const MAX_SITE_DEPTH: usize = abi::SL_TREE_LEVELS as usize - 2;
/// The longest name of a site or a subscriber, bytes.
pub const MAX_NETWORK_NAME_BYTES: usize = 255;

/// A value for each direction, as a subscriber sees it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct EachWay<T> {
    /// Towards the subscriber.
    pub down: T,
    /// From the subscriber.
    pub up: T,
}

impl<T> EachWay<T> {
    /// The same of both.
    pub fn map<U>(&self, of: impl Fn(&T) -> U) -> EachWay<U> {
        EachWay { down: of(&self.down), up: of(&self.up) }
    }

    /// Both, with the names that they have in messages.
    pub fn named(&self) -> [(&'static str, &T); 2] {
        [("down", &self.down), ("up", &self.up)]
    }
}

/// Sites in an order in which each comes behind its parent.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Sites {
    /// The sites.
    pub sites: Vec<Site>,
}

/// A place through which the traffic of several subscribers passes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Site {
    /// Its name, which no other site has.
    pub name: String,
    /// The index of the site above it; none: the link.
    pub parent: Option<usize>,
    /// What passes at most.
    pub ceil: EachWay<Option<Rate>>,
    /// Its place in its file.
    pub(crate) span: Span,
}

impl Sites {
    /// The index of a site.
    pub fn find(&self, name: &str) -> Option<usize> {
        self.sites.iter().position(|site| site.name == name)
    }
}

/// Subscribers, and the text that they come from.
#[derive(Debug, Clone)]
pub struct Subscribers {
    /// The subscribers, in the order of the table.
    pub subscribers: Vec<Subscriber>,
    pub(crate) source: Source,
}

/// A customer, or whoever else has a share of its own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Subscriber {
    /// Its key in the table, which no other has.
    pub id: String,
    /// Its name for people.
    pub name: String,
    /// The index of its site; none: the link.
    pub parent: Option<usize>,
    /// What it gets at least.
    pub rate: EachWay<Option<Rate>>,
    /// What it gets at most.
    pub ceil: EachWay<Option<Rate>>,
    /// Its addresses, in the order of the table.
    pub addresses: Vec<Address>,
    /// The place of its first row.
    pub(crate) span: Span,
}

/// Addresses of a subscriber.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Address {
    /// The prefix.
    pub prefix: IpNet,
    /// Its place in the table.
    pub(crate) span: Span,
}
