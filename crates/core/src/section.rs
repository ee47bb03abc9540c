//! Sections: the parts of a context beside the conversation itself.

use serde::{Deserialize, Serialize};

/// A part of a context that is added to a message of the user.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Section {
    /// Facts that the search found; they stand before the user's own words.
    Facts,
    /// Artefacts that the conversation still uses; they stand before the user's own words too.
    Artefacts,
    /// Pinned texts that the client left out; they stand behind the user's words.
    Pinned,
    /// A text from memory; it stands behind the user's words, so that these keep their place in a cached prefix.
    Memory,
}

impl Section {
    /// Returns whether it stands behind the message that it is added to.
    pub(crate) fn is_behind(self) -> bool {
        matches!(self, Self::Pinned | Self::Memory)
    }
}
