//! The listener to events, with a lease that it renews: a listener that dies leaves nothing switched on.

use super::{Event, EventKind, Filter, Packet, Place, Subject, bucket, reason};
use crate::engine::managed;
use crate::inspect::probe::Metadata;
use crate::maps::tables;
use crate::record::{self, Phase, Record, policy};
use crate::status;
use crate::system::{bpffs, clock, interface, netns, privilege};
use libbpf_rs::{MapHandle, MapInfo, RingBuffer, RingBufferBuilder};
use sluice_abi as abi;
use sluice_error::{Doing, Error, Result};
use std::cell::RefCell;
use std::os::fd::AsFd;
use std::rc::Rc;
use std::time::{Duration, SystemTime};

/// Time that a lease holds.
const LEASE: Duration = Duration::from_secs(2);
/// Time after which a lease is renewed, and records are read for changes.
const RENEWED: Duration = Duration::from_millis(500);

/// An interface that is listened to.
#[derive(Clone)]
struct Source {
    interface: String,
    key: String,
    /// The wait that is too long, by class, ns.
    late_ns: [u64; abi::SL_CLASSES as usize],
    /// Id of the map `watch`, which is another map after the interface was set up anew.
    map_id: u32,
    generation: u32,
    policy: String,
    names: Vec<String>,
    link: bool,
}

type Records = Rc<RefCell<Vec<(usize, Vec<u8>)>>>;

/// Listens to interfaces of this network namespace.
pub struct Listener {
    wanted: Vec<String>,
    what: Subject,
    sources: Vec<Source>,
    ring: Option<RingBuffer<'static>>,
    records: Records,
    renewed: Duration,
}

impl Listener {
    /// Begins to listen. No names: to all managed interfaces, now or later. Fails if a named one is not managed, or one has a listener.
    pub fn new(interfaces: &[String], what: Subject) -> Result<Listener> {
        privilege::require_root()?;
        let mut listener = Listener {
            wanted: interfaces.to_vec(),
            what,
            sources: Vec::new(),
            ring: None,
            records: Records::default(),
            renewed: Duration::ZERO,
        };
        for record in listener.here()? {
            let watch = read_watch(&record.key)?.1;
            if until(&watch, &listener.what) > now_ns() {
                let what = if matches!(listener.what, Subject::Events) { "events" } else { "packets" };
                return Err(Error::input(format!("another process reads the {what} of {}", record.interface))
                    .help("one reader at a time: stop the other one; one that was killed gives way after 2 s"));
            }
            listener.sources.push(source(&record)?);
        }
        if listener.sources.is_empty() {
            return Err(Error::input("no interface is managed by sluice here")
                .help("`sluice up IFACE --policy P` puts one under management"));
        }
        listener.listen()?;
        listener.renew()?;
        Ok(listener)
    }

    /// The events within this time; returns as soon as there is one.
    pub fn next(&mut self, limit: Duration) -> Result<Vec<Event>> {
        let mut events = Vec::new();
        if clock::monotonic().saturating_sub(self.renewed) >= RENEWED {
            events = self.look()?;
        }
        let limit = if events.is_empty() { limit.min(RENEWED) } else { Duration::ZERO };
        match &self.ring {
            Some(ring) => match ring.poll(limit) {
                Err(error) if error.kind() != libbpf_rs::ErrorKind::Interrupted => {
                    return Err(error).doing(|| "reading events".to_owned());
                }
                _ => {}
            },
            None => std::thread::sleep(limit),
        }
        let records: Vec<(usize, Vec<u8>)> = self.records.borrow_mut().drain(..).collect();
        events.extend(records.iter().filter_map(|(source, bytes)| self.event(*source, bytes)));
        Ok(events)
    }

    /// The records of the interfaces to listen to.
    fn here(&self) -> Result<Vec<Record>> {
        if !self.wanted.is_empty() {
            return self.wanted.iter().map(|name| managed::managed(name)).collect();
        }
        let own = netns::inode()?;
        let mine = |record: &Record| {
            record.netns == own
                && record.phase == Phase::Active
                && interface::Interface::is_there(&record.interface, record.ifindex)
        };
        Ok(Record::all()?.into_iter().filter(mine).collect())
    }

    /// Opens the ring buffers of all sources.
    fn listen(&mut self) -> Result<()> {
        let root = bpffs::root()?;
        let name = if matches!(self.what, Subject::Events) { "events" } else { "traces" };
        self.ring = None;
        let maps: Result<Vec<MapHandle>> =
            self.sources.iter().map(|source| tables::open(&root.join(&source.key), name)).collect();
        let maps = maps?;
        if maps.is_empty() {
            return Ok(());
        }
        let mut builder = RingBufferBuilder::new();
        for (n, map) in maps.iter().enumerate() {
            let records = Rc::clone(&self.records);
            let take = move |bytes: &[u8]| {
                records.borrow_mut().push((n, bytes.to_vec()));
                0
            };
            builder.add(map, take).doing(|| format!("opening the ring {name}"))?;
        }
        self.ring = Some(builder.build().doing(|| format!("opening the ring {name}"))?);
        Ok(())
    }

    /// Renews the leases of all sources.
    fn renew(&mut self) -> Result<()> {
        self.renewed = clock::monotonic();
        self.lease(now_ns() + LEASE.as_nanos() as u64)
    }

    fn lease(&self, until_ns: u64) -> Result<()> {
        for source in &self.sources {
            if !record::file(&source.key).exists() {
                continue;
            }
            let (map, mut watch) = read_watch(&source.key)?;
            match &self.what {
                Subject::Events => {
                    watch.events_until_ns = until_ns;
                    watch.late_ns = source.late_ns;
                }
                Subject::Packets(filter) => {
                    watch.packets_until_ns = until_ns;
                    set(&mut watch, filter);
                }
            }
            tables::write(&map, 0, &*watch)?;
        }
        Ok(())
    }

    /// The changes by commands and of links since the last look.
    fn look(&mut self) -> Result<Vec<Event>> {
        let mut events = Vec::new();
        let now = self.here_still()?;
        let mut say = |interface: &str, what: EventKind| {
            events.push(Event { at_s: seconds(SystemTime::now()), interface: interface.to_owned(), what });
        };
        let before = std::mem::take(&mut self.sources);
        let mut anew = before.len() != now.len();
        for old in &before {
            if !now.iter().any(|new| new.key == old.key) {
                say(&old.interface, EventKind::Unmanaged);
            }
        }
        for new in &now {
            match before.iter().find(|old| old.key == new.key) {
                None => say(&new.interface, EventKind::Managed),
                Some(old) => {
                    anew |= old.map_id != new.map_id;
                    if (old.map_id, old.generation) != (new.map_id, new.generation) {
                        let policy = EventKind::Policy { policy: new.policy.clone(), generation: new.generation };
                        say(&new.interface, policy);
                    }
                    if old.link != new.link {
                        say(&new.interface, if new.link { EventKind::LinkUp } else { EventKind::LinkDown });
                    }
                }
            }
        }
        self.sources = now;
        if anew {
            self.records.borrow_mut().clear();
            self.listen()?;
        }
        self.renew()?;
        Ok(events)
    }

    /// The interfaces that can be listened to at this moment.
    fn here_still(&self) -> Result<Vec<Source>> {
        let own = netns::inode()?;
        let mine = |record: &Record| {
            record.netns == own
                && record.phase == Phase::Active
                && (self.wanted.is_empty() || self.wanted.contains(&record.interface))
                && interface::Interface::is_there(&record.interface, record.ifindex)
        };
        // An interface that goes away at this moment is seen to have gone the next time.
        let again = |record: Record| self.source_again(&managed::settled(record).ok()?).ok();
        Ok(Record::all()?.into_iter().filter(mine).filter_map(again).collect())
    }

    /// The source of a record. Policy and tables of an unchanged source are not read again.
    fn source_again(&self, record: &Record) -> Result<Source> {
        match self.sources.iter().find(|source| source.key == record.key) {
            Some(known) if known.generation == record.generation && map_id(&record.key)? == known.map_id => {
                let (interface, link) = (record.interface.clone(), carries(record.ifindex));
                Ok(Source { interface, link, ..known.clone() })
            }
            _ => source(record),
        }
    }

    fn event(&self, source: usize, bytes: &[u8]) -> Option<Event> {
        let source = self.sources.get(source)?;
        let event = abi::read_pod::<abi::sl_event>(bytes.get(..size_of::<abi::sl_event>())?)?;
        let place = Place {
            direction: if u32::from(event.direction) == abi::SL_EGRESS { "egress" } else { "ingress" },
            class: event.class,
            name: source.names.get(usize::from(event.class)).cloned().unwrap_or_default(),
        };
        let wait_ms = event.wait_ns as f64 / 1e6;
        let what = match event.kind {
            abi::SL_EVENT_DROPS => EventKind::Drops { place, reason: reason(event.reason) },
            abi::SL_EVENT_EXHAUSTED => EventKind::Exhausted { place, bucket: bucket(event.reason) },
            abi::SL_EVENT_LATE => EventKind::Late { place, wait_ms },
            _ => EventKind::Packet(Box::new(self.packet(&event, place, bytes)?)),
        };
        let ago = Duration::from_nanos(now_ns().saturating_sub(event.at_ns));
        Some(Event { at_s: seconds(SystemTime::now() - ago), interface: source.interface.clone(), what })
    }

    fn packet(&self, event: &abi::sl_event, place: Place, bytes: &[u8]) -> Option<Packet> {
        let whole = abi::read_pod::<abi::sl_packet_event>(bytes)?;
        Some(Packet {
            dropped: (event.kind == abi::SL_EVENT_DROPPED).then(|| reason(event.reason)),
            wait_ms: (event.wait_ns > 0).then_some(event.wait_ns as f64 / 1e6),
            marked: event.marked != 0,
            length_bytes: event.len_bytes,
            bytes: whole.bytes[..usize::from(whole.captured).min(whole.bytes.len())].to_vec(),
            metadata: Metadata {
                direction: event.direction.into(),
                mark: whole.mark,
                interface: whole.interface,
                tag: u16::try_from(whole.tag).ok(),
            },
            place,
        })
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        // The lease ends by itself if this fails.
        let _ = self.lease(0);
    }
}

fn now_ns() -> u64 {
    clock::monotonic().as_nanos() as u64
}

fn seconds(time: SystemTime) -> f64 {
    time.duration_since(SystemTime::UNIX_EPOCH).map_or(0.0, |since| since.as_secs_f64())
}

fn until(watch: &abi::sl_watch, what: &Subject) -> u64 {
    if matches!(what, Subject::Events) { watch.events_until_ns } else { watch.packets_until_ns }
}

fn read_watch(key: &str) -> Result<(MapHandle, Box<abi::sl_watch>)> {
    let map = tables::open(&bpffs::root()?.join(key), "watch")?;
    let watch = tables::read(&map, 0)?;
    Ok((map, watch))
}

fn map_id(key: &str) -> Result<u32> {
    let map = tables::open(&bpffs::root()?.join(key), "watch")?;
    Ok(MapInfo::new(map.as_fd()).map_or(0, |info| info.info.id))
}

fn source(record: &Record) -> Result<Source> {
    let live = tables::live(&record.pins(&bpffs::root()?))?;
    let names = live.class_name.iter().map(|name| status::text(name)).collect();
    Ok(Source {
        interface: record.interface.clone(),
        key: record.key.clone(),
        late_ns: late_ns(record)?,
        map_id: map_id(&record.key)?,
        generation: live.generation,
        policy: record.policy_name.clone(),
        names,
        link: carries(record.ifindex),
    })
}

/// Whether the link is up and has a carrier.
fn carries(ifindex: u32) -> bool {
    use nix::net::if_::InterfaceFlags;
    let wanted = InterfaceFlags::IFF_UP | InterfaceFlags::IFF_RUNNING;
    let name = nix::net::if_::if_indextoname(ifindex).ok().map(|name| name.to_string_lossy().into_owned());
    let mut all = nix::ifaddrs::getifaddrs().into_iter().flatten();
    all.any(|one| Some(&one.interface_name) == name.as_ref() && one.flags.contains(wanted))
}

/// The wait that is too long, of each class: CoDel's target, else the latency budget.
fn late_ns(record: &Record) -> Result<[u64; abi::SL_CLASSES as usize]> {
    let mut late = [0; abi::SL_CLASSES as usize];
    for class in policy::resolved(record)?.classes {
        let target = class.codel.map(|codel| codel.target_ns);
        late[usize::from(class.id.0)] = target.or(class.latency_budget_ns).unwrap_or(0);
    }
    Ok(late)
}

fn set(watch: &mut abi::sl_watch, filter: &Filter) {
    let mut fields = 0;
    let mut ask = |asked: bool, field: u32| fields |= if asked { field } else { 0 };
    ask(filter.protocol.is_some(), abi::SL_FIELD_PROTO);
    ask(filter.src.is_some(), abi::SL_FIELD_SRC);
    ask(filter.dst.is_some(), abi::SL_FIELD_DST);
    ask(filter.src_port.is_some(), abi::SL_FIELD_SPORT);
    ask(filter.dst_port.is_some(), abi::SL_FIELD_DPORT);
    watch.fields = fields;
    watch.one_in = filter.one_in.max(1);
    watch.proto = filter.protocol.unwrap_or(0);
    watch.sport = filter.src_port.unwrap_or(0);
    watch.dport = filter.dst_port.unwrap_or(0);
    watch.src = filter.src.map_or([0; 4], abi::address_words);
    watch.dst = filter.dst.map_or([0; 4], abi::address_words);
}
