//! The surroundings of a request's messages, as its client sends them.

use plimsoll_core::terms::{ClientMarks, Surroundings};
use plimsoll_core::{ContentHash, Message, Role};

use super::ProviderRequest;

/// Bytes of a token of a tool's schema. Chosen: the usual estimate, close enough to decide by.
const BYTES: f64 = 4.0;

impl ProviderRequest {
    /// Returns the client's tools and its marks of the provider's cache; no mark may be added, and nothing can be looked up.
    pub fn surroundings(&self) -> Surroundings {
        let marks = self.marks();
        Surroundings {
            before: self.tool_tokens(),
            before_key: self.tool_digest(),
            before_mark: marks.tools,
            unseen: 0.0,
            client: ClientMarks::At(marks.messages),
            free_marks: 0,
            lookups: false,
            own_tools: 0,
            put_back: Vec::new(),
        }
    }

    /// Returns about how many tokens the client's tools have.
    pub fn tool_tokens(&self) -> f64 {
        let bytes: usize = self.tools().iter().map(|tool| tool.raw.len()).sum();
        bytes as f64 / BYTES
    }

    /// Digests the client's tools: they stand before everything in a cached prefix.
    fn tool_digest(&self) -> u64 {
        let mut all = String::new();
        for tool in self.tools() {
            all.push_str(tool.raw);
            all.push('\n');
        }
        ContentHash::of(&Message::text(Role::System, all)).key()
    }
}
