//! BPF objects, maps and hooks, whatever they are for.

pub(crate) mod hooks;
pub(crate) mod inner;
pub(crate) mod mapped;
pub(crate) mod object;
