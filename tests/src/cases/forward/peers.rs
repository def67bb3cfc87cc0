//! Clients and servers of the cases of port forwarding.

use super::network::{IDLE, LONG};
use crate::net::Ns;
use std::io::{ErrorKind, Read, Write};
use std::net::{IpAddr, Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

/// A server that sends back what it gets, after a line with the address that it comes from. Ends with the value.
pub struct Echo {
    ends: Arc<AtomicBool>,
    pub accepted: Arc<AtomicU32>,
    threads: Vec<JoinHandle<()>>,
}

impl Echo {
    pub fn start(ns: &Ns, port: u16) -> Echo {
        let ends = Arc::new(AtomicBool::new(false));
        let (tcp, udp) = ns.inside(|| {
            let tcp = TcpListener::bind(("::", port)).expect("a TCP port");
            tcp.set_nonblocking(true).expect("a listener that does not wait");
            let udp = UdpSocket::bind(("::", port)).expect("a UDP port");
            udp.set_read_timeout(Some(Duration::from_millis(50))).expect("a time limit");
            (tcp, udp)
        });
        let accepted = Arc::new(AtomicU32::new(0));
        let counts = Arc::clone(&accepted);
        let (of_tcp, of_udp) = (Arc::clone(&ends), Arc::clone(&ends));
        let threads = vec![
            std::thread::spawn(move || {
                while !of_tcp.load(Ordering::Relaxed) {
                    match tcp.accept() {
                        Ok((stream, peer)) => {
                            counts.fetch_add(1, Ordering::Relaxed);
                            drop(std::thread::spawn(move || echo(stream, peer)));
                        }
                        Err(_) => std::thread::sleep(Duration::from_millis(2)),
                    }
                }
            }),
            std::thread::spawn(move || {
                let mut bytes = [0; 9000];
                while !of_udp.load(Ordering::Relaxed) {
                    if let Ok((length, peer)) = udp.recv_from(&mut bytes) {
                        let answer = [line(peer).as_bytes(), &bytes[..length]].concat();
                        let _ = udp.send_to(&answer, peer);
                    }
                }
            }),
        ];
        Echo { ends, accepted, threads }
    }
}

impl Drop for Echo {
    fn drop(&mut self) {
        self.ends.store(true, Ordering::Relaxed);
        self.threads.drain(..).for_each(|thread| drop(thread.join()));
    }
}

pub fn line(peer: SocketAddr) -> String {
    format!("{}\n", peer.ip().to_canonical())
}

pub fn echo(mut stream: TcpStream, peer: SocketAddr) {
    let _ = stream.set_nonblocking(false);
    let _ = stream.set_read_timeout(Some(IDLE));
    let mut all = line(peer).into_bytes();
    if stream.read_to_end(&mut all).is_ok() {
        let _ = stream.write_all(&all);
    }
}

/// Sends so many bytes to an address, and returns what comes back: the line, and whether the rest is what was sent.
pub fn exchange(ns: &Ns, to: SocketAddr, bytes: usize) -> Result<(String, bool), std::io::Error> {
    ns.inside(|| {
        let mut stream = TcpStream::connect_timeout(&to, LONG)?;
        stream.set_read_timeout(Some(LONG))?;
        stream.set_write_timeout(Some(LONG))?;
        let sent: Vec<u8> = (0..bytes).map(|n| (n ^ n >> 8 ^ n >> 16) as u8).collect();
        stream.write_all(&sent)?;
        stream.shutdown(Shutdown::Write)?;
        let mut all = Vec::new();
        stream.read_to_end(&mut all)?;
        let end = all.iter().position(|&byte| byte == b'\n').ok_or(ErrorKind::UnexpectedEof)?;
        Ok((String::from_utf8_lossy(&all[..end]).into_owned(), all[end + 1..] == sent[..]))
    })
}

/// Sends a datagram; what comes back.
pub fn datagram(ns: &Ns, to: SocketAddr, bytes: &[u8]) -> Result<Vec<u8>, std::io::Error> {
    ns.inside(|| {
        let any: IpAddr =
            if to.is_ipv4() { Ipv4Addr::UNSPECIFIED.into() } else { std::net::Ipv6Addr::UNSPECIFIED.into() };
        let socket = UdpSocket::bind((any, 0))?;
        socket.connect(to)?;
        socket.set_read_timeout(Some(Duration::from_secs(3)))?;
        socket.send(bytes)?;
        let mut answer = vec![0; 9000];
        let length = socket.recv(&mut answer)?;
        answer.truncate(length);
        Ok(answer)
    })
}

/// Sends so many datagrams of so many bytes at once, as one super-packet (UDP_SEGMENT); what comes back.
pub fn segmented(ns: &Ns, to: SocketAddr, bytes: usize, many: usize) -> Result<Vec<Vec<u8>>, std::io::Error> {
    use std::os::fd::AsRawFd;
    ns.inside(|| {
        let any: IpAddr =
            if to.is_ipv4() { Ipv4Addr::UNSPECIFIED.into() } else { std::net::Ipv6Addr::UNSPECIFIED.into() };
        let socket = UdpSocket::bind((any, 0))?;
        socket.connect(to)?;
        socket.set_read_timeout(Some(Duration::from_secs(3)))?;
        let segment = bytes as libc::c_int;
        // SAFETY: the value lives through the call, and its length is told.
        let done = unsafe {
            libc::setsockopt(
                socket.as_raw_fd(),
                libc::SOL_UDP,
                libc::UDP_SEGMENT,
                (&raw const segment).cast(),
                size_of_val(&segment) as u32,
            )
        };
        if done != 0 {
            return Err(std::io::Error::last_os_error());
        }
        socket.send(&vec![7; bytes * many])?;
        let mut answers = Vec::new();
        for _ in 0..many {
            let mut answer = vec![0; 9000];
            let length = socket.recv(&mut answer)?;
            answer.truncate(length);
            answers.push(answer);
        }
        Ok(answers)
    })
}

/// Datagrams of one connection that may pass so many routers each, and what their sender hears of the last one.
pub fn with_hops(ns: &Ns, to: SocketAddr, hops: &[u32]) -> Result<Vec<u8>, std::io::Error> {
    use std::os::fd::AsRawFd;
    ns.inside(|| {
        let any: IpAddr =
            if to.is_ipv4() { Ipv4Addr::UNSPECIFIED.into() } else { std::net::Ipv6Addr::UNSPECIFIED.into() };
        let socket = UdpSocket::bind((any, 0))?;
        let (level, limit, tells) = if to.is_ipv4() {
            (libc::IPPROTO_IP, libc::IP_TTL, libc::IP_RECVERR)
        } else {
            (libc::IPPROTO_IPV6, libc::IPV6_UNICAST_HOPS, libc::IPV6_RECVERR)
        };
        let set = |option, value: libc::c_int| {
            // SAFETY: the value lives through the call, and its length is told.
            let done = unsafe {
                libc::setsockopt(
                    socket.as_raw_fd(),
                    level,
                    option,
                    (&raw const value).cast(),
                    size_of_val(&value) as u32,
                )
            };
            assert_eq!(done, 0, "setsockopt: {}", std::io::Error::last_os_error());
        };
        set(tells, 1);
        socket.connect(to)?;
        socket.set_read_timeout(Some(Duration::from_secs(3)))?;
        let mut answer = vec![0; 100];
        let mut length = 0;
        for &hops in hops {
            set(limit, hops as libc::c_int);
            socket.send(b"hops")?;
            length = socket.recv(&mut answer)?;
        }
        answer.truncate(length);
        Ok(answer)
    })
}

/// A connection that is open, and tried now and then.
pub struct Open(pub TcpStream);

impl Open {
    pub fn to(ns: &Ns, to: SocketAddr) -> Open {
        let stream =
            ns.inside(|| TcpStream::connect_timeout(&to, LONG)).unwrap_or_else(|error| panic!("{to}: {error}"));
        stream.set_read_timeout(Some(LONG)).expect("a time limit");
        Open(stream)
    }

    /// The connection still carries data, both ways: what was sent comes back when it ends.
    pub fn ends_well(mut self) {
        self.0.write_all(b"still here").expect("sending");
        self.0.shutdown(Shutdown::Write).expect("the end");
        let mut all = String::new();
        self.0.read_to_string(&mut all).expect("the answer");
        assert!(all.ends_with("still here"), "{all}");
    }
}
