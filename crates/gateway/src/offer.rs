//! Tools on their way to the model: ours beside the client's.

use plimsoll_core::{ContentHash, Message, Role};
use plimsoll_formats::provider::{Edits, Request, ToolDefinition};

use crate::gateway::Gateway;
use crate::lookup;

/// What of a request's tools is not as it came.
#[derive(Debug, Clone, Default)]
pub(crate) struct Offer {
    /// Ours: always, for they stand before everything else in a cached prefix.
    own: Vec<ToolDefinition>,
}

impl Offer {
    /// Decides from the request and the settings alone: whatever is said later, a session's tools keep their bytes.
    pub(crate) fn of(gateway: &Gateway, request: &Request) -> Self {
        let offered = request.tools();
        // Where the provider keeps the conversation, a call that we withheld could not be put back into it.
        if offered.is_empty() || request.is_kept_by_the_server() {
            return Self::default();
        }
        let is_free = |own: &ToolDefinition| offered.iter().all(|tool| tool.name != own.name);
        let mut own = lookup::definitions();
        if !gateway.config.add.tools || !own.iter().all(is_free) {
            own.clear();
        }
        Self { own }
    }

    /// Adds it to the edits of a request.
    pub(crate) fn added_to(self, edits: Edits) -> Edits {
        Edits { add_tools: self.own, ..edits }
    }

    /// Digests the client's tools as they go out: they stand before everything in a cached prefix.
    pub(crate) fn digest(request: &Request) -> u64 {
        let mut all = String::new();
        for tool in request.tools() {
            all.push_str(tool.raw);
            all.push('\n');
        }
        ContentHash::of(&Message::text(Role::System, all)).key()
    }
}
