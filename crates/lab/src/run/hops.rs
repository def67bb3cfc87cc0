//! A contender at work on the hops of a chain, each of which forwards the port to the next.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::format::{CHAIN_PORT, Chain, Contender, Forwarder, Hop, Topology};
use crate::run::command;
use crate::run::network::{Network, device};
use crate::tool::sluice;
use sluice_error::{Error, Result};
use sluice_testbed::Namespace;
use sluice_testbed::process::Process;

/// Time in which a command that serves must listen.
const LISTEN: Duration = Duration::from_secs(20);

/// The means of a trial, for the hops.
#[derive(Clone, Copy)]
pub struct Means<'a> {
    /// The Sluice binary.
    pub sluice: &'a Path,
    /// A directory for the files of the hops.
    pub scratch: &'a Path,
    /// A callback while commands run; its error ends them.
    pub watch: &'a dyn Fn() -> Result<()>,
}

/// A chain whose hops forward; dropping ends that.
pub struct Forwarding<'a> {
    contender: &'a Contender,
    means: Means<'a>,
    /// Programs that forward as long as they run.
    servers: Vec<Process>,
    /// Namespaces and devices that Sluice was called for.
    managed: Vec<(String, String)>,
    /// The address that the client connects to.
    pub address: String,
    /// Sluice's engine.
    pub engine: Option<String>,
    /// The commands that were run, at all hops.
    pub commands: Vec<String>,
}

impl<'a> Forwarding<'a> {
    /// Has each hop forward the port, from the server's end on.
    pub fn start(
        contender: &'a Contender,
        forwarder: &Forwarder,
        (topology, chain): (&Topology, &Chain),
        network: &Network,
        means: Means<'a>,
    ) -> Result<Forwarding<'a>> {
        let hops = hops(topology, chain)?;
        let first = hops.first().ok_or_else(|| Error::system("the chain has no hops"))?;
        let server = hops.last().unwrap_or(first).1.target.clone();
        let address = if forwarder.direct { server } else { first.1.listen.clone() };
        let mut forwarding = Forwarding {
            contender,
            means,
            servers: Vec::new(),
            managed: Vec::new(),
            address,
            engine: None,
            commands: Vec::new(),
        };
        for (name, hop) in hops.iter().rev() {
            let directory = format!("{}/", means.scratch.join(name).display());
            let named = |e: Error| Error { what: e.what.replace(&directory, ""), ..e };
            forwarding.start_hop(forwarder, name, hop, network.host(name)?).map_err(named)?;
        }
        Ok(forwarding)
    }

    fn start_hop(&mut self, forwarder: &Forwarder, name: &str, hop: &Hop, host: &Namespace) -> Result<()> {
        for command in &forwarder.start {
            let command = self.filled(command, name, hop)?;
            command::require(&command)?;
            command::run(host, &command, self.means.watch)?;
        }
        for command in &forwarder.serve {
            let command = self.filled(command, name, hop)?;
            command::require(&command)?;
            let mut server = command::start(host, &command)?;
            let alive = || match server.running()? {
                true => (self.means.watch)(),
                false => Err(Error::system(format!("\"{command}\" ended: {}", server.written().concat().trim()))),
            };
            host.await_listener("tcp", hop.port, LISTEN, alive)?;
            self.servers.push(server);
        }
        match &forwarder.policy {
            Some(policy) => self.start_sluice(policy, name, hop, host),
            None => Ok(()),
        }
    }

    fn start_sluice(&mut self, policy: &str, name: &str, hop: &Hop, host: &Namespace) -> Result<()> {
        let file = self.file(policy, name, hop)?;
        self.commands.push(format!("{name}: sluice up {} --policy {policy}", hop.device));
        // From here on, even a failed `up` is followed by `down`.
        self.managed.push((host.name().to_owned(), hop.device.clone()));
        let program = self.means.sluice;
        let arguments = ["--netns", host.name(), "up", &hop.device, "--policy", &file.to_string_lossy()];
        sluice::call(&format!("\"sluice up {}\" at {name}", hop.device), program, &arguments)?;
        self.engine = Some(sluice::engine_of(program, host.name(), &hop.device)?);
        Ok(())
    }

    /// The command at a hop, which is noted with the names of its files instead of their paths.
    fn filled(&mut self, command: &str, name: &str, hop: &Hop) -> Result<String> {
        let unknown = |blank: String| Error::system(format!("nothing fills {{{blank}}}"));
        let mut failed = None;
        let filled = hop.command(command, |file| match self.file(file, name, hop) {
            Ok(path) => path.to_string_lossy().into_owned(),
            Err(error) => {
                failed = Some(error);
                String::new()
            }
        });
        if let Some(error) = failed {
            return Err(error);
        }
        self.commands.push(format!("{name}: {}", hop.command(command, str::to_owned).map_err(unknown)?));
        filled.map_err(unknown)
    }

    /// Writes a file of the contender for a hop.
    fn file(&self, file: &str, name: &str, hop: &Hop) -> Result<PathBuf> {
        let attached = self.contender.source.attached.iter().find(|(own, _)| own == file);
        let (_, text) = attached.ok_or_else(|| Error::system(format!("the contender lacks its file {file}")))?;
        let directory = self.means.scratch.join(name);
        let path = directory.join(file);
        fs::create_dir_all(&directory)
            .and_then(|()| fs::write(&path, hop.text(text)))
            .map_err(|e| Error::system(format!("cannot write {}: {e}", path.display())))?;
        Ok(path)
    }

    /// Ends the forwarding and reports a failure to do so.
    pub fn stop(mut self) -> Result<()> {
        self.end()
    }

    fn end(&mut self) -> Result<()> {
        self.servers.clear();
        let mut ended = Ok(());
        for (namespace, device) in std::mem::take(&mut self.managed) {
            ended = ended.and(sluice::down(self.means.sluice, &namespace, &device));
        }
        ended
    }
}

impl Drop for Forwarding<'_> {
    fn drop(&mut self) {
        // An error here would hide the error that is being returned.
        let _ = self.end();
    }
}

/// The hops with their names, from the client's end.
fn hops(topology: &Topology, chain: &Chain) -> Result<Vec<(String, Hop)>> {
    let nodes: Vec<&String> = [&chain.client].into_iter().chain(&chain.hops).chain([&chain.server]).collect();
    let address = |at: &String, other: &String| {
        let number = topology.number_of(&(at.clone(), other.clone()));
        let number = number.ok_or_else(|| Error::system(format!("there is no link between {at} and {other}")))?;
        Ok(topology.address(number, at))
    };
    let hop = |three: &[&String]| {
        let (before, own, next) = (three[0], three[1], three[2]);
        let hop = Hop {
            device: device(&(own.clone(), before.clone())),
            out: device(&(own.clone(), next.clone())),
            listen: address(own, before)?,
            target: address(next, own)?,
            port: CHAIN_PORT,
        };
        Ok((own.clone(), hop))
    };
    nodes.windows(3).map(hop).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::{Folder, read};

    #[test]
    fn each_hop_forwards_to_the_next() {
        let topology = Topology::of(&read(Folder::Topologies, "chain-2").unwrap()).unwrap();
        let hops = hops(&topology, topology.chain().unwrap()).unwrap();
        let told: Vec<String> = hops
            .iter()
            .map(|(name, hop)| format!("{name}: {} {} {} {}", hop.device, hop.listen, hop.out, hop.target))
            .collect();
        assert_eq!(
            told,
            ["hop-1: to-client 10.99.1.2 to-hop-2 10.99.2.2", "hop-2: to-hop-1 10.99.2.2 to-server 10.99.3.2"]
        );
    }
}
