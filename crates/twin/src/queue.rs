//! The tree of classes as a qdisc (`bpf/tree.bpf.c`), while the value lives.

use crate::Error;
use crate::kernel::Mapping;
use libbpf_rs::{Link, MapCore, MapFlags, Object, ObjectBuilder};
use rand::TryRngCore;
use rand::rngs::OsRng;
use sluice_abi as abi;
use std::mem::offset_of;
use std::os::fd::AsFd;
use std::sync::atomic::Ordering;

const OBJECT: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/tree.bpf.o"));
const KEY: [u8; 4] = [0; 4];

/// A type of qdisc for one interface, whose leaves are found by the destinations of packets.
pub struct TreeQueue {
    object: Object,
    _link: Link,
}

impl TreeQueue {
    /// Registers the type under a name of at most 15 bytes, which `tc qdisc add dev DEV root NAME` puts in place. From Linux 6.17.
    pub fn register(name: &str, tree: &abi::sl_tree, addresses: &abi::sl_addresses) -> Result<TreeQueue, Error> {
        let mut open = ObjectBuilder::default().open_memory(OBJECT)?;
        for mut map in open.maps_mut() {
            let is = map.name().to_string_lossy().into_owned();
            let Some(bytes) = map.initial_value_mut() else { continue };
            match is.as_str() {
                ".data.hash" => OsRng
                    .try_fill_bytes(&mut bytes[..8 * abi::SL_HASH_KEYS as usize])
                    .map_err(|error| Error(error.to_string()))?,
                "sluice" => {
                    bytes[..16].fill(0);
                    bytes[..name.len()].copy_from_slice(name.as_bytes());
                }
                _ => {}
            }
        }
        let mut object = open.load()?;
        let update = |map: &str, bytes: &[u8]| {
            let map = object.maps().find(|of| of.name() == map).expect("the object has it");
            map.update(&KEY, bytes, MapFlags::ANY)
        };
        update("tree", abi::bytes_of(tree))?;
        update("addresses", abi::bytes_of(addresses))?;
        let link = {
            let mut ops = object.maps_mut().find(|map| map.name() == "sluice").expect("the object has it");
            ops.attach_struct_ops()?
        };
        Ok(TreeQueue { object, _link: link })
    }

    /// The state of the tree.
    pub fn tree(&self) -> Result<Box<abi::sl_tree>, Error> {
        let map = self.object.maps().find(|map| map.name() == "tree").expect("the object has it");
        let bytes = map.lookup(&KEY, MapFlags::ANY)?.unwrap_or_default();
        abi::read_pod(&bytes).ok_or_else(|| Error("the tree in the kernel has another size".to_owned()))
    }

    /// Lets no packet out before a time of the monotonic clock, in ns below 2^58; `None`: lets packets out from now on. The next arrival sets off
    /// those that wait. Only the link's ceiling is written, by one store beside running programs.
    pub fn hold(&self, until_ns: Option<u64>) -> Result<(), Error> {
        let map = self.object.maps().find(|map| map.name() == "tree").expect("the object has it");
        let tree = Mapping::of(map.as_fd(), size_of::<abi::sl_tree>())?;
        let link = offset_of!(abi::sl_tree, node) + abi::SL_FIRST_INNER as usize * size_of::<abi::sl_node>();
        let full = link + offset_of!(abi::sl_node, bucket) + offset_of!(abi::sl_node_bucket, tat_64ths);
        tree.words()[full / size_of::<u64>()].store(until_ns.unwrap_or(0) << 6, Ordering::Relaxed);
        Ok(())
    }
}
