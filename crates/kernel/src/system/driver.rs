//! The abilities of an interface's driver for AF_XDP, as netlink's family `netdev` tells them (Documentation/netlink/specs/netdev.yaml), from Linux 6.3 on.

/// enum netdev_xdp_act: XDP programs run in the driver, and AF_XDP sockets take its frames without a copy.
const RUNS_XDP: u64 = 1;
const LENDS_FRAMES: u64 = 8;

/// The way of a frame between a driver and an AF_XDP socket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SocketFrames {
    /// The driver writes it into the memory of the socket, and sends it from there.
    Lent,
    /// The kernel copies it on its way in, and on its way out.
    Copied,
    /// None comes there from an XDP program in the driver, which runs none.
    Never,
}

impl SocketFrames {
    /// None: the kernel does not tell.
    pub fn of(ifindex: u32) -> Option<SocketFrames> {
        let mut options = libbpf_sys::bpf_xdp_query_opts {
            sz: size_of::<libbpf_sys::bpf_xdp_query_opts>() as libbpf_sys::size_t,
            xdp_zc_max_segs: u32::MAX,
            ..Default::default()
        };
        let ifindex = i32::try_from(ifindex).ok()?;
        // SAFETY: the options are whole, and say how long they are.
        let result = unsafe { libbpf_sys::bpf_xdp_query(ifindex, 0, &raw mut options) };
        // libbpf leaves this word as it is where the kernel has no such family.
        (result == 0 && options.xdp_zc_max_segs != u32::MAX).then_some(match options.feature_flags {
            flags if flags & LENDS_FRAMES > 0 => SocketFrames::Lent,
            flags if flags & RUNS_XDP > 0 => SocketFrames::Copied,
            _ => SocketFrames::Never,
        })
    }
}
