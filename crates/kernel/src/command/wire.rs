//! Two interfaces as a wire, for the process that moves packets between them: the maps that it shares with the arrival hooks and the commands.

use crate::bpf::mapped::{Mapped, Written};
use crate::command::change::Done;
use crate::command::down::down;
use crate::command::up::{UpRequest, up};
use crate::engine::programs;
use crate::maps::tables;
use crate::record::{Phase, Record};
use crate::system::interface::Interface;
use crate::system::{bpffs, netns, paths, private};
use libbpf_rs::{MapCore, MapFlags, MapHandle};
use nix::errno::Errno;
use nix::fcntl::{Flock, FlockArg};
use sluice_abi as abi;
use sluice_error::{Doing, Error, Result};
use std::fs::File;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// The lock of the one process that moves packets between two interfaces. It is free again when the process ends, however it does.
pub struct Claim {
    /// Numbers of the interfaces: their names may change.
    numbers: [u32; 2],
    path: PathBuf,
    _file: Flock<File>,
}

impl Drop for Claim {
    fn drop(&mut self) {
        // A lock file that is left behind does no harm.
        let _ = std::fs::remove_file(&self.path);
    }
}

/// Attempts to lock, and the time between them: a process that was killed keeps its lock until the kernel has taken it apart.
const TRIES: u32 = 20;
const BETWEEN_TRIES: Duration = Duration::from_millis(50);

impl Claim {
    /// Takes the lock of these two interfaces.
    ///
    /// # Errors
    ///
    /// Another process has it, or there is no such interface.
    pub fn take(interfaces: [&str; 2]) -> Result<Claim> {
        let [first, second] = interfaces.map(Interface::find);
        let numbers = [first?.ifindex, second?.ifindex];
        private::directory(paths::run())?;
        let name =
            format!("wire-{}-{}@{}.lock", numbers[0].min(numbers[1]), numbers[0].max(numbers[1]), netns::inode()?);
        let path = paths::run().join(name);
        let mut left = TRIES;
        loop {
            let file = private::file(&path).doing(|| path.display().to_string())?;
            match Flock::lock(file, FlockArg::LockExclusiveNonblock) {
                Ok(file) => return Ok(Claim { numbers, path, _file: file }),
                Err((_, Errno::EWOULDBLOCK)) if left > 0 => {
                    left -= 1;
                    std::thread::sleep(BETWEEN_TRIES);
                }
                Err((_, Errno::EWOULDBLOCK)) => {
                    let what = format!("another `sluice wire {} {}` runs", interfaces[0], interfaces[1]);
                    return Err(Error::input(what).help("stop it first"));
                }
                Err((_, error)) => return Err(error).doing(|| format!("locking {}", path.display())),
            }
        }
    }

    /// The records of both sides, as far as they are sides of a wire.
    fn records(&self) -> Result<[Option<Record>; 2]> {
        let [first, second] = self.numbers.map(Record::of_number);
        Ok([first?, second?].map(|record| record.filter(|record| record.partner.is_some())))
    }

    /// Whether the side of this place is wholly up, and leads to the other one.
    fn is_made(&self, records: &[Option<Record>; 2], place: usize) -> bool {
        let record = records[place].as_ref().filter(|record| record.phase == Phase::Active);
        let partner = record.and_then(|record| record.partner.as_ref());
        partner.is_some_and(|partner| partner.ifindex == self.numbers[1 - place])
    }

    /// Brings up both sides of a wire, or takes over those that a former process has left. None: they were there.
    ///
    /// # Errors
    ///
    /// An interface is managed otherwise, or cannot be a side of a wire.
    pub fn make(&self, requests: &[UpRequest; 2]) -> Result<Option<Vec<Done>>> {
        let records = self.records()?;
        let made = [0, 1].map(|place| self.is_made(&records, place));
        if made == [true, true] && records.iter().flatten().all(programs::runs_own_programs) {
            return Ok(None);
        }
        // A side of a wire to elsewhere stays, and `up` refuses it.
        let is_own = |place: usize| {
            let partner = records[place].as_ref().and_then(|record| record.partner.as_ref());
            partner.is_none_or(|partner| partner.ifindex == self.numbers[1 - place])
        };
        let [first, second] = self.numbers.map(Record::of_number);
        let is_free =
            |record: Option<Record>, place: usize| record.is_none() || records[place].is_some() && is_own(place);
        if is_free(first?, 0) && is_free(second?, 1) {
            // Those of another version, half of a wire, and what an interrupted start has left.
            records.iter().flatten().try_for_each(|record| down(&record.interface).map(drop))?;
        }
        up(requests).map(Some)
    }

    /// Fails unless both interfaces are sides of a wire that was made before, by this version.
    ///
    /// # Errors
    ///
    /// One of them is not.
    pub fn require(&self, interfaces: [&str; 2]) -> Result<()> {
        let records = self.records()?;
        for (place, name) in interfaces.iter().enumerate() {
            let is_current = records[place].as_ref().is_some_and(programs::runs_own_programs);
            if !is_current || !self.is_made(&records, place) {
                return Err(Error::input(format!("{name} is not part of a wire to {}", interfaces[1 - place]))
                    .help("name a policy: sluice wire A B --policy P --rate R"));
            }
        }
        Ok(())
    }

    /// Gives both sides back.
    ///
    /// # Errors
    ///
    /// A part cannot be removed.
    pub fn unmake(&self) -> Result<()> {
        self.records()?.iter().flatten().try_for_each(|record| down(&record.interface).map(drop))
    }
}

/// One side of a wire: the scheduler of what arrives there.
pub struct Side {
    /// Name of the interface.
    pub interface: String,
    /// Number of the interface.
    pub ifindex: u32,
    pins: PathBuf,
    state: Written<abi::sl_instance>,
    workers: Written<abi::sl_wire_worker>,
    live: Mapped<abi::sl_live>,
    conf: MapHandle,
    sockets: MapHandle,
}

// SAFETY: the mappings belong to the value, and one thread at a time has it.
unsafe impl Send for Side {}

/// The part of the policy in force that the scheduler needs.
pub struct Terms {
    /// The configuration.
    pub conf: Box<abi::sl_sched_conf>,
    /// The tag of the policy in classes that the hook hands on.
    pub tag: u16,
    /// The class of packets whose class is of another policy.
    pub default_class: u8,
}

impl Side {
    /// Opens the maps of an interface that is a side of a wire.
    ///
    /// # Errors
    ///
    /// It is none.
    pub fn open(interface: &str) -> Result<Side> {
        let record = Record::find(interface)?.filter(|record| record.partner.is_some());
        let record = record.ok_or_else(|| Error::input(format!("{interface} is no side of a wire")))?;
        let pins = record.pins(&bpffs::root()?);
        Ok(Side {
            interface: record.interface,
            ifindex: record.ifindex,
            state: Written::of_this_version(&tables::open(&pins, "state")?)?,
            workers: Written::of_this_version(&tables::open(&pins, "workers")?)?,
            live: Mapped::of_this_version(&tables::open(&pins, "live")?)?,
            conf: tables::open(&pins, "sched_conf")?,
            sockets: tables::open(&pins, "sockets")?,
            pins,
        })
    }

    /// The scheduler's state, which is this process's alone; others read it.
    pub fn scheduler(&self) -> *mut abi::sl_sched {
        // SAFETY: the value lies in the mapping; only an address is taken.
        unsafe { &raw mut (*self.state.value(0)).sched }
    }

    /// The word of the configuration in force: the generation in its high 32 bits, the buffer in its low 32.
    pub fn live(&self) -> u64 {
        let word = self.live.values().next().expect("a section has one value").cast::<u64>().cast_mut();
        // SAFETY: the value begins with the word, which is aligned and stored whole.
        unsafe { AtomicU64::from_ptr(word) }.load(Ordering::Acquire)
    }

    /// The configuration that this word names.
    ///
    /// # Errors
    ///
    /// The maps are of another version.
    pub fn terms(&self, live: u64) -> Result<Terms> {
        let buffer = live as u32;
        let conf = tables::read(&self.conf, buffer * abi::SL_DIRECTIONS + abi::SL_INGRESS)?;
        let own: Box<abi::sl_tables> = tables::read(&tables::open(&self.pins, "tables")?, buffer)?;
        Ok(Terms { conf, tag: own.tag, default_class: own.default_class })
    }

    /// Whether the interface is managed as this side of a wire still: `sluice down` ends that.
    pub fn is_managed(&self) -> bool {
        self.pins.join("sockets").exists()
    }

    /// Whether the interface is there, under whatever name.
    pub fn is_there(&self) -> bool {
        Interface::name_of(self.ifindex).is_some()
    }

    /// Has the hook find the socket of a receive queue.
    ///
    /// # Errors
    ///
    /// The kernel refuses it.
    pub fn hand_over(&self, queue: u32, socket: BorrowedFd<'_>) -> Result<()> {
        let fd = socket.as_raw_fd().to_ne_bytes();
        let doing = || format!("handing queue {queue} of {} to its socket", self.interface);
        self.sockets.update(&queue.to_ne_bytes(), &fd, MapFlags::ANY).doing(doing)
    }

    fn worker(&self, queue: u32) -> *mut abi::sl_wire_worker {
        self.workers.value(queue as usize)
    }

    /// Says that the process is there, ns of CLOCK_MONOTONIC; 0: that it ends.
    pub fn say_seen(&self, queue: u32, now_ns: u64) {
        // SAFETY: the value begins with the word, which is aligned and stored whole.
        unsafe { AtomicU64::from_ptr(&raw mut (*self.worker(queue)).seen_ns) }.store(now_ns, Ordering::Release);
    }

    /// Counts packets that were held and lost.
    pub fn count_lost(&self, queue: u32, pkts: u64) {
        // SAFETY: as above; this process alone changes it.
        unsafe { AtomicU64::from_ptr(&raw mut (*self.worker(queue)).lost_pkts) }.fetch_add(pkts, Ordering::Relaxed);
    }
}
