//! The eight tools: their descriptions, their arguments, and the call of a use case for each.

use std::fmt::Write as _;
use std::sync::Arc;

use plimsoll_core::memory::MemoryKind;
use plimsoll_core::text::line;
use plimsoll_core::{ContextBudget, Ref, pressure};
use plimsoll_engine::expand::{ContentPart, ExpandOptions, Originals, expand};
use plimsoll_engine::memories::AskedMemory;
use plimsoll_engine::remember::{NewMemory, Novelty, Remember};
use plimsoll_engine::{MemoryId, Scope, SearchQuery, SessionId};
use rmcp::model::{JsonObject, Tool, ToolAnnotations};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::bounded::{self, LARGEST_BUDGET, TOKENIZER, USUAL_BUDGET};
use crate::failure::Failure;
use crate::server::{Parts, session};

/// The origin of records that a client writes: it acts for a model, so its records are data and never instructions.
const ORIGIN: &str = "assistant";

/// Records of memory that a recall shows before messages, hits of a search, and characters of a line (chosen: a screen).
const RECORDS: usize = 8;
const HITS: usize = 20;
const WIDTH: usize = 200;

/// Messages that a timeline reads at once (chosen: more than a result has room for).
const PAGE: usize = 400;

/// Name, description, JSON Schema of the arguments, and whether the tool changes nothing.
const TOOLS: [(&str, &str, &str, bool); 8] = [
    (
        "recall",
        "Returns what earlier sessions and memory know about a question: records first, then the messages that answer it, each with its ref.",
        r#"{"type":"object","properties":{"query":{"type":"string","description":"The question, in words"},"session":{"type":"string","description":"Only this session"},"budget":{"type":"integer","minimum":100,"maximum":20000,"description":"Tokens of the result; 4000 by default"}},"required":["query"]}"#,
        true,
    ),
    (
        "remember",
        "Stores one fact, decision, task, procedure, episode or other record for later sessions. One sentence that can be read alone.",
        r#"{"type":"object","properties":{"text":{"type":"string","description":"One sentence"},"kind":{"type":"string","enum":["decision","entity","task","metric","link","fact","procedure","episode","censor"],"description":"`fact` by default"},"name":{"type":"string","description":"The name of a procedure, or the pattern of a censor"},"points":{"type":"array","items":{"type":"string"},"description":"Reasons of a decision, or steps of a procedure"},"tags":{"type":"array","items":{"type":"string"}},"source":{"type":"string","description":"The ref of the text that says so"}},"required":["text"]}"#,
        false,
    ),
    (
        "forget",
        "Removes a memory record for good. `recall` shows the ids.",
        r#"{"type":"object","properties":{"id":{"type":"string","description":"The id of the record"}},"required":["id"]}"#,
        false,
    ),
    (
        "search_context",
        "Searches the stored messages by words and returns the best lines with the refs of their messages.",
        r#"{"type":"object","properties":{"query":{"type":"string","description":"Words to look for"},"session":{"type":"string","description":"Only this session"},"budget":{"type":"integer","minimum":100,"maximum":20000,"description":"Tokens of the result; 4000 by default"}},"required":["query"]}"#,
        true,
    ),
    (
        "expand_ref",
        "Returns the original behind a ref such as ref:message:0123456789abcdef: whole, from an offset, only some lines, or only lines that hold a text.",
        r#"{"type":"object","properties":{"ref":{"type":"string","description":"The ref as it is shown"},"lines":{"type":"string","description":"FIRST-LAST, counted from 1"},"search":{"type":"string","description":"Only lines that hold this text"},"offset":{"type":"integer","minimum":0,"description":"Characters to pass over"},"budget":{"type":"integer","minimum":100,"maximum":20000,"description":"Tokens of the result; 4000 by default"}},"required":["ref"]}"#,
        true,
    ),
    (
        "context_pressure",
        "Shows how full a session makes a context window.",
        r#"{"type":"object","properties":{"session":{"type":"string"},"window":{"type":"integer","minimum":1,"description":"The window in tokens"}},"required":["session"]}"#,
        true,
    ),
    (
        "explain_turn",
        "Returns the receipt of a turn: what was sent, what was shortened, why, and what it cost. Without a turn, the last one.",
        r#"{"type":"object","properties":{"session":{"type":"string"},"turn":{"type":"integer","minimum":0,"description":"Counted from 0"},"offset":{"type":"integer","minimum":0,"description":"Characters to pass over"},"budget":{"type":"integer","minimum":100,"maximum":20000,"description":"Tokens of the result; 4000 by default"}},"required":["session"]}"#,
        true,
    ),
    (
        "timeline",
        "Lists the sessions of the store, or with a session its messages in order, each on a line with its ref.",
        r#"{"type":"object","properties":{"session":{"type":"string"},"from":{"type":"integer","minimum":0,"description":"The first message or session, counted from 0"},"budget":{"type":"integer","minimum":100,"maximum":20000,"description":"Tokens of the result; 4000 by default"}}}"#,
        true,
    ),
];

/// Returns all tools.
pub(crate) fn all() -> Vec<Tool> {
    let tool = |(name, about, schema, reads): (&'static str, &'static str, &str, bool)| {
        let schema: JsonObject = serde_json::from_str(schema).unwrap_or_default();
        let annotations = ToolAnnotations::new().read_only(reads).destructive(name == "forget");
        Tool::new(name, about, Arc::new(schema)).with_annotations(annotations.open_world(false))
    };
    TOOLS.into_iter().map(tool).collect()
}

/// The arguments of all tools; each reads its own and refuses a wrong type.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Asked {
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

impl Asked {
    fn budget(&self) -> u64 {
        self.budget.unwrap_or(USUAL_BUDGET).clamp(100, LARGEST_BUDGET)
    }

    fn session(&self) -> Result<Option<SessionId>, Failure> {
        self.session.as_deref().map(session).transpose()
    }
}

/// Calls a tool and returns its result.
pub(crate) async fn call(
    parts: &Parts,
    name: &str,
    arguments: JsonObject,
) -> Result<String, Failure> {
    let Some((_, _, schema, _)) = TOOLS.iter().find(|tool| tool.0 == name) else {
        return Err(Failure::Unknown(format!("tool `{name}`")));
    };
    let asked: Asked = read(schema, arguments)?;
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
            None => sessions(parts, asked.from, asked.budget()).await,
        },
    }
}

/// Reads arguments; names that the schema does not have are refused, so that a typing error is seen.
fn read<T: DeserializeOwned>(schema: &str, arguments: JsonObject) -> Result<T, Failure> {
    let schema: Value = serde_json::from_str(schema).unwrap_or_default();
    if let Some(name) = arguments.keys().find(|name| schema["properties"].get(name).is_none()) {
        return Err(Failure::Input(format!("there is no argument `{name}`")));
    }
    serde_json::from_value(Value::Object(arguments))
        .map_err(|error| Failure::Input(error.to_string()))
}

fn needed<'a>(value: Option<&'a str>, name: &str) -> Result<&'a str, Failure> {
    value
        .filter(|value| !value.trim().is_empty())
        .ok_or_else(|| Failure::Input(format!("`{name}` is missing")))
}

async fn recall(parts: &Parts, asked: &Asked) -> Result<String, Failure> {
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
    let taken: u64 = out.iter().map(|entry| u64::from(TOKENIZER.count(entry)) + 1).sum();
    let room = asked.budget().saturating_sub(taken + 100);
    let recalled = parts.recall.scope(&*parts.history, &parts.tenant, wanted.as_ref()).await?;
    for hit in recalled.recall(query, room * 9 / 10, TOKENIZER).hits {
        out.push(format!("{}\n{}", Ref::message(hit.record.hash), hit.text.trim_end()));
    }
    if out.is_empty() {
        return Ok("Nothing that is stored has to do with these words.".to_owned());
    }
    Ok(bounded::entries(&out, asked.budget(), "entry", |_| "ask with a larger budget".to_owned()))
}

async fn remember(parts: &Parts, asked: Asked) -> Result<String, Failure> {
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

async fn forget(parts: &Parts, id: &str) -> Result<String, Failure> {
    let id = MemoryId(id.to_owned());
    parts.knowledge.memory(&parts.tenant, &id, None).await?;
    desk(parts).forget(std::slice::from_ref(&id)).await?;
    Ok(format!("Forgotten: {}", id.0))
}

fn desk(parts: &Parts) -> Remember<'_> {
    Remember {
        knowledge: &*parts.knowledge,
        embedder: parts.embedder.as_deref(),
        tenant: &parts.tenant,
        lifecycles: &parts.memory.lifecycles,
        confidence: &parts.memory.confidence,
        handling: parts.handling,
    }
}

async fn search(parts: &Parts, asked: &Asked) -> Result<String, Failure> {
    let query = needed(asked.query.as_deref(), "query")?;
    let words = SearchQuery { text: Some(query.to_owned()), embedding: None, limit: HITS };
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
    Ok(bounded::entries(&hits, asked.budget(), "hit", |_| "ask with a larger budget".to_owned()))
}

async fn expand_ref(parts: &Parts, asked: &Asked) -> Result<String, Failure> {
    let reference = needed(asked.r#ref.as_deref(), "ref")?;
    let part = match (&asked.lines, &asked.search) {
        (Some(lines), None) => {
            let (first, last) = lines.split_once('-').unwrap_or((lines, lines));
            let last = if last.is_empty() { Ok(usize::MAX) } else { last.parse() };
            match (first.parse(), last) {
                (Ok(first), Ok(last)) if first >= 1 && first <= last => {
                    ContentPart::Lines { first, last }
                }
                _ => return Err(Failure::Input(format!("`{lines}` are no lines: FIRST-LAST"))),
            }
        }
        (None, Some(text)) => {
            ContentPart::Search { text: text.clone(), around: 0, limit: usize::MAX }
        }
        (None, None) => ContentPart::Whole,
        _ => return Err(Failure::Input("give `lines` or `search`, not both".to_owned())),
    };
    let originals = Originals {
        history: &*parts.history,
        knowledge: Some(&*parts.knowledge),
        tenant: &parts.tenant,
    };
    let options = ExpandOptions { fields: Vec::new(), part };
    let found = expand(&originals, reference, &options, parts.clock.now()).await?;
    Ok(from(&found.text, asked.offset, asked.budget()))
}

/// Returns the part of a text from a character on, within a budget.
fn from(text: &str, offset: usize, budget: u64) -> String {
    let begin = text.char_indices().nth(offset).map_or(text.len(), |(at, _)| at);
    bounded::characters(&text[begin..], budget, |at| format!("go on with offset {}", offset + at))
}

async fn context_pressure(
    parts: &Parts,
    wanted: &SessionId,
    window: Option<u64>,
) -> Result<String, Failure> {
    let Some(found) = parts.history.session(&parts.tenant, wanted).await? else {
        return Err(Failure::Input(format!("there is no session {wanted}")));
    };
    let mut budget = ContextBudget::default();
    budget.total_tokens = window.unwrap_or(budget.total_tokens);
    let pressure = pressure(found.tokens, &budget);
    serde_json::to_string_pretty(&pressure).map_err(|error| Failure::Input(error.to_string()))
}

/// Returns the receipt of a turn, the last one without a number.
pub(crate) async fn turn_of(
    parts: &Parts,
    wanted: &SessionId,
    turn: Option<u32>,
    offset: usize,
    budget: u64,
) -> Result<String, Failure> {
    let receipts = parts.history.receipts(&parts.tenant, wanted).await?;
    let last = receipts.last().map(|receipt| receipt.turn);
    let found: Vec<_> =
        receipts.iter().filter(|receipt| Some(receipt.turn) == turn.or(last)).collect();
    if found.is_empty() {
        let known = last.map_or("no receipt".to_owned(), |last| format!("turns 0 to {last}"));
        return Err(Failure::Input(format!("session {wanted} has {known}")));
    }
    let mut out = String::new();
    for receipt in found {
        let _ = writeln!(
            out,
            "turn {} by {}: {} of {} messages sent, {} tokens saved\n{}",
            receipt.turn,
            receipt.strategy,
            receipt.context_size,
            receipt.full_history_size,
            receipt.tokens_saved,
            receipt.receipt
        );
    }
    Ok(from(&out, offset, budget))
}

/// Returns the messages of a session from a position on, one a line.
pub(crate) async fn timeline_of(
    parts: &Parts,
    wanted: &SessionId,
    first: u32,
    budget: u64,
) -> Result<String, Failure> {
    let Some(summary) = parts.history.session(&parts.tenant, wanted).await? else {
        return Err(Failure::Input(format!("there is no session {wanted}")));
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
    let mut out = bounded::entries(&lines, budget, "message", |shown| {
        format!("go on with from {}", first as usize + shown)
    });
    let end = first as usize + lines.len();
    if lines.len() == PAGE && !out.contains("go on with from") {
        let _ = write!(out, "go on with from {end} of {}", summary.messages);
    }
    Ok(out)
}

async fn sessions(parts: &Parts, first: u32, budget: u64) -> Result<String, Failure> {
    let sessions = parts.history.sessions(&parts.tenant, first as usize + PAGE).await?;
    let lines: Vec<String> = sessions
        .iter()
        .skip(first as usize)
        .map(|found| {
            format!("{} {} messages {} tokens", found.session, found.messages, found.tokens)
        })
        .collect();
    if lines.is_empty() {
        return Ok("The store has no further sessions.".to_owned());
    }
    Ok(bounded::entries(&lines, budget, "session", |shown| {
        format!("go on with from {}", first as usize + shown)
    }))
}
