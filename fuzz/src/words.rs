//! Packets in words, as `sluice explain` takes them, on any text.

use sluice_abi as abi;
use sluice_cli::packet::frame;
use sluice_kernel::probe::Metadata;
use sluice_model::parse::parse;

/// Reads the words. Panics where they make what is no packet of IP, and no ARP either.
pub fn run(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    match frame(&[text.to_owned()], Metadata::default()) {
        Ok((frame, _)) => {
            let seen = parse(&frame);
            assert!(frame.len() <= 3000);
            assert_ne!(seen.addresses.is_some(), seen.kind == abi::SL_PARSE_ARP, "{text}: {seen:?}");
        }
        Err(failure) => assert_eq!(failure.exit_code, 2, "{}", failure.render(false)),
    }
}
