//! The eight tools: their arguments, and the call of a use case for each.

mod definition;

use std::fmt::Write as _;

use plimsoll_core::memory::MemoryKind;
use plimsoll_core::text::{Limit, head, line};
use plimsoll_core::{ContextBudget, Ref, pressure};
use plimsoll_engine::expand::{ContentPart, ExpandOptions, Originals, expand};
use plimsoll_engine::memories::AskedMemory;
use plimsoll_engine::remember::{NewMemory, Novelty, Remember};
use plimsoll_engine::{MemoryId, Scope, SearchQuery, SessionId};
use rmcp::model::JsonObject;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::bounded::{self, LARGEST_BUDGET, Page, TOKENIZER, USUAL_BUDGET};
use crate::failure::McpFailure;
use crate::parts::ServerParts;
use definition::TOOLS;
pub(crate) use definition::all;

/// The origin of records that a client writes: it acts for a model, so its records are data and never instructions.
const ORIGIN: &str = "assistant";

/// Records of memory that a recall shows before messages, hits of a search beyond those passed over, and characters of
/// a line (chosen: a screen, or more than a result has room for).
const RECORDS: usize = 8;
const HITS: usize = 100;
const WIDTH: usize = 200;

/// Tokens of messages that a recall ranks over all its pages (chosen: two results of the largest size).
const RECALLED: u64 = 2 * LARGEST_BUDGET;

/// Messages that a timeline reads at once (chosen: more than a result has room for).
const PAGE: usize = 400;

/// The arguments of all tools; each reads its own and refuses a wrong type.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct ToolArguments {
    query: Option<String>,
    session: Option<String>,
    budget: Option<u64>,
    text: Option<String>,
    kind: Option<MemoryKind>,
    name: String,
    points: Vec<String>,
    tags: Vec<String>,
    source: Option<String>,
    id: Option<String>,
    r#ref: Option<String>,
    lines: Option<String>,
    search: Option<String>,
    offset: usize,
    window: Option<u64>,
    turn: Option<u32>,
    from: u32,
}

impl ToolArguments {
    fn budget(&self) -> u64 {
        self.budget.unwrap_or(USUAL_BUDGET).clamp(100, LARGEST_BUDGET)
    }

    fn session(&self) -> Result<Option<SessionId>, McpFailure> {
        self.session.as_deref().map(session).transpose()
    }
}

/// Reads the id of a session.
fn session(text: &str) -> Result<SessionId, McpFailure> {
    SessionId::new(text).map_err(|error| McpFailure::Input(error.to_string()))
}

/// Calls a tool and returns its result.
pub(crate) async fn call(
    parts: &ServerParts,
    name: &str,
    arguments: JsonObject,
) -> Result<String, McpFailure> {
    let Some((_, _, schema, _)) = TOOLS.iter().find(|tool| tool.0 == name) else {
        return Err(McpFailure::Unknown(format!("tool `{name}`")));
    };
    let asked: ToolArguments = read(schema, arguments)?;
    match name {
        "recall" => recall(parts, &asked).await,
        "remember" => remember(parts, asked).await,
        "forget" => forget(parts, needed(asked.id.as_deref(), "id")?).await,
        "search_context" => search(parts, &asked).await,
        "expand_ref" => expand_ref(parts, &asked).await,
        "context_pressure" => {
            let wanted = session(needed(asked.session.as_deref(), "session")?)?;
            context_pressure(parts, &wanted, asked.window).await
        }
        "explain_turn" => {
            let wanted = session(needed(asked.session.as_deref(), "session")?)?;
            turn_of(parts, &wanted, asked.turn, asked.offset, asked.budget()).await
        }
        _ => match asked.session()? {
            Some(wanted) => timeline_of(parts, &wanted, asked.from, asked.budget()).await,
            None => sessions(parts, &asked).await,
        },
    }
}

/// Reads arguments; names that the schema does not have are refused, so that a typing error is seen.
fn read<T: DeserializeOwned>(schema: &str, arguments: JsonObject) -> Result<T, McpFailure> {
    let schema: Value = serde_json::from_str(schema).unwrap_or_default();
    if let Some(name) = arguments.keys().find(|name| schema["properties"].get(name).is_none()) {
        return Err(McpFailure::Input(format!("there is no argument `{name}`")));
    }
    serde_json::from_value(Value::Object(arguments))
        .map_err(|error| McpFailure::Input(error.to_string()))
}

fn needed<'a>(value: Option<&'a str>, name: &str) -> Result<&'a str, McpFailure> {
    value
        .filter(|value| !value.trim().is_empty())
        .ok_or_else(|| McpFailure::Input(format!("`{name}` is missing")))
}

async fn recall(parts: &ServerParts, asked: &ToolArguments) -> Result<String, McpFailure> {
    let (query, wanted) = (needed(asked.query.as_deref(), "query")?, asked.session()?);
    let vector = match parts.embedder.as_deref() {
        // Without a vector records are found by their words.
        Some(embedder) => embedder.embed(&[query]).await.ok().and_then(|mut found| found.pop()),
        None => None,
    };
    let scope = Scope { session: wanted.clone(), ..Scope::default() };
    let mut out = Vec::new();
    {
        let known = parts.memories.of(&*parts.knowledge, &parts.tenant).await?;
        let question = AskedMemory {
            question: query,
            vector: vector.as_ref(),
            scope: &scope,
            tags: &[],
            now: parts.clock.now(),
        };
        let states = &parts.memory.context.scoring.states;
        let found = known.search(&question, parts.memories.settings(), states);
        for one in found.into_iter().filter(|one| one.similarity > 0.0).take(RECORDS) {
            let record = one.record;
            out.push(format!(
                "{} {} ({}, by {}): {}",
                record.kind.as_str(),
                record.id.0,
                record.state.as_str(),
                record.origin,
                line(&record.micro, WIDTH)
            ));
        }
    }
    let recalled = parts.recall.scope(&*parts.history, &parts.tenant, wanted.as_ref()).await?;
    // As much as any page may show, so that a later page goes on where this one ends.
    for hit in recalled.recall(query, RECALLED, TOKENIZER).hits {
        out.push(format!("{}\n{}", Ref::message(hit.record.hash), hit.text.trim_end()));
    }
    if out.is_empty() {
        return Ok("Nothing that is stored has to do with these words.".to_owned());
    }
    Ok(listed(&out, "row", asked))
}

/// Returns the page of a whole list that the arguments ask for.
fn listed(all: &[String], unit: &str, asked: &ToolArguments) -> String {
    let from = (asked.from as usize).min(all.len());
    let page = Page { entries: &all[from..], from, total: all.len(), unit };
    let text = page.text(asked.budget());
    if text.is_empty() { format!("There are only {} entries.", all.len()) } else { text }
}

async fn remember(parts: &ServerParts, asked: ToolArguments) -> Result<String, McpFailure> {
    let text = needed(asked.text.as_deref(), "text")?.to_owned();
    let new = NewMemory {
        name: asked.name,
        points: asked.points,
        tags: asked.tags,
        source_ref: asked.source,
        origin: ORIGIN.to_owned(),
        ..NewMemory::new(asked.kind.unwrap_or(MemoryKind::Fact), text)
    };
    let desk = desk(parts);
    let (record, novelty) = desk.add(new, parts.clock.now()).await?;
    let what = match novelty {
        Novelty::New => "Stored",
        Novelty::Confirmed => "Known and confirmed",
        Novelty::Known => "Known already",
        // Only the operator may say again what was forgotten.
        Novelty::Forgotten => "Not stored, because it was forgotten",
    };
    Ok(format!("{what}: {} {}", record.kind.as_str(), record.id.0))
}

async fn forget(parts: &ServerParts, id: &str) -> Result<String, McpFailure> {
    let id = MemoryId(id.to_owned());
    parts.knowledge.memory(&parts.tenant, &id, None).await?;
    desk(parts).forget(std::slice::from_ref(&id)).await?;
    Ok(format!("Forgotten: {}", id.0))
}

fn desk(parts: &ServerParts) -> Remember<'_> {
    Remember {
        knowledge: &*parts.knowledge,
        embedder: parts.embedder.as_deref(),
        tenant: &parts.tenant,
        lifecycles: &parts.memory.lifecycles,
        confidence: &parts.memory.confidence,
        handling: parts.handling,
    }
}

async fn search(parts: &ServerParts, asked: &ToolArguments) -> Result<String, McpFailure> {
    let query = needed(asked.query.as_deref(), "query")?;
    let words = SearchQuery {
        text: Some(query.to_owned()),
        embedding: None,
        limit: asked.from as usize + HITS,
    };
    let wanted = asked.session()?;
    let hits = parts.history.search(&parts.tenant, wanted.as_ref(), &words).await?;
    let hits: Vec<String> = hits
        .iter()
        .map(|hit| {
            let record = &hit.item;
            format!(
                "{} ({}, message {} of {})\n  {}",
                Ref::message(record.hash),
                record.message.role.as_str(),
                record.position,
                record.session,
                line(&record.message.shown(), WIDTH)
            )
        })
        .collect();
    if hits.is_empty() {
        return Ok("No stored message holds these words.".to_owned());
    }
    Ok(listed(&hits, "hit", asked))
}

async fn expand_ref(parts: &ServerParts, asked: &ToolArguments) -> Result<String, McpFailure> {
    let reference = needed(asked.r#ref.as_deref(), "ref")?;
    let part = match (&asked.lines, &asked.search) {
        (Some(lines), None) => {
            let (first, last) = lines.split_once('-').unwrap_or((lines, lines));
            let last = if last.is_empty() { Ok(usize::MAX) } else { last.parse() };
            match (first.parse(), last) {
                (Ok(first), Ok(last)) if first >= 1 && first <= last => {
                    ContentPart::Lines { first, last }
                }
                _ => return Err(McpFailure::Input(format!("`{lines}` are no lines: FIRST-LAST"))),
            }
        }
        (None, Some(text)) => {
            ContentPart::Search { text: text.clone(), around: 0, limit: usize::MAX }
        }
        (None, None) => ContentPart::Whole,
        _ => return Err(McpFailure::Input("give `lines` or `search`, not both".to_owned())),
    };
    let scope = Scope::default();
    let originals = Originals {
        history: &*parts.history,
        knowledge: Some(&*parts.knowledge),
        tenant: &parts.tenant,
        asker: Some(&scope),
    };
    let options = ExpandOptions { fields: Vec::new(), part };
    let found = expand(&originals, reference, &options, parts.clock.now()).await?;
    if let (true, Some(lines)) = (found.text.is_empty(), &asked.lines) {
        return Err(McpFailure::Input(format!("{reference} has no lines {lines}")));
    }
    Ok(from(&found.text, asked.offset, asked.budget()))
}

/// Returns the part of a text from a character on, within a budget.
fn from(text: &str, offset: usize, budget: u64) -> String {
    let begin = head(text, Limit::Characters(offset)).len();
    bounded::characters(&text[begin..], budget, |at| format!("go on with offset {}", offset + at))
}

async fn context_pressure(
    parts: &ServerParts,
    wanted: &SessionId,
    window: Option<u64>,
) -> Result<String, McpFailure> {
    let Some(found) = parts.history.session(&parts.tenant, wanted).await? else {
        return Err(McpFailure::Input(format!("there is no session {wanted}")));
    };
    if window == Some(0) {
        return Err(McpFailure::Input(
            "`window` is 0: give the model's window in tokens".to_owned(),
        ));
    }
    let mut budget = ContextBudget::default();
    budget.total_tokens = window.unwrap_or(budget.total_tokens);
    let whole = pressure(found.tokens, &budget);
    let mut out = format!(
        "whole session: {} of {} tokens, {}%",
        whole.session_tokens, whole.total_tokens, whole.percent
    );
    let receipts = parts.history.receipts(&parts.tenant, wanted).await?;
    let sent = receipts.last().and_then(|last| {
        let receipt: Value = serde_json::from_str(&last.receipt).ok()?;
        Some((last.turn, receipt.get("tokens")?.as_u64()?))
    });
    if let Some((turn, tokens)) = sent {
        let sent = pressure(tokens, &budget);
        let _ = write!(out, "\nsent in turn {turn}: {tokens} tokens, {}%", sent.percent);
    }
    if let Some(message) = whole.message {
        let _ = write!(out, "\n{message}");
    }
    Ok(out)
}

/// Returns the receipt of a turn, the last one without a number.
pub(crate) async fn turn_of(
    parts: &ServerParts,
    wanted: &SessionId,
    turn: Option<u32>,
    offset: usize,
    budget: u64,
) -> Result<String, McpFailure> {
    let receipts = parts.history.receipts(&parts.tenant, wanted).await?;
    let last = receipts.last().map(|receipt| receipt.turn);
    let found: Vec<_> =
        receipts.iter().filter(|receipt| Some(receipt.turn) == turn.or(last)).collect();
    if found.is_empty() {
        let known = last.map_or("no receipt".to_owned(), |last| format!("turns 0 to {last}"));
        return Err(McpFailure::Input(format!("session {wanted} has {known}")));
    }
    let mut out = String::new();
    for receipt in found {
        let _ = writeln!(
            out,
            "turn {} by {}: {} of {} messages sent, {} tokens saved{}\n{}",
            receipt.turn,
            receipt.strategy,
            receipt.context_size,
            receipt.full_history_size,
            receipt.tokens_saved,
            receipt.bill.map_or_else(String::new, |bill| format!(
                ", ${:.4} billed{}",
                bill.billed,
                if bill.estimate { " (estimate)" } else { "" }
            )),
            receipt.receipt
        );
    }
    Ok(from(&out, offset, budget))
}

/// Returns the messages of a session from a position on, one a line.
pub(crate) async fn timeline_of(
    parts: &ServerParts,
    wanted: &SessionId,
    first: u32,
    budget: u64,
) -> Result<String, McpFailure> {
    let Some(summary) = parts.history.session(&parts.tenant, wanted).await? else {
        return Err(McpFailure::Input(format!("there is no session {wanted}")));
    };
    let records = parts.history.messages(&parts.tenant, wanted, first, PAGE).await?;
    let lines: Vec<String> = records
        .iter()
        .map(|record| {
            format!(
                "{} turn {} {} {} tokens {} {}",
                record.position,
                record.turn,
                record.message.role.as_str(),
                record.tokens,
                Ref::message(record.hash),
                line(&record.message.shown(), WIDTH)
            )
        })
        .collect();
    let page = Page {
        entries: &lines,
        from: first as usize,
        total: summary.messages as usize,
        unit: "message",
    };
    let text = page.text(budget);
    if text.is_empty() {
        return Err(McpFailure::Input(format!(
            "session {wanted} has {} messages",
            summary.messages
        )));
    }
    Ok(text)
}

async fn sessions(parts: &ServerParts, asked: &ToolArguments) -> Result<String, McpFailure> {
    let sessions = parts.history.sessions(&parts.tenant, usize::MAX >> 1).await?;
    let lines: Vec<String> = sessions
        .iter()
        .map(|found| {
            format!("{} {} messages {} tokens", found.session, found.messages, found.tokens)
        })
        .collect();
    if lines.is_empty() {
        return Ok("The store has no sessions.".to_owned());
    }
    Ok(listed(&lines, "session", asked))
}
