//! The lab's files: topologies, scenarios, contenders and plans, all TOML. The built-in ones are those of `lab/`.
//!
//! Reading one checks it wholly: what is left to fail later is the machine's.

use std::path::Path;

use crate::error::{Error, Kind, Result};

mod contender;
mod library;
mod plan;
mod scenario;
mod topology;
mod units;

pub use contender::{Contender, Fill, SluiceCall, Start};
pub use library::{Folder, Source, names, read};
pub use plan::{Entry, Plan};
pub use scenario::{Event, Kind as LoadKind, Load, NOISE_PORT, OneWay, Scenario};
pub use topology::{Direction, End, Link, Shaped, Topology};
pub use units::{Milliseconds, Rate, Tos};

/// What a built-in file says of itself.
pub fn about(folder: Folder, name: &str) -> Result<String> {
    let source = read(folder, name)?;
    Ok(match folder {
        Folder::Contenders => Contender::of(source)?.about,
        Folder::Plans => Plan::of(&source)?.about,
        Folder::Scenarios => Scenario::of(source)?.about,
        Folder::Topologies => Topology::of(&source)?.about,
    })
}

/// Check a file of a user's, whatever it is; the answer says which.
pub fn check(path: &Path) -> Result<&'static str> {
    let name = path.to_string_lossy();
    // What keys it has tells what it is to be.
    let source = read(Folder::Scenarios, &name)?;
    let keys: toml::Table = source.parse()?;
    let has = |key: &str| keys.contains_key(key);
    if has("run") {
        Plan::of(&source).map(|_| "plan")
    } else if has("load") || has("topology") {
        Scenario::of(source).map(|_| "scenario")
    } else if has("link") || has("hosts") {
        Topology::of(&source).map(|_| "topology")
    } else if has("start") || has("sluice") {
        Contender::of(source).map(|_| "contender")
    } else {
        let what = format!(
            "{name}: neither a plan (run), a scenario (load), a topology (link) nor a contender (start, sluice)"
        );
        Err(Error::new(Kind::Input, what).help("sluice lab show NAME prints a file to start from"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
