//! Asks families of generic netlink (linux/genetlink.h), which have names and no fixed numbers.

use crate::system::netlink::{Failure, ask_by, attribute, attributes_of};
use netlink_packet_core::NLM_F_DUMP;
use netlink_sys::protocols::NETLINK_GENERIC;
use std::io;

/// struct genlmsghdr: command, version, reserved.
const GENLMSGHDR_BYTES: usize = 4;
/// GENL_ID_CTRL, CTRL_CMD_GETFAMILY, CTRL_ATTR_FAMILY_ID, CTRL_ATTR_FAMILY_NAME.
const CONTROL: u16 = 16;
const GET_FAMILY: u8 = 3;
const FAMILY_ID: u16 = 1;
const FAMILY_NAME: u16 = 2;

/// A family that this kernel has.
pub(super) struct Family(u16);

impl Family {
    /// None: the kernel does not have it, or does not tell.
    pub(super) fn of(name: &str) -> Option<Family> {
        let name = attribute(FAMILY_NAME, &[name.as_bytes(), &[0]].concat());
        let request = [&[GET_FAMILY, 1, 0, 0], &name[..]].concat();
        let answers = ask_by(NETLINK_GENERIC, CONTROL, 0, &request).ok()?;
        let number = answers.messages.iter().find_map(|message| {
            let id = attributes(message)?.find(|attribute| attribute.kind() == FAMILY_ID)?;
            id.value().try_into().ok().map(u16::from_ne_bytes)
        })?;
        Some(Family(number))
    }

    /// Asks for a list, by a command of version 1 with these attributes. The messages, each with its header of the family.
    ///
    /// # Errors
    ///
    /// The kernel's refusal.
    pub(super) fn dump(&self, command: u8, attributes: &[u8]) -> io::Result<Vec<Vec<u8>>> {
        let request = [&[command, 1, 0, 0], attributes].concat();
        match ask_by(NETLINK_GENERIC, self.0, NLM_F_DUMP, &request) {
            Ok(answers) => Ok(answers.messages),
            Err(Failure::Socket(error) | Failure::Kernel(error)) => Err(error),
            Err(Failure::Unreadable) => Err(io::ErrorKind::InvalidData.into()),
        }
    }
}

/// The attributes of a message of a family. None: it is cut short.
pub(super) fn attributes(message: &[u8]) -> Option<impl Iterator<Item = netlink_packet_core::NlaBuffer<&[u8]>>> {
    message.get(GENLMSGHDR_BYTES..).map(attributes_of)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_family_of_families_has_its_number() {
        assert_eq!(Family::of("nlctrl").map(|family| family.0), Some(CONTROL));
        assert!(Family::of("sluice-has-none").is_none());
    }

    #[test]
    fn all_families_are_listed() {
        let control = Family(CONTROL);
        let all = control.dump(GET_FAMILY, &[]).unwrap_or_else(|error| panic!("{error}"));
        let named = |message: &Vec<u8>| {
            let mut all = attributes(message).expect("whole");
            all.any(|attribute| attribute.kind() == FAMILY_NAME && attribute.value() == b"nlctrl\0")
        };
        assert!(all.iter().any(named), "{} families", all.len());
    }
}
