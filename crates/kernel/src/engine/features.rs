//! The features of this kernel, found by asking it: types in its BTF, a program that its verifier takes or not, and qdiscs and
//! devices that are tried in a network namespace which ends with the attempt.

use crate::system::{iproute, paths};
use libbpf_rs::btf::Btf;
use libbpf_rs::btf::types::{Func, Struct};
use serde::{Deserialize, Serialize};
use sluice_error::{Error, Result};
use std::fs;
use std::os::fd::{FromRawFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};

/// Kernel features that matter to the choice of an engine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Features {
    /// Kernel version, as uname(2) has it.
    pub release: String,
    /// Whether the kernel describes its types, without which no program of ours loads.
    pub btf: bool,
    /// Whether qdiscs can be written in BPF (CONFIG_NET_SCH_BPF, from 6.16) and read packets (from 6.17).
    pub bpf_qdisc: bool,
    /// Whether tc programs attach by links (tcx, from 6.6).
    pub tcx: bool,
    /// Whether the kernel has HTB.
    pub htb: bool,
    /// Whether the kernel has fq_codel.
    pub fq_codel: bool,
    /// Whether the kernel has codel.
    pub codel: bool,
    /// Whether the kernel has clsact, the hook qdisc.
    pub clsact: bool,
    /// Whether the kernel has intermediate functional block devices (ifb).
    pub ifb: bool,
    /// Whether the kernel has the action skbedit, which chooses a packet's tx queue.
    pub skbedit: bool,
}

/// The features that were found since this boot.
#[derive(Serialize, Deserialize)]
struct Remembered {
    /// /proc/sys/kernel/random/boot_id
    boot: String,
    features: Features,
}

/// Name of the file beside the records that keeps the features found.
const REMEMBERED: &str = "features";

impl Features {
    /// The features found since this boot, or those of a new probe. A kernel that has every feature keeps them, so it is probed once;
    /// a kernel that lacks one may get a module any time, and is probed each time.
    pub fn known() -> Result<Features> {
        let path = paths::run().join(REMEMBERED);
        let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
        let remembered = fs::read(&path).ok().and_then(|bytes| serde_json::from_slice::<Remembered>(&bytes).ok());
        if let Some(remembered) = remembered.filter(|remembered| !boot.is_empty() && remembered.boot == boot) {
            return Ok(remembered.features);
        }
        let features = Features::probe()?;
        if features.is_complete() {
            // A process that cannot write the file probes again next time.
            let text = serde_json::to_vec(&Remembered { boot, features: features.clone() }).unwrap_or_default();
            let fresh = path.with_extension("new");
            let _ = fs::write(&fresh, text).and_then(|()| fs::rename(&fresh, &path));
        }
        Ok(features)
    }

    /// Whether no feature is missing that a module could bring.
    fn is_complete(&self) -> bool {
        let Features { release: _, btf, bpf_qdisc: _, tcx: _, htb, fq_codel, codel, clsact, ifb, skbedit } = self;
        *btf && *htb && *fq_codel && *codel && *clsact && *ifb && *skbedit
    }

    /// The features that the kernel's types tell, without root; all others are assumed to be there.
    pub(crate) fn by_types() -> Features {
        let btf = Btf::from_vmlinux().ok();
        let has = |name: &str| btf.as_ref().is_some_and(|btf| btf.type_by_name::<Struct<'_>>(name).is_some());
        Features {
            release: release(),
            btf: btf.is_some(),
            bpf_qdisc: has("bpf_struct_ops_Qdisc_ops") && btf.as_ref().is_some_and(reads_untrusted),
            tcx: has("tcx_link"),
            htb: true,
            fq_codel: true,
            codel: true,
            clsact: true,
            ifb: true,
            skbedit: true,
        }
    }

    /// Probes the running kernel.
    pub fn probe() -> Result<Features> {
        Ok(Features {
            htb: tries("tc", "qdisc add dev lo root handle 1: htb")?,
            fq_codel: tries("tc", "qdisc add dev lo root fq_codel")?,
            codel: tries("tc", "qdisc add dev lo root codel")?,
            clsact: tries("tc", "qdisc add dev lo clsact")?,
            ifb: tries("ip", "link add probe0 type ifb")?,
            skbedit: tries("tc", "actions add action skbedit queue_mapping 0")?,
            ..Features::by_types()
        })
    }
}

/// The kernel's version, as uname(2) has it.
fn release() -> String {
    nix::sys::utsname::uname().map(|name| name.release().to_string_lossy().into_owned()).unwrap_or_default()
}

/// Whether programs may read memory by an untrusted pointer, as packet pointers are in a qdisc: the verifier takes such a read
/// from 6.17 on. The probe loads the smallest program with such a read, and unloads it at once.
fn reads_untrusted(btf: &Btf<'_>) -> bool {
    use libbpf_sys::*;
    let Some(cast) = btf.type_by_name::<Func<'_>>("bpf_rdonly_cast") else { return false };
    let insn = |code: u32, dst: u32, src: u32, imm: u32| bpf_insn {
        code: code as u8,
        _bitfield_1: bpf_insn::new_bitfield_1(dst as u8, src as u8),
        imm: imm as i32,
        ..bpf_insn::default()
    };
    let program = [
        insn(BPF_ALU64 | BPF_MOV | BPF_K, BPF_REG_2, 0, 0),
        // The call is bpf_rdonly_cast(context, 0): a pointer to bytes, of no type.
        insn(BPF_JMP | BPF_CALL, 0, BPF_PSEUDO_KFUNC_CALL, cast.type_id().into()),
        insn(BPF_LDX | BPF_MEM | BPF_B, BPF_REG_0, BPF_REG_0, 0),
        insn(BPF_JMP | BPF_EXIT, 0, 0, 0),
    ];
    // SAFETY: the program is as long as it says, the texts are C strings, and no options are the defaults.
    let fd = unsafe {
        bpf_prog_load(
            BPF_PROG_TYPE_SCHED_CLS,
            c"sl_probe".as_ptr(),
            c"GPL".as_ptr(),
            program.as_ptr(),
            program.len() as _,
            std::ptr::null_mut(),
        )
    };
    if fd >= 0 {
        // SAFETY: the kernel has just given us this descriptor.
        drop(unsafe { OwnedFd::from_raw_fd(fd) });
    }
    // Without the right to load programs (EPERM) there is no answer: loading our programs will report it.
    fd >= 0 || fd == -libc::EPERM
}

/// Whether programs can ask conntrack for a packet's connection: a module that describes its types brings the function along, and a
/// kernel with conntrack built in has it among its own. (Programs themselves can ask whether a function is there only from 6.2 on.)
pub(crate) fn looks_up_connections() -> bool {
    let is_there = |path: &str| Path::new(path).exists();
    let own = || Btf::from_vmlinux().is_ok_and(|btf| btf.type_by_name::<Func<'_>>("bpf_skb_ct_lookup").is_some());
    // A module that is built in has no state.
    let built_in = || is_there("/sys/module/nf_conntrack") && !is_there("/sys/module/nf_conntrack/initstate");
    is_there("/sys/kernel/btf/nf_conntrack") || built_in() && own()
}

/// Whether a command succeeds in a network namespace of its own.
fn tries(tool: &str, line: &str) -> Result<bool> {
    let mut command: Command = iproute::command(tool);
    command.args(line.split_whitespace()).stdout(Stdio::null()).stderr(Stdio::null());
    // SAFETY: unshare is one system call, and touches no memory of ours.
    unsafe {
        command.pre_exec(|| nix::sched::unshare(nix::sched::CloneFlags::CLONE_NEWNET).map_err(Into::into));
    }
    command.status().map(|status| status.success()).map_err(|error| match error.kind() {
        std::io::ErrorKind::PermissionDenied => Error::system(format!(
            "a network namespace to try `{tool} {line}` in cannot be made: {error}"
        ))
        .help("CAP_SYS_ADMIN is needed, and a service must be allowed network namespaces (RestrictNamespaces=net)"),
        _ => iproute::not_run(tool, &error),
    })
}
