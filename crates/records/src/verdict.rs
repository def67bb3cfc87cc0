//! The verdict of an arrival hook on a packet.

use sluice_abi as abi;

/// A verdict: `enum sl_verdict`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// A later stage decides.
    Unknown,
    /// The arrival hook has let it through.
    Passed,
    /// The arrival hook has dropped it, for this `enum sl_refusal`.
    Refused(u8),
}

impl Verdict {
    /// The verdict of a number; none, if there is no such refusal.
    pub fn of(number: u8) -> Option<Verdict> {
        match u32::from(number) {
            abi::SL_VERDICT_UNKNOWN => Some(Verdict::Unknown),
            abi::SL_VERDICT_PASSED => Some(Verdict::Passed),
            refused => {
                let refusal = refused - abi::SL_VERDICT_REFUSED;
                (refusal < abi::SL_REFUSALS).then_some(Verdict::Refused(refusal as u8))
            }
        }
    }

    /// Its name in every format.
    pub fn name(self) -> &'static str {
        abi::verdict_name(match self {
            Verdict::Unknown => abi::SL_VERDICT_UNKNOWN as u8,
            Verdict::Passed => abi::SL_VERDICT_PASSED as u8,
            Verdict::Refused(refusal) => (abi::SL_VERDICT_REFUSED as u8).saturating_add(refusal),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refusals_have_their_names() {
        assert_eq!(Verdict::of(abi::SL_VERDICT_PASSED as u8), Some(Verdict::Passed));
        assert_eq!(Verdict::of(abi::SL_VERDICT_REFUSED as u8 + 3), Some(Verdict::Refused(3)));
        assert_eq!(Verdict::of(u8::MAX), None);
        assert_eq!(
            [Verdict::Unknown, Verdict::Passed, Verdict::Refused(1)].map(Verdict::name),
            ["unknown", "passed", "limit_pkts"]
        );
        assert_eq!(Verdict::Refused(u8::MAX).name(), "refused");
    }
}
