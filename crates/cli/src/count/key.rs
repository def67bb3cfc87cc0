//! The key that packets are counted by: `class,dport`, `src/24`.

use crate::failure::Failure;
use sluice_kernel::telemetry::KeyPart;

/// Bits of an IPv6 network where only those of an IPv4 network are given: a site's usual link.
const IPV6_BITS: u8 = 64;

/// The parts of a key.
///
/// # Errors
///
/// A part that is not known, comes twice, or has a prefix that it cannot have.
pub fn parse(option: &str, text: &str) -> Result<Vec<KeyPart>, Failure> {
    let mut parts: Vec<KeyPart> = Vec::new();
    for word in text.split(',').map(str::trim) {
        let part = part(option, word)?;
        let same = |other: &KeyPart| std::mem::discriminant(other) == std::mem::discriminant(&part);
        if parts.iter().any(same) {
            return Err(Failure::input(&format!("{option} {text}: {word} comes twice"), "name each part once"));
        }
        parts.push(part);
    }
    Ok(parts)
}

fn part(option: &str, word: &str) -> Result<KeyPart, Failure> {
    let (name, prefix) = word.split_once('/').map_or((word, None), |(name, prefix)| (name, Some(prefix)));
    let plain = match name {
        "direction" => KeyPart::Direction,
        "proto" => KeyPart::Protocol,
        "class" => KeyPart::Class,
        "dscp" => KeyPart::Dscp,
        "verdict" => KeyPart::Verdict,
        "vlan" => KeyPart::Vlan,
        "sport" => KeyPart::SrcPort,
        "dport" => KeyPart::DstPort,
        "src" | "dst" => {
            let (v4, v6) = prefix.map_or(Ok((32, 128)), |prefix| lengths(option, word, prefix))?;
            return Ok(if name == "src" { KeyPart::Src(v4, v6) } else { KeyPart::Dst(v4, v6) });
        }
        _ => {
            return Err(Failure::input(
                &format!("{option}: \"{word}\" is no part of a key"),
                "write one or several of direction, proto, class, dscp, verdict, vlan, sport, dport, src, dst, with commas",
            ));
        }
    };
    match prefix {
        None => Ok(plain),
        Some(_) => {
            Err(Failure::input(&format!("{option} {word}: only src and dst have a prefix"), &format!("write {name}")))
        }
    }
}

fn lengths(option: &str, word: &str, prefix: &str) -> Result<(u8, u8), Failure> {
    let wrong = || {
        Failure::input(
            &format!("{option} {word}: not a length of a prefix"),
            "write at most 32 for IPv4, and behind a second slash at most 128 for IPv6: src/24/56",
        )
    };
    let (v4, v6) = prefix.split_once('/').map_or((prefix, None), |(v4, v6)| (v4, Some(v6)));
    let bits = |text: &str, most: u8| text.parse().ok().filter(|bits| *bits <= most).ok_or_else(wrong);
    Ok((bits(v4, 32)?, v6.map_or(Ok(IPV6_BITS), |v6| bits(v6, 128))?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_have_parts_and_prefixes() {
        assert_eq!(parse("--by", "class,dport").ok(), Some(vec![KeyPart::Class, KeyPart::DstPort]));
        assert_eq!(parse("--by", "src/24").ok(), Some(vec![KeyPart::Src(24, 64)]));
        assert_eq!(parse("--by", "dst/16/48, proto").ok(), Some(vec![KeyPart::Dst(16, 48), KeyPart::Protocol]));
        for text in ["", "port", "class,class", "src,src/8", "src/33", "src/24/129", "proto/8", "src/", "src/x", "é"] {
            let failure = parse("--by", text).expect_err(text);
            assert_eq!(failure.exit_code, 2, "{text}");
        }
    }
}
