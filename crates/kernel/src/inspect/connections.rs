//! The connections of forwards, by the packets that belong to them.

use crate::bpf::object::Loader;
use crate::maps::{forwarding, tables};
use crate::status;
use crate::system::{netns, paths};
use libbpf_rs::{MapHandle, Object, ProgramInput};
use serde::Serialize;
use sluice_abi as abi;
use sluice_error::{Doing, Error, Result};
use sluice_tables::forward::{address_of, end, is_of};
use std::net::{IpAddr, SocketAddr};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// A connection of a forward, as one of its packets is looked at.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Connection {
    /// Name of the forward.
    pub forward: String,
    /// Sender of the packet: client or target.
    pub sender: &'static str,
    /// The client's address and port.
    pub client: SocketAddr,
    /// The address and port that the client has connected to.
    pub listen: SocketAddr,
    /// The client as the target sees it.
    pub source: SocketAddr,
    /// The address and port that the forward leads to.
    pub target: SocketAddr,
    /// Class that the forward gives its packets. None: the rules choose.
    pub class: Option<u8>,
}

impl Connection {
    /// The ends of the sender's packets as they arrive here, and as they leave.
    pub fn ways(&self) -> [(SocketAddr, SocketAddr); 2] {
        if self.sender == "client" {
            [(self.client, self.listen), (self.source, self.target)]
        } else {
            [(self.target, self.source), (self.listen, self.client)]
        }
    }
}

/// Finds connections of this network namespace. Without forwards, there are none.
#[derive(Default)]
pub struct Connections(Option<Finder>);

struct Finder {
    object: Object,
    forwards: MapHandle,
    /// The inode of the table's pin: tables that are made anew have another one.
    made: u64,
}

impl Connections {
    /// Looks for the tables, which come with the first forward and go with the last managed interface. Those of another version are passed over.
    pub fn renew(&mut self) -> Result<()> {
        let directory = forwarding::directory(netns::inode()?)?;
        let now = made(&directory);
        if self.0.as_ref().map(|finder| finder.made) == now {
            return Ok(());
        }
        self.0 = None;
        let Some(made) = now else { return Ok(()) };
        let mut loader = Loader::belonging()?;
        if loader.fits(&directory)? {
            loader.share(&directory)?;
            let forwards = tables::open(&directory, "forwards")?;
            self.0 = Some(Finder { object: loader.load(paths::run())?, forwards, made });
        }
        Ok(())
    }

    /// The connection of a packet, which is of an IP protocol and looked at as it arrives here or as it leaves. None: it belongs to none.
    pub fn of(
        &self,
        protocol: u16,
        src: (impl Into<Option<IpAddr>>, Option<u16>),
        dst: (impl Into<Option<IpAddr>>, Option<u16>),
    ) -> Result<Option<Connection>> {
        let Some(finder) = &self.0 else { return Ok(None) };
        let (Some(src), Some(dst)) = (src.0.into().zip(src.1), dst.0.into().zip(dst.1)) else { return Ok(None) };
        finder.of(protocol, src, dst)
    }
}

impl Finder {
    fn of(&self, protocol: u16, src: (IpAddr, u16), dst: (IpAddr, u16)) -> Result<Option<Connection>> {
        let mut asked = abi::boxed_zeroed::<abi::sl_belonging>();
        asked.packet = abi::sl_tuple {
            src: end(src.0),
            dst: end(dst.0),
            sport: src.1.to_be(),
            dport: dst.1.to_be(),
            proto: protocol.into(),
        };
        let program = self.object.progs_mut().find(|program| program.name() == "sl_belongs");
        let program = program.ok_or_else(|| Error::system("the BPF object has no program sl_belongs"))?;
        let mut answer = vec![0; size_of::<abi::sl_belonging>()];
        let input =
            ProgramInput { data_in: Some(abi::bytes_of(&*asked)), data_out: Some(&mut answer), ..Default::default() };
        program.test_run(input).doing(|| "looking for a connection".to_owned())?;
        let answer = abi::read_pod::<abi::sl_belonging>(&answer);
        let Some(found) = answer.filter(|answer| answer.sender < abi::SL_SIDES) else { return Ok(None) };
        let connection = &found.connection;
        let forward = tables::read::<abi::sl_forward>(&self.forwards, connection.forward.into())?;
        // The connection may have ended meanwhile, and its forward have gone.
        Ok(is_of(connection, &forward).then(|| shown(&forward, &found)))
    }
}

fn made(directory: &Path) -> Option<u64> {
    std::fs::metadata(directory.join("connections")).ok().map(|pin| pin.ino())
}

fn shown(forward: &abi::sl_forward, found: &abi::sl_belonging) -> Connection {
    let connection = &found.connection;
    let at = |end: &abi::sl_end, port| SocketAddr::new(address_of(end), u16::from_be(port));
    Connection {
        forward: status::text(&forward.name),
        sender: if found.sender == abi::SL_CLIENT { "client" } else { "target" },
        client: at(&connection.client, connection.client_port),
        listen: at(&connection.listen, connection.listen_port),
        source: at(&connection.source, connection.source_port),
        target: at(&connection.target, connection.target_port),
        class: Some(connection.class as u8).filter(|class| u32::from(*class) < abi::SL_CLASSES),
    }
}
