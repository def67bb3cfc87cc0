//! `verifier`: what this kernel's verifier makes of the core with each discipline alone and with all. Prints CSV: what, unit, value.

use sluice_twin::{DISCIPLINES, cost};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    println!("what,unit,value");
    for kind in (0..DISCIPLINES.len()).map(Some).chain([None]) {
        let name = kind.map_or("all disciplines", |kind| DISCIPLINES[kind]);
        let cost = cost(kind.map(|kind| kind as u32))?;
        println!("core with {name},instructions verified,{}", cost.verified_instructions);
        println!("core with {name},ms to load,{:.1}", cost.load.as_secs_f64() * 1e3);
    }
    Ok(())
}
