//! `verifier`: what this kernel's verifier makes of the core with each discipline alone and with all. Prints CSV: what, unit, value.

use sluice_twin::{cost, kinds};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    println!("what,unit,value");
    for (kind, name) in kinds() {
        let cost = cost(kind)?;
        println!("core with {name},instructions verified,{}", cost.verified_instructions);
        println!("core with {name},ms to load,{:.1}", cost.load.as_secs_f64() * 1e3);
    }
    Ok(())
}
