//! The machine: network interfaces, namespaces, tools, files and rights. Nothing here knows of policies.

pub(crate) mod ancestry;
pub(crate) mod bpffs;
pub(crate) mod card_shaping;
pub(crate) mod channels;
pub(crate) mod clock;
pub(crate) mod driver;
pub(crate) mod ethtool;
mod generic_netlink;
pub mod interface;
pub(crate) mod iproute;
pub(crate) mod lock;
pub(crate) mod memory;
pub(crate) mod netlink;
pub mod netns;
pub(crate) mod offload;
pub(crate) mod paths;
pub mod private;
pub(crate) mod privilege;
pub(crate) mod qdiscs;
pub mod routes;
pub(crate) mod steering_filter;
