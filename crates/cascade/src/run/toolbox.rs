//! The tools of a run: its own, and those of its sources.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use plimsoll_core::{Message, MillisSinceEpoch};
use plimsoll_engine::expand::{ContentPart, ExpandOptions, Originals, expand};
use plimsoll_engine::{
    HistoryStore, Hit, KnowledgeStore, MemoryChange, MemoryId, MemoryKind, MemoryRecord,
    MemoryState, MessageRecord, Scope, SearchQuery, SessionId, StoreError, TenantId, Tool,
    ToolAnswer, ToolError, ToolSource,
};
use serde_json::{Map, Value, json};

use super::Runner;
use super::bank::tag;

/// Asks a person.
#[async_trait]
pub trait Human: Send + Sync + std::fmt::Debug {
    /// Returns the answer to a question of a phase; `None` where nobody is there.
    async fn ask(&self, phase: &str, question: &str) -> Option<String>;
}

/// Answers no question.
#[derive(Debug, Clone, Copy, Default)]
pub struct Nobody;

#[async_trait]
impl Human for Nobody {
    async fn ask(&self, _: &str, _: &str) -> Option<String> {
        None
    }
}

/// Goes to another phase, and ends this one.
pub(crate) const ROUTE_TO: &str = "route_to";
/// Sets a key of the state.
pub(crate) const SET_STATE: &str = "set_state";
/// Returns the content of a ref.
pub(crate) const EXPAND_REF: &str = "expand_ref";
const SEARCH_CONTEXT: &str = "search_context";
const REMEMBER: &str = "remember";
const ASK_HUMAN: &str = "ask_human";

/// Returns whether a tool is one that every run has.
pub(crate) fn is_own(tool: &str) -> bool {
    own_tools().contains(&tool)
}

/// Returns the names of the tools that every run has.
pub fn own_tools() -> [&'static str; 6] {
    [ROUTE_TO, SET_STATE, EXPAND_REF, SEARCH_CONTEXT, REMEMBER, ASK_HUMAN]
}

/// Hits of a search that a model sees, and characters of each (chosen).
const HITS: usize = 5;
const HIT_WIDTH: usize = 500;

/// All tools of a run, by name; a run's own go before those of a source.
#[derive(Debug)]
pub(crate) struct Toolbox {
    own: BTreeMap<&'static str, Tool>,
    outside: BTreeMap<String, (Tool, Arc<dyn ToolSource>)>,
    history: Arc<dyn HistoryStore>,
    knowledge: Arc<dyn KnowledgeStore>,
    human: Arc<dyn Human>,
    /// The sessions of this run: its own, and those of its attempts and inner cascades.
    sessions: Mutex<Vec<SessionId>>,
    /// Whether a stub answers calls of tools that no source has.
    stubs: bool,
}

/// The caller of a tool, and the time.
#[derive(Debug, Clone)]
pub(crate) struct Caller {
    pub(crate) tenant: TenantId,
    pub(crate) session: SessionId,
    pub(crate) cascade: String,
    pub(crate) phase: String,
    /// The memory bank of the cascade.
    pub(crate) bank: Option<String>,
    pub(crate) now: MillisSinceEpoch,
    /// Differs for each call of a session.
    pub(crate) number: u32,
}

impl Toolbox {
    /// Gathers the tools of all sources; of two with one name the first source's is taken.
    pub(crate) async fn gather(runner: &Runner) -> Result<Self, ToolError> {
        let mut outside = BTreeMap::new();
        for source in &runner.tools {
            for tool in source.tools().await? {
                outside.entry(tool.name.to_string()).or_insert_with(|| (tool, source.clone()));
            }
        }
        Ok(Self {
            own: own().into_iter().collect(),
            outside,
            history: runner.history.clone(),
            knowledge: runner.knowledge.clone(),
            human: runner.human.clone(),
            sessions: Mutex::default(),
            stubs: runner.settings.stubs,
        })
    }

    /// Takes note of a session of the run.
    pub(crate) fn know(&self, session: &SessionId) {
        let mut sessions = self.sessions.lock().unwrap_or_else(PoisonError::into_inner);
        if !sessions.contains(session) {
            sessions.push(session.clone());
        }
    }

    /// Returns a tool by name.
    pub(crate) fn find(&self, name: &str) -> Option<Tool> {
        let own = self.own.get(name).cloned();
        let stub = || {
            self.stubs.then(|| Tool {
                name: name.into(),
                description: "Not available in this run.".into(),
                schema: r#"{"type":"object"}"#.into(),
            })
        };
        own.or_else(|| self.outside.get(name).map(|(tool, _)| tool.clone())).or_else(stub)
    }

    /// Returns whether a tool is there, not only a stub.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.own.contains_key(name) || self.outside.contains_key(name)
    }

    /// Returns the known name nearest to an unknown one.
    pub(crate) fn nearest(&self, name: &str) -> Option<&str> {
        let names = self.own.keys().copied().chain(self.outside.keys().map(String::as_str));
        plimsoll_core::nearest(name, names)
    }

    /// Returns name and first line of all tools, a line each.
    pub(crate) fn directory(&self) -> Vec<String> {
        let own = self.own.values().filter(|tool| &*tool.name != ROUTE_TO);
        let outside = self.outside.values().map(|(tool, _)| tool);
        own.chain(outside)
            .map(|tool| {
                let about = tool.description.lines().next().unwrap_or_default();
                format!("{}: {about}", tool.name)
            })
            .collect()
    }

    /// Calls a tool; the turn itself executes those that set the route or the state.
    pub(crate) async fn call(
        &self,
        caller: &Caller,
        name: &str,
        arguments: &str,
    ) -> Result<ToolAnswer, ToolError> {
        if self.own.contains_key(name) {
            return self.call_own(caller, name, arguments).await;
        }
        match self.outside.get(name) {
            Some((_, source)) => source.call(name, arguments).await,
            None if self.stubs => {
                Ok(ToolAnswer::text(format!("[{name} is not available in this run]")))
            }
            None => Err(ToolError::Unknown { name: name.to_owned() }),
        }
    }

    async fn call_own(
        &self,
        caller: &Caller,
        name: &str,
        arguments: &str,
    ) -> Result<ToolAnswer, ToolError> {
        let invalid = |why: String| ToolError::Invalid { name: name.to_owned(), why };
        let arguments = object(name, arguments)?;
        let text = |key: &str| {
            let given = arguments.get(key).and_then(Value::as_str);
            given.ok_or_else(|| invalid(format!("the argument `{key}`, a text, is missing")))
        };
        let unavailable = |error: StoreError| ToolError::Unavailable {
            name: name.to_owned(),
            why: error.to_string(),
        };
        match name {
            EXPAND_REF => self.expand(caller, text("ref")?, &arguments).await,
            SEARCH_CONTEXT => self.search(caller, text("query")?).await.map_err(unavailable),
            REMEMBER => {
                let record = remembered(caller, text("text")?, &arguments);
                let id = record.id.0.clone();
                let added = remember(&*self.knowledge, record).await.map_err(unavailable)?;
                Ok(if added {
                    ToolAnswer::text(format!("remembered as {id}"))
                } else {
                    ToolAnswer::failed("this was forgotten, and is not remembered again")
                })
            }
            ASK_HUMAN => {
                let answer = self.human.ask(&caller.phase, text("question")?).await;
                Ok(answer.map_or_else(
                    || ToolAnswer::failed("nobody is there to answer"),
                    ToolAnswer::text,
                ))
            }
            _ => Err(ToolError::Unknown { name: name.to_owned() }),
        }
    }

    /// Searches everything that was said in this run, also in attempts and inner cascades, apart from searches themselves.
    async fn search(&self, caller: &Caller, text: &str) -> Result<ToolAnswer, StoreError> {
        let sessions = self.sessions.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let mut hits: Vec<Hit<MessageRecord>> = Vec::new();
        for session in &sessions {
            // Searches are among the hits, and are left out.
            let query =
                SearchQuery { text: Some(text.to_owned()), embedding: None, limit: HITS * 3 };
            hits.extend(self.history.search(&caller.tenant, Some(session), &query).await?);
        }
        hits.retain(|hit| !is_search(&hit.item.message));
        hits.sort_by(|a, b| b.score.total_cmp(&a.score));
        let mut seen = BTreeSet::new();
        hits.retain(|hit| seen.insert(hit.item.hash.short()));
        let lines = hits.into_iter().take(HITS).map(|hit| {
            let shown = hit.item.message.shown();
            let mut cut = String::new();
            plimsoll_core::text::push_shortened(&mut cut, &shown, HIT_WIDTH);
            format!("{HIT}{}] {}: {cut}", hit.item.hash, hit.item.message.role.as_str())
        });
        let found: Vec<String> = lines.collect();
        let none = "nothing was said with these words".to_owned();
        Ok(ToolAnswer::text(if found.is_empty() { none } else { found.join("\n\n") }))
    }

    async fn expand(
        &self,
        caller: &Caller,
        reference: &str,
        arguments: &Map<String, Value>,
    ) -> Result<ToolAnswer, ToolError> {
        let options = options(arguments)
            .map_err(|why| ToolError::Invalid { name: EXPAND_REF.to_owned(), why })?;
        let asker = Scope { session: Some(caller.session.clone()), ..Scope::default() };
        let originals = Originals {
            history: &*self.history,
            knowledge: Some(&*self.knowledge),
            tenant: &caller.tenant,
            asker: Some(&asker),
        };
        let found = expand(&originals, reference, &options, caller.now).await;
        Ok(found.map_or_else(
            |error| ToolAnswer::failed(error.to_string()),
            |found| ToolAnswer::text(found.text),
        ))
    }
}

/// The beginning of a hit.
const HIT: &str = "[ref:message:";

/// Returns whether a message is a search, or its result.
fn is_search(message: &Message) -> bool {
    message.calls().any(|call| &*call.name == SEARCH_CONTEXT)
        || message.results().any(|result| result.text.starts_with(HIT))
}

/// Reads a call's arguments.
pub(crate) fn object(name: &str, arguments: &str) -> Result<Map<String, Value>, ToolError> {
    let text = if arguments.trim().is_empty() { "{}" } else { arguments };
    serde_json::from_str(text).map_err(|error| ToolError::Invalid {
        name: name.to_owned(),
        why: format!("its arguments are not a JSON object: {error}"),
    })
}

fn options(arguments: &Map<String, Value>) -> Result<ExpandOptions, String> {
    let number = |key: &str| arguments.get(key).and_then(Value::as_u64).map(|n| n as usize);
    let fields = match arguments.get("fields") {
        None => Vec::new(),
        Some(Value::Array(fields)) => {
            fields.iter().filter_map(Value::as_str).map(str::to_owned).collect()
        }
        Some(other) => return Err(format!("`fields` is a list of paths, not {other}")),
    };
    let part = if let Some(text) = arguments.get("search").and_then(Value::as_str) {
        ContentPart::Search { text: text.to_owned(), around: 1, limit: 50 }
    } else if let Some(first) = number("first_line") {
        ContentPart::Lines { first, last: number("last_line").unwrap_or(first.saturating_add(199)) }
    } else if number("offset").is_some() || number("limit").is_some() {
        ContentPart::Slice {
            offset: number("offset").unwrap_or(0),
            limit: number("limit").unwrap_or(10),
        }
    } else {
        ContentPart::Whole
    };
    Ok(ExpandOptions { fields, part })
}

/// Adds a record; a call that runs again after a stop finds it there. Returns whether it stands, and was not forgotten before.
pub(crate) async fn remember(
    knowledge: &dyn KnowledgeStore,
    record: MemoryRecord,
) -> Result<bool, StoreError> {
    let tenant = record.tenant.clone();
    match knowledge.change_memories(&tenant, &[MemoryChange::added(record)]).await {
        Ok(passed_over) => Ok(passed_over.is_empty()),
        Err(StoreError::Conflict { .. }) => Ok(true),
        Err(error) => Err(error),
    }
}

fn remembered(caller: &Caller, text: &str, arguments: &Map<String, Value>) -> MemoryRecord {
    let kind = arguments.get("kind").cloned().and_then(|kind| serde_json::from_value(kind).ok());
    let tags = arguments.get("tags").and_then(Value::as_array);
    let tags = tags.into_iter().flatten().filter_map(Value::as_str).map(str::to_owned);
    // A note in a bank is for all later runs.
    let bank = caller.bank.as_deref().map(tag);
    let session = if bank.is_some() { None } else { Some(caller.session.clone()) };
    let tags = tags.chain(bank).collect();
    MemoryRecord {
        tenant: caller.tenant.clone(),
        id: MemoryId(format!("{}:{}", caller.session, caller.number)),
        kind: kind.unwrap_or(MemoryKind::Fact),
        state: MemoryState::New,
        scope: Scope { session, ..Scope::default() },
        micro: text.to_owned(),
        summary: None,
        full: None,
        origin: "assistant".to_owned(),
        // A model's own word, not yet confirmed by anybody (chosen).
        confidence: 0.6,
        source_ref: None,
        tags,
        event_at: None,
        created_at: caller.now,
        updated_at: caller.now,
        superseded_by: None,
        embedding: None,
        details: "{}".to_owned(),
    }
}

fn own() -> [(&'static str, Tool); 6] {
    let tool = |name: &'static str, description: &str, properties: Value, required: &[&str]| {
        let schema =
            json!({"type": "object", "properties": properties, "required": required}).to_string();
        (name, Tool { name: name.into(), description: description.into(), schema: schema.into() })
    };
    [
        tool(
            ROUTE_TO,
            "Ends this phase and goes on to another.",
            json!({"target": {"type": "string", "description": "the phase"}}),
            &["target"],
        ),
        tool(
            SET_STATE,
            "Sets a value that later phases see.",
            json!({"key": {"type": "string"}, "value": {}}),
            &["key", "value"],
        ),
        tool(
            EXPAND_REF,
            "Returns what a ref such as ref:message:0123456789abcdef stands for, whole or in part.",
            json!({
                "ref": {"type": "string"},
                "fields": {"type": "array", "items": {"type": "string"}, "description": "JSON paths"},
                "search": {"type": "string", "description": "only lines that hold this text"},
                "first_line": {"type": "integer"}, "last_line": {"type": "integer"},
                "offset": {"type": "integer"}, "limit": {"type": "integer"}
            }),
            &["ref"],
        ),
        tool(
            SEARCH_CONTEXT,
            "Searches all that was said in this session, also what is no longer shown.",
            json!({"query": {"type": "string"}}),
            &["query"],
        ),
        tool(
            REMEMBER,
            "Keeps a fact for later sessions.",
            json!({
                "text": {"type": "string"},
                "kind": {"enum": ["decision", "entity", "task", "metric", "link", "fact"]},
                "tags": {"type": "array", "items": {"type": "string"}}
            }),
            &["text"],
        ),
        tool(
            ASK_HUMAN,
            "Asks the person for whom this runs, and waits for the answer.",
            json!({"question": {"type": "string"}}),
            &["question"],
        ),
    ]
}
