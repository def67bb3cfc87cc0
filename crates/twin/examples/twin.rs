//! `twin [OPERATIONS [SEED]]`: plays that many operations of each discipline, and of all in turn, to both builds of the core;
//! then what the verifier made of each.

use sluice_twin::{compare, cost, kinds};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let operations: u64 = arguments.next().map_or(Ok(1_000_000), |text| text.parse())?;
    let seed: u64 = arguments.next().map_or(Ok(std::process::id().into()), |text| text.parse())?;
    for (kind, name) in kinds() {
        let s = compare(kind, operations, seed)?;
        let c = cost(kind)?;
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
