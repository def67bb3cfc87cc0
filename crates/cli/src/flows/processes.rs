//! The process that owns a flow, found where one end is a socket of this machine and this network namespace.

use procfs::net::{TcpNetEntry, UdpNetEntry};
use procfs::process::FDTarget;
use serde::Serialize;
use sluice_kernel::flows::FlowKey;
use std::collections::{HashMap, HashSet};
use std::net::{IpAddr, SocketAddr};

/// A process.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Process {
    /// Process id.
    pub pid: i32,
    /// Command name.
    pub name: String,
}

/// The local end of a socket, and its peer.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Endpoints {
    protocol: u16,
    local: SocketAddr,
    /// The connected peer; `None` for an unconnected socket.
    remote: Option<SocketAddr>,
}

/// Sockets and their owners. Processes are searched only for sockets that were not seen before.
#[derive(Debug, Default)]
pub struct Processes {
    owners: HashMap<u64, Option<Process>>,
}

impl Processes {
    /// The owners of these flows, in their order.
    pub fn of(&mut self, flows: &[FlowKey]) -> Vec<Option<Process>> {
        let sockets = sockets();
        let inodes: Vec<Option<u64>> = flows.iter().map(|flow| find(&sockets, flow)).collect();
        let wanted: HashSet<u64> = inodes.iter().flatten().copied().collect();
        self.owners.retain(|inode, _| wanted.contains(inode));
        let new: HashSet<u64> = wanted.into_iter().filter(|inode| !self.owners.contains_key(inode)).collect();
        if !new.is_empty() {
            self.search(&new);
        }
        let owner = |inode: &Option<u64>| inode.and_then(|inode| self.owners.get(&inode).cloned().flatten());
        inodes.iter().map(owner).collect()
    }

    fn search(&mut self, wanted: &HashSet<u64>) {
        // A shared socket is attributed to the lowest pid, mostly the one that opened it.
        let mut processes: Vec<_> = procfs::process::all_processes().into_iter().flatten().flatten().collect();
        processes.sort_by_key(procfs::process::Process::pid);
        for process in processes {
            // The process may have ended meanwhile, or belong to another user.
            let Ok(files) = process.fd() else { continue };
            for file in files.flatten() {
                if let FDTarget::Socket(inode) = file.target {
                    if wanted.contains(&inode) && !self.owners.contains_key(&inode) {
                        let name = process.stat().map(|stat| printable(&stat.comm)).unwrap_or_default();
                        self.owners.insert(inode, Some(Process { pid: process.pid(), name }));
                    }
                }
            }
        }
        for inode in wanted {
            self.owners.entry(*inode).or_insert(None);
        }
    }
}

/// Escapes a process name, which the process itself chooses, for the terminal.
fn printable(name: &str) -> String {
    name.chars().map(|letter| if letter.is_control() { '?' } else { letter }).collect()
}

/// The sockets of this network namespace by their ends.
fn sockets() -> HashMap<Endpoints, u64> {
    let mut found = HashMap::new();
    let mut put = |protocol: u16, local: SocketAddr, remote: SocketAddr, inode: u64| {
        if inode != 0 {
            let remote = Some(plain(remote)).filter(|remote| remote.port() != 0);
            found.insert(Endpoints { protocol, local: plain(local), remote }, inode);
        }
    };
    let tcp = [procfs::net::tcp(), procfs::net::tcp6()].into_iter().flatten().flatten();
    tcp.for_each(|TcpNetEntry { local_address, remote_address, inode, .. }| {
        put(6, local_address, remote_address, inode)
    });
    let udp = [procfs::net::udp(), procfs::net::udp6()].into_iter().flatten().flatten();
    udp.for_each(|UdpNetEntry { local_address, remote_address, inode, .. }| {
        put(17, local_address, remote_address, inode)
    });
    found
}

/// An IPv4 address, also where an IPv6 socket has it mapped.
fn plain(address: SocketAddr) -> SocketAddr {
    SocketAddr::new(address.ip().to_canonical(), address.port())
}

fn find(sockets: &HashMap<Endpoints, u64>, flow: &FlowKey) -> Option<u64> {
    let (src, dst) = (SocketAddr::new(flow.src, flow.src_port?), SocketAddr::new(flow.dst, flow.dst_port?));
    let (local, remote) = if flow.arriving { (dst, src) } else { (src, dst) };
    let any4 = SocketAddr::new(IpAddr::from([0, 0, 0, 0]), local.port());
    let any6 = SocketAddr::new(IpAddr::from([0u16; 8]), local.port());
    let ways = [(local, Some(remote)), (local, None), (any4, None), (any6, None)];
    let find = |(local, remote)| sockets.get(&Endpoints { protocol: flow.protocol, local, remote }).copied();
    ways.into_iter().find_map(find)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{TcpListener, TcpStream};

    #[test]
    fn own_connection_is_attributed_to_this_process() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a socket");
        let server = listener.local_addr().expect("an address");
        let client = TcpStream::connect(server).expect("a connection");
        let own = client.local_addr().expect("an address");
        let flow = FlowKey {
            protocol: 6,
            src: own.ip(),
            src_port: Some(own.port()),
            dst: server.ip(),
            dst_port: Some(server.port()),
            arriving: false,
        };
        let unknown = FlowKey { src_port: Some(1), dst_port: Some(1), ..flow };
        let mut processes = Processes::default();
        for _ in 0..2 {
            let found = processes.of(&[flow, unknown]);
            assert_eq!(found[0].as_ref().map(|process| process.pid), Some(std::process::id() as i32));
            assert_eq!(found[1], None);
        }
    }
}
