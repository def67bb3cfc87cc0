//! The needs of a test: features of the kernel and the machine. A test is ignored, with the reason, on a kernel that lacks one;
//! otherwise it must pass. The product is not asked for its own findings.

use crate::command::{run, words};
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Need {
    /// Qdiscs in BPF.
    BpfQdisc,
    /// No qdiscs in BPF: there users get engine tc, and there it is tested.
    NoBpfQdisc,
    /// Programs attached to tc by links.
    Tcx,
    /// Loops of programs that the verifier walks once (bpf_for).
    OpenCodedLoops,
    /// Time that counts instructions: without it, no rate is exact.
    Icount,
    /// Time by the wall clock.
    NoIcount,
    /// Several processors.
    Processors,
    Htb,
    FqCodel,
    Ifb,
    Vlan,
    Tun,
    /// Sockets of AF_XDP.
    Xsk,
    /// A veth that refuses frames which its other end has no room for, and does not drop them.
    RefusingVeth,
    Bridge,
    /// Connection tracking, and address translation.
    Conntrack,
    Systemd,
    /// A program that drops capabilities.
    Capsh,
    /// iperf3, which sends TCP and reports how much.
    Iperf3,
    /// A machine that scripts/setup has equipped: a browser, its driver, Prometheus, tshark and FreeRADIUS must be there. Virtual machines have none.
    Equipped,
    /// The mounts of the first process, which a container may hide.
    FirstMounts,
}

impl Need {
    const ALL: [Need; 21] = [
        Need::BpfQdisc,
        Need::NoBpfQdisc,
        Need::Tcx,
        Need::OpenCodedLoops,
        Need::Icount,
        Need::NoIcount,
        Need::Processors,
        Need::Htb,
        Need::FqCodel,
        Need::Ifb,
        Need::Vlan,
        Need::Tun,
        Need::Xsk,
        Need::RefusingVeth,
        Need::Bridge,
        Need::Conntrack,
        Need::Systemd,
        Need::Capsh,
        Need::Iperf3,
        Need::Equipped,
        Need::FirstMounts,
    ];

    fn missing(self) -> &'static str {
        match self {
            Need::BpfQdisc => "no BPF qdisc",
            Need::NoBpfQdisc => "has BPF qdisc",
            Need::Tcx => "no tcx",
            Need::OpenCodedLoops => "no bpf_for",
            Need::Icount => "not icount",
            Need::NoIcount => "exact ones run",
            Need::Processors => "one processor",
            Need::Htb => "no HTB",
            Need::FqCodel => "no fq_codel",
            Need::Ifb => "no ifb",
            Need::Vlan => "no VLAN",
            Need::Tun => "no tun",
            Need::Xsk => "no AF_XDP",
            Need::RefusingVeth => "veths drop",
            Need::Bridge => "no bridge",
            Need::Conntrack => "no NAT",
            Need::Systemd => "no systemd-analyze",
            Need::Capsh => "no capsh here",
            Need::Iperf3 => "no iperf3 here",
            Need::Equipped => "not equipped",
            Need::FirstMounts => "process 1 is hidden",
        }
    }

    pub fn is_met(self) -> bool {
        match self {
            Need::BpfQdisc => has_symbol("bpf_qdisc_skb_drop"),
            Need::NoBpfQdisc => !has_symbol("bpf_qdisc_skb_drop"),
            Need::Tcx => release() >= (6, 6),
            Need::OpenCodedLoops => has_symbol("bpf_iter_num_new"),
            Need::Icount => is_icount(),
            Need::NoIcount => !is_icount(),
            Need::Processors => std::thread::available_parallelism().is_ok_and(|count| count.get() > 1),
            Need::Htb => in_scratch("tc qdisc add dev lo root htb"),
            Need::FqCodel => in_scratch("tc qdisc add dev lo root fq_codel"),
            Need::Ifb => in_scratch("ip link add probe type ifb"),
            Need::Vlan => in_scratch("ip link add v0 type veth; ip link add link v0 name probe type vlan id 5"),
            Need::Tun => in_scratch("ip tuntap add dev probe mode tun"),
            Need::Xsk => has_symbol("xsk_map_delete_elem") || has_symbol("xsk_generic_rcv"),
            Need::RefusingVeth => release() >= (6, 16),
            Need::Bridge => in_scratch("ip link add probe type bridge"),
            Need::Conntrack => has_symbol("nf_nat_inet_fn") && on_path("nft"),
            Need::Systemd => on_path("systemd-analyze"),
            Need::Capsh => on_path("capsh"),
            Need::Iperf3 => on_path("iperf3"),
            Need::Equipped => std::env::var_os("SLUICE_VM").is_none(),
            Need::FirstMounts => fs::metadata("/proc/1/ns/mnt").is_ok(),
        }
    }
}

/// The features of this machine, probed once.
pub struct Machine(BTreeMap<Need, bool>);

impl Machine {
    pub fn probe() -> Machine {
        Machine(Need::ALL.into_iter().map(|need| (need, need.is_met())).collect())
    }

    pub fn has(&self, need: Need) -> bool {
        self.0.get(&need).copied().unwrap_or(false)
    }

    /// The reason why a test with these needs cannot run here.
    pub fn lacks(&self, needs: &[Need]) -> Option<&'static str> {
        needs.iter().find(|need| !self.has(**need)).map(|need| need.missing())
    }
}

fn has_symbol(name: &str) -> bool {
    let symbols = fs::read_to_string("/proc/kallsyms").unwrap_or_default();
    symbols.lines().any(|line| line.split_whitespace().nth(2) == Some(name))
}

/// The version of the kernel: its first two numbers.
pub fn release() -> (u32, u32) {
    let text = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let mut numbers = text.split(|c: char| !c.is_ascii_digit()).filter_map(|n| n.parse().ok());
    (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0))
}

/// Whether commands succeed in a network namespace of their own.
fn in_scratch(lines: &str) -> bool {
    let name = format!("slt-{}-probe", std::process::id());
    run(&mut words("ip", &format!("netns add {name}"))).ok();
    let done = lines.split(';').all(|line| {
        let (tool, rest) = line.trim().split_once(' ').expect("a command and its arguments");
        run(&mut words(tool, &format!("-n {name} {rest}"))).code == Some(0)
    });
    run(&mut words("ip", &format!("netns del {name}"))).ok();
    done
}

fn on_path(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).chain([Path::new("/usr/sbin").to_owned()]).any(|dir| dir.join(program).exists())
}

/// Whether time counts instructions, so that rates and delays do not depend on the load of the machine.
pub fn is_icount() -> bool {
    std::env::var_os("SLUICE_VM").is_some_and(|vm| vm == "icount")
}

/// Whether the caller is root.
pub fn is_root() -> bool {
    nix::unistd::geteuid().is_root()
}

/// Loads modules that kernels load only on demand; missing modules are built in or absent.
pub fn load_modules() {
    for module in ["bridge", "tun", "8021q", "ifb", "veth", "nft_chain_nat", "nft_masq"] {
        let _ = Command::new("modprobe").arg("-q").arg(module).status();
    }
}
