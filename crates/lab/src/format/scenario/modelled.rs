//! A scenario that has a model instead of a network.

use super::{File, Scenario};
use crate::format::Milliseconds;
use crate::format::library::Source;
use crate::format::model::{MEASURED_MS, WARM_UP};
use crate::format::topology::Topology;
use sluice_error::Result;

impl Scenario {
    /// Checks it: there is nothing in it of a network.
    pub(super) fn modelled(file: File, source: Source) -> Result<Scenario> {
        let others = [
            ("topology", file.topology.is_some()),
            ("shape", file.shape.is_some()),
            ("idle", file.idle.is_some()),
            ("offloads", file.offloads.is_some()),
            ("[[load]]", !file.load.is_empty()),
            ("[event]", file.event.is_some()),
        ];
        if let Some((key, _)) = others.iter().find(|(_, is)| *is) {
            let at = source.key(0, key).or_else(|| source.text(key));
            let what = format!("{key} has no meaning beside [model]: a model has no network");
            return Err(source.bad(at, &what, "leave it out"));
        }
        let (least, most) = MEASURED_MS;
        for (key, time, least) in [("measured", file.measured, least), ("warm_up", file.warm_up, 0.0)] {
            if time.is_some_and(|time| !(least..=most).contains(&time.0)) {
                let what = format!("{key} is not between {} s and {} s", least / 1e3, most / 1e3);
                return Err(source.bad(source.key(0, key), &what, "choose another time"));
            }
        }
        file.model.iter().try_for_each(|model| model.check(&source))?;
        Ok(Scenario {
            title: file.title,
            about: file.about,
            topology: Topology::none(),
            shape: Vec::new(),
            warm_up: file.warm_up.unwrap_or(WARM_UP),
            idle: Milliseconds(0.0),
            measured: file.measured,
            offloads: true,
            loads: Vec::new(),
            event: None,
            model: file.model,
            published: file.published,
            source,
        })
    }
}
