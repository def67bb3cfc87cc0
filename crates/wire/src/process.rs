//! The process: its workers, each in a thread of its own, which one more thread watches.

use crate::processors::{self, Processor};
use crate::refused;
use crate::under_way::Most;
use crate::worker::{FRAMES, Worker};
use sluice_error::{Doing, Error, Result};
use sluice_kernel::wire::End;
use sluice_xsk::{FrameBytes, Pool};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// Time between two looks at the workers, and whether the process is to stop.
const TICK: Duration = Duration::from_millis(20);
/// Time between two looks at the interfaces.
const LOOK: Duration = Duration::from_millis(200);

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

/// Something that the operator should know of a wire that runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Noticed {
    /// Each worker moves packets.
    Begun,
    /// The interface of this name has so many receive queues now, which are not as many as workers.
    ReceiveQueues(String, u32),
    /// It has as many as workers again.
    QueuesMatch(String),
}

/// Two interfaces, and the workers that move packets between them.
pub struct Wire {
    ends: [End; 2],
    workers: Vec<Worker>,
}

impl Wire {
    /// Takes up both sides of a wire. Packets pass by until `run`. `busy`: drivers are asked for packets while there are any. `most`: what a port may have under
    /// way.
    ///
    /// # Errors
    ///
    /// An interface is no side of a wire, or the kernel gives no sockets.
    pub fn open(interfaces: [&str; 2], busy: bool, most: Most) -> Result<Wire> {
        let [first, second] = interfaces.map(End::find);
        let ends = [first?, second?];
        let count = ends[0].workers();
        if ends[1].workers() != count {
            let what = format!("{} and {} have different numbers of workers", interfaces[0], interfaces[1]);
            return Err(Error::system(what).help(format!("sluice down {} {}", interfaces[0], interfaces[1])));
        }
        ends.iter().try_for_each(End::begin_sharing)?;
        let pool = Pool::new(FrameBytes::Small, FRAMES * count).map_err(|refusal| refused(interfaces[0], &refusal))?;
        let mut workers: Vec<Worker> = Vec::new();
        for (pool, queue) in pool.split(count as usize).into_iter().zip(0..) {
            workers.push(Worker::open(&ends, queue, pool, workers.first(), busy, most)?);
        }
        Ok(Wire { ends, workers })
    }

    /// Number of workers.
    pub fn workers(&self) -> usize {
        self.workers.len()
    }

    /// Whether each driver writes packets into our memory itself.
    ///
    /// # Errors
    ///
    /// The kernel does not tell.
    pub fn zero_copy(&self) -> Result<[bool; 2]> {
        self.workers[0].zero_copy()
    }

    /// Moves packets until it is told to stop, an interface is managed no more, or a worker fails. Calls `alive` several times a second, as long as no worker
    /// is away, and `tell` of what the operator should know.
    ///
    /// # Errors
    ///
    /// The maps are of another version, the clock fails, a thread cannot be had.
    pub fn run(&mut self, stop: &AtomicBool, alive: impl FnMut(), tell: impl FnMut(&Noticed)) -> Result<Ended> {
        let places = processors::places(&processors::allowed()?, self.workers.len());
        let (ends, all_stop) = (&self.ends, AtomicBool::new(false));
        thread::scope(|scope| {
            let all_stop = &all_stop;
            let mut threads = Vec::new();
            for ((number, worker), place) in self.workers.iter_mut().enumerate().zip(places) {
                let run = move || place.map_or(Ok(()), Processor::keep_to).and_then(|()| worker.run([stop, all_stop]));
                match thread::Builder::new().name(format!("worker {number}")).spawn_scoped(scope, run) {
                    Ok(thread) => threads.push(thread),
                    Err(error) => {
                        all_stop.store(true, Ordering::Relaxed);
                        return Err(error).doing(|| "starting a thread".to_owned());
                    }
                }
            }
            let is_working = || threads.iter().all(|thread| !thread.is_finished());
            let ended = watch(ends, stop, is_working, alive, tell);
            all_stop.store(true, Ordering::Relaxed);
            for (number, thread) in threads.into_iter().enumerate() {
                let failed =
                    || Error::system(format!("worker {number} has failed, as said above")).help("start the wire again");
                thread.join().unwrap_or_else(|_| Err(failed()))?;
            }
            ended
        })
    }
}

/// Watches until the process is to end.
fn watch(
    ends: &[End; 2],
    stop: &AtomicBool,
    is_working: impl Fn() -> bool,
    mut alive: impl FnMut(),
    mut tell: impl FnMut(&Noticed),
) -> Result<Ended> {
    let mut looked: Option<Instant> = None;
    let (mut has_begun, mut told) = (false, [None, None]);
    while !stop.load(Ordering::Relaxed) && is_working() {
        if looked.is_none_or(|then| !has_begun || then.elapsed() >= LOOK) {
            looked = Some(Instant::now());
            if let Some(gone) = ends.iter().find(|end| !end.is_there()) {
                return Ok(Ended::Gone(gone.interface().to_owned()));
            }
            if !ends.iter().all(End::is_managed) {
                return Ok(Ended::Unmade);
            }
            let mut away = false;
            for (end, told) in ends.iter().zip(&mut told) {
                away |= !end.away().is_empty();
                let other = end.other_number();
                if *told != other {
                    *told = other;
                    let name = end.interface().to_owned();
                    tell(
                        &other
                            .map_or(Noticed::QueuesMatch(name.clone()), |queues| Noticed::ReceiveQueues(name, queues)),
                    );
                }
            }
            if !away {
                if !has_begun {
                    tell(&Noticed::Begun);
                }
                has_begun = true;
                alive();
            }
        }
        thread::sleep(TICK);
    }
    Ok(Ended::Asked)
}
