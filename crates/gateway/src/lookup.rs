//! Answers to the calls of our own tools: from the session and, beyond it, from its tenant's history; of tools, from the request.

use std::sync::Arc;

use plimsoll_core::lazy_tools::{
    CallDecision, DESCRIBE_TOOL, LazySettings, ToolDefinition, ToolSession,
};
use plimsoll_core::lookup::{
    DROP_FROM_CONTEXT, EXPAND_REF, LOOKUPS, SEARCH_CONTEXT, cut_answer, not_found, search,
};
use plimsoll_core::safety::{Handling, redact};
use plimsoll_core::{Ref, ToolCall, ToolResult};
use plimsoll_engine::expand::{
    self, ContentPart, ExpandError, ExpandOptions, Expansion, Originals, expand_text,
};
use plimsoll_wire::ProviderRequest;
use serde::Deserialize;

use crate::gateway::Gateway;
use crate::metrics::Counter;
use crate::pins;
use crate::sessions::SessionBranch;

/// The place in which lookups of a request search.
#[derive(Debug, Clone)]
pub(crate) struct LookupPlace {
    pub(crate) branch: SessionBranch,
    /// The number of messages of the request.
    pub(crate) end: usize,
    /// Tokens that the request leaves for the lookups of its turn.
    pub(crate) room: u64,
}

/// Returns the definitions of our tools, as the settings ask for them.
pub(crate) fn definitions(gateway: &Gateway) -> Vec<ToolDefinition> {
    let lookups = LOOKUPS.iter().map(|tool| ToolDefinition {
        name: tool.name.to_owned(),
        description: tool.description.to_owned(),
        schema: tool.parameters.to_owned(),
    });
    lookups.chain(gateway.config.add.drop_tool.then(pins::definition)).collect()
}

#[derive(Debug, Deserialize)]
struct Expand {
    #[serde(rename = "ref")]
    reference: String,
    #[serde(default)]
    lines: Option<String>,
    #[serde(default)]
    search: Option<String>,
}

#[derive(Debug, Deserialize)]
struct Search {
    query: String,
}

/// Answers a call; an error becomes a result for the model.
pub(crate) async fn answer(
    gateway: &Gateway,
    place: &LookupPlace,
    request: &ProviderRequest,
    call: &ToolCall,
) -> ToolResult {
    gateway.metrics.add(Counter::Expansions, &call.name);
    let answered = if *call.name == *EXPAND_REF.name {
        expand(gateway, place, &call.arguments).await
    } else if *call.name == *SEARCH_CONTEXT.name {
        look(gateway, place, &call.arguments).await
    } else if *call.name == *DROP_FROM_CONTEXT.name {
        pins::give_up(gateway, &place.branch, &call.arguments).await
    } else if *call.name == *DESCRIBE_TOOL {
        describe(request, &call.arguments)
    } else {
        Err("there is no tool of this name".to_owned())
    };
    let is_error = answered.is_err();
    let text: Arc<str> = answered.unwrap_or_else(|told| told).into();
    tracing::info!(tool = %call.name, characters = text.len(), is_error, "looked up");
    ToolResult { call_id: call.id.clone(), text, images: Vec::new(), is_error }
}

/// Returns the description and schema of a client's tool, in the client's own words.
fn describe(request: &ProviderRequest, arguments: &str) -> Result<String, String> {
    // The descriptions given before are in the conversation, so no state is needed beside it.
    let mut session = ToolSession::default();
    let settings = LazySettings::default();
    match session.on_call(DESCRIBE_TOOL, arguments, &request.lazy_tools(), &settings) {
        CallDecision::Described(text) => Ok(text),
        CallDecision::Unfit(text) | CallDecision::Unknown(text) => Err(text),
        CallDecision::Run => Err("it is called by its name".to_owned()),
    }
}

async fn expand(gateway: &Gateway, place: &LookupPlace, arguments: &str) -> Result<String, String> {
    let asked: Expand = serde_json::from_str(arguments)
        .map_err(|error| format!("the arguments cannot be read: {error}"))?;
    let (part, first) = match (&asked.lines, &asked.search) {
        (Some(lines), _) => {
            let (first, last) = lines.split_once('-').unwrap_or((lines, lines));
            let first: usize = first.trim().parse().unwrap_or(1);
            let last = last.trim().parse().unwrap_or(usize::MAX);
            (ContentPart::Lines { first, last }, first.max(1))
        }
        (None, Some(text)) => {
            (ContentPart::Search { text: text.clone(), around: 1, limit: usize::MAX }, 1)
        }
        (None, None) => (ContentPart::Whole, 1),
    };
    let options = ExpandOptions { fields: Vec::new(), part };
    let found = expanded(gateway, place, &asked.reference, &options).await;
    let found = found.map_err(|error| match error {
        ExpandError::Store(_) => not_found(&asked.reference),
        error => error.to_string(),
    })?;
    if found.text.is_empty() {
        return Err("nothing of it is in this part".to_owned());
    }
    Ok(cut_answer(&found.text, first))
}

/// Expands a ref: in the session, where it may not be stored yet, else among all that its tenant has.
async fn expanded(
    gateway: &Gateway,
    place: &LookupPlace,
    reference: &str,
    options: &ExpandOptions,
) -> Result<Expansion, ExpandError> {
    let original = place.branch.read(|session| session.original(&Ref::prefix(reference)?)).await;
    let redacts = gateway.config.add.redact;
    let original = if let Some(original) = original.flatten() {
        original
    } else {
        let (tenant, history) = (&place.branch.key.0, &*gateway.history);
        let originals = Originals { history, knowledge: None, tenant, asker: None };
        let now = gateway.clock.now();
        if !redacts {
            return expand::expand(&originals, reference, options, now).await;
        }
        let whole = ExpandOptions::default();
        expand::expand(&originals, reference, &whole, now).await?.text
    };
    if !redacts {
        return expand_text(&original, options);
    }
    // A part no longer shows what it is a part of: a key without its first line is only letters.
    expand_text(&redact(&original, Handling::REDACT).0, options)
}

async fn look(gateway: &Gateway, place: &LookupPlace, arguments: &str) -> Result<String, String> {
    let asked: Search = serde_json::from_str(arguments)
        .map_err(|error| format!("the arguments cannot be read: {error}"))?;
    let handling = gateway.config.add.redact.then_some(Handling::REDACT);
    let found = place
        .branch
        .read(|session| search(session.transcript(), place.end, &asked.query, handling));
    found.await.ok_or_else(|| "the session is not there".to_owned())
}
