//! Selection as a use case: cards and originals are fetched, the core decides, and the decision is recorded.

use std::collections::{BTreeMap, HashMap};
use std::convert::Infallible;

use plimsoll_core::safety::Safety;
use plimsoll_core::select::{
    CardCandidate, InterPhaseContextConfig, Menu, Pool, Selection, Strategy, answer_schema,
    heuristic, hybrid_menu, llm, mark_anchors, menu, semantic,
};
use plimsoll_core::text::{Limit, head, is_error_line};
use plimsoll_core::{Message, MillisSinceEpoch, Role};

use crate::card::ContextCard;
use crate::cards::{plain_card, safe_text};
use crate::chat::{ChatModel, ChatRequest, Response};
use crate::embedder::Embedder;
use crate::error::StoreError;
use crate::history::{HistoryBatch, HistoryStore, MessageRecord, ReceiptRecord};
use crate::id::{SessionId, TenantId};

/// Characters of a task that are embedded (`_semantic_selection`).
const TASK_EMBEDDED: usize = 1000;
/// Tokens of a model's answer: a hundred ids and a sentence (chosen).
const ANSWER_TOKENS: u32 = 1500;
/// Messages that are read from the store at a time.
const PAGE: usize = 1000;

/// The purpose of a selection.
#[derive(Debug, Clone)]
pub struct SelectionRequest<'a> {
    pub session: &'a SessionId,
    /// The instructions of the next phase, or the user's question.
    pub task: &'a str,
    /// Phases that ran, in order, and the one that runs.
    pub phases: &'a [String],
    pub current: Option<&'a str>,
    pub config: &'a InterPhaseContextConfig,
    /// Where the receipt stands in the session's log.
    pub turn: u32,
    pub cascade_id: Option<&'a str>,
}

/// The models that a selection may ask. Each may be missing; then the heuristic is used, and the receipt says so.
#[derive(Debug, Clone, Copy)]
pub struct Selectors<'a> {
    pub history: &'a dyn HistoryStore,
    pub model: Option<&'a dyn ChatModel>,
    pub embedder: Option<&'a dyn Embedder>,
    pub safety: &'a Safety,
}

/// A selected context.
#[derive(Debug, Clone)]
pub struct Selected {
    pub selection: Selection,
    /// The originals of all that is included, in the order in which they were said.
    pub messages: Vec<MessageRecord>,
    /// The record of the decision, as it was appended.
    pub receipt: ReceiptRecord,
}

/// Selects a context, fetches its originals and appends the receipt.
///
/// `None` where the configuration is off. A message without a card is judged by what needs no model. A model or embedder that
/// fails, in whatever way, never fails the selection. Ages count from the session's last message.
pub async fn select(
    selectors: &Selectors<'_>,
    tenant: &TenantId,
    asked: &SelectionRequest<'_>,
    now: MillisSinceEpoch,
) -> Result<Option<Selected>, StoreError> {
    if !asked.config.enabled {
        return Ok(None);
    }
    let messages = all_messages(selectors.history, tenant, asked.session).await?;
    let cards = selectors.history.cards(tenant, asked.session).await?;
    let cards: HashMap<&str, &ContextCard> =
        cards.iter().map(|card| (card.content_hash.as_str(), card)).collect();
    let mut candidates: Vec<CardCandidate> = messages
        .iter()
        .filter(|record| record.message.role != Role::System)
        .map(|record| candidate(tenant, record, cards.get(&*record.hash.short()).copied()))
        .collect();
    mark_anchors(&mut candidates, &asked.config.anchors, asked.phases, asked.current);
    let last = candidates.iter().map(|it| it.at).max().unwrap_or(now);
    let config = asked.config.resolved();
    let pool = Pool::new(candidates, asked.task, last, &config);
    let choice = choose(
        &pool,
        config.strategy(),
        *selectors.safety,
        async || similarities(selectors, &cards, asked.task).await,
        async |menu| Ok::<_, Infallible>(ask(selectors.model, menu).await),
    );
    let Ok(selection) = choice.await;
    let included: std::collections::HashSet<&str> = selection.hashes().collect();
    let mut fetched = std::collections::HashSet::new();
    let full = messages.len();
    let all_tokens: u64 = messages.iter().map(|record| u64::from(record.tokens)).sum();
    let originals: Vec<MessageRecord> = messages
        .into_iter()
        .filter(|record| {
            let hash = record.hash.short();
            included.contains(&*hash) && fetched.insert(hash)
        })
        .collect();
    let (session, turn) = (asked.session, asked.turn);
    let mut receipt = ReceiptRecord::of_selection(session, turn, &selection, full, now);
    receipt.cascade_id = asked.cascade_id.map(str::to_owned);
    receipt.tokens_saved = all_tokens.cast_signed() - selection.tokens.cast_signed();
    let batch = HistoryBatch { receipts: vec![receipt.clone()], ..HistoryBatch::default() };
    selectors.history.append(tenant, batch).await?;
    Ok(Some(Selected { selection, messages: originals, receipt }))
}

/// Chooses from a pool by a strategy; where that fails, the heuristic chooses, and the selection says why.
///
/// `similarities` gives the cosines of candidates to the task, `ask` the answer of a model to a menu; each may say why it has
/// none. An empty pool asks nobody. Errors: those of `ask` that must end the caller's work.
pub async fn choose<E>(
    pool: &Pool,
    strategy: Strategy,
    safety: Safety,
    similarities: impl AsyncFnOnce() -> Result<BTreeMap<String, f64>, String>,
    ask: impl AsyncFnOnce(&Menu) -> Result<Result<String, String>, E>,
) -> Result<Selection, E> {
    let safe = |text: &str| safe_text(text, safety);
    let menu = match strategy {
        _ if pool.candidates().is_empty() => return Ok(heuristic(pool)),
        Strategy::Heuristic => return Ok(heuristic(pool)),
        Strategy::Semantic => {
            let chosen = similarities().await.map(|similarities| semantic(pool, &similarities));
            return Ok(chosen.unwrap_or_else(|why| fallback(pool, why)));
        }
        Strategy::Llm => menu(pool, safe),
        Strategy::Hybrid => hybrid_menu(pool, safe),
    };
    let answer = ask(&menu).await?;
    let chosen = answer.and_then(|answer| llm(pool, &menu, &answer).map_err(|why| why.to_string()));
    Ok(chosen.unwrap_or_else(|why| fallback(pool, why)))
}

fn fallback(pool: &Pool, why: String) -> Selection {
    Selection { fallback: Some(why), ..heuristic(pool) }
}

/// Asks the model to choose from a menu.
async fn ask(model: Option<&dyn ChatModel>, menu: &Menu) -> Result<String, String> {
    let model = model.ok_or_else(|| "there is no model".to_owned())?;
    let mut request = ChatRequest::new(vec![
        Message::text(Role::System, menu.system.as_str()),
        Message::text(Role::User, menu.prompt.as_str()),
    ]);
    request.max_tokens = ANSWER_TOKENS;
    request.response = Response::Json { schema: answer_schema().into() };
    let reply = model.complete(&request).await.map_err(|error| error.to_string())?;
    Ok(reply.text())
}

/// Returns the cosine of each card that has a vector of the present model.
async fn similarities(
    selectors: &Selectors<'_>,
    cards: &HashMap<&str, &ContextCard>,
    task: &str,
) -> Result<BTreeMap<String, f64>, String> {
    let embedder = selectors.embedder.ok_or_else(|| "there is no embedder".to_owned())?;
    let task = safe_text(head(task, Limit::Characters(TASK_EMBEDDED)), *selectors.safety);
    let vectors = embedder.embed(&[&task]).await.map_err(|error| error.to_string())?;
    let task = vectors.into_iter().next().filter(|vector| vector.check().is_ok());
    let task = task.ok_or_else(|| "the task has no words that the embedder knows".to_owned())?;
    let similarities: BTreeMap<String, f64> = cards
        .iter()
        .filter_map(|(hash, card)| {
            let vector = card.embedding.as_ref()?;
            let alike = vector.model == task.model && vector.vector.len() == task.vector.len();
            let dot = || {
                let pairs = vector.vector.iter().zip(&task.vector);
                pairs.map(|(a, b)| f64::from(*a) * f64::from(*b)).sum()
            };
            alike.then(|| ((*hash).to_owned(), dot()))
        })
        .collect();
    if similarities.is_empty() {
        return Err(format!("no card has a vector of {}", task.model));
    }
    Ok(similarities)
}

fn candidate(
    tenant: &TenantId,
    record: &MessageRecord,
    card: Option<&ContextCard>,
) -> CardCandidate {
    let card = card.cloned().unwrap_or_else(|| plain_card(tenant, record, record.recorded_at));
    let is_error = record.message.results().any(|result| result.is_error)
        || (record.message.role == Role::Tool && record.message.shown().lines().any(is_error_line));
    CardCandidate {
        hash: record.hash.short(),
        summary: card.summary,
        keywords: card.keywords,
        tokens: record.tokens,
        role: record.message.role,
        phase: record.message.phase.as_deref().map(str::to_owned),
        turn: Some(record.turn),
        at: record.message.time.unwrap_or(record.recorded_at),
        is_anchor: card.is_anchor,
        is_callout: card.is_callout || record.message.callout.is_some(),
        is_error,
    }
}

async fn all_messages(
    history: &dyn HistoryStore,
    tenant: &TenantId,
    session: &SessionId,
) -> Result<Vec<MessageRecord>, StoreError> {
    let mut all: Vec<MessageRecord> = Vec::new();
    loop {
        let from = all.last().map_or(0, |last| last.position + 1);
        let page = history.messages(tenant, session, from, PAGE).await?;
        let is_last = page.len() < PAGE;
        all.extend(page);
        if is_last {
            return Ok(all);
        }
    }
}
