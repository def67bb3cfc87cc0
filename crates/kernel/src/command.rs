//! The commands. They end interrupted changes first (`recover.rs`), and change an interface only under the lock.

pub(crate) mod apply;
pub mod boot;
pub(crate) mod change;
pub mod confirm;
pub mod doctor;
pub(crate) mod down;
pub(crate) mod ensure;
pub(crate) mod history;
pub(crate) mod recover;
pub(crate) mod rollback;
pub(crate) mod status;
pub(crate) mod subscribers;
pub(crate) mod up;
pub(crate) mod upgrade;
pub(crate) mod waiting;
pub mod watch;
pub mod wire;
