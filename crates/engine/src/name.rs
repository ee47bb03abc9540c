//! Names of states and kinds, as they stand in tables: the same words as in JSON.

use crate::history::SelectionType;
use crate::job::JobState;

macro_rules! names {
    ($type:ident { $($variant:ident $name:literal),* $(,)? }) => {
        impl $type {
            /// Returns the name that tables and JSON have for it.
            pub fn as_str(self) -> &'static str {
                match self {
                    $(Self::$variant => $name,)*
                }
            }

            /// Reads a name; `None` for one that is not known.
            pub fn from_name(name: &str) -> Option<Self> {
                match name {
                    $($name => Some(Self::$variant),)*
                    _ => None,
                }
            }
        }

        #[cfg(test)]
        impl $type {
            const ALL: &'static [Self] = &[$(Self::$variant),*];
        }
    };
}

names!(SelectionType { IntraPhase "intra_phase", InterPhase "inter_phase" });
names!(JobState {
    Queued "queued",
    Running "running",
    Done "done",
    Failed "failed",
    Parked "parked",
    Skipped "skipped",
});
#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_json_and_read_back() {
        fn check<T: serde::Serialize + PartialEq + std::fmt::Debug>(
            all: &[T],
            name: impl Fn(&T) -> (&'static str, Option<T>),
        ) {
            for value in all {
                let (printed, read) = name(value);
                assert_eq!(serde_json::to_value(value).expect("a name"), printed);
                assert_eq!(read.as_ref(), Some(value));
            }
        }
        check(SelectionType::ALL, |v| (v.as_str(), SelectionType::from_name(v.as_str())));
        check(JobState::ALL, |v| (v.as_str(), JobState::from_name(v.as_str())));
    }
}
