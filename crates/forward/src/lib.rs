//! The connections of port forwards: `forward/`, the very source that runs in the kernel, over memory of this process.

use sluice_abi as abi;
use std::cell::UnsafeCell;
use std::fmt;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};

/// The parts of a packet that tracking looks at: `struct sl_segment`.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Segment {
    /// Sequence number of TCP.
    pub seq: u32,
    /// Acknowledgement number of TCP.
    pub ack: u32,
    /// Bytes of payload.
    pub bytes: u32,
    /// Flags of TCP, as in its header's low byte.
    pub flags: u32,
}

/// `struct sl_tuple`.
#[repr(C, align(8))]
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct RawTuple {
    src: [u8; 16],
    dst: [u8; 16],
    sport: [u8; 2],
    dport: [u8; 2],
    proto: u32,
}

/// Addresses and ports of a packet.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Tuple {
    /// The IP protocol number: 6 or 17.
    pub proto: u8,
    /// Source address and port.
    pub src: SocketAddr,
    /// Destination address and port.
    pub dst: SocketAddr,
}

impl fmt::Debug for Tuple {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} > {}", self.proto, self.src, self.dst)
    }
}

fn bytes_of(ip: IpAddr) -> [u8; 16] {
    match ip {
        IpAddr::V4(v4) => v4.to_ipv6_mapped().octets(),
        IpAddr::V6(v6) => v6.octets(),
    }
}

fn end(address: [u8; 16], port: [u8; 2]) -> SocketAddr {
    SocketAddr::new(Ipv6Addr::from(address).to_canonical(), u16::from_be_bytes(port))
}

impl From<Tuple> for RawTuple {
    fn from(tuple: Tuple) -> RawTuple {
        RawTuple {
            src: bytes_of(tuple.src.ip()),
            dst: bytes_of(tuple.dst.ip()),
            sport: tuple.src.port().to_be_bytes(),
            dport: tuple.dst.port().to_be_bytes(),
            proto: tuple.proto.into(),
        }
    }
}

impl From<RawTuple> for Tuple {
    fn from(raw: RawTuple) -> Tuple {
        Tuple { proto: raw.proto as u8, src: end(raw.src, raw.sport), dst: end(raw.dst, raw.dport) }
    }
}

#[repr(C)]
struct RawTable {
    connections: *mut abi::sl_connection,
    places: *mut abi::sl_places,
    last_connection: u32,
    last_set: u32,
    key: u32,
    timeouts: abi::sl_timeouts,
    own_ports: abi::sl_own_ports,
    for_each: u32,
    of_clients: [u32; 256],
    ended: u32,
}

/// An ICMP error: `struct sl_icmp`.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Icmp {
    /// Its type.
    pub kind: u32,
    /// Its code.
    pub code: u32,
    /// The MTU that it says, or 0.
    pub mtu: u32,
}

/// `SL_REFUSED`.
const REFUSED: u32 = 1 << 31;

/// One build of `forward/`: its functions, as `sl_forward_functions` of `native.c` lists them.
#[repr(C)]
#[derive(Debug)]
pub struct Functions {
    table_bytes: u32,
    connection_bytes: u32,
    places_bytes: u32,
    open: unsafe extern "C" fn(*mut RawTable, *mut abi::sl_connection, *const Segment, u32, u32) -> u32,
    source_port: unsafe extern "C" fn(*mut RawTable, *mut abi::sl_connection, u32, u32) -> u32,
    is_over: unsafe extern "C" fn(*mut RawTable, *const abi::sl_connection, u32, *const Segment, u32) -> u32,
    end: unsafe extern "C" fn(*mut RawTable, u32, u32),
    find: unsafe extern "C" fn(*mut RawTable, *const RawTuple) -> u32,
    pass: unsafe extern "C" fn(*mut RawTable, *mut abi::sl_connection, u32, u32, *const Segment, u32),
    tuples: unsafe extern "C" fn(*const abi::sl_connection, u32, *mut RawTuple, *mut RawTuple),
    side: unsafe extern "C" fn(*const abi::sl_connection, *const RawTuple) -> u32,
    translate: unsafe extern "C" fn(*mut Icmp, u32) -> u32,
}

unsafe extern "C" {
    safe static sl_forward_functions: Functions;
}

impl Functions {
    /// The name of the table in a build of `native.c`.
    pub const SYMBOL: &'static str = "sl_forward_functions";

    /// The build that is linked into this program.
    pub fn built_in() -> &'static Functions {
        &sl_forward_functions
    }

    /// The error of ICMPv6 that says what one of ICMP does, or the other way round; none if there is none.
    pub fn translate(&self, mut error: Icmp, to_ipv6: bool) -> Option<Icmp> {
        // SAFETY: the error is whole.
        (unsafe { (self.translate)(&mut error, u32::from(to_ipv6)) } != 0).then_some(error)
    }

    /// Whether it was compiled with the structs of this program.
    pub fn fits(&self) -> bool {
        self.table_bytes as usize == size_of::<RawTable>()
            && self.connection_bytes as usize == size_of::<abi::sl_connection>()
            && self.places_bytes as usize == size_of::<abi::sl_places>()
    }
}

/// A side of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Side {
    /// The side that has begun the connection.
    Client,
    /// The forward's target.
    Target,
}

impl Side {
    fn raw(self) -> u32 {
        match self {
            Side::Client => abi::SL_CLIENT,
            Side::Target => abi::SL_TARGET,
        }
    }
}

/// A table of connections of this process.
pub struct Table {
    functions: &'static Functions,
    connections: Box<[UnsafeCell<abi::sl_connection>]>,
    places: Box<[UnsafeCell<abi::sl_places>]>,
    raw: UnsafeCell<RawTable>,
}

// SAFETY: the pointers are to memory that the table owns; its words are changed by atomic operations where `forward/` says so.
unsafe impl Send for Table {}
// SAFETY: likewise.
unsafe impl Sync for Table {}

impl Table {
    /// An empty table of so many records, a power of two up to `SL_CONNECTIONS`, with half as many sets of places as `sets_shift` says: records
    /// divided by 2^sets_shift.
    pub fn new(records: u32, sets_shift: u32, timeouts: abi::sl_timeouts) -> Table {
        Table::of(Functions::built_in(), records, sets_shift, timeouts)
    }

    /// The same, kept by these functions.
    pub fn of(functions: &'static Functions, records: u32, sets_shift: u32, timeouts: abi::sl_timeouts) -> Table {
        assert!(functions.fits(), "the functions were compiled with other structs");
        assert!(records.is_power_of_two() && records <= abi::SL_CONNECTIONS);
        // SAFETY: zeroes are a free record and an empty set.
        let zeroed = || unsafe { std::mem::zeroed() };
        let connections: Box<[UnsafeCell<abi::sl_connection>]> =
            (0..records).map(|_| UnsafeCell::new(zeroed())).collect();
        let sets = (records >> sets_shift).max(1);
        // SAFETY: likewise.
        let places: Box<[UnsafeCell<abi::sl_places>]> =
            (0..sets).map(|_| UnsafeCell::new(unsafe { std::mem::zeroed() })).collect();
        let raw = RawTable {
            connections: UnsafeCell::raw_get(connections.as_ptr()),
            places: UnsafeCell::raw_get(places.as_ptr()),
            last_connection: records - 1,
            last_set: sets - 1,
            key: 0x5eed,
            timeouts,
            own_ports: abi::sl_own_ports { first: 0, many: 0 },
            for_each: u32::MAX,
            of_clients: [0; 256],
            ended: 0,
        };
        Table { functions, connections, places, raw: UnsafeCell::new(raw) }
    }

    /// The table of a host that gives these ports to connections of its own.
    pub fn with_own_ports(mut self, ports: std::ops::RangeInclusive<u16>) -> Table {
        let (first, last) = (u32::from(*ports.start()), u32::from(*ports.end()));
        self.raw.get_mut().own_ports = abi::sl_own_ports { first, many: last - first + 1 };
        self
    }

    /// The table in which so many established connections of a client do not give way.
    pub fn with_share(mut self, connections: u32) -> Table {
        self.raw.get_mut().for_each = connections;
        self
    }

    /// Established connections that do not give way, as their clients' counters have them.
    pub fn counted(&self) -> u32 {
        // SAFETY: the table is whole.
        unsafe { (*self.raw()).of_clients }.iter().sum()
    }

    /// Connections whose end was announced, as the kernel counts them for their forwards.
    pub fn ended(&self) -> u32 {
        // SAFETY: the table is whole.
        unsafe { (*self.raw()).ended }
    }

    fn raw(&self) -> *mut RawTable {
        self.raw.get()
    }

    /// The places as they are now, in order.
    fn places(&self) -> impl Iterator<Item = abi::sl_places> {
        // SAFETY: they are whole, and words that another thread changes are read at once.
        self.places.iter().map(|set| unsafe { set.get().read_volatile() })
    }

    /// Enters a connection whose packets from the client arrive as `arrives` and leave as `leaves`, after the first one. Returns its number, or the
    /// reason (`enum sl_not_forwarded`).
    pub fn open(&self, arrives: Tuple, leaves: Tuple, first: &Segment, tick: u32, hand: u32) -> Result<u32, u32> {
        let mut like = record(arrives, leaves);
        // SAFETY: the table is whole, the rest is on this stack.
        let number = unsafe { (self.functions.open)(self.raw(), &mut like, first, tick, hand) };
        if number & REFUSED > 0 { Err(number & !REFUSED) } else { Ok(number) }
    }

    /// The port of the source that a connection would leave from, whatever port `leaves` has, after so many tries; and the number of tries with this
    /// one. None: no port is free.
    pub fn source_port(&self, arrives: Tuple, leaves: Tuple, hash: u32, tried: u32) -> Option<(u16, u32)> {
        let mut like = record(arrives, leaves);
        // SAFETY: the table is whole, the rest is on this stack.
        let tried = unsafe { (self.functions.source_port)(self.raw(), &mut like, hash, tried) };
        (tried > 0).then(|| (u16::from_be(like.source_port), tried))
    }

    /// Whether a connection is to end before a segment of a side.
    pub fn is_over(&self, number: u32, side: Side, segment: &Segment, tick: u32) -> bool {
        // SAFETY: all are whole.
        unsafe {
            (self.functions.is_over)(self.raw(), self.connections[number as usize].get(), side.raw(), segment, tick)
                != 0
        }
    }

    /// Ends a connection.
    pub fn end(&self, number: u32) {
        self.end_seen(number, self.connection(number).state);
    }

    /// Ends a connection whose state's word was this one when a CPU looked at it.
    pub fn end_seen(&self, number: u32, state: u32) {
        assert!(number < self.connections.len() as u32);
        // SAFETY: the table is whole, and has the record.
        unsafe { (self.functions.end)(self.raw(), number, state) }
    }

    /// The connection of a packet that arrives, and the side that it is from.
    pub fn find(&self, packet: Tuple) -> Option<(u32, Side)> {
        let raw = RawTuple::from(packet);
        // SAFETY: the table is whole.
        let number = unsafe { (self.functions.find)(self.raw(), &raw) };
        let connection = (number > 0).then(|| self.connections[number as usize].get())?;
        // SAFETY: both are whole.
        let side = unsafe { (self.functions.side)(connection, &raw) };
        Some((number, if side == abi::SL_CLIENT { Side::Client } else { Side::Target }))
    }

    /// A packet of a side passes.
    pub fn pass(&self, number: u32, side: Side, segment: &Segment, tick: u32) {
        self.pass_seen(number, self.connection(number).state, side, segment, tick);
    }

    /// A packet of a side passes, and the state's word was this one when a CPU looked at it.
    pub fn pass_seen(&self, number: u32, state: u32, side: Side, segment: &Segment, tick: u32) {
        let connection = self.connections[number as usize].get();
        // SAFETY: the record is whole.
        unsafe { (self.functions.pass)(self.raw(), connection, state, side.raw(), segment, tick) }
    }

    /// How a side's packets arrive, and how they leave.
    pub fn tuples(&self, number: u32, side: Side) -> (Tuple, Tuple) {
        let zero = RawTuple { src: [0; 16], dst: [0; 16], sport: [0; 2], dport: [0; 2], proto: 0 };
        let (mut arrives, mut leaves) = (zero, zero);
        // SAFETY: all are whole.
        unsafe {
            (self.functions.tuples)(self.connections[number as usize].get(), side.raw(), &mut arrives, &mut leaves);
        }
        (arrives.into(), leaves.into())
    }

    /// The record of this number, as it is now.
    pub fn connection(&self, number: u32) -> abi::sl_connection {
        // SAFETY: it is whole, and words that another thread changes are read at once.
        unsafe { self.connections[number as usize].get().read_volatile() }
    }

    /// The state of a connection: `enum sl_connection_state`.
    pub fn state(&self, number: u32) -> u32 {
        self.connection(number).state & 0xff
    }

    /// Entries of all sets.
    pub fn entries(&self) -> usize {
        self.places().flat_map(|set| set.way).filter(|&word| word != 0).count()
    }

    /// Connections that are not free.
    pub fn in_use(&self) -> usize {
        (0..self.connections.len() as u32).filter(|&number| self.state(number) != abi::SL_CONNECTION_FREE).count()
    }

    /// Entries that stand in their second set, as the first ones count them.
    pub fn elsewhere(&self) -> usize {
        self.places().map(|set| set.elsewhere as usize).sum()
    }
}

/// A record with these addresses and ports, of no state.
fn record(arrives: Tuple, leaves: Tuple) -> abi::sl_connection {
    // SAFETY: zeroes are a free record.
    let mut like: abi::sl_connection = unsafe { std::mem::zeroed() };
    let set = |to: &mut abi::sl_end, ip| {
        // SAFETY: both are 16 bytes.
        *to = unsafe { std::mem::transmute::<[u8; 16], abi::sl_end>(bytes_of(ip)) };
    };
    set(&mut like.client, arrives.src.ip());
    set(&mut like.listen, arrives.dst.ip());
    set(&mut like.source, leaves.src.ip());
    set(&mut like.target, leaves.dst.ip());
    like.client_port = arrives.src.port().to_be();
    like.listen_port = arrives.dst.port().to_be();
    like.source_port = leaves.src.port().to_be();
    like.target_port = leaves.dst.port().to_be();
    like.proto = arrives.proto;
    like
}
