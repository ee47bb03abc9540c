//! Contexts of messages that the caller sends or the store has: assembled, bounded, replayed.

use std::sync::Arc;

use plimsoll_core::context::{State, bound};
use plimsoll_core::policy::Policy;
use plimsoll_core::terms::Terms;
use plimsoll_core::{Message, Ref, Tokenizer, Transcript};
use plimsoll_engine::assemble::{Assembler, AssemblyTurn};
use plimsoll_engine::{Scope, SessionId};
use plimsoll_formats::{Compaction, ContextMessage, ReadOptions, Session, read, write};
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::asked::ApiRequest;
use crate::problem::ApiError;
use crate::query::body;
use crate::turns::compare;
use crate::view::SessionView;

/// The body of `assemble`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct AssembleBody {
    #[serde(default)]
    text: String,
    session: Option<SessionId>,
    frame: Option<String>,
    budget: Option<u64>,
    #[serde(default)]
    tags: Vec<String>,
}

pub(crate) async fn assemble(asked: &ApiRequest<'_>) -> Result<Value, ApiError> {
    let AssembleBody { text, session, frame, budget, tags } = body(&asked.body)?;
    if text.trim().is_empty() && session.is_none() {
        return Err(ApiError::Invalid("give `text` or `session`".to_owned()));
    }
    let parts = asked.parts;
    let settings = parts.memory.assemble(&parts.request);
    let assembler = Assembler {
        history: &*parts.history,
        knowledge: &*parts.knowledge,
        embedder: parts.embedder.as_deref(),
        tenant: asked.tenant,
        frames: &parts.frames,
        settings: &settings,
        tokenizer: Tokenizer::O200k { factor: 1.0 },
        identity: &parts.memory.identity,
        rules: &parts.memory.rules,
        profile: &parts.memory.profile,
        recall: None,
    };
    let scope = Scope { session, ..Scope::default() };
    let turn = AssemblyTurn {
        scope: &scope,
        text: &text,
        frame: frame.as_deref(),
        tags: &tags,
        budget,
        focus: None,
        about_to_act: false,
        force_refresh: false,
        previous: None,
        now: parts.clock.now(),
    };
    let assembled = assembler.request(&parts.memories, &turn, &[]).await?;
    let request = &assembled.request;
    let shown = |message: &Message| json!({"role": message.role.as_str(), "text": message.shown()});
    let messages = request.header.iter().chain(&request.memory).chain(&request.working_set);
    Ok(json!({
        "messages": messages.map(shown).collect::<Vec<_>>(),
        "memory": assembled.memory.context,
        "relevance": assembled.memory.relevance,
        "budget": request.budget,
        "cache_key": request.cache_key,
    }))
}

/// The body of `bound`: messages as OpenAI's or Anthropic's interface takes them.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct BoundBody {
    messages: Box<RawValue>,
    #[serde(default)]
    system: Option<Box<RawValue>>,
    model: Option<String>,
    budget: Option<u64>,
    #[serde(default = "usual_policy")]
    policy: String,
}

fn usual_policy() -> String {
    "plimsoll".to_owned()
}

fn named_policy(
    asked: &ApiRequest<'_>,
    name: &str,
    budget: Option<u64>,
) -> Result<Policy, ApiError> {
    let found = asked.parts.policies.policy(name, budget);
    found.ok_or_else(|| ApiError::Invalid(format!("`{name}` is no policy")))
}

fn session_of(bytes: &[u8], compaction: Compaction) -> Result<Session, ApiError> {
    read(bytes, &ReadOptions { compaction, ..ReadOptions::default() })
        .map_err(|error| ApiError::Invalid(error.to_string()))
}

/// Returns whether a value is a list with an entry.
fn is_list(value: &RawValue) -> bool {
    serde_json::from_str::<Vec<serde::de::IgnoredAny>>(value.get()).is_ok_and(|all| !all.is_empty())
}

pub(crate) async fn bound_messages(asked: ApiRequest<'_>) -> Result<Value, ApiError> {
    let BoundBody { messages, system, model, budget, policy } = body(&asked.body)?;
    let policy = named_policy(&asked, &policy, budget)?;
    if !is_list(&messages) {
        return Err(ApiError::Invalid("`messages` is a list of one message at least".to_owned()));
    }
    // Anthropic's system prompt stands beside the messages; without one the list alone is the document.
    let document = match system {
        Some(system) => format!("{{\"system\":{system},\"messages\":{messages}}}"),
        None => messages.get().to_owned(),
    };
    let now = asked.parts.clock.now();
    let policies = asked.parts.policies.clone();
    let work = move || {
        let session = session_of(document.as_bytes(), Compaction::PassOver)?;
        let prices = policies.pricing().of(model.as_deref(), Some(now)).prices;
        let tokenizer = Tokenizer::for_model(model.as_deref().unwrap_or_default());
        let mut transcript = Transcript::new(tokenizer);
        for message in &session.messages {
            transcript.push(Arc::clone(message));
        }
        let end = transcript.entries().len();
        let mut state = State::default();
        let (context, receipt) = bound(&transcript, end, &policy, &Terms::new(prices), &mut state);
        let written: Vec<ContextMessage> = context
            .iter()
            .map(|sent| ContextMessage { position: sent.position, message: sent.message.clone() })
            .collect();
        let bytes = write(&session, document.as_bytes(), &written)
            .map_err(|error| ApiError::Invalid(error.to_string()))?;
        let sent: Value = serde_json::from_slice(&bytes).unwrap_or_default();
        let changes = state.plan().decisions().iter().enumerate();
        let changes = changes.filter(|(_, decision)| decision.treatment.as_str() != "keep");
        let changes = changes.map(|(position, decision)| {
            json!({
                "position": position,
                "treatment": decision.treatment.as_str(),
                "reason": decision.reason.to_string(),
                "ref": Ref::message(decision.whole.hash).to_string(),
            })
        });
        let (list, beside) = match sent {
            Value::Object(mut object) => {
                (object.remove("messages").unwrap_or_default(), object.remove("system"))
            }
            list => (list, None),
        };
        Ok(json!({
            "messages": list,
            "system": beside,
            "tokens": receipt.tokens,
            "full_tokens": receipt.full_tokens,
            "over_budget": receipt.over_budget,
            "changes": changes.collect::<Vec<_>>(),
        }))
    };
    tokio::task::spawn_blocking(work).await.map_err(|_| ApiError::Lost)?
}

pub(crate) async fn replayed(asked: ApiRequest<'_>) -> Result<Value, ApiError> {
    let mut policies = vec![("full".to_owned(), named_policy(&asked, "full", None)?)];
    let budget = asked.query.parsed("budget")?;
    let mut names: Vec<&str> = asked.query.all("policy").collect();
    if names.is_empty() {
        names.push("plimsoll");
    }
    for name in names.into_iter().filter(|name| *name != "full").take(6) {
        policies.push((name.to_owned(), named_policy(&asked, name, budget)?));
    }
    let (bytes, book) = (asked.body, asked.parts.policies.clone());
    let work = move || {
        let session = session_of(&bytes, Compaction::PassOver)?;
        let format = session.format.to_string();
        let notes = session.notes.len();
        let view = SessionView::of_messages(session.messages);
        let mut answer = compare(&view, &policies, &*book);
        answer["format"] = json!(format);
        answer["messages"] = json!(view.messages.len());
        answer["skipped_records"] = json!(notes);
        Ok(answer)
    };
    tokio::task::spawn_blocking(work).await.map_err(|_| ApiError::Lost)?
}
