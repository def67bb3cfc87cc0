//! The loaded classifier against a slow model of it.

use crate::lab::Lab;
use crate::needs::is_icount;
use crate::suite::Suite;

pub fn suite() -> Suite {
    Suite::new("model").any("the_loaded_classifier_equals_the_model", &[], equal)
}

fn equal(_: &Lab) {
    let seed = std::time::SystemTime::UNIX_EPOCH.elapsed().map_or(0, |now| now.as_nanos() as u64);
    let packets = if is_icount() { 10_000 } else { 200_000 };
    match sluice_model::compare(packets, seed) {
        Ok(s) => {
            eprintln!("    {s:?}, seed {seed}");
            assert!(s.matched > s.packets / 4 && s.malformed > 0 && s.remembered > 0, "a dull run: {s:?}");
        }
        Err(error) => panic!("{error}"),
    }
}
