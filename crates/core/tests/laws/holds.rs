//! The tests of laws. The laws of `crates/forward` include this file too.

/// A test for each of these laws, which a constant `LAWS` beside it lists.
macro_rules! holds {
    ($($name:ident)*) => {
        mod holds {
            $(#[test]
            fn $name() {
                let name = concat!("::", stringify!($name));
                $crate::prove(super::LAWS.iter().find(|law| law.name.ends_with(name)).expect("listed"));
            })*
        }
    };
}
pub(crate) use holds;
