//! Limit of a policy's text. The reader keeps a finding for each wrong word, so a text of a million wrong words would take minutes
//! and gigabytes: it is refused before it is read.

use crate::problem::Problem;
use axum::http::StatusCode;
use jsonc_parser::Scanner;

/// The most words and signs, strings being one. A policy of 4,096 rules with a dozen keys each has half of it.
const MAX_TOKENS: usize = 400_000;

/// Refuses a text with more tokens than any policy needs.
pub fn check_length(text: &str) -> Result<(), Problem> {
    let mut scanner = Scanner::new(text);
    for _ in 0..=MAX_TOKENS {
        // A text that has no next token stops the policy reader as well.
        let Ok(Some(_)) = scanner.scan() else { return Ok(()) };
    }
    let what = format!("the policy has more than {MAX_TOKENS} words and signs");
    Err(Problem::new(StatusCode::PAYLOAD_TOO_LARGE, what, "no policy of at most 64 classes and 4096 rules has so many"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn longest_policy_is_within_the_limit() {
        let rule = r#"{ "name": "x", "priority": 1, "src_ip": "192.0.2.0/24", "dst_ip": ["192.0.2.1", "192.0.2.2"], "src_port_min": 1,
            "src_port_max": 9, "dst_port_min": 1, "dst_port_max": 9, "protocol": "tcp", "dscp": "ef", "vlan_id": 4, "class_id": 0 },"#;
        assert!(check_length(&format!("{{ \"rules\": [{}] }}", rule.repeat(4096))).is_ok());
        assert!(check_length("\"not closed").is_ok() && check_length("").is_ok());
        for endless in ["1,", "1 ", "{},", "[", "x"] {
            let text = format!("[{}", format!("{endless} ").repeat(MAX_TOKENS));
            assert!(check_length(&text).is_err(), "{endless}");
        }
    }
}
