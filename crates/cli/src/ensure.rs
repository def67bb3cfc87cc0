//! `sluice ensure`: restores missing parts of managed interfaces.

use crate::args::maintain::Ensure;
use crate::failure::Failure;
use crate::live::each;
use sluice_kernel::Healed;

pub fn run(args: &Ensure) -> Result<(), Failure> {
    sluice_kernel::require_root()?;
    if args.interfaces.is_empty() {
        for gone in sluice_kernel::collect()? {
            outln!("{gone} has gone: its remains are removed");
        }
    }
    let named = !args.interfaces.is_empty();
    let mut all: Vec<String> =
        sluice_kernel::reader::ManagedInterfaces::default().here()?.into_iter().map(|(name, _)| name).collect();
    if !named {
        all.extend(sluice_kernel::lost_groups()?);
        // Each of them is refused below, with its cure.
        all.extend(sluice_kernel::unreadable_here()?);
    }
    each(if named { &args.interfaces } else { &all }, |interface| {
        let Healed { was_missing, notes } = sluice_kernel::ensure(interface)?;
        if was_missing.is_empty() && notes.is_empty() && named {
            outln!("{interface}: everything is in place");
        }
        was_missing.iter().for_each(|what| outln!("{interface}: {what}; it is back"));
        notes.iter().for_each(|note| outln!("  note: {note}"));
        Ok(())
    })
}
