//! What this kernel can do, found out by asking it: types in its BTF, and qdiscs and devices tried in a network namespace
//! that nobody sees and that ends with the attempt.

use crate::error::{Error, Result};
use crate::iproute;
use libbpf_rs::btf::Btf;
use libbpf_rs::btf::types::Struct;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

/// What matters to the choice of an engine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Features {
    /// Version as the kernel tells it.
    pub release: String,
    /// Whether the kernel describes its types, without which no program of ours loads.
    pub btf: bool,
    /// Whether qdiscs can be written in BPF (CONFIG_NET_SCH_BPF, from 6.16).
    pub bpf_qdisc: bool,
    /// Whether tc programs attach by links (tcx, from 6.6).
    pub tcx: bool,
    /// Whether it has HTB.
    pub htb: bool,
    /// Whether it has fq_codel.
    pub fq_codel: bool,
    /// Whether it has the hook qdisc.
    pub clsact: bool,
    /// Whether it has intermediate functional block devices.
    pub ifb: bool,
}

impl Features {
    /// Asks the kernel that runs.
    pub fn probe() -> Result<Features> {
        let btf = Btf::from_vmlinux().ok();
        let has = |name: &str| btf.as_ref().is_some_and(|btf| btf.type_by_name::<Struct<'_>>(name).is_some());
        Ok(Features {
            release: nix::sys::utsname::uname()
                .map(|name| name.release().to_string_lossy().into_owned())
                .unwrap_or_default(),
            btf: btf.is_some(),
            bpf_qdisc: has("bpf_struct_ops_Qdisc_ops"),
            tcx: has("tcx_link"),
            htb: tries("tc", "qdisc add dev lo root handle 1: htb")?,
            fq_codel: tries("tc", "qdisc add dev lo root fq_codel")?,
            clsact: tries("tc", "qdisc add dev lo clsact")?,
            ifb: tries("ip", "link add probe0 type ifb")?,
        })
    }
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
