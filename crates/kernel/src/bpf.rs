//! BPF objects, maps and hooks, for any purpose.

pub(crate) mod hooks;
pub(crate) mod inner;
pub(crate) mod mapped;
pub(crate) mod object;
