//! A worker: a receive queue of each of the two interfaces, and both ways between them in turn, until it is told to stop.

use crate::refused;
use crate::under_way::{Most, UnderWay};
use crate::way::Way;
use nix::poll::{PollFd, PollFlags, ppoll};
use nix::sys::time::TimeSpec;
use nix::time::{ClockId, clock_gettime};
use sluice_abi as abi;
use sluice_error::{Doing, Result};
use sluice_kernel::wire::End;
use sluice_xsk::{Copying, Kick, Pool, Port};
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Places of each ring.
pub const PLACES: u32 = 2048;
/// Frames of a worker: those that its schedulers hold at most, and those in rings.
pub const FRAMES: u32 = 2 * (abi::SL_SLOTS + 2 * PLACES);
/// Until a port that could not send all is asked again, ns.
const AGAIN_NS: u64 = 20_000;
/// The longest sleep, well below the patience of the arrival hook.
const SLEEP_NS: u64 = 5_000_000;
/// The thread's priority among others: the highest of those that are not of real time.
const NICENESS: libc::c_int = -20;
/// With busy polling: the time for which the driver is asked in one call, us, and the most packets of such a call.
const BUSY_US: u32 = 20;
const BUSY_PACKETS: u32 = 64;
/// With busy polling: the worker sleeps only when no packet has come or gone for so long, ns.
const AWAKE_NS: u64 = 100_000;

/// A worker, and what moves its packets.
pub struct Worker {
    ways: [Way; 2],
    ports: [Port; 2],
    /// The packets that each port has under way.
    under_way: [UnderWay; 2],
    pool: Pool,
    /// Whether the driver is asked for packets instead of waiting for its interrupts.
    busy: bool,
    /// When a packet came or went last, ns.
    moved_ns: u64,
    /// When the worker was last said to be there, ns.
    seen_ns: u64,
}

pub fn now_ns() -> Result<u64> {
    let now = clock_gettime(ClockId::CLOCK_MONOTONIC).doing(|| "asking for the time".to_owned())?;
    Ok(Duration::from(now).as_nanos() as u64)
}

/// Whether a worker that was last seen at a time has been away so long that packets may have passed it by.
fn was_away(seen_ns: u64, now_ns: u64) -> bool {
    now_ns.saturating_sub(seen_ns) > abi::SL_WIRE_AWAY_NS.into()
}

/// Has the scheduler of the machine prefer this thread, and end its sleeps in time. A kernel that does not let it is no harm.
fn be_prompt() {
    let _ = nix::sys::prctl::set_timerslack(1);
    // SAFETY: the call takes numbers only; 0 is this thread.
    unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, NICENESS) };
}

impl Worker {
    /// Takes up a receive queue of both sides of a wire, with frames of its own. Packets pass by until `run`. `sharing`: another worker, whose memory the
    /// frames are in.
    ///
    /// # Errors
    ///
    /// The maps are of another version, or the kernel gives no sockets.
    pub fn open(
        ends: &[End; 2],
        receive_queue: u32,
        mut pool: Pool,
        sharing: Option<&Worker>,
        busy: bool,
        most: Most,
    ) -> Result<Worker> {
        let now_ns = now_ns()?;
        let [first, second] = ends.each_ref().map(|end| Way::open(end, receive_queue, now_ns));
        let ways = [first?, second?];
        let bind = |n: usize, sharing: Option<&Port>| {
            let side = &ways[n].side;
            let port = Port::bind(&pool, (side.ifindex, receive_queue), PLACES, Copying::WhereNeeded, sharing);
            let port = port.and_then(|port| match busy {
                true => port.poll_busily(BUSY_US, BUSY_PACKETS).map(|()| port),
                false => Ok(port),
            });
            port.map_err(|refusal| refused(&side.interface, &refusal))
        };
        let first = bind(0, sharing.map(|other| &other.ports[0]))?;
        let second = bind(1, Some(sharing.map_or(&first, |other| &other.ports[0])))?;
        let mut ports = [first, second];
        for (way, port) in ways.iter().zip(&mut ports) {
            port.refill(&mut pool);
            way.side.hand_over(port.as_fd())?;
        }
        let under_way = [(); 2].map(|()| UnderWay::new(most, PLACES, now_ns));
        Ok(Worker { ways, ports, under_way, pool, busy, moved_ns: 0, seen_ns: 0 })
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

    /// Moves packets until one of these is set.
    ///
    /// # Errors
    ///
    /// The maps are of another version, the clock fails.
    pub fn run(&mut self, stop: [&AtomicBool; 2]) -> Result<()> {
        let ended = self.turns(stop);
        // From now on packets pass by.
        self.ways.iter().for_each(|way| way.side.say_seen(0));
        ended
    }

    fn turns(&mut self, stop: [&AtomicBool; 2]) -> Result<()> {
        be_prompt();
        self.seen_ns = now_ns()?;
        while !stop.iter().any(|flag| flag.load(Ordering::Relaxed)) {
            let now = now_ns()?;
            self.appear(now);
            let again_ns = self.turn(now)?;
            self.sleep(again_ns)?;
        }
        Ok(())
    }

    /// Says that the worker is there. If it was away, all that it holds is dropped before.
    fn appear(&mut self, now_ns: u64) {
        if was_away(self.seen_ns, now_ns) {
            for (way, port) in self.ways.iter_mut().zip(&mut self.ports) {
                way.forget(port, &mut self.pool, now_ns);
            }
        }
        self.seen_ns = now_ns;
        self.ways.iter().for_each(|way| way.side.say_seen(now_ns));
    }

    /// One turn of each way. Returns when the next one is due, ns; none: when a packet comes.
    fn turn(&mut self, now: u64) -> Result<Option<u64>> {
        let mut first: Option<u64> = None;
        for n in 0..2 {
            let (way, pool) = (&mut self.ways[n], &mut self.pool);
            let more = way.follow(now)?;
            if self.busy {
                self.ports[n].poll_driver();
            }
            let came = way.take_in(&mut self.ports[n], pool, now)?;
            self.ports[n].refill(pool);
            let (out, under_way) = (&mut self.ports[1 - n], &mut self.under_way[1 - n]);
            under_way.come_back(out.reclaim(pool), now);
            way.side.say_port_limit(under_way.limit_bytes());
            let (count, again_ns) = way.let_go(out, under_way, pool, now);
            // If the worker was stopped in between, others may have passed these packets by.
            if was_away(self.seen_ns, now_ns()?) {
                way.side.count_lost(u64::from(out.withdraw(count, pool)));
                under_way.take_back(count, now);
            } else {
                out.submit(count);
            }
            if came + count > 0 {
                self.moved_ns = now;
            }
            let again_ns = match out.kick() {
                // Many a port has sent by now.
                Kick::Sent if way.waits_for_port() && out.has_sent() => Some(now),
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
        let stays_awake = self.busy && now.saturating_sub(self.moved_ns) < AWAKE_NS;
        Ok(if stays_awake { Some(now) } else { first })
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
