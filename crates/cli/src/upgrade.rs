//! `sluice upgrade`: replaces running programs by those of this version.

use crate::args::maintain::Upgrade;
use crate::failure::Failure;
use crate::live::each;
use sluice_kernel::Upgraded;

pub fn run(args: &Upgrade) -> Result<(), Failure> {
    each(&args.interfaces, |interface| {
        match sluice_kernel::upgrade(interface)? {
            None => outln!("{interface}: its programs are those of this version"),
            Some(Upgraded { record, lost, notes }) => {
                outln!(
                    "{} runs the programs of this version, with the policy {}",
                    record.interface,
                    record.policy_name
                );
                lost.iter().for_each(|lost| outln!("  {lost}"));
                notes.iter().for_each(|note| outln!("  note: {note}"));
            }
        }
        Ok(())
    })
}
