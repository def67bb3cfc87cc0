//! The kernel side of Sluice: what `up`, `apply`, `status`, `down` and `doctor` do. libbpf lives only here.

mod ancestry;
mod attachment;
mod bpffs;
pub mod doctor;
mod error;
mod fault;
mod features;
mod hooks;
mod htb;
mod interface;
mod iproute;
mod manage;
pub mod netns;
mod object;
mod offload;
mod plan;
mod qdiscs;
mod record;
pub mod status;
mod tables;

pub use error::{Error, Kind, Result};
pub use fault::POINTS as FAULT_POINTS;
pub use features::Features;
pub use htb::differences as tc_differences;
pub use interface::Interface;
pub use manage::{Done, UpRequest, apply, down, require_root, up};
pub use record::{Engine, Hook, Phase, Record};
