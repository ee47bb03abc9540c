//! Answers to the calls of our own tools: from the session and, beyond it, from its tenant's history; of tools, from the request.

use std::sync::Arc;

use plimsoll_core::lazy_tools::{CallDecision, DESCRIBE_TOOL, LazySettings, ToolSession};
use plimsoll_core::lookup::{EXPAND_REF, LOOKUPS, SEARCH_CONTEXT, cut_answer, not_found, search};
use plimsoll_core::{Ref, ToolCall, ToolResult};
use plimsoll_engine::expand::{
    self, ExpandError, ExpandOptions, Expansion, Originals, Part, expand_text,
};
use plimsoll_wire::{Request, ToolDefinition};
use serde::Deserialize;

use crate::gateway::Gateway;
use crate::sessions::{Held, Key};

/// Where a call comes from.
#[derive(Debug, Clone)]
pub(crate) struct Place {
    pub(crate) key: Key,
    pub(crate) held: Held,
    pub(crate) branch: usize,
    /// Messages that the request had.
    pub(crate) end: usize,
}

/// Returns the definitions of our tools.
pub(crate) fn definitions() -> Vec<ToolDefinition> {
    LOOKUPS
        .iter()
        .map(|tool| ToolDefinition {
            name: tool.name.to_owned(),
            description: tool.description.to_owned(),
            parameters: tool.parameters.to_owned(),
        })
        .collect()
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

/// Answers a call; whatever cannot be answered is told to the model.
pub(crate) async fn answer(
    gateway: &Gateway,
    place: &Place,
    request: &Request,
    call: &ToolCall,
) -> ToolResult {
    gateway.metrics.expansion(&call.name);
    let answered = if *call.name == *EXPAND_REF.name {
        expand(gateway, place, &call.arguments).await
    } else if *call.name == *SEARCH_CONTEXT.name {
        look(place, &call.arguments).await
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

/// Tells what a tool of the client takes, in the client's own words.
fn describe(request: &Request, arguments: &str) -> Result<String, String> {
    // What was told is in the conversation: nothing has to be remembered beside it.
    let mut session = ToolSession::default();
    let settings = LazySettings::default();
    match session.on_call(DESCRIBE_TOOL, arguments, &request.lazy_tools(), &settings) {
        CallDecision::Described(text) => Ok(text),
        CallDecision::Unfit(text) | CallDecision::Unknown(text) => Err(text),
        CallDecision::Run => Err("it is called by its name".to_owned()),
    }
}

async fn expand(gateway: &Gateway, place: &Place, arguments: &str) -> Result<String, String> {
    let asked: Expand = serde_json::from_str(arguments)
        .map_err(|error| format!("the arguments cannot be read: {error}"))?;
    let (part, first) = match (&asked.lines, &asked.search) {
        (Some(lines), _) => {
            let (first, last) = lines.split_once('-').unwrap_or((lines, lines));
            let first: usize = first.trim().parse().unwrap_or(1);
            let last = last.trim().parse().unwrap_or(usize::MAX);
            (Part::Lines { first, last }, first.max(1))
        }
        (None, Some(text)) => {
            (Part::Search { text: text.clone(), around: 1, limit: usize::MAX }, 1)
        }
        (None, None) => (Part::Whole, 1),
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
    place: &Place,
    reference: &str,
    options: &ExpandOptions,
) -> Result<Expansion, ExpandError> {
    let (tenant, history) = (&place.key.0, &*gateway.history);
    let original = {
        let guard = place.held.lock().await;
        let session = guard.as_ref().and_then(|all| all.branch(place.branch));
        session.and_then(|session| session.original(&Ref::prefix(reference)?))
    };
    if let Some(original) = original {
        return expand_text(&original, options);
    }
    let originals = Originals { history, knowledge: None, tenant };
    expand::expand(&originals, reference, options, gateway.clock.now()).await
}

async fn look(place: &Place, arguments: &str) -> Result<String, String> {
    let asked: Search = serde_json::from_str(arguments)
        .map_err(|error| format!("the arguments cannot be read: {error}"))?;
    let guard = place.held.lock().await;
    let session = guard.as_ref().and_then(|all| all.branch(place.branch));
    let transcript = session.ok_or_else(|| "the session is not there".to_owned())?.transcript();
    Ok(search(transcript, place.end, &asked.query))
}
