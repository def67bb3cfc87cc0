//! The lab's files: topologies, scenarios, contenders and plans, all TOML. The built-in ones are those of `lab/`.
//!
//! Reading a file checks it completely: later failures are the machine's.

use std::path::Path;

use sluice_error::{Error, Kind, Result};

mod blanks;
mod contender;
mod library;
mod model;
mod observing;
mod plan;
mod scenario;
mod topology;
mod units;

pub use contender::{Contender, Fill, Forwarder, Hop, SluiceCall, Start};
pub use library::{Folder, Source, names, read};
pub use model::{ALL, CardUse, EARLY, Model, Published, RATES as MODEL_RATES, WireUse};
pub use observing::{Monitor, Observing, number_at};
pub use plan::{Entry, Plan};
pub use scenario::{CHAIN_PORT, Event, Kind as LoadKind, Load, NOISE_PORT, OneWay, Scenario};
pub use topology::{Chain, Direction, End, Link, Owned, Queue, Shaped, Tap, Topology};
pub use units::{Milliseconds, Rate, Tos};

/// The `about` text of a file, once the file is checked.
pub fn about(folder: Folder, name: &str) -> Result<String> {
    let source = read(folder, name)?;
    Ok(match folder {
        Folder::Contenders => Contender::of(source)?.about,
        Folder::Plans => Plan::of(&source)?.about,
        Folder::Scenarios => Scenario::of(source)?.about,
        Folder::Topologies => Topology::of(&source)?.about,
    })
}

/// The kind of a user's file, derived from its keys.
pub fn kind(path: &str) -> Result<Folder> {
    const KEYS: [(Folder, &[&str]); 4] = [
        (Folder::Plans, &["run", "repeats"]),
        (Folder::Scenarios, &["load", "topology", "model", "port"]),
        (Folder::Topologies, &["link", "hosts"]),
        (Folder::Contenders, &["start", "sluice", "forward", "observe", "card", "wire"]),
    ];
    let keys: toml::Table = library::file(path)?.parse()?;
    let folder =
        KEYS.iter().find(|(_, known)| known.iter().any(|key| keys.contains_key(*key))).map(|(folder, _)| *folder);
    folder.ok_or_else(|| {
        let what = format!(
            "{path}: neither a plan (run), a scenario (load, model, port), a topology (link) nor a contender (start, sluice, forward, observe, card, wire)"
        );
        Error::new(Kind::Input, what).help("sluice lab show NAME prints a file to start from")
    })
}

/// Checks a user's file of any kind; the answer names the kind.
pub fn check(path: &Path) -> Result<&'static str> {
    let name = path.to_string_lossy();
    let folder = kind(&name)?;
    about(folder, &name)?;
    Ok(folder.one())
}

#[cfg(test)]
mod fixture;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn built_in_names_are_unique() {
        let folders = [Folder::Contenders, Folder::Plans, Folder::Scenarios, Folder::Topologies];
        let mut all: Vec<String> = folders.into_iter().flat_map(names).collect();
        all.sort();
        assert!(all.windows(2).all(|pair| pair[0] != pair[1]), "{all:?}");
    }

    #[test]
    fn every_built_in_file_is_good() {
        for folder in [Folder::Plans, Folder::Scenarios, Folder::Contenders, Folder::Topologies] {
            assert!(names(folder).len() > 3, "{}", folder.name());
            for name in names(folder) {
                assert!(!about(folder, &name).unwrap().is_empty(), "{name}");
            }
        }
        for name in names(Folder::Plans) {
            for entry in Plan::of(&read(Folder::Plans, &name).unwrap()).unwrap().entries {
                read(Folder::Scenarios, &entry.scenario).unwrap();
                for contender in entry.contenders.unwrap_or_default() {
                    read(Folder::Contenders, &contender).unwrap();
                }
            }
        }
    }
}
