//! The surroundings of a request's messages: its tools, its marks of the provider's cache, and whether our own tools are offered.

use plimsoll_core::cost::{CacheKind, Life, MOST_MARKS, Prices};
use plimsoll_core::lazy_tools::ToolDefinition;
use plimsoll_core::policy::Policy;
use plimsoll_core::terms::{ClientMarks, Surroundings};
use plimsoll_core::{MillisSinceEpoch, Position, Role};
use plimsoll_engine::live::LiveSession;
use plimsoll_wire::{ProviderRequest, Wire};

use crate::config::OwnTools;
use crate::gateway::Gateway;
use crate::lookup;

/// Bytes of a token of a tool's schema. Chosen: the usual estimate, close enough to decide by.
const BYTES: f64 = 4.0;
/// The largest share of a first request that our own tools may have. Chosen: less than half of what a session may cost more.
const SHARE: f64 = 0.004;

/// The largest share of a budget that our own tools may have. Chosen: what they give access to needs the rest.
const SHARE_OF_BUDGET: f64 = 0.25;

/// The surroundings of a request's messages, and the marks that it gets before anything is decided.
#[derive(Debug, Clone)]
pub(crate) struct RequestSurroundings {
    pub(crate) surroundings: Surroundings,
    /// Marks for an agent that sets none.
    pub(crate) marks: Vec<(Position, Life)>,
}

impl RequestSurroundings {
    /// Reads a request; `tools` is the digest of all tools as they go out, and `own` are ours among them.
    pub(crate) fn of(
        gateway: &Gateway,
        request: &ProviderRequest,
        prices: &Prices,
        tools: u64,
        own: &[ToolDefinition],
        lookups: bool,
        put_back: Vec<u32>,
    ) -> Self {
        let before = request.tool_tokens() + tokens(own);
        let mut client = request.marks();
        let mut marks = Vec::new();
        let is_marked = gateway.config.marks
            && prices.cache == CacheKind::Marks
            && request.wire() == Wire::AnthropicMessages;
        // A single question is never read again: marks would only make it dearer.
        if is_marked && client.count == 0 && !request.tools().is_empty() {
            let messages = request.messages();
            let system = messages.iter().take_while(|message| message.role == Role::System);
            let system = system.count().checked_sub(1);
            let last = messages.len().checked_sub(1);
            marks.extend(system.into_iter().chain(last).map(|at| (at, Life::Short)));
            marks.dedup();
            client.count = marks.len();
            client.messages.clone_from(&marks);
        }
        let free_marks = if is_marked { MOST_MARKS.saturating_sub(client.count) } else { 0 };
        let surroundings = Surroundings {
            before,
            // Ours stand before the messages too.
            before_key: tools.rotate_left(u32::from(lookups)),
            before_mark: client.tools,
            unseen: 0.0,
            client: ClientMarks::At(client.messages),
            free_marks,
            lookups,
            own_tools: tokens(own) as u32,
            put_back,
        };
        Self { surroundings, marks }
    }
}

/// Decides whether a request gets our own tools.
///
/// They stand in what every later request has before its messages, so this is decided at the first request, and again only
/// where the cache is gone.
pub(crate) fn offers_lookups(
    gateway: &Gateway,
    request: &ProviderRequest,
    prices: &Prices,
    session: Option<&LiveSession>,
    policy: &Policy,
    now: MillisSinceEpoch,
) -> bool {
    let own = tokens(&lookup::definitions(gateway));
    let has_room = policy.ceiling().is_none_or(|ceiling| own <= SHARE_OF_BUDGET * ceiling as f64);
    // A model that is sent everything has nothing to look up.
    if *policy == Policy::Full || !has_room {
        return false;
    }
    match gateway.config.add.tools {
        OwnTools::On => return true,
        OwnTools::Off => return false,
        OwnTools::Auto => {}
    }
    if let Some(session) = session
        && let Some(around) = session.around()
    {
        let life = request.marks().messages.last().map_or(Life::Short, |(_, life)| *life);
        if around.lookups || !prices.living(life).is_cold(session.last_use(), Some(now)) {
            return around.lookups;
        }
    }
    // Where thinking is bound to what was sent, nothing is hidden.
    !prices.bound_thinking && own <= SHARE * request.body().len() as f64 / BYTES
}

fn tokens(tools: &[ToolDefinition]) -> f64 {
    let bytes =
        |tool: &ToolDefinition| tool.name.len() + tool.description.len() + tool.schema.len() + 40;
    tools.iter().map(bytes).sum::<usize>() as f64 / BYTES
}
