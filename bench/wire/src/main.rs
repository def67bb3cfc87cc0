//! `sluice-bare forward IFACE IFACE`: whatever arrives at one interface leaves by the other, by AF_XDP in batches of 64, and nothing else is done; ends
//! when its standard input does. `sluice-bare send IFACE SECONDS BYTES`: as many frames of UDP as one processor sends, from 64 source ports in turn; prints how many.

use libbpf_rs::{MapCore, MapFlags, ObjectBuilder};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use sluice_frames::Frames;
use sluice_xsk::{Copying, FrameBytes, Pool, Port};
use std::os::fd::{AsFd, AsRawFd};
use std::time::Duration;

static OBJECT: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/bare.bpf.o"));

/// Packets that are taken and given at a time.
const BATCH: u32 = 64;
/// Places of each ring, and frames: as many as a wire's rings have.
const PLACES: u32 = 2048;
const FRAMES: u32 = 4 * PLACES;
/// Source ports that frames have in turn.
const FLOWS: u32 = 64;

type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

fn main() -> Result<()> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    match &words.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["forward", first, second] => forward([first, second]),
        ["send", interface, seconds, bytes] => send(interface, seconds.parse()?, bytes.parse()?),
        _ => Err("sluice-bare forward IFACE IFACE | sluice-bare send IFACE SECONDS BYTES".into()),
    }
}

fn number(interface: &str) -> Result<u32> {
    nix::net::if_::if_nametoindex(interface).map_err(|error| format!("{interface}: {error}").into())
}

fn forward(interfaces: [&str; 2]) -> Result<()> {
    let mut pool = Pool::new(FrameBytes::Small, FRAMES).map_err(|refusal| refusal.to_string())?;
    let mut ports: Vec<Port> = Vec::new();
    let mut attached = Vec::new();
    for interface in interfaces {
        let ifindex = number(interface)?;
        let at = (ifindex, 0);
        let bound = Port::bind(&pool, at, PLACES, Copying::WhereNeeded, ports.first());
        let mut port = bound.map_err(|refusal| format!("{interface}: {refusal}"))?;
        port.refill(&mut pool);
        let object = ObjectBuilder::default().open_memory(OBJECT)?.load()?;
        let map = object.maps().find(|map| map.name() == "bare_sockets").ok_or("no map of sockets")?;
        map.update(&0u32.to_ne_bytes(), &port.as_fd().as_raw_fd().to_ne_bytes(), MapFlags::ANY)?;
        let program = object.progs_mut().find(|program| program.name() == "bare").ok_or("no program")?;
        let link = program.attach_xdp(ifindex as i32)?;
        attached.push((object, link));
        ports.push(port);
    }
    println!("ready");
    let stdin = std::io::stdin();
    loop {
        let mut moved = 0;
        for n in 0..2 {
            let [own, out] = if n == 0 { [0, 1] } else { [1, 0] };
            ports[out].reclaim(&mut pool);
            let room = ports[out].room().min(BATCH);
            let mut taken = Vec::with_capacity(BATCH as usize);
            let count = ports[own].receive(room, &mut pool, |frame, _| taken.push(frame));
            for (nth, frame) in taken.into_iter().enumerate() {
                ports[out].write(nth as u32, frame);
            }
            ports[out].submit(count);
            ports[out].kick();
            ports[own].refill(&mut pool);
            moved += count;
        }
        if moved > 0 {
            continue;
        }
        let mut fds = [
            PollFd::new(ports[0].as_fd(), PollFlags::POLLIN),
            PollFd::new(ports[1].as_fd(), PollFlags::POLLIN),
            PollFd::new(stdin.as_fd(), PollFlags::POLLHUP),
        ];
        poll(&mut fds, PollTimeout::from(5u8))?;
        if fds[2].revents().is_some_and(|events| events.contains(PollFlags::POLLHUP)) {
            return Ok(());
        }
    }
}

fn send(interface: &str, seconds: f64, bytes: usize) -> Result<()> {
    let frames = Frames { bytes, flows: FLOWS, rate_bps: None };
    let sent = sluice_frames::send(interface, frames, Duration::from_secs_f64(seconds), || false)?;
    println!("{}", sent.frames);
    Ok(())
}
