//! The Rust copy of `abi/`: every struct, enum and size that crosses the border between BPF, the scheduler core and
//! userspace, and the states that disciplines keep (`sched/`). It is generated; the few views behind the `include!` are for all crates.

#[allow(non_camel_case_types, non_upper_case_globals, missing_docs, clippy::all)]
mod generated {
    include!(concat!(env!("OUT_DIR"), "/abi.rs"));
}

mod address;
mod names;
mod pod;
mod states;

pub use address::{address, address_words};
pub use generated::*;
pub use names::{
    Discipline, DropReason, ParseKind, discipline, disciplines, drop_reasons, limit_name, limit_names, parse_kinds,
    protocol_name, rank_function, rank_functions, refusal_names, sojourn_bucket_ns, sojourn_quantile_us, verdict_name,
};
pub use pod::{Pod, boxed_zeroed, bytes_of, read_pod, read_small};
pub use states::{StateOfClass, StateOfScheduler};
