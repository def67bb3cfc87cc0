//! Addresses of records: as they are, or as keyed hashes of them, which tell hosts apart without naming them.

use siphasher::sip::SipHasher24;
use sluice_error::{Doing, Error, Result};
use std::hash::Hasher;
use std::io::{Read, Write};
use std::net::{IpAddr, Ipv6Addr};
use std::path::Path;

/// An address of a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Address {
    /// The address itself.
    Ip(IpAddr),
    /// Its keyed hash.
    Hash(u64),
}

/// The key of hashes of addresses.
///
/// The hash is SipHash-2-4 (Aumasson and Bernstein, 2012) of the 16 bytes of the address, IPv4 as ::ffff:a.b.c.d. It cannot be computed
/// without the key, so a list of all IPv4 addresses does not undo it; with the key, it is a look-up away. 64 bits are enough for a million
/// hosts to have two with one hash in 37 million files.
#[derive(Clone)]
pub struct AddressKey([u8; 16]);

impl AddressKey {
    /// A key of these bytes.
    pub fn new(bytes: [u8; 16]) -> AddressKey {
        AddressKey(bytes)
    }

    /// A key from the system's random numbers.
    ///
    /// # Errors
    ///
    /// An error of the system.
    pub fn random() -> Result<AddressKey> {
        let mut key = [0; 16];
        let read = std::fs::File::open("/dev/urandom").and_then(|mut file| file.read_exact(&mut key));
        read.doing(|| "reading random numbers from /dev/urandom".to_owned())?;
        Ok(AddressKey(key))
    }

    /// The key of a file: 32 hexadecimal digits.
    ///
    /// # Errors
    ///
    /// The file cannot be read, or holds something else.
    pub fn of_file(path: &Path) -> Result<AddressKey> {
        const CURE: &str = "a key is 32 hexadecimal digits, as \"openssl rand -hex 16\" makes them";
        let failed = |what: &str| Error::input(format!("the key file {}: {what}", path.display())).help(CURE);
        let text = std::fs::read_to_string(path).map_err(|error| failed(&error.to_string()))?;
        let text = text.trim();
        if text.len() != 32 || !text.bytes().all(|digit| digit.is_ascii_hexdigit()) {
            return Err(failed("it does not hold 32 hexadecimal digits"));
        }
        let number = u128::from_str_radix(text, 16).map_err(|error| failed(&error.to_string()))?;
        Ok(AddressKey(number.to_be_bytes()))
    }

    /// The hash of an address.
    pub fn hash(&self, address: IpAddr) -> u64 {
        let mut hasher = SipHasher24::new_with_key(&self.0);
        hasher.write(&wide(address).octets());
        hasher.finish()
    }
}

fn wide(address: IpAddr) -> Ipv6Addr {
    match address {
        IpAddr::V4(address) => address.to_ipv6_mapped(),
        IpAddr::V6(address) => address,
    }
}

/// The texts of addresses. IPv4 and hashes are written by hand; texts of IPv6 take longer, and the last ones are remembered.
pub struct AddressTexts {
    known: Box<[Known]>,
    text: [u8; MAX_TEXT],
}

#[derive(Clone, Copy)]
struct Known {
    address: Ipv6Addr,
    length: u8,
    text: [u8; MAX_TEXT],
}

/// Bytes of the longest address in text: an IPv6 address has 39, or 45 with IPv4 in it.
const MAX_TEXT: usize = 46;
const KNOWN_BITS: u32 = 10;

impl Default for AddressTexts {
    fn default() -> AddressTexts {
        let empty = Known { address: Ipv6Addr::UNSPECIFIED, length: 0, text: [0; MAX_TEXT] };
        AddressTexts { known: vec![empty; 1 << KNOWN_BITS].into(), text: [0; MAX_TEXT] }
    }
}

impl AddressTexts {
    /// The text of an address.
    #[inline]
    pub fn of(&mut self, address: Address) -> &[u8] {
        match address {
            Address::Ip(IpAddr::V4(address)) => {
                let mut used = 0;
                for byte in address.octets() {
                    used += write_byte(byte, &mut self.text[used..]);
                    self.text[used] = b'.';
                    used += 1;
                }
                &self.text[..used - 1]
            }
            Address::Hash(hash) => {
                const DIGITS: &[u8; 16] = b"0123456789abcdef";
                for (place, digit) in self.text[..16].iter_mut().enumerate() {
                    *digit = DIGITS[(hash >> (60 - 4 * place)) as usize & 15];
                }
                &self.text[..16]
            }
            Address::Ip(IpAddr::V6(address)) => self.of_ipv6(address),
        }
    }

    fn of_ipv6(&mut self, address: Ipv6Addr) -> &[u8] {
        let folded = (address.to_bits() >> 64) as u64 ^ address.to_bits() as u64;
        let place = folded.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (64 - KNOWN_BITS);
        let known = &mut self.known[place as usize];
        if known.length == 0 || known.address != address {
            let mut left = &mut known.text[..];
            // No text is longer than the room.
            _ = write!(left, "{address}");
            let left = left.len();
            (known.address, known.length) = (address, (MAX_TEXT - left) as u8);
        }
        &known.text[..known.length.into()]
    }
}

/// Writes a byte as a decimal number and returns how many digits it has.
#[inline]
fn write_byte(byte: u8, to: &mut [u8]) -> usize {
    let (hundreds, tens, ones) = (byte / 100, byte / 10 % 10, byte % 10);
    let mut used = 0;
    if hundreds > 0 {
        to[used] = b'0' + hundreds;
        used += 1;
    }
    if byte > 9 {
        to[used] = b'0' + tens;
        used += 1;
    }
    to[used] = b'0' + ones;
    used + 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hashes_are_those_of_the_paper() {
        // The key and the message of appendix A have bytes that count up; this is the vector of 16 bytes of the reference code.
        let key = AddressKey::new(std::array::from_fn(|i| i as u8));
        let address = Ipv6Addr::from(std::array::from_fn::<u8, 16, _>(|i| i as u8));
        assert_eq!(key.hash(address.into()), 0x3f2a_cc7f_57c2_9bdb);
    }

    #[test]
    fn texts_are_those_of_the_standard_library() {
        let mut texts = AddressTexts::default();
        for address in ["0.0.0.0", "192.0.2.1", "255.255.255.255", "::", "2001:db8::1", "::ffff:198.51.100.7"] {
            let ip: IpAddr = address.parse().expect("an address");
            assert_eq!(texts.of(Address::Ip(ip)), ip.to_string().as_bytes());
            assert_eq!(texts.of(Address::Ip(ip)), ip.to_string().as_bytes(), "the second time");
        }
        assert_eq!(texts.of(Address::Hash(0x2a)), b"000000000000002a");
        let longest: IpAddr = "1111:2222:3333:4444:5555:6666:7777:8888".parse().expect("an address");
        assert_eq!(texts.of(Address::Ip(longest)), longest.to_string().as_bytes());
        for number in 0..=u32::from(u8::MAX) {
            let ip = IpAddr::V4((number * 0x0101_0101).into());
            assert_eq!(texts.of(Address::Ip(ip)), ip.to_string().as_bytes());
        }
    }

    #[test]
    fn a_key_file_holds_32_digits() {
        let directory = std::env::temp_dir().join(format!("sluice-key-{}", std::process::id()));
        std::fs::create_dir_all(&directory).expect("a directory");
        let path = directory.join("key");
        std::fs::write(&path, "000102030405060708090a0b0c0d0e0f\n").expect("written");
        let key = AddressKey::of_file(&path).expect("a key");
        assert_eq!(key.0, std::array::from_fn(|i| i as u8));
        for text in ["", "0001", "+00102030405060708090a0b0c0d0e0f", "000102030405060708090a0b0c0d0e0g"] {
            std::fs::write(&path, text).expect("written");
            let error = AddressKey::of_file(&path).map(drop).expect_err("refused");
            assert!(error.what.contains("32 hexadecimal digits"), "{error}");
            assert_eq!(error.exit_code(), 2);
        }
        std::fs::remove_dir_all(&directory).expect("removed");
        assert!(AddressKey::of_file(&path).is_err());
    }
}
