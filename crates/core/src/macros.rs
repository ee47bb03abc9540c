//! Declarations that stand in many modules: regular expressions, and enums with names.

/// Declares regular expressions that are compiled at their first use: `NAME "expression";`.
macro_rules! patterns {
    ($($(#[$meta:meta])* $vis:vis $name:ident $text:expr;)*) => {
        $($(#[$meta])* $vis static $name: std::sync::LazyLock<regex::Regex> =
            std::sync::LazyLock::new(|| {
                regex::Regex::new($text).expect("a constant pattern that a test compiles")
            });)*
    };
}

/// Gives an enum the list of its values and their names in tables and JSON.
macro_rules! names {
    ($type:ident { $($variant:ident $name:literal),* $(,)? }) => {
        impl $type {
            /// Every value, in the order of declaration.
            pub const ALL: &'static [Self] = &[$(Self::$variant),*];

            /// Returns the name that tables and JSON have for it.
            pub fn as_str(self) -> &'static str {
                match self {
                    $(Self::$variant => $name,)*
                }
            }

            /// Returns the value with this name, if there is one.
            pub fn from_name(name: &str) -> Option<Self> {
                Self::ALL.iter().copied().find(|value| value.as_str() == name)
            }
        }
    };
}
