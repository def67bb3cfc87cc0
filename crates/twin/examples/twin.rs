//! `twin [OPERATIONS [SEED]]`: plays that many operations of each discipline, and of all in turn, to both builds of the core;
//! then what the verifier made of each.

use sluice_twin::{compare, compare_trees, cost, cost_of_trees, kinds};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let operations: u64 = arguments.next().map_or(Ok(1_000_000), |text| text.parse())?;
    let seed: u64 = arguments.next().map_or(Ok(std::process::id().into()), |text| text.parse())?;
    let flat = kinds().map(|(kind, name)| (name, compare(kind, operations, seed), cost(kind)));
    let tree = std::iter::once_with(|| ("tree of classes", compare_trees(operations, seed), cost_of_trees()));
    for (name, compared, cost) in flat.chain(tree) {
        let (s, c) = (compared?, cost?);
        println!(
            "{name:24} {} operations equal (seed {seed}): {} taken, {} refused, {} sent, {} waits, {} configurations; \
             {} instructions verified, loaded in {} ms",
            s.operations,
            s.taken,
            s.refused,
            s.sent,
            s.waits,
            s.configurations,
            c.verified_instructions,
            c.load.as_millis()
        );
    }
    Ok(())
}
