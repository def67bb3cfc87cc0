//! The classifier, run on one packet: the classifier of an interface, or one that holds a policy and is attached nowhere.

use crate::bpf::object::Loader;
use crate::maps::{flows, shared, tables};
use crate::record::{Record, count};
use crate::status;
use crate::system::{bpffs, paths};
use libbpf_rs::{Map, MapCore, MapHandle, Object, ProgramInput};
use sluice_abi as abi;
use sluice_error::{Doing, Error, Result};
use sluice_policy::Resolved;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::time::Duration;

/// A loaded classifier.
pub struct Probe {
    object: Object,
}

/// Metadata of a packet that the host knows besides its bytes.
#[derive(Debug, Clone, Copy, Default)]
pub struct Metadata {
    /// `enum sl_direction`.
    pub direction: u32,
    /// Firewall mark.
    pub mark: u32,
    /// Number of the interface where the packet came in, 0: none.
    pub interface: u32,
    /// VLAN tag control information that the device has taken out of the frame.
    pub tag: Option<u16>,
}

impl Probe {
    /// A classifier with tables of its own, in memory: nothing is attached and no interface is touched.
    pub fn of_policy(policy: &Resolved, interfaces: &[(String, u32)]) -> Result<Probe> {
        let mut loader = Loader::classifier()?;
        loader.only(&["sl_explain", "sl_xdp"]);
        let probe = Probe { object: loader.load(paths::run())? };
        probe.hold(policy, interfaces, 1)?;
        Ok(probe)
    }

    /// The named programs of an object that includes the classifier, with a table for so many flows, 0: none.
    pub fn of_object(bytes: &[u8], programs: &[&str], flows: u32) -> Result<Probe> {
        let mut loader = Loader::own(bytes)?;
        loader.only(programs);
        loader.own_flow_table(flows)?;
        Ok(Probe { object: loader.load(paths::run())? })
    }

    /// Programs that are loaded already.
    pub(super) fn of_loaded(object: Object) -> Probe {
        Probe { object }
    }

    /// The loaded object.
    pub fn object(&self) -> &Object {
        &self.object
    }

    /// A classifier with the tables, flows and buckets of a managed interface, as they are now.
    pub fn of_interface(record: &Record) -> Result<Probe> {
        let mut loader = Loader::classifier()?;
        loader.only(&["sl_explain"]);
        loader.share(&record.pins(&bpffs::root()?))?;
        Ok(Probe { object: loader.load(paths::run())? })
    }

    /// Takes another policy, as an interface does on `apply`, while others run the program. Generations start at 1 and grow.
    pub fn hold(&self, policy: &Resolved, interfaces: &[(String, u32)], generation: u32) -> Result<()> {
        let buffer = generation % abi::SL_BUFFERS;
        let context = sluice_tables::Context {
            generation,
            buffer,
            egress_rate: policy.link_rate,
            ..sluice_tables::Context::ethernet(interfaces)
        };
        let compiled = sluice_tables::compile(policy, &context).map_err(|error| Error::input(error.to_string()))?;
        tables::stage_in(|name| self.map(name), |_| shared::full(), &compiled, buffer)?;
        tables::flip_in(|name| self.map(name), buffer, generation)?;
        tables::wait_for_readers();
        Ok(())
    }

    /// The classifier's answer for a frame, which is at least an Ethernet header. Nothing is counted.
    pub fn explain(&self, frame: &[u8], metadata: Metadata) -> Result<Box<abi::sl_explanation>> {
        let map = self.map("explanation")?;
        let mut asked = abi::boxed_zeroed::<abi::sl_explanation>();
        asked.tag = metadata.tag.map_or(abi::SL_NO_TAG, u32::from);
        asked.mark = metadata.mark;
        asked.interface = metadata.interface;
        asked.direction = metadata.direction;
        tables::write(&map, 0, &*asked)?;
        let answer = self.run("sl_explain", frame)? as i32;
        if answer < 0 {
            return Err(Error::system("the classifier has no tables"));
        }
        tables::read(&map, 0)
    }

    /// The class that the XDP program hands on; the program counts, remembers and polices as if it was attached. None: it leaves the
    /// packet to tc, since its policy asks for fields that XDP does not see.
    pub fn class_by_xdp(&self, frame: &[u8]) -> Result<Option<u8>> {
        let program = self.program("sl_xdp")?;
        let mut out = vec![0; frame.len() + 64];
        let input = ProgramInput { data_in: Some(frame), data_out: Some(&mut out), ..Default::default() };
        let output = program.test_run(input).doing(|| "running the classifier".to_owned())?;
        let handed = output.data.and_then(|data| abi::read_pod::<abi::sl_xdp_meta>(data.get(..8)?));
        let handed = handed.filter(|meta| meta.magic == abi::SL_XDP_MAGIC);
        Ok(handed.map(|meta| meta.handed as u8 & (abi::SL_CLASSES as u8 - 1)))
    }

    /// A runner of the XDP program, for any thread.
    pub fn runner(&self) -> Result<Runner> {
        let program = self.program("sl_xdp")?.as_fd().try_clone_to_owned();
        program.map(Runner).doing(|| "the program sl_xdp".to_owned())
    }

    /// Packets and bytes of a class that have passed the XDP program.
    pub fn passed(&self, class: u8) -> Result<(u64, u64)> {
        let counts = status::class_counts(&self.map("class_counts")?, abi::SL_INGRESS)?;
        let own = counts[usize::from(class)];
        let refused = |of: fn(&count::Count) -> u64| own.refused.iter().map(of).sum::<u64>();
        Ok((own.seen.pkts - refused(|count| count.pkts), own.seen.bytes - refused(|count| count.bytes)))
    }

    /// Time from the first packet of any flow in the table to the last, refused packets included: at most a tick of 2^20 ns too long.
    pub fn time_of_flows(&self) -> Result<Duration> {
        let flows = flows::read(&self.map("flows")?)?;
        let first_ns = flows.iter().map(|flow| flow.first_ns).min().unwrap_or(0);
        let last_ns = flows.iter().map(|flow| flow.last_ns).max().unwrap_or(0);
        Ok(Duration::from_nanos((last_ns + (1 << abi::SL_TICK_SHIFT)).saturating_sub(first_ns)))
    }

    fn program(&self, name: &str) -> Result<libbpf_rs::ProgramMut<'_>> {
        let found = self.object.progs_mut().find(|own| own.name() == name);
        found.ok_or_else(|| Error::system(format!("the BPF object has no program {name}")))
    }

    /// Runs a program on a frame, and returns its return value.
    fn run(&self, program: &str, frame: &[u8]) -> Result<u32> {
        let program = self.program(program)?;
        let input = ProgramInput { data_in: Some(frame), ..Default::default() };
        Ok(program.test_run(input).doing(|| "running the classifier".to_owned())?.return_value)
    }

    fn map(&self, name: &str) -> Result<MapHandle> {
        let own = |map: &Map<'_>| {
            let full = map.name().to_string_lossy();
            full == name || full.strip_prefix(".data.") == Some(name)
        };
        let map =
            self.object.maps().find(own).ok_or_else(|| Error::system(format!("the BPF object has no map {name}")))?;
        MapHandle::try_from(&map).doing(|| format!("opening {name}"))
    }
}

/// A loaded program that counts, remembers and polices like an attached one.
pub struct Runner(OwnedFd);

impl Runner {
    /// Runs the program on a frame so many times, on this CPU. Returns the mean time of a run, ns.
    pub fn repeat(&self, frame: &[u8], times: u32) -> Result<u32> {
        self.run(frame, times).map(|done| done.duration)
    }

    /// Runs the program on a frame once. Returns whether the frame passes.
    pub fn passes(&self, frame: &[u8]) -> Result<bool> {
        self.run(frame, 1).map(|done| done.retval == libbpf_sys::XDP_PASS)
    }

    fn run(&self, frame: &[u8], times: u32) -> Result<libbpf_sys::bpf_test_run_opts> {
        let mut options = libbpf_sys::bpf_test_run_opts {
            sz: size_of::<libbpf_sys::bpf_test_run_opts>() as libbpf_sys::size_t,
            data_in: frame.as_ptr().cast(),
            data_size_in: frame.len() as u32,
            repeat: times as i32,
            ..Default::default()
        };
        // SAFETY: the frame outlives the call, which only reads it.
        let result = unsafe { libbpf_sys::bpf_prog_test_run_opts(self.0.as_raw_fd(), &raw mut options) };
        if result < 0 {
            return Err(std::io::Error::from_raw_os_error(-result)).doing(|| "running the classifier".to_owned());
        }
        Ok(options)
    }
}
