//! Lazy tools: a request begins with names and intents, and gets a tool's schema on demand.
//!
//! The directory is part of the stable header (`request`). `describe_tool` loads a schema, and so does a call that fits it. Loaded
//! schemas stay in the order of loading, so that the bytes in front of a conversation only grow.
//! Source: `context-strategy.md` 2, 3.4 and 5.2.

#[cfg(test)]
mod break_even;
mod definition;
mod outline;
mod session;

use serde::{Deserialize, Serialize};

use crate::request::ToolIntent;
use crate::text::{Limit, head, one_line};
use crate::tokens::Tokenizer;

pub use definition::{NoSchema, ToolDefinition};
pub use outline::{OPEN_SCHEMA, OUTLINE_HINT, describe_outlined, plan_outlines};
pub use session::{CallDecision, DESCRIBE_TOOL, ToolSession, describe_tool, described};

/// Settings of lazy tools.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct LazySettings {
    /// Whether schemas wait until they are asked for.
    pub enabled: bool,
    /// The most tokens of a tool's line in the directory.
    pub intent_tokens: u64,
    /// Tools whose schemas are sent from the beginning, by name.
    pub always: Vec<String>,
    /// Definitions of fewer tokens together are all sent: a directory would save nothing.
    pub least_tokens: u64,
    /// Outlines that save fewer tokens of a request are not sent: a short session that asks about some tools would be dearer.
    pub least_saved: u64,
    /// Leave the search to the provider, where it has one.
    pub native: NativeSearch,
}

impl Default for LazySettings {
    /// Chosen: a line of a directory is a short sentence; `context-strategy.md` puts schemas at 500 tokens and more. The least
    /// saving of outlines is above every measured case that cost more, and pays seven questions (`break_even.rs`).
    fn default() -> Self {
        Self {
            enabled: true,
            intent_tokens: 24,
            always: Vec::new(),
            least_tokens: 500,
            least_saved: 12_000,
            native: NativeSearch::Off,
        }
    }
}

/// How a provider searches tools itself.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NativeSearch {
    #[default]
    Off,
    /// The model searches by regular expressions.
    Regex,
    /// The model searches by words.
    Bm25,
}

/// The tools in a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolPlan {
    /// Definitions to send, in this order.
    pub sent: Vec<ToolDefinition>,
    /// Tools of `sent` that the provider defers until its search finds them.
    pub deferred: Vec<String>,
    /// For the header; empty if all schemas are sent.
    pub directory: Vec<ToolIntent>,
    /// Tokens that the model reads: `sent` without `deferred`.
    pub tokens: u64,
    /// Tokens of all definitions.
    pub all_tokens: u64,
}

/// Plans the tools of a session's next request.
///
/// Shape: as long as tools and settings stay, `sent` begins with the `sent` of the session's last plan.
pub fn plan_tools(
    tools: &[ToolDefinition],
    session: &ToolSession,
    settings: &LazySettings,
    tokenizer: Tokenizer,
) -> ToolPlan {
    let tools = once_each(tools);
    let count = |tool: &ToolDefinition| u64::from(tool.tokens(tokenizer));
    let all_tokens = tools.iter().map(|tool| count(tool)).sum();
    let whole = |deferred: Vec<String>, tokens: u64| ToolPlan {
        sent: tools.iter().map(|tool| (*tool).clone()).collect(),
        deferred,
        directory: Vec::new(),
        tokens,
        all_tokens,
    };
    if !settings.enabled || all_tokens < settings.least_tokens {
        return whole(Vec::new(), all_tokens);
    }
    let is_always = |tool: &&&ToolDefinition| settings.always.contains(&tool.name);
    if settings.native != NativeSearch::Off {
        let now = tools.iter().filter(is_always).map(|tool| count(tool)).sum();
        let deferred = tools.iter().filter(|tool| !is_always(tool));
        return whole(deferred.map(|tool| tool.name.clone()).collect(), now);
    }
    let mut sent = vec![describe_tool()];
    sent.extend(tools.iter().filter(is_always).map(|tool| (*tool).clone()));
    let find = |name: &String| tools.iter().find(|tool| tool.name == *name);
    let loaded = session.loaded().iter().filter_map(find).filter(|tool| !is_always(tool));
    sent.extend(loaded.map(|tool| (*tool).clone()));
    let tokens = sent.iter().map(count).sum();
    let directory = tools.iter().map(|tool| intent(tool, settings, tokenizer)).collect();
    ToolPlan { sent, deferred: Vec::new(), directory, tokens, all_tokens }
}

/// Returns tools in the order of their names, the first of two that share one.
fn once_each(tools: &[ToolDefinition]) -> Vec<&ToolDefinition> {
    let mut sorted: Vec<&ToolDefinition> = tools.iter().collect();
    sorted.sort_by(|a, b| a.name.cmp(&b.name));
    sorted.dedup_by(|later, first| later.name == first.name);
    sorted
}

/// Returns a tool's line of the directory: the first sentence of its description, within the most tokens of a line.
fn intent(tool: &ToolDefinition, settings: &LazySettings, tokenizer: Tokenizer) -> ToolIntent {
    let line = one_line(&tool.description);
    let sentence = line.find(". ").map_or(&*line, |end| &line[..end]).trim_end_matches('.');
    let name = u64::from(tokenizer.count(&format!("- {}: ", tool.name)));
    let cut = head(sentence, Limit::Tokens(tokenizer, settings.intent_tokens.saturating_sub(name)));
    let whole_words = if cut.len() == sentence.len() {
        cut
    } else {
        cut.rfind(' ').map_or("", |end| &cut[..end])
    };
    ToolIntent { name: tool.name.clone(), intent: whole_words.to_owned() }
}

#[cfg(test)]
mod tests;
