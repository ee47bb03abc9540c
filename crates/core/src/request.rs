//! Requests: a header that stays alike from turn to turn, and a working set that is chosen for this one.
//!
//! Source: `context-strategy.md` 2, 4.1, 6.2, 7.1 and 12.1.

mod header;

use std::collections::BTreeSet;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use crate::context::{Receipt, State, bound};
use crate::cost::Prices;
use crate::hash::ContentHash;
use crate::memory::quoted_line;
use crate::message::{Message, Role};
use crate::passes::{ArtefactLine, FactLine, Findings};
use crate::policy::{Policy, RequestSettings};
use crate::section::Section;
use crate::terms::Terms;
use crate::tokens::Tokenizer;
use crate::transcript::Transcript;

/// A tool of the directory.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolIntent {
    pub name: String,
    /// Its purpose, on one line.
    pub intent: String,
}

/// A message of the history, older than the turn that is answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PastMessage {
    /// `User` or `Assistant`.
    pub role: Role,
    pub text: String,
    /// The hash of the original: a ref stands where something was left out.
    pub hash: ContentHash,
}

/// A fact that the search found.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FoundFact {
    pub id: String,
    pub text: String,
    pub origin: String,
    pub similarity: f64,
}

/// An artefact that the conversation still uses.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HotArtefact {
    /// As it is expanded: `ref:<kind>:<hex>`.
    pub reference: String,
    pub summary: Option<String>,
    /// The substitute for a missing summary: the view that was compressed without a model.
    pub extract: String,
    pub stale: bool,
}

/// All that a request is made of.
#[derive(Debug, Clone, Copy)]
pub struct RequestInput<'a> {
    pub rules: &'a str,
    pub tools: &'a [ToolIntent],
    /// Project, time zone, role.
    pub profile: &'a str,
    /// The text of [`crate::memory::assemble`], with the facts of memory.
    pub memory: Option<&'a str>,
    /// Oldest first.
    pub history: &'a [PastMessage],
    /// Statements of other origin, as what was said earlier in the session.
    pub facts: &'a [FoundFact],
    pub artefacts: &'a [HotArtefact],
    pub user_turn: &'a str,
    pub tokenizer: Tokenizer,
}

/// Tokens used, the ceiling, and warnings about parts that gave way.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BudgetInfo {
    pub used: u64,
    pub limit: u64,
    pub warnings: Vec<String>,
}

/// A request within its budget.
#[derive(Debug, Clone, PartialEq)]
pub struct AssembledRequest {
    /// The same on every turn as long as rules, tools and profile are.
    pub header: Vec<Message>,
    /// The text from memory: a system message behind the header, if there is one.
    pub memory: Option<Message>,
    /// History, then facts and artefacts with the turn itself: the parts that change most stand last.
    pub working_set: Vec<Message>,
    pub budget: BudgetInfo,
    /// Tools whose schemas are loaded when they are used.
    pub lazy_tools: Vec<String>,
    /// Equal for equal questions in equal contexts.
    pub cache_key: String,
    /// Refs of artefacts without a summary, for which one is to be made.
    pub to_summarise: Vec<String>,
    /// The decisions about each message, and tokens by section.
    pub receipt: Receipt,
}

/// The rules and the turn alone exceed the budget.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the turn alone exceeds the budget of {limit} tokens by {by}")]
pub struct TurnTooLarge {
    pub limit: u64,
    pub by: u64,
}

/// Assembles a request: the context of [`Policy::WorkingSet`] for header, memory, history and turn.
///
/// Errors: [`TurnTooLarge`] if the rules and the turn alone exceed the budget; nothing of the turn itself is ever cut.
pub fn assemble_request(
    input: &RequestInput<'_>,
    settings: &RequestSettings,
) -> Result<AssembledRequest, TurnTooLarge> {
    let mut warnings = Vec::new();
    let header = header::header(input, settings, &mut warnings);
    let memory = input.memory.unwrap_or_default().trim();
    let mut transcript = Transcript::new(input.tokenizer);
    transcript.push(Message::text(Role::System, header));
    if !memory.is_empty() {
        transcript.push(Message::text(Role::System, memory));
    }
    let leading = transcript.entries().len();
    for past in input.history {
        let message = Message::text(past.role, &*past.text);
        let tokens = input.tokenizer.count_message(&message);
        transcript.push_known(Arc::new(message), past.hash, tokens);
    }
    transcript.push(Message::text(Role::User, input.user_turn));

    let mut state = State::default();
    state.find(Findings {
        facts: fact_lines(input, settings),
        artefacts: input.artefacts.iter().map(artefact_line).collect(),
        rules: input.rules.to_owned(),
    });
    let (policy, terms) = (Policy::WorkingSet(settings.clone()), Terms::new(Prices::PLAIN));
    let end = transcript.entries().len();
    let (context, receipt) = bound(&transcript, end, &policy, &terms, &mut state);
    if receipt.over_budget > 0 {
        return Err(TurnTooLarge { limit: settings.total, by: receipt.over_budget });
    }
    warnings.extend(receipt.warnings.iter().cloned());

    let cache_key = cache_key(&state, input.user_turn);
    let mut messages: Vec<Message> =
        context.iter().map(|sent| Message { time: None, ..(*sent.message).clone() }).collect();
    let is_memory =
        |sent: &Arc<crate::plan::Sent>| sent.position.is_some_and(|at| at == 1 && at < leading);
    let memory = context.get(1).is_some_and(is_memory).then(|| messages.remove(1));
    let working_set = messages.split_off(1);
    let missing = input.artefacts.iter().filter(|artefact| artefact.summary.is_none());
    let mut lazy_tools: Vec<String> = input.tools.iter().map(|tool| tool.name.clone()).collect();
    lazy_tools.sort();
    lazy_tools.dedup();
    Ok(AssembledRequest {
        cache_key,
        header: messages,
        memory,
        working_set,
        budget: BudgetInfo { used: receipt.tokens, limit: settings.total, warnings },
        lazy_tools,
        to_summarise: missing.map(|artefact| artefact.reference.clone()).collect(),
        receipt,
    })
}

/// Returns the facts of a request on lines, the most similar first, each record once.
fn fact_lines(input: &RequestInput<'_>, settings: &RequestSettings) -> Vec<FactLine> {
    // A similarity that is no number counts 0.
    let similarity =
        |fact: &FoundFact| if fact.similarity.is_nan() { 0.0 } else { fact.similarity };
    let mut found: Vec<&FoundFact> = input.facts.iter().collect();
    found.sort_by(|a, b| {
        let by_text = || (&a.id, &a.text, &a.origin).cmp(&(&b.id, &b.text, &b.origin));
        similarity(b).total_cmp(&similarity(a)).then_with(by_text)
    });
    let mut ids = BTreeSet::new();
    found.retain(|fact| ids.insert(&*fact.id));
    let line = |fact: &FoundFact| FactLine {
        similarity: similarity(fact),
        line: format!("- {}", quoted_line(&fact.text, &fact.origin)),
    };
    found.into_iter().take(settings.most_facts).map(line).collect()
}

fn artefact_line(artefact: &HotArtefact) -> ArtefactLine {
    let text = artefact.summary.as_deref().unwrap_or(&artefact.extract);
    let mut line = format!("- {}: {}", artefact.reference, quoted_line(text, "tool"));
    if artefact.stale {
        line.push_str(" [stale - use expand_ref to refresh]");
    }
    ArtefactLine { is_stale: artefact.stale, line }
}

/// Returns the digest of the question, without case and spacing, and of all that it is asked in.
fn cache_key(state: &State, question: &str) -> String {
    let mut digest = Sha256::new();
    let question = question.split_whitespace().collect::<Vec<_>>().join(" ").to_lowercase();
    let plan = state.plan();
    let context = plan.render();
    let forms =
        context.iter().filter_map(|sent| sent.position).map(|at| &plan.decisions()[at].form);
    let mut forms: Vec<_> = forms.map(|form| (form.message.role, form.message.shown())).collect();
    // The turn itself is the question.
    forms.pop();
    let added = plan.additions().filter(|(_, section, _)| *section != Section::Memory);
    let parts = [question].into_iter();
    let parts = parts.chain(added.map(|(.., text)| text.to_string()));
    let parts =
        parts.chain(forms.into_iter().flat_map(|(role, text)| [role.as_str().to_owned(), text]));
    for part in parts {
        // Lengths keep "a" "bc" apart from "ab" "c".
        digest.update((part.len() as u64).to_le_bytes());
        digest.update(part.as_bytes());
    }
    ContentHash(digest.finalize().into()).full()
}

#[cfg(test)]
mod tests;
