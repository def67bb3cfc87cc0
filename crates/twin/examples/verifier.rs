//! `verifier`: what this kernel's verifier makes of the core with each discipline alone and with all, of a tree of classes, and of an address
//! table. Prints CSV: what, unit, value.

use sluice_twin::{cost, cost_of_addresses, cost_of_trees, kinds};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    println!("what,unit,value");
    let tree = std::iter::once_with(|| ("a tree of classes", cost_of_trees()));
    let addresses = std::iter::once_with(|| ("an address table", cost_of_addresses()));
    for (name, cost) in kinds().map(|(kind, name)| (name, cost(kind))).chain(tree).chain(addresses) {
        let cost = cost?;
        println!("core with {name},instructions verified,{}", cost.verified_instructions);
        println!("core with {name},ms to load,{:.1}", cost.load.as_secs_f64() * 1e3);
    }
    Ok(())
}
