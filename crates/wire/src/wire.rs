//! The process: both ways in turn, until it is told to stop.

use crate::way::Way;
use nix::poll::{PollFd, PollFlags, ppoll};
use nix::sys::time::TimeSpec;
use nix::time::{ClockId, clock_gettime};
use sluice_abi as abi;
use sluice_error::{Doing, Error, Result};
use sluice_xsk::{Copying, FrameBytes, Kick, Pool, Port, Refusal, Step};
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Places of each ring.
const PLACES: u32 = 2048;
/// Frames: those that schedulers hold at most, and those in rings.
const FRAMES: u32 = 2 * (abi::SL_SLOTS + 2 * PLACES);
/// Until a port that could not send all is asked again, ns.
const AGAIN_NS: u64 = 20_000;
/// The longest sleep, well below the patience of the arrival hook.
const SLEEP_NS: u64 = 5_000_000;
/// The process's priority among others: the highest of those that are not of real time.
const NICENESS: libc::c_int = -20;
/// Time between two looks whether the interfaces are still managed.
const LOOK_NS: u64 = 200_000_000;

/// Why the process has ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ended {
    /// It was told to.
    Asked,
    /// An interface is no side of the wire any more, as after `sluice down`.
    Unmade,
    /// This interface is not there any more.
    Gone(String),
}

/// Two interfaces, and what moves packets between them.
pub struct Wire {
    ways: [Way; 2],
    ports: [Port; 2],
    pool: Pool,
    /// When the process was last said to be there, ns.
    seen_ns: u64,
}

fn now_ns() -> Result<u64> {
    let now = clock_gettime(ClockId::CLOCK_MONOTONIC).doing(|| "asking for the time".to_owned())?;
    Ok(Duration::from(now).as_nanos() as u64)
}

/// Whether a process that was last seen at a time has been away so long that packets may have passed it by.
fn was_away(seen_ns: u64, now_ns: u64) -> bool {
    now_ns.saturating_sub(seen_ns) > abi::SL_WIRE_AWAY_NS.into()
}

/// Has the scheduler of the machine prefer this process, and end its sleeps in time. A kernel that does not let it is no harm.
fn be_prompt() {
    let _ = nix::sys::prctl::set_timerslack(1);
    // SAFETY: the call takes numbers only.
    unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, NICENESS) };
}

/// The error of a socket that could not be had.
fn refused(interface: &str, refusal: &Refusal) -> Error {
    let error = Error::system(format!("{interface}: {refusal}"));
    match (refusal.step, refusal.error.raw_os_error()) {
        (Step::Bind, Some(errno)) if errno == nix::errno::Errno::EBUSY as i32 => {
            error.help("another program has an AF_XDP socket there: stop it first")
        }
        (Step::Memory, Some(errno)) if errno == nix::errno::Errno::ENOBUFS as i32 => {
            error.help("raise the limit of locked memory (`ulimit -l`, or LimitMEMLOCK= of the unit)")
        }
        _ => error,
    }
}

impl Wire {
    /// Takes up both sides of a wire. Packets pass by until `run`.
    ///
    /// # Errors
    ///
    /// An interface is no side of a wire, or the kernel gives no sockets.
    pub fn open(interfaces: [&str; 2]) -> Result<Wire> {
        let now_ns = now_ns()?;
        let [first, second] = interfaces.map(|interface| Way::open(interface, now_ns));
        let ways = [first?, second?];
        let mut pool = Pool::new(FrameBytes::Small, FRAMES).map_err(|refusal| refused(interfaces[0], &refusal))?;
        let bind = |n: usize, sharing: Option<&Port>| {
            let side = &ways[n].side;
            let port = Port::bind(&pool, (side.ifindex, 0), PLACES, Copying::WhereNeeded, sharing);
            port.map_err(|refusal| refused(&side.interface, &refusal))
        };
        let first = bind(0, None)?;
        let second = bind(1, Some(&first))?;
        let mut ports = [first, second];
        for (way, port) in ways.iter().zip(&mut ports) {
            port.refill(&mut pool);
            way.side.hand_over(0, port.as_fd())?;
        }
        Ok(Wire { ways, ports, pool, seen_ns: 0 })
    }

    /// Whether each driver writes packets into our memory itself.
    ///
    /// # Errors
    ///
    /// The kernel does not tell.
    pub fn zero_copy(&self) -> Result<[bool; 2]> {
        let of =
            |n: usize| self.ports[n].is_zero_copy().map_err(|refusal| refused(&self.ways[n].side.interface, &refusal));
        Ok([of(0)?, of(1)?])
    }

    /// Moves packets until it is told to stop, or an interface is managed no more. Calls `alive` several times a second.
    ///
    /// # Errors
    ///
    /// The maps are of another version, the clock fails.
    pub fn run(&mut self, stop: &AtomicBool, alive: impl FnMut()) -> Result<Ended> {
        let ended = self.turns(stop, alive);
        // From now on packets pass by.
        self.ways.iter().for_each(|way| way.side.say_seen(0, 0));
        ended
    }

    fn turns(&mut self, stop: &AtomicBool, mut alive: impl FnMut()) -> Result<Ended> {
        be_prompt();
        let mut look_ns = 0;
        self.seen_ns = now_ns()?;
        loop {
            let now = now_ns()?;
            if stop.load(Ordering::Relaxed) {
                return Ok(Ended::Asked);
            }
            if now >= look_ns {
                look_ns = now + LOOK_NS;
                alive();
                if let Some(gone) = self.ways.iter().find(|way| !way.side.is_there()) {
                    return Ok(Ended::Gone(gone.side.interface.clone()));
                }
                if !self.ways.iter().all(|way| way.side.is_managed()) {
                    return Ok(Ended::Unmade);
                }
            }
            self.appear(now);
            let again_ns = self.turn(now)?;
            self.sleep(again_ns)?;
        }
    }

    /// Says that the process is there. If it was away, all that it holds is dropped before.
    fn appear(&mut self, now_ns: u64) {
        if was_away(self.seen_ns, now_ns) {
            for (way, port) in self.ways.iter_mut().zip(&mut self.ports) {
                way.forget(port, &mut self.pool, now_ns);
            }
        }
        self.seen_ns = now_ns;
        self.ways.iter().for_each(|way| way.side.say_seen(0, now_ns));
    }

    /// One turn of each way. Returns when the next one is due, ns; none: when a packet comes.
    fn turn(&mut self, now: u64) -> Result<Option<u64>> {
        let mut first: Option<u64> = None;
        for n in 0..2 {
            let (way, pool) = (&mut self.ways[n], &mut self.pool);
            let more = way.follow(now)?;
            let came = way.take_in(&mut self.ports[n], pool, now)?;
            self.ports[n].refill(pool);
            let out = &mut self.ports[1 - n];
            out.reclaim(pool);
            let (count, again_ns) = way.let_go(out, pool, now);
            // If the process was stopped in between, others may have passed these packets by.
            if was_away(self.seen_ns, now_ns()?) {
                way.side.count_lost(0, u64::from(out.withdraw(count, pool)));
            } else {
                out.submit(count);
            }
            let again_ns = match out.kick() {
                Kick::Sent => again_ns,
                Kick::Again => Some(again_ns.unwrap_or(u64::MAX).min(now + AGAIN_NS)),
                // The link is down: nothing is kept for when it is up again.
                Kick::Down => {
                    way.forget(&mut self.ports[n], pool, now);
                    None
                }
            };
            let again_ns = if came > 0 || more { Some(now) } else { again_ns };
            first = [first, again_ns].into_iter().flatten().min();
        }
        Ok(first)
    }

    /// Sleeps until a packet comes, or until this time, but not for long.
    fn sleep(&self, until_ns: Option<u64>) -> Result<()> {
        let now = now_ns()?;
        let left_ns = until_ns.map_or(SLEEP_NS, |until| until.saturating_sub(now).min(SLEEP_NS));
        if left_ns == 0 {
            return Ok(());
        }
        let mut fds = [&self.ports[0], &self.ports[1]].map(|port| PollFd::new(port.as_fd(), PollFlags::POLLIN));
        match ppoll(&mut fds, Some(TimeSpec::from_duration(Duration::from_nanos(left_ns))), None) {
            Ok(_) | Err(nix::errno::Errno::EINTR) => Ok(()),
            Err(error) => Err(error).doing(|| "waiting for packets".to_owned()),
        }
    }
}
