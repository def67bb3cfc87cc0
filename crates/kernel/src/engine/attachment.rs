//! The parts of a managed interface in the kernel: devices, objects, queues, hooks. Each is made by one function and
//! removed by another, which takes what it finds, so that an attempt that died halfway is cleaned up alike.

use crate::bpf::hooks::{self, Point, Side};
use crate::bpf::object::{self, HashKeys, Loader};
use crate::engine::htb::{self, Leaves, Target};
use crate::engine::{features, leaves};
use crate::error::{Doing, Error, Kind, Result};
use crate::fault;
use crate::maps::arrivals;
use crate::record::{Engine, Hook, Record};
use crate::system::interface::Interface;
use crate::system::{bpffs, iproute, paths, qdiscs};
use sluice_abi as abi;
use sluice_policy::{Rate, Resolved, ResolvedClass};
use std::fs;
use std::io;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

/// Handle of mq where its children are ours.
const MQ_HANDLE: &str = "5100:";
/// The group of the devices that we make, by which they are known from others. Unlike an alias it is there from the start.
const GROUP: u32 = 5100;
/// How long a queue of HTB may take to run empty before it is made anew.
const SOON_EMPTY: Duration = Duration::from_millis(100);
/// Names tried for the qdisc type, which is one for all network namespaces.
const QDISC_NAMES: u32 = 256;

/// Makes the devices that the plan needs, up and empty.
///
/// Programs know them by number: one that was deleted is made again with the number that is on record.
pub(crate) fn make_devices(record: &mut Record) -> Result<()> {
    // What is more than one segment does not fit it, so the stack splits it.
    if record.split {
        let number = make_ifb(&record.split_device(), "gso_max_segs 1 txqueuelen 10000", record.split_ifindex)?;
        record.split_ifindex = Some(number);
    }
    if record.ingress_rate_bps.is_some() {
        record.ingress_ifindex = Some(make_ifb(&record.ingress_device(), "", record.ingress_ifindex)?);
    }
    Ok(())
}

fn make_ifb(name: &str, options: &str, number: Option<u32>) -> Result<u32> {
    if nix::net::if_::if_nametoindex(name).is_err() {
        let number = number.map_or(String::new(), |number| format!("index {number} "));
        iproute::ip(&format!("link add name {name} {number}group {GROUP} type ifb"))?;
    } else if !is_our_ifb(name)? {
        return Err(Error::input(format!(
            "there is a device `{name}` that sluice has not made, and sluice needs the name"
        ))
        .help(format!(
            "give it another name (ip link set dev {name} name OTHER), or remove it (ip link del dev {name})"
        )));
    }
    iproute::ip(&format!("link set dev {name} {options} up"))?;
    ifindex(name)
}

/// Removes a device that we have made; one of somebody else stays.
pub(crate) fn remove_device(name: &str) -> Result<()> {
    if nix::net::if_::if_nametoindex(name).is_err() || !is_our_ifb(name)? {
        return Ok(());
    }
    iproute::ip(&format!("link del dev {name}")).map(drop)
}

/// Whether a device is there, and ours.
pub(crate) fn is_our_device(name: &str) -> bool {
    nix::net::if_::if_nametoindex(name).is_ok() && is_our_ifb(name).unwrap_or(false)
}

fn is_our_ifb(name: &str) -> Result<bool> {
    Ok(!iproute::ip(&format!("-o link show dev {name} group {GROUP} type ifb"))?.trim().is_empty())
}

fn ifindex(name: &str) -> Result<u32> {
    nix::net::if_::if_nametoindex(name).doing(|| format!("looking for {name}"))
}

/// Loads the programs that the record calls for, and pins them with their maps. Sets the name of the qdisc type.
pub(crate) fn load(
    record: &mut Record,
    interface: &Interface,
    policy: &Resolved,
    tcx: bool,
    pins: &Path,
) -> Result<()> {
    bpffs::own_directory(pins)?;
    let ingress_ifb = if record.ingress_rate_bps.is_some() { ifindex(&record.ingress_device())? } else { 0 };
    let split_ifb = if record.split { ifindex(&record.split_device())? } else { 0 };
    let l3 = u32::from(!interface.ethernet);

    let keys = HashKeys::random()?;
    let netns = record.netns as u32;
    let mut loader = Loader::classifier()?;
    loader.hash_keys(&keys)?;
    loader.use_map("arrivals", &arrivals::pinned()?)?;
    loader.constant("sl_netns", netns)?;
    loader.constant("sl_l3_type", l3)?;
    // Before tcx came programs could not redirect to an ifb: a filter of its own does.
    loader.constant("sl_ingress_ifb", if tcx { ingress_ifb } else { 0 })?;
    loader.constant("sl_ingress_by_filter", u32::from(ingress_ifb != 0 && !tcx))?;
    loader.constant("sl_split_ifb", split_ifb)?;
    // Other engines know no hosts.
    let behind_nat = record.engine == Engine::Qdisc && policy.knows_hosts() && features::looks_up_connections();
    loader.constant("sl_look_behind_nat", u32::from(behind_nat))?;
    loader.own_flow_table(policy.flows)?;
    loader.only(&programs(record));
    let mut classifier = loader.load(paths::run())?;
    object::pin_maps(&mut classifier, pins)?;
    object::pin_programs(&classifier, pins)?;

    if record.engine != Engine::Qdisc {
        return Ok(());
    }
    // The root or mq's children, the ingress device, and one spare: `tc qdisc replace` makes the new before it ends the old.
    let instances = record.queues.max(1) + u32::from(ingress_ifb != 0) + 1;
    let taken: Vec<String> = Record::all()?.into_iter().map(|other| other.qdisc).collect();
    for n in 0..QDISC_NAMES {
        let name = format!("sluice{n}");
        if taken.contains(&name) && record.qdisc != name {
            continue;
        }
        let mut loader = Loader::qdisc()?;
        loader.hash_keys(&keys)?;
        loader.constant("sl_netns", netns)?;
        loader.constant("sl_l3_type", l3)?;
        loader.constant("sl_ingress_ifb", ingress_ifb)?;
        loader.constant("sl_split_ifb", split_ifb)?;
        let marks = [(record.split || record.marks, abi::SL_EGRESS), (ingress_ifb != 0, abi::SL_INGRESS)];
        loader.constant("sl_marks", marks.iter().map(|(does, direction)| u32::from(*does) << direction).sum())?;
        loader.flow_table(policy.flows)?;
        loader.constant("sl_instances", instances)?;
        loader.constant("sl_frame_bytes", interface.mtu_bytes + interface.header_bytes() + 4)?;
        loader.entries("state", instances)?;
        loader.entries("packets", instances * abi::SL_SLOTS)?;
        loader.qdisc_name(&name)?;
        loader.share(pins)?;
        fault::step("load", "qdisc").map_err(|error| Error { kind: Kind::Unsupported, ..error })?;
        let mut qdisc = loader.load(paths::run())?;
        let registered = {
            let mut ops = libbpf_rs_map(&mut qdisc)?;
            ops.attach_struct_ops()
        };
        let mut link = match registered {
            Ok(link) => link,
            Err(error) if error.kind() == libbpf_rs::ErrorKind::AlreadyExists => continue,
            Err(error) => return Err(Error::system(format!("registering the qdisc {name}: {error}"))),
        };
        object::pin_maps(&mut qdisc, pins)?;
        link.pin(pins.join("qdisc")).doing(|| format!("pinning {}", pins.join("qdisc").display()))?;
        record.qdisc = name;
        return Ok(());
    }
    Err(Error::system(format!("all {QDISC_NAMES} names for a qdisc are taken"))
        .help("`sluice status` lists the managed interfaces"))
}

fn libbpf_rs_map(object: &mut libbpf_rs::Object) -> Result<libbpf_rs::MapMut<'_>> {
    use libbpf_rs::MapCore;
    object.maps_mut().find(|map| map.name() == "sluice").ok_or_else(|| Error::system("the BPF object has no qdisc"))
}

/// Whether the programs of a record are those of this command.
pub(crate) fn runs_own_programs(record: &Record) -> bool {
    record.program.as_deref() == Some(object::digest().as_str())
}

fn programs(record: &Record) -> Vec<&'static str> {
    let mut programs = vec!["sl_ingress"];
    if record.hook == Hook::Xdp {
        programs.push("sl_xdp");
    }
    match record.engine {
        Engine::None => programs.push("sl_egress"),
        Engine::Qdisc => programs.extend(["sl_split", "sl_mark"]),
        Engine::Tc => programs.extend(["sl_split", "sl_htb_egress", "sl_htb_ingress"]),
    }
    programs
}

/// Puts the queues of departing packets in place of what is there; packets flow all the while.
pub(crate) fn install_queues(record: &Record, policy: &Resolved, pins: &Path, header_bytes: u32) -> Result<()> {
    let dev = &record.interface;
    match record.engine {
        Engine::None => Ok(()),
        Engine::Qdisc if record.queues == 0 => {
            iproute::tc(&format!("qdisc replace dev {dev} root {}", record.qdisc)).map(drop)
        }
        Engine::Qdisc => {
            iproute::tc(&format!("qdisc replace dev {dev} root handle {MQ_HANDLE} mq"))?;
            install_children(record, &(1..=record.queues).collect::<Vec<_>>())
        }
        Engine::Tc => install_htb(record, dev, policy, policy.link_rate, pins, "sl_htb_egress", header_bytes),
    }
}

/// Puts schedulers below mq, at these queues.
pub(crate) fn install_children(record: &Record, queues: &[u32]) -> Result<()> {
    let (dev, qdisc) = (&record.interface, &record.qdisc);
    let lines = queues.iter().map(|n| format!("qdisc replace dev {dev} parent {MQ_HANDLE}{n:x} {qdisc}"));
    iproute::tc_batch(&lines.collect::<Vec<_>>())
}

/// Puts the queues of arriving packets on their device.
pub(crate) fn install_ingress_queues(record: &Record, policy: &Resolved, pins: &Path, header_bytes: u32) -> Result<()> {
    let (Some(rate), dev) = (record.ingress_rate_bps, record.ingress_device()) else { return Ok(()) };
    match record.engine {
        Engine::None => Ok(()),
        Engine::Qdisc => iproute::tc(&format!("qdisc replace dev {dev} root {}", record.qdisc)).map(drop),
        Engine::Tc => install_htb(record, &dev, policy, Some(Rate(rate)), pins, "sl_htb_ingress", header_bytes),
    }
}

/// What the kernel had for leaves when the interface came under management.
pub(crate) fn leaf_kinds(record: &Record) -> Leaves {
    Leaves { fq_codel: record.fq_codel, codel: record.codel }
}

fn install_htb(
    record: &Record,
    device: &str,
    policy: &Resolved,
    rate: Option<Rate>,
    pins: &Path,
    program: &str,
    header_bytes: u32,
) -> Result<()> {
    let target = Target { device, rate, header_bytes, leaves: leaf_kinds(record) };
    let mut lines = htb::build(policy, &target, true);
    lines.push(classifier_of_htb(device, pins, program));
    iproute::tc_batch(&lines)
}

/// Changes the hierarchies of HTB in place.
pub(crate) fn change_htb(record: &Record, policy: &Resolved, header_bytes: u32) -> Result<()> {
    for (device, rate) in htb_devices(record, policy) {
        let target = Target { device: &device, rate, header_bytes, leaves: leaf_kinds(record) };
        let before = iproute::tc(&format!("class show dev {device}"))?;
        iproute::tc_batch(&htb::build(policy, &target, false))?;
        htb::moved(&before, policy).into_iter().try_for_each(|class| take_new_priority(class, &target))?;
    }
    Ok(())
}

/// HTB leaves a class among those of its former priority until its queue is empty (htb_deactivate in sch_htb.c). If that
/// does not happen soon, the queue is made anew, and what is in it is lost.
fn take_new_priority(class: &ResolvedClass, target: &Target<'_>) -> Result<()> {
    let until = Instant::now() + SOON_EMPTY;
    while leaves::queued_pkts(target.device, class.id.0)? > 0 {
        if Instant::now() > until {
            return iproute::tc_batch(&htb::renew_leaf(class, target));
        }
        thread::sleep(Duration::from_millis(2));
    }
    Ok(())
}

/// Removes HTB classes that the policy does not have, to which no packet is sent any more.
pub(crate) fn prune_htb(record: &Record, policy: &Resolved) -> Result<()> {
    for (device, _) in htb_devices(record, policy) {
        iproute::tc_batch(&htb::remove(&htb_minors(&device)?, policy, &device))?;
    }
    Ok(())
}

/// The first device whose HTB classes are not those of the policy.
pub(crate) fn wrong_htb(record: &Record, policy: &Resolved) -> Result<Option<String>> {
    for (device, _) in htb_devices(record, policy) {
        if htb_minors(&device)? != htb::minors(policy) {
            return Ok(Some(device));
        }
    }
    Ok(None)
}

fn htb_minors(device: &str) -> Result<Vec<u32>> {
    Ok(htb::minors_shown(&iproute::tc(&format!("class show dev {device}"))?))
}

fn htb_devices(record: &Record, policy: &Resolved) -> Vec<(String, Option<Rate>)> {
    let mut devices = vec![(record.interface.clone(), policy.link_rate)];
    devices.extend(record.ingress_rate_bps.map(|bps| (record.ingress_device(), Some(Rate(bps)))));
    devices
}

/// Sends what may be a super-packet through the splitter.
pub(crate) fn install_splitter(record: &mut Record, pins: &Path) -> Result<()> {
    claim_clsact(record)?;
    let action = format!("action mirred egress redirect dev {}", record.split_device());
    hooks::set_filter(&record.interface, Side::Egress, &pins.join("sl_split"), &action)
}

/// Adds clsact where nobody has. That it is ours is on record before it is there.
fn claim_clsact(record: &mut Record) -> Result<()> {
    if !qdiscs::has_clsact(&record.interface)? {
        record.made_clsact = true;
        record.save()?;
        hooks::add_clsact(&record.interface)?;
    }
    Ok(())
}

/// Attaches the hooks that classify: on arrival always, on departure where nothing queues. What the kernel lacks is
/// replaced by the next best; `notes` says so. Sets what the record must know.
pub(crate) fn install_hooks(record: &mut Record, tcx: bool, pins: &Path, notes: &mut Vec<String>) -> Result<()> {
    attach_xdp(record, pins, notes)?;
    attach_hook(record, tcx, Side::Ingress, pins)?;
    attach_hook(record, tcx, Side::Egress, pins)
}

/// Attaches the XDP program, if there shall be one.
pub(crate) fn attach_xdp(record: &mut Record, pins: &Path, notes: &mut Vec<String>) -> Result<()> {
    if record.hook == Hook::Xdp {
        let attached = hooks::attach(&pins.join("sl_xdp"), record.ifindex, Point::Xdp, &pins.join("link_xdp"))?;
        if let Err(error) = attached {
            notes.push(no_xdp(&record.interface, &error));
            record.hook = Hook::Tc;
        }
    }
    Ok(())
}

/// Attaches the program of a side, if there shall be one.
pub(crate) fn attach_hook(record: &mut Record, tcx: bool, side: Side, pins: &Path) -> Result<()> {
    let program = match side {
        Side::Ingress => "sl_ingress",
        Side::Egress if record.engine == Engine::None => "sl_egress",
        Side::Egress if record.marks => "sl_mark",
        Side::Egress => return Ok(()),
    };
    tc_hook(record, tcx, side, program, pins)
}

fn no_xdp(interface: &str, error: &io::Error) -> String {
    if matches!(error.raw_os_error(), Some(libc::EBUSY | libc::EEXIST)) {
        return format!(
            "{interface}: another XDP program is attached, and stays; arriving packets are classified by tc, behind it. For XDP, \
             detach it (`ip link set dev {interface} xdp off`), then `sluice down {interface}` and `up` again"
        );
    }
    format!("{interface}: the driver takes no XDP program ({error}); arriving packets are classified by tc")
}

fn tc_hook(record: &mut Record, tcx: bool, side: Side, program: &str, pins: &Path) -> Result<()> {
    let (point, link) = match side {
        Side::Ingress => (Point::TcxIngress, "link_ingress"),
        Side::Egress => (Point::TcxEgress, "link_egress"),
    };
    // What arrives is taken away to be queued: other people's filters must have seen it before.
    let behind_others =
        side == Side::Ingress && record.ingress_rate_bps.is_some() && hooks::has_filters(&record.interface, side)?;
    if tcx && !behind_others {
        return hooks::attach(&pins.join(program), record.ifindex, point, &pins.join(link))?
            .doing(|| format!("attaching {program} to {}", record.interface));
    }
    claim_clsact(record)?;
    hooks::set_filter(&record.interface, side, &pins.join(program), "")?;
    if side == Side::Ingress && record.ingress_rate_bps.is_some() && !tcx {
        hooks::set_redirect(&record.interface, &record.ingress_device())?;
    }
    Ok(())
}

/// Detaches the hooks that links hold, which are to be attached anew.
pub(crate) fn remove_links(pins: &Path) -> Result<()> {
    ["link_xdp", "link_ingress", "link_egress"].iter().try_for_each(|link| hooks::detach(&pins.join(link)))
}

/// Puts the classifiers of HTB in place of those that are there.
pub(crate) fn renew_classifiers(record: &Record, pins: &Path) -> Result<()> {
    iproute::tc_batch(&[classifier_of_htb(&record.interface, pins, "sl_htb_egress")])?;
    if record.ingress_rate_bps.is_some() {
        iproute::tc_batch(&[classifier_of_htb(&record.ingress_device(), pins, "sl_htb_ingress")])?;
    }
    Ok(())
}

fn classifier_of_htb(device: &str, pins: &Path, program: &str) -> String {
    format!(
        "filter replace dev {device} parent {0} protocol all pref 1 handle 1 bpf direct-action object-pinned {1} classid {0}",
        htb::HANDLE,
        pins.join(program).display()
    )
}

/// Takes every hook off the interface.
pub(crate) fn remove_hooks(record: &Record, pins: &Path) -> Result<()> {
    remove_links(pins)?;
    remove_links(&record.new_pins(&bpffs::root()?))?;
    hooks::clear_filter(&record.interface, Side::Ingress)?;
    hooks::clear_filter(&record.interface, Side::Egress)?;
    if record.made_clsact {
        hooks::remove_unused_clsact(&record.interface)?;
    }
    Ok(())
}

/// Takes our queues off the interface; the kernel puts its default in their place.
pub(crate) fn remove_queues(record: &Record) -> Result<()> {
    match qdiscs::root(&record.interface)? {
        // An upgrade that was interrupted may have left one of another name.
        Some(root) if is_ours(record, &root) || (record.engine == Engine::Qdisc && is_our_kind(&root.kind)) => {
            iproute::tc(&format!("qdisc del dev {} root", record.interface)).map(drop)
        }
        _ => Ok(()),
    }
}

/// Whether a root qdisc is what this record would have put there.
pub(crate) fn is_ours(record: &Record, root: &qdiscs::Qdisc) -> bool {
    match record.engine {
        Engine::Qdisc => {
            root.kind == record.qdisc || (record.queues > 0 && root.kind == "mq" && root.handle == MQ_HANDLE)
        }
        Engine::Tc => root.kind == "htb" && root.handle == htb::HANDLE,
        Engine::None => false,
    }
}

/// Whether this is a name that we give to qdisc types.
pub(crate) fn is_our_kind(kind: &str) -> bool {
    kind.strip_prefix("sluice").is_some_and(|n| n.parse().is_ok_and(|n: u32| n < QDISC_NAMES))
}

/// Whether a root qdisc is one of ours, of whatever record.
pub(crate) fn is_made_by_us(root: &qdiscs::Qdisc) -> bool {
    let number = root.kind.strip_prefix("sluice");
    let handle = |kind: &str, handle: &str| root.kind == kind && root.handle == handle;
    number.is_some_and(|number| number.parse::<u32>().is_ok()) || handle("mq", MQ_HANDLE) || handle("htb", htb::HANDLE)
}

/// Takes off an interface what its record would have told of, had it not been lost.
pub(crate) fn remove_remains(record: &Record, pins: &Path) -> Result<()> {
    // Whether clsact was there before, nobody knows any more: one that is used stays.
    let record = Record { made_clsact: qdiscs::has_clsact(&record.interface)?, ..record.clone() };
    remove_hooks(&record, pins)?;
    iproute::tc(&format!("qdisc del dev {} root", record.interface))?;
    remove_device(&record.ingress_device())?;
    remove_device(&record.split_device())?;
    remove_pins(pins)
}

/// Removes every pin.
pub(crate) fn remove_pins(pins: &Path) -> Result<()> {
    match fs::remove_dir_all(pins) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(error).doing(|| format!("removing {}", pins.display()))
        }
        _ => Ok(()),
    }
}
