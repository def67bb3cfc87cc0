//! Network namespaces and the networks of tests. Everything is removed with its `Lab`.

use crate::command::{Output, await_that, run, words};
use sluice_testbed::{Namespace, veth};
use std::fs;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

static COUNTER: AtomicU32 = AtomicU32::new(0);

/// The prefix of all namespaces' names, before our pid.
const PREFIX: &str = "slt";

/// A network namespace, removed by its creator.
#[derive(Clone)]
pub struct Ns {
    pub name: String,
    pub inode: u64,
    namespace: Arc<Namespace>,
}

impl Ns {
    /// A new namespace, without IPv6, so that the kernel sends nothing of its own.
    pub fn create(role: &str) -> Ns {
        let role = format!("{}-{role}", COUNTER.fetch_add(1, Ordering::Relaxed));
        let namespace = Namespace::create(PREFIX, &role).unwrap_or_else(|error| panic!("{error}"));
        let inode = namespace.inode().unwrap_or_else(|error| panic!("{error}"));
        let ns = Ns { name: namespace.name().to_owned(), inode, namespace: Arc::new(namespace) };
        ns.sysctl("net/ipv6/conf/all/disable_ipv6", "1");
        ns.sysctl("net/ipv6/conf/default/disable_ipv6", "1");
        ns.ip("link set lo up");
        ns
    }

    pub fn exists(&self) -> bool {
        self.namespace.exists()
    }

    pub fn remove(&self) {
        self.namespace.remove().unwrap_or_else(|error| panic!("{error}"));
    }

    /// The testbed's handle of the namespace.
    pub fn testbed(&self) -> &Namespace {
        &self.namespace
    }

    /// Runs `ip` in it.
    #[track_caller]
    pub fn ip(&self, line: &str) -> String {
        self.tool("ip", line).ok().stdout
    }

    /// Runs `tc` in it.
    #[track_caller]
    pub fn tc(&self, line: &str) -> String {
        self.tool("tc", line).ok().stdout
    }

    /// Bytes that a device there has sent.
    pub fn sent_bytes(&self, device: &str) -> u64 {
        let shown: serde_json::Value =
            serde_json::from_str(&self.ip(&format!("-s -j link show dev {device}"))).expect("ip -j prints JSON");
        shown[0]["stats64"]["tx"]["bytes"].as_u64().expect("bytes that were sent")
    }

    /// Runs a program in the namespace to its end, and returns the output even of a failure.
    pub fn tool(&self, tool: &str, line: &str) -> Output {
        self.inside(|| run(&mut words(tool, line)))
    }

    /// Runs any program as `ip netns exec` does, with a mount namespace of its own.
    pub fn exec(&self, line: &str) -> Output {
        run(&mut words("ip", &format!("netns exec {} {line}", self.name)))
    }

    /// Runs `work` in the namespace on a thread of its own. Sockets opened there stay there.
    pub fn inside<T: Send>(&self, work: impl FnOnce() -> T + Send) -> T {
        self.namespace.inside(work).unwrap_or_else(|error| panic!("{error}"))
    }

    pub fn sysctl(&self, key: &str, value: &str) {
        let path = format!("/proc/sys/{key}");
        self.inside(|| fs::write(&path, value).unwrap_or_else(|error| panic!("{path}: {error}")));
    }

    /// Names of its interfaces.
    pub fn interfaces(&self) -> Vec<String> {
        self.inside(|| {
            let all = nix::net::if_::if_nameindex().expect("listing interfaces");
            all.iter().map(|one| one.name().to_string_lossy().into_owned()).collect()
        })
    }

    pub fn ifindex(&self, name: &str) -> u32 {
        self.inside(|| nix::net::if_::if_nametoindex(name).unwrap_or_else(|error| panic!("{name}: {error}")))
    }

    /// The directory of the pins of an interface.
    pub fn pins(&self, interface: &str) -> PathBuf {
        PathBuf::from(format!("/sys/fs/bpf/sluice/{interface}@{}", self.inode))
    }

    /// The programs that are loaded for an interface, by name.
    pub fn programs(&self, interface: &str) -> Vec<String> {
        let pins = fs::read_dir(self.pins(interface)).expect("pins").flatten();
        let mut names: Vec<String> = pins.map(|pin| pin.file_name().to_string_lossy().into_owned()).collect();
        names.retain(|name| name.starts_with("sl_"));
        names.sort();
        names
    }

    /// Statistics of the qdiscs on an interface, as tc has them.
    pub fn qdiscs(&self, dev: &str) -> Vec<Qdisc> {
        serde_json::from_str(&self.tc(&format!("-s -j qdisc show dev {dev}"))).expect("JSON of tc")
    }

    /// The device's root qdisc.
    pub fn root(&self, dev: &str) -> Option<Qdisc> {
        self.qdiscs(dev).into_iter().find(|qdisc| qdisc.root)
    }

    /// All state of an interface that management could change, for comparison.
    pub fn state(&self, dev: &str) -> String {
        let mut text = String::new();
        for qdisc in self.qdiscs(dev) {
            text += &format!("{} {} {}\n", qdisc.kind, qdisc.handle, qdisc.parent);
        }
        for side in ["ingress", "egress"] {
            text += &self.tool("tc", &format!("filter show dev {dev} {side}")).stdout;
        }
        let features = self.tool("ethtool", &format!("-k {dev}")).ok().stdout;
        let mut link = self.ip(&format!("-d -o link show dev {dev}"));
        // Output from the alias on is left out: it identifies a link that was down and up again, and is no change here.
        link.truncate(link.find(" alias ").unwrap_or(link.len()));
        text + &features + &link + &self.interfaces().join(" ")
    }
}

/// A qdisc as `tc -s -j` shows it.
#[derive(Debug, Clone, serde::Deserialize)]
pub struct Qdisc {
    pub kind: String,
    pub handle: String,
    #[serde(default)]
    pub root: bool,
    #[serde(default)]
    pub parent: String,
    #[serde(default)]
    pub bytes: u64,
    #[serde(default)]
    pub packets: u64,
    #[serde(default)]
    pub drops: u64,
    #[serde(default)]
    pub backlog: u64,
    #[serde(default)]
    pub qlen: u64,
}

/// Two hosts on a wire: `a` with a0 at 10.77.0.1, `b` with b0 at 10.77.0.2.
pub struct Pair {
    pub a: Ns,
    pub b: Ns,
}

pub const A: &str = "10.77.0.1";
pub const B: &str = "10.77.0.2";

/// Two hosts and a router between them: `client` (c0, 10.78.0.2), `router` (lan0, wan0), `server` (s0, 10.79.0.2).
pub struct Routed {
    pub client: Ns,
    pub router: Ns,
    pub server: Ns,
}

pub const CLIENT: &str = "10.78.0.2";
pub const SERVER: &str = "10.79.0.2";

/// The end of a wire.
pub struct End<'a> {
    pub ns: &'a Ns,
    pub dev: &'a str,
    pub address: &'a str,
    pub mac: &'a str,
}

/// Puts a veth between two namespaces, neighbours known to each other, so that no ARP is seen.
pub fn wire(x: &End<'_>, y: &End<'_>, options: &str) {
    let [a, b] = [x, y].map(|end| {
        let options = format!("address {} {options}", end.mac);
        veth::End { namespace: &end.ns.namespace, device: end.dev.to_owned(), options }
    });
    veth::connect(&[[a, b]]).unwrap_or_else(|error| panic!("{error}"));
    for (this, that) in [(x, y), (y, x)] {
        this.ns.ip(&format!("addr add {}/24 dev {}", this.address, this.dev));
        this.ns.ip(&format!("link set {} up", this.dev));
        this.ns.ip(&format!("neigh replace {} dev {} lladdr {} nud permanent", that.address, this.dev, that.mac));
    }
}

pub const MAC_A: &str = "02:00:00:00:77:01";
pub const MAC_B: &str = "02:00:00:00:77:02";

/// Creates the wire of a pair, also after it was deleted.
pub fn wire_pair(pair: &Pair, options: &str) {
    let a = End { ns: &pair.a, dev: "a0", address: A, mac: MAC_A };
    let b = End { ns: &pair.b, dev: "b0", address: B, mac: MAC_B };
    wire(&a, &b, options);
}

/// Wires a client and a server to a router. `options`: of both veths.
pub fn wire_routed(net: &Routed, options: &str) {
    let lan = End { ns: &net.router, dev: "lan0", address: "10.78.0.1", mac: "02:00:00:00:78:01" };
    let wan = End { ns: &net.router, dev: "wan0", address: "10.79.0.1", mac: "02:00:00:00:79:01" };
    wire(&End { ns: &net.client, dev: "c0", address: CLIENT, mac: "02:00:00:00:78:02" }, &lan, options);
    wire(&wan, &End { ns: &net.server, dev: "s0", address: SERVER, mac: "02:00:00:00:79:02" }, options);
    net.router.sysctl("net/ipv4/ip_forward", "1");
    net.client.ip("route add default via 10.78.0.1");
    net.server.ip("route add default via 10.79.0.1");
    // The kernel finds that a carrier is there some moments after the address.
    for end in [lan.dev, wan.dev] {
        let is_up = || net.router.ip(&format!("link show dev {end}")).contains("state UP");
        await_that("an end of the router is up", Duration::from_secs(10), is_up);
    }
}

/// HTB's classes and the limits of all queues, without handles that the kernel numbers by itself.
pub fn queues(pair: &Pair) -> Vec<String> {
    let classes = pair.a.tc("class show dev a0");
    let limits = pair.a.tc("qdisc show dev a0");
    let mut lines: Vec<String> =
        classes.lines().filter(|line| line.starts_with("class htb")).map(without_leaf).collect();
    lines.extend(limits.lines().filter_map(|line| Some(format!("parent{}", line.split_once("parent")?.1))));
    lines.sort();
    lines
}

fn without_leaf(line: &str) -> String {
    match line.split_once(" leaf ") {
        Some((before, after)) => format!("{before} {}", after.split_once(' ').unwrap_or_default().1),
        None => line.to_owned(),
    }
}

/// Opens a TUN or TAP interface whose packets are read and written here.
pub fn open_tun(name: &str, flags: libc::c_int) -> fs::File {
    use std::os::fd::AsRawFd;
    const TUNSETIFF: libc::c_ulong = 0x4004_54ca;
    let file = fs::File::options().read(true).write(true).open("/dev/net/tun").expect("/dev/net/tun");
    // SAFETY: an ifreq of zeroes is valid.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    for (to, from) in request.ifr_name.iter_mut().zip(name.bytes()) {
        *to = from as libc::c_char;
    }
    request.ifr_ifru.ifru_flags = (flags | libc::IFF_NO_PI) as libc::c_short;
    // SAFETY: the request lives through the call, and is what this command reads.
    let done = unsafe { libc::ioctl(file.as_raw_fd(), TUNSETIFF as _, &request) };
    assert_eq!(done, 0, "TUNSETIFF: {}", std::io::Error::last_os_error());
    file
}
