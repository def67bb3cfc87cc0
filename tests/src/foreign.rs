//! Foreign BPF programs: each counts its packets and returns one verdict.

use crate::net::Ns;
use libbpf_sys::*;
use std::ffi::CString;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

/// The verdicts of tc: TCX_NEXT goes on with the packet, TC_ACT_SHOT drops it.
const NEXT: i32 = -1;
const SHOT: i32 = 2;

/// Offset of the destination port in a frame without a VLAN tag, behind an IPv4 header without options.
const DESTINATION_PORT: i32 = 36;
/// Offset of queue_mapping in struct __sk_buff (include/uapi/linux/bpf.h).
const QUEUE_MAPPING: i16 = 12;
/// Offset of tc_index in struct __sk_buff (include/uapi/linux/bpf.h).
const TC_INDEX: i16 = 44;

/// The hook of a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Hook {
    Xdp,
    TcxIngress,
    TcxEgress,
    /// A filter of clsact.
    Filter,
}

impl Hook {
    fn program_type(self) -> u32 {
        if self == Hook::Xdp { BPF_PROG_TYPE_XDP } else { BPF_PROG_TYPE_SCHED_CLS }
    }

    fn link_type(self) -> u32 {
        match self {
            Hook::Xdp => BPF_XDP,
            Hook::TcxIngress => BPF_TCX_INGRESS,
            Hook::TcxEgress => BPF_TCX_EGRESS,
            Hook::Filter => unreachable!("tc attaches it"),
        }
    }
}

/// The verdict of a program.
#[derive(Debug, Clone, Copy)]
pub enum Verdict {
    Pass,
    Drop,
    /// Redirected to the interface with this number, from tc.
    Redirect(u32),
    /// Passed on, from tc on departure, to the tx queue that the lowest bits of its destination port name. Packets have Ethernet and IPv4 headers.
    ByPort {
        mask: u16,
    },
    /// Passed on, from tc, with the tag that follows the last packet's and this class: all tags are used in turn.
    Forge(u32),
}

pub struct Program {
    hook: Hook,
    program: OwnedFd,
    counter: OwnedFd,
}

/// An attachment; dropping it detaches the program.
pub struct Attached(#[expect(dead_code, reason = "closing it detaches")] OwnedFd);

fn owned(what: &str, fd: i32) -> OwnedFd {
    assert!(fd >= 0, "{what}: {}", io::Error::from_raw_os_error(-fd));
    // SAFETY: the kernel has just given us this descriptor.
    unsafe { OwnedFd::from_raw_fd(fd) }
}

fn insn(code: u32, dst: u32, src: u32, imm: i32) -> bpf_insn {
    let registers = bpf_insn::new_bitfield_1(dst as u8, src as u8);
    bpf_insn { code: code as u8, _bitfield_1: registers, imm, ..bpf_insn::default() }
}

impl Program {
    pub fn new(hook: Hook, verdict: Verdict) -> Program {
        // SAFETY: the name is a C string, and no options are the defaults.
        let counter = unsafe { bpf_map_create(BPF_MAP_TYPE_ARRAY, c"foreign".as_ptr(), 4, 8, 1, std::ptr::null()) };
        let counter = owned("a map", counter);
        let mov = |register, value| insn(BPF_ALU64 | BPF_MOV | BPF_K, register, 0, value);
        let mut code = vec![
            insn(BPF_LD | BPF_IMM | BPF_DW, BPF_REG_1, BPF_PSEUDO_MAP_VALUE, counter.as_raw_fd()),
            bpf_insn::default(),
            mov(BPF_REG_2, 1),
            insn(BPF_STX | BPF_ATOMIC | BPF_DW, BPF_REG_1, BPF_REG_2, BPF_ADD as i32),
        ];
        match (verdict, hook) {
            (Verdict::Pass, Hook::Xdp) => code.push(mov(BPF_REG_0, XDP_PASS as i32)),
            (Verdict::Pass, _) => code.push(mov(BPF_REG_0, NEXT)),
            (Verdict::Drop, Hook::Xdp) => code.push(mov(BPF_REG_0, XDP_DROP as i32)),
            (Verdict::Drop, _) => code.push(mov(BPF_REG_0, SHOT)),
            (Verdict::Forge(class), _) => {
                // The counter's former value is the tag.
                code = vec![
                    insn(BPF_ALU64 | BPF_MOV | BPF_X, BPF_REG_6, BPF_REG_1, 0),
                    code[0],
                    code[1],
                    mov(BPF_REG_2, 1),
                    insn(BPF_STX | BPF_ATOMIC | BPF_DW, BPF_REG_1, BPF_REG_2, (BPF_ADD | BPF_FETCH) as i32),
                    insn(BPF_ALU64 | BPF_LSH | BPF_K, BPF_REG_2, 0, 6),
                    insn(BPF_ALU64 | BPF_OR | BPF_K, BPF_REG_2, 0, class as i32),
                    insn(BPF_ALU64 | BPF_AND | BPF_K, BPF_REG_2, 0, 0xffff),
                    bpf_insn { off: TC_INDEX, ..insn(BPF_STX | BPF_MEM | BPF_W, BPF_REG_6, BPF_REG_2, 0) },
                    mov(BPF_REG_0, NEXT),
                ];
            }
            (Verdict::ByPort { mask }, _) => {
                code = vec![
                    insn(BPF_ALU64 | BPF_MOV | BPF_X, BPF_REG_6, BPF_REG_1, 0),
                    insn(BPF_LD | BPF_ABS | BPF_H, 0, 0, DESTINATION_PORT),
                    insn(BPF_ALU64 | BPF_AND | BPF_K, BPF_REG_0, 0, i32::from(mask)),
                    // The kernel takes one less for the number of the queue (skb_tx_hash).
                    insn(BPF_ALU64 | BPF_ADD | BPF_K, BPF_REG_0, 0, 1),
                    bpf_insn { off: QUEUE_MAPPING, ..insn(BPF_STX | BPF_MEM | BPF_W, BPF_REG_6, BPF_REG_0, 0) },
                    mov(BPF_REG_0, NEXT),
                ];
            }
            (Verdict::Redirect(to), _) => code.extend([
                mov(BPF_REG_1, to as i32),
                mov(BPF_REG_2, 0),
                insn(BPF_JMP | BPF_CALL, 0, 0, BPF_FUNC_redirect as i32),
            ]),
        }
        code.push(insn(BPF_JMP | BPF_EXIT, 0, 0, 0));
        // SAFETY: the code is as long as it says, the texts are C strings, and no options are the defaults.
        let program = unsafe {
            let (name, license) = (c"foreign".as_ptr(), c"GPL".as_ptr());
            let length = code.len() as size_t;
            bpf_prog_load(hook.program_type(), name, license, code.as_ptr(), length, std::ptr::null_mut())
        };
        Program { hook, program: owned("a program", program), counter }
    }

    /// Attaches it to an interface by a link. The error is the kernel's.
    pub fn try_attach(&self, ns: &Ns, dev: &str) -> io::Result<Attached> {
        let ifindex = ns.ifindex(dev) as i32;
        let (program, kind) = (self.program.as_raw_fd(), self.hook.link_type());
        // SAFETY: the descriptor is open, and no options are the defaults.
        let fd = ns.inside(|| unsafe { bpf_link_create(program, ifindex, kind, std::ptr::null()) });
        if fd < 0 { Err(io::Error::from_raw_os_error(-fd)) } else { Ok(Attached(owned("a link", fd))) }
    }

    #[track_caller]
    pub fn attach(&self, ns: &Ns, dev: &str) -> Attached {
        self.try_attach(ns, dev).unwrap_or_else(|error| panic!("attaching to {dev}: {error}"))
    }

    /// Attaches it as `ip link set dev DEV xdp` does: it stays until it is taken off, or the interface goes.
    pub fn try_set(&self, ns: &Ns, dev: &str, flags: u32) -> io::Result<()> {
        let (program, ifindex) = (self.program.as_raw_fd(), ns.ifindex(dev) as i32);
        // SAFETY: the descriptor is open, and no options are the defaults.
        let result = ns.inside(|| unsafe { bpf_xdp_attach(ifindex, program, flags, std::ptr::null()) });
        if result < 0 { Err(io::Error::from_raw_os_error(-result)) } else { Ok(()) }
    }

    /// Runs `work` while a file in bpffs names the program.
    pub fn pinned<T>(&self, work: impl FnOnce(&str) -> T) -> T {
        let path = format!("/sys/fs/bpf/slt-{}-{}", std::process::id(), self.program.as_raw_fd());
        let name = CString::new(path.as_str()).expect("no NUL");
        // SAFETY: the descriptor is open and the name is a C string.
        let result = unsafe { bpf_obj_pin(self.program.as_raw_fd(), name.as_ptr()) };
        assert!(result == 0, "pinning {path}: {}", io::Error::from_raw_os_error(-result));
        let _unpin = Unpin(&path);
        work(&path)
    }

    /// Packets that the program has seen.
    pub fn seen(&self) -> u64 {
        let (key, mut value) = (0u32, 0u64);
        // SAFETY: key and value are as long as the map's.
        let result =
            unsafe { bpf_map_lookup_elem(self.counter.as_raw_fd(), (&raw const key).cast(), (&raw mut value).cast()) };
        assert!(result == 0, "reading a counter: {}", io::Error::from_raw_os_error(-result));
        value
    }
}

struct Unpin<'a>(&'a str);

impl Drop for Unpin<'_> {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(self.0);
    }
}
