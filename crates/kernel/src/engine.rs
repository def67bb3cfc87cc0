//! The engines: what each needs of the kernel, how its parts are put on an interface, changed and removed, and whether they are in place.

pub(crate) mod attachment;
pub(crate) mod differences;
pub(crate) mod features;
pub(crate) mod htb;
pub(crate) mod leaves;
pub(crate) mod managed;
pub(crate) mod parts;
pub(crate) mod plan;
pub(crate) mod remains;
pub(crate) mod verify;
