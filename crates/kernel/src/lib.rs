//! The kernel side of Sluice: the commands `up`, `apply`, `status`, `down` and `doctor`. Only this crate of the command uses libbpf.
//!
//! The modules are layers: each uses those before it in this list, and none behind it.

mod fault;

mod system;

mod bpf;

mod record;

mod maps;

mod engine;

pub mod status;

mod command;

mod inspect;

pub use bpf::object::compiler;
pub use command::apply::{Edit, Preview, apply, apply_edits, preview, preview_edits};
pub use command::change::{Done, RateOption, Request};
pub use command::down::{collect, down};
pub use command::ensure::{Healed, ensure};
pub use command::history::{entry as history_entry, of as history_of};
pub use command::rollback::rollback;
pub use command::status::of as status_of;
pub use command::subscribers::{SubscriberEdits, no_subscriber, subscribers_of, with_subscribers, without_subscribers};
pub use command::up::{UpRequest, up};
pub use command::upgrade::{Upgraded, upgrade};
pub use command::{boot, confirm, doctor, watch, wire};
pub use engine::differences::differences as tc_differences;
pub use engine::features::Features;
pub use engine::htb_tree::of_tree as tc_tree_differences;
pub use engine::managed::{absent, require_known};
pub use engine::members::lost_groups;
pub use engine::plan::refusal;
pub use engine::remains::unreadable_here;
pub use engine::tx_queues::one_queue_for_all;
pub use fault::POINTS as FAULT_POINTS;
pub use inspect::{connections, events, explain, probe, reader, steal, telemetry};
pub use maps::flows;
pub use record::{Engine, Hook, Phase, Record, history, unconfirmed};
pub use sluice_error::{Error, Kind, Result};
pub use system::interface::Interface;
pub use system::paths::run as run_directory;
pub use system::privilege::{require_rights, require_root};
pub use system::qdiscs::below_mq;
pub use system::{interface, netns, private};
