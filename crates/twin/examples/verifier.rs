//! `verifier`: what this kernel's verifier makes of the core with each discipline alone and with all. Prints CSV: what, unit, value.

use sluice_twin::{cost, cost_of_trees, kinds};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    println!("what,unit,value");
    let tree = std::iter::once_with(|| ("a tree of classes", cost_of_trees()));
    for (name, cost) in kinds().map(|(kind, name)| (name, cost(kind))).chain(tree) {
        let cost = cost?;
        println!("core with {name},instructions verified,{}", cost.verified_instructions);
        println!("core with {name},ms to load,{:.1}", cost.load.as_secs_f64() * 1e3);
    }
    Ok(())
}
