//! Live XDP frames (BPF_F_TEST_XDP_LIVE_FRAMES, from Linux 5.18) for the lab, observers of packets as published work has them, and a slow card.
//!
//! A sender that makes an skb for each packet pays more than what it measures; the kernel sends these frames to a device in batches, as a driver
//! that forwards by XDP does.

mod card;
pub mod live;
mod observe;
mod send;

pub use card::{Card, Left, SentByCard, slow};
pub use observe::{Observed, Way, observe};
pub use send::{Frames, Sent, send};

use libbpf_rs::{Object, ObjectBuilder, OpenObject};
use sluice_error::{Doing, Error, Result};

static OBJECT: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/frames.bpf.o"));

/// The object, of which one program is to be loaded.
fn open(program: &str) -> Result<OpenObject> {
    let mut open = ObjectBuilder::default().open_memory(OBJECT).doing(|| "opening the BPF object frames".to_owned())?;
    for mut own in open.progs_mut() {
        let wanted = own.name() == program;
        own.set_autoload(wanted);
    }
    Ok(open)
}

fn load(open: OpenObject, program: &str) -> Result<Object> {
    open.load().map_err(|error| {
        Error::unsupported(format!("this kernel refuses the program {program}: {error}"))
            .help("frames need root, and Linux 5.18")
    })
}

/// The number of a device.
fn device_number(device: &str) -> Result<u32> {
    nix::net::if_::if_nametoindex(device).map_err(|_| Error::input(format!("there is no interface {device}")))
}
