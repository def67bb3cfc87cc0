//! DPDK: its environment, memory of packets, ports. Of this crate, only this module calls it, through `shim.c`.

use sluice_error::{Error, Result};
use std::ffi::{CStr, CString, c_char, c_int};
use std::ptr::NonNull;

#[repr(C)]
struct Mbuf([u8; 0]);

#[repr(C)]
struct Mempool([u8; 0]);

#[repr(C)]
#[derive(Default)]
struct RawInfo {
    driver: [c_char; 32],
    max_rx_queues: u16,
    max_tx_queues: u16,
    tm_levels: u32,
    tm_nodes: u32,
    tm_rate_most: u64,
}

/// The counters of a port's driver.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
pub struct Counts {
    /// Packets that it has given to us.
    pub received_pkts: u64,
    /// Packets that it has sent.
    pub sent_pkts: u64,
    /// Arrivals that it had no room for.
    pub missed_pkts: u64,
    /// Arrivals with errors.
    pub receive_errors: u64,
    /// Packets that it has taken and not sent.
    pub send_errors: u64,
    /// Arrivals for which there was no memory.
    pub without_memory: u64,
}

unsafe extern "C" {
    safe fn sl_dpdk_version() -> *const c_char;
    fn sl_dpdk_init(argc: c_int, argv: *mut *mut c_char) -> c_int;
    safe fn sl_dpdk_end();
    fn sl_dpdk_plug(device: *const c_char) -> c_int;
    fn sl_dpdk_port_by_name(name: *const c_char) -> c_int;
    fn sl_dpdk_port_info(port: u16, info: *mut RawInfo) -> c_int;
    fn sl_dpdk_pool(pkts: u32, failed: *mut c_int) -> *mut Mempool;
    fn sl_dpdk_start(port: u16, rx_queues: u16, tx_queues: u16, descriptors: u16, pool: *mut Mempool) -> c_int;
    safe fn sl_dpdk_stop(port: u16);
    fn sl_dpdk_receive(port: u16, queue: u16, packets: *mut Option<Packet>, n: u16) -> u16;
    fn sl_dpdk_send(port: u16, queue: u16, packets: *mut Option<Packet>, n: u16) -> u16;
    fn sl_dpdk_free(packet: *mut Mbuf);
    fn sl_dpdk_bytes(packet: *mut Mbuf, length: *mut u32) -> *mut u8;
    fn sl_dpdk_length(packet: *const Mbuf) -> u32;
    fn sl_dpdk_counts(port: u16, counts: *mut Counts);
}

/// DPDK's version, as it says it.
pub fn version() -> String {
    // SAFETY: a string that lives as long as the program.
    unsafe { CStr::from_ptr(sl_dpdk_version()) }.to_string_lossy().into_owned()
}

fn errno(answer: c_int) -> String {
    std::io::Error::from_raw_os_error(-answer).to_string()
}

fn c_string(text: &str) -> Result<CString> {
    CString::new(text).map_err(|_| Error::input(format!("{text:?} has a NUL character")))
}

/// A packet in DPDK's memory, which it goes back to when it is dropped.
#[repr(transparent)]
pub struct Packet(NonNull<Mbuf>);

impl Packet {
    /// Its bytes: of one in several parts, those of the first.
    pub fn bytes(&mut self) -> &mut [u8] {
        let mut length = 0;
        // SAFETY: the packet is whole and this value's alone; so are so many bytes of it, as long as it is borrowed.
        unsafe {
            let first = sl_dpdk_bytes(self.0.as_ptr(), &mut length);
            std::slice::from_raw_parts_mut(first, length as usize)
        }
    }

    /// The bytes of all its parts.
    pub fn length(&self) -> u32 {
        // SAFETY: the packet is whole.
        unsafe { sl_dpdk_length(self.0.as_ptr()) }
    }
}

impl Drop for Packet {
    fn drop(&mut self) {
        // SAFETY: the packet is this value's alone, and nothing has it after it.
        unsafe { sl_dpdk_free(self.0.as_ptr()) }
    }
}

/// DPDK's environment. There is one in a process, and it ends with the process's last port.
pub struct Environment(());

impl Environment {
    /// Sets it up by these arguments, the first of which is the name of the program.
    ///
    /// # Errors
    ///
    /// DPDK refuses the arguments, or lacks memory or rights; it has written why on standard error.
    pub fn new(arguments: &[String]) -> Result<Environment> {
        let owned: Vec<CString> = arguments.iter().map(|text| c_string(text)).collect::<Result<_>>()?;
        // DPDK keeps some of them.
        let mut pointers: Vec<*mut c_char> = owned.into_iter().map(CString::into_raw).collect();
        let count = pointers.len() as c_int;
        pointers.push(std::ptr::null_mut());
        // SAFETY: as many strings as are counted, and a null pointer behind them; they are never freed.
        let answer = unsafe { sl_dpdk_init(count, pointers.leak().as_mut_ptr()) };
        if answer < 0 {
            let told = format!("DPDK does not start with `{}`: {}", arguments[1..].join(" "), errno(answer));
            return Err(Error::system(told).help("DPDK's own message is above; arguments behind `--` are for it"));
        }
        Ok(Environment(()))
    }

    /// Adds the device of this string, such as `net_af_packet0,iface=eth0`, and returns its port.
    ///
    /// # Errors
    ///
    /// There is no such driver, or no such device, or it takes other arguments.
    pub fn plug(&self, device: &str) -> Result<Unstarted> {
        let name = device.split(',').next().unwrap_or(device);
        let (c_device, c_name) = (c_string(device)?, c_string(name)?);
        // SAFETY: both are strings, and DPDK keeps neither.
        let port = unsafe {
            match sl_dpdk_port_by_name(c_name.as_ptr()) {
                known if known >= 0 => known,
                _ => match sl_dpdk_plug(c_device.as_ptr()) {
                    // Its port has the name of the device, unless it has several.
                    plugged if plugged < 0 => match sl_dpdk_port_by_name(c_name.as_ptr()) {
                        known if known >= 0 => known,
                        _ => plugged,
                    },
                    plugged => plugged,
                },
            }
        };
        let Ok(number) = u16::try_from(port) else {
            // Many drivers answer -1, and have written why.
            let why =
                if port == -1 { "its driver does not take it; its message is above".to_owned() } else { errno(port) };
            let told = format!("there is no port {device}: {why}");
            let cure = "name a device as DPDK does: `net_af_packet0,iface=eth0`, `net_tap0`, or the address of a card that \
                        is bound to vfio-pci";
            return Err(Error::input(told).help(cure));
        };
        let mut raw = RawInfo::default();
        // SAFETY: the struct is whole.
        let failed = unsafe { sl_dpdk_port_info(number, &mut raw) };
        if failed < 0 {
            return Err(Error::system(format!("{device}: the driver does not describe it: {}", errno(failed))));
        }
        // SAFETY: the shim ends it with a NUL.
        let driver = unsafe { CStr::from_ptr(raw.driver.as_ptr()) }.to_string_lossy().into_owned();
        let management = (raw.tm_levels > 0).then_some(Management {
            levels: raw.tm_levels,
            nodes: raw.tm_nodes,
            rate_most_bytes: raw.tm_rate_most,
        });
        Ok(Unstarted { number, name: name.to_owned(), driver, max_tx_queues: raw.max_tx_queues, management })
    }

    /// Memory for so many packets.
    ///
    /// # Errors
    ///
    /// There is less.
    pub fn pool(&self, pkts: u32) -> Result<Pool> {
        let mut failed = 0;
        // SAFETY: the number is written, and nothing else.
        let pool = unsafe { sl_dpdk_pool(pkts, &mut failed) };
        NonNull::new(pool).map(Pool).ok_or_else(|| {
            let told = format!("DPDK has no memory for {pkts} packets: {}", errno(-failed));
            Error::system(told)
                .help("give it more, as in `-- -m 512` (megabytes), or let fewer packets wait: --packets")
        })
    }
}

impl Drop for Environment {
    fn drop(&mut self) {
        sl_dpdk_end();
    }
}

/// Memory of packets.
pub struct Pool(NonNull<Mempool>);

/// The traffic management of a port (rte_tm), as its driver describes it.
#[derive(Debug, Clone, Copy)]
pub struct Management {
    /// Levels of its hierarchy.
    pub levels: u32,
    /// Nodes of it.
    pub nodes: u32,
    /// The highest rate of a shaper, bytes a second.
    pub rate_most_bytes: u64,
}

/// A port that is not used yet.
#[derive(Debug)]
pub struct Unstarted {
    number: u16,
    /// The name of its device.
    pub name: String,
    /// The name of its driver.
    pub driver: String,
    /// Tx queues that it can have.
    pub max_tx_queues: u16,
    /// Its traffic management, if the driver has any.
    pub management: Option<Management>,
}

impl Unstarted {
    /// Starts the port with so many tx queues, which hold about so many packets each.
    ///
    /// # Errors
    ///
    /// The driver refuses.
    pub fn start(self, tx_queues: u16, descriptors: u16, pool: &Pool) -> Result<Port> {
        // One receives, since all packets come to one scheduler. A tap has as many as it sends with.
        let rx_queues = if self.driver == "net_tap" { tx_queues } else { 1 };
        // SAFETY: the pool lives as long as the environment.
        let failed = unsafe { sl_dpdk_start(self.number, rx_queues, tx_queues, descriptors, pool.0.as_ptr()) };
        if failed < 0 {
            let told = format!("{}: the driver {} does not start it: {}", self.name, self.driver, errno(failed));
            return Err(Error::system(told).help("DPDK's own message is above"));
        }
        Ok(Port { number: self.number, name: self.name, rx_queues, tx_queues })
    }
}

/// A port in use. It ends, and its device with it, when it is dropped.
pub struct Port {
    number: u16,
    /// The name of its device.
    pub name: String,
    rx_queues: u16,
    /// Its tx queues.
    pub tx_queues: u16,
}

impl Port {
    /// Puts packets that have arrived into these places, which are empty. How many.
    pub fn receive(&mut self, packets: &mut [Option<Packet>]) -> usize {
        let mut count = 0;
        for queue in 0..self.rx_queues {
            let rest = &mut packets[count..];
            let room = u16::try_from(rest.len()).unwrap_or(u16::MAX);
            // SAFETY: Option<Packet> is a pointer or null; each place that is written was empty, so nothing is leaked.
            count += usize::from(unsafe { sl_dpdk_receive(self.number, queue, rest.as_mut_ptr(), room) });
        }
        count
    }

    /// Offers a queue the packets in these places, which all have one. The port takes the first ones of them: how many, whose places are empty then.
    pub fn send(&mut self, queue: u16, packets: &mut [Option<Packet>]) -> usize {
        debug_assert!(packets.iter().all(Option::is_some));
        let count = u16::try_from(packets.len()).unwrap_or(u16::MAX);
        // SAFETY: so many packets, which are whole. The port owns those that it has taken.
        let taken: usize = unsafe { sl_dpdk_send(self.number, queue, packets.as_mut_ptr(), count) }.into();
        packets[..taken].iter_mut().for_each(|place| std::mem::forget(place.take()));
        taken
    }

    /// The driver's counters.
    pub fn counts(&self) -> Counts {
        let mut counts = Counts::default();
        // SAFETY: the struct is whole.
        unsafe { sl_dpdk_counts(self.number, &mut counts) };
        counts
    }
}

impl Drop for Port {
    fn drop(&mut self) {
        sl_dpdk_stop(self.number);
    }
}
