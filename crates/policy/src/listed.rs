//! Types whose values are lines of a list in `abi/disciplines.h`.

/// Gives such a type its members, names and numbers; `$all` and `$one` are `sluice_abi`'s functions.
macro_rules! listed {
    ($type:ident, $all:ident, $one:ident) => {
        impl $type {
            /// Every value that a policy may name, by number.
            pub fn all() -> impl Iterator<Item = $type> {
                sluice_abi::$all().map(|line| $type(line.number))
            }

            /// The value of this name.
            pub(crate) fn named(name: &str) -> Option<$type> {
                $type::all().find(|one| one.name() == name)
            }

            fn line(self) -> sluice_abi::Discipline {
                sluice_abi::$one(self.0)
            }

            /// The number in the engines' configuration.
            pub fn number(self) -> u32 {
                self.0
            }

            /// The name in policy files.
            pub fn name(self) -> &'static str {
                self.line().name
            }
        }

        impl std::fmt::Display for $type {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.pad(self.name())
            }
        }
    };
}
