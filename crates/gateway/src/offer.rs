//! Tools on their way to the model: ours beside the client's, and outlines of the client's where the settings ask for them.

use plimsoll_core::lazy_tools::{NativeSearch, ToolDefinition, describe_outlined, plan_outlines};
use plimsoll_core::lookup::EXPAND_REF;
use plimsoll_core::{ContentHash, Message, Role, Tokenizer};
use plimsoll_wire::{Edits, ProviderRequest, Wire};

use crate::gateway::Gateway;
use crate::lookup;

/// The changes to a request's tools.
#[derive(Debug, Clone, Default)]
pub(crate) struct Offer {
    /// Our tools, at every request, since they stand before everything else in a cached prefix.
    pub(crate) own: Vec<ToolDefinition>,
    /// Outlines of the client's tools, whose schemas the model gets only on request.
    outlines: Vec<ToolDefinition>,
    /// About how many tokens the outlines save.
    pub(crate) saved: u64,
}

impl Offer {
    /// Decides from the request, the settings and whether lookups are offered: a session's tools keep their bytes.
    pub(crate) fn of(gateway: &Gateway, request: &ProviderRequest, lookups: bool) -> Self {
        let offered = request.tools();
        // Where the provider keeps the conversation, a call that we hid from the client could not be put back into it.
        if offered.is_empty() || request.is_kept_by_the_server() {
            return Self::default();
        }
        let is_free = |own: &ToolDefinition| offered.iter().all(|tool| tool.name != own.name);
        let mut own = lookup::definitions(gateway);
        if !lookups || !own.iter().all(is_free) {
            own.clear();
        }
        let (mut outlines, mut saved) = (Vec::new(), 0);
        let describe = describe_outlined();
        if let Some(settings) = gateway.lazy_tools.as_ref().filter(|_| is_free(&describe)) {
            let is_native = settings.native != NativeSearch::Off;
            if !is_native || request.wire() != Wire::AnthropicMessages {
                // An estimate is enough: an exact count takes longer than all other work on a request.
                let tools = request.lazy_tools();
                outlines = plan_outlines(&tools, settings, Tokenizer::Estimate);
                let is_outlined =
                    |tool: &&ToolDefinition| outlines.iter().any(|one| one.name == tool.name);
                saved = tokens(tools.iter().filter(is_outlined))
                    .saturating_sub(tokens(outlines.iter()));
            }
        }
        if !outlines.is_empty() {
            own.push(describe);
        }
        Self { own, outlines, saved }
    }

    /// Returns whether the model can look up the content behind a ref.
    pub(crate) fn has_lookups(&self) -> bool {
        self.own.iter().any(|tool| tool.name == EXPAND_REF.name)
    }

    /// Adds it to the edits of a request.
    pub(crate) fn added_to(self, edits: Edits) -> Edits {
        Edits { add_tools: self.own, outline_tools: self.outlines, ..edits }
    }

    /// Digests the client's tools as they go out: they stand before everything in a cached prefix.
    pub(crate) fn digest(&self, request: &ProviderRequest) -> u64 {
        let mut all = String::new();
        for tool in request.tools() {
            match self.outlines.iter().find(|outline| *outline.name == *tool.name) {
                Some(outline) => {
                    all.push_str(&outline.name);
                    all.push_str(&outline.description);
                }
                None => all.push_str(tool.raw),
            }
            all.push('\n');
        }
        ContentHash::of(&Message::text(Role::System, all)).key()
    }
}

fn tokens<'a>(tools: impl Iterator<Item = &'a ToolDefinition>) -> u64 {
    tools.map(|tool| u64::from(tool.tokens(Tokenizer::Estimate))).sum()
}
