//! A turn: the part of one request in its session, from its arrival until its answer is kept.

use std::collections::BTreeSet;
use std::sync::Arc;

use plimsoll_core::{Message, MillisSinceEpoch, Usage};
use plimsoll_engine::live::{Bounded, Miss, Note};
use plimsoll_engine::observe::MessageObserver;
use plimsoll_engine::{Bill, HistoryBatch, MessageRecord, StoreError, TenantId};
use plimsoll_wire::AnswerUsage;

use crate::causes::causes;
use crate::config::Durability;
use crate::gateway::Gateway;
use crate::lookup::LookupPlace;
use crate::metrics::Counter;
use crate::ports::Observation;
use crate::sessions::{SessionBranch, read};
use crate::warm::{self, SentRequest, WarmSession};

/// A request in its session; it ends by [`SessionTurn::end`], or without an answer when it is dropped.
#[derive(Debug)]
pub(crate) struct SessionTurn {
    gateway: Arc<Gateway>,
    open: Option<Box<OpenTurn>>,
}

#[derive(Debug)]
struct OpenTurn {
    branch: SessionBranch,
    bounded: Bounded,
}

/// The outcome of a turn.
#[derive(Debug, Default)]
pub(crate) struct TurnOutcome {
    /// The answer; `None` where it is not whole.
    pub(crate) message: Option<Message>,
    /// The usage that the provider reported, of all requests of the turn together.
    pub(crate) usage: Option<AnswerUsage>,
    /// Texts that later requests of the session need.
    pub(crate) carried: Vec<Arc<str>>,
    /// The key of the answer in the answer cache, where it came from there.
    pub(crate) cached: Option<Arc<str>>,
    /// How often the provider was asked again for lookups of ours.
    pub(crate) rounds: usize,
    /// Whether the request went out as it came because it was not ready in time.
    pub(crate) late: bool,
    /// The request, where its cache entry may be kept warm.
    pub(crate) sent: Option<Box<SentRequest>>,
}

impl SessionTurn {
    pub(crate) fn new(gateway: Arc<Gateway>, branch: SessionBranch, bounded: Bounded) -> Self {
        Self { gateway, open: Some(Box::new(OpenTurn { branch, bounded })) }
    }

    /// Returns where our own tools look things up for the turn.
    pub(crate) fn place(&self) -> Option<LookupPlace> {
        let OpenTurn { branch, bounded } = &**self.open.as_ref()?;
        let receipt = &bounded.receipt;
        let room = receipt.budget.map_or(u64::MAX, |budget| budget.saturating_sub(receipt.tokens));
        Some(LookupPlace { branch: branch.clone(), end: bounded.position, room })
    }

    /// Records lookups that have no place in the request; returns all misses of the provider's cache.
    pub(crate) fn note_unplaced(&mut self, unplaced: Vec<usize>) -> Vec<Miss> {
        let Some(open) = &mut self.open else { return Vec::new() };
        open.bounded.note_unplaced(unplaced);
        open.bounded.note.misses.clone()
    }

    /// Takes in the answer, and returns when it is kept as durably as the settings ask.
    ///
    /// Errors: the text of the store's error.
    pub(crate) async fn end(&mut self, outcome: TurnOutcome) -> Result<(), String> {
        let Some(open) = self.open.take() else { return Ok(()) };
        let gateway = &self.gateway;
        let kept = open.keep_or_log(gateway.clone(), outcome, "an answer could not be kept");
        match gateway.config.durability {
            Durability::BeforeEnd => kept.await,
            Durability::Relaxed => {
                tokio::spawn(kept);
                Ok(())
            }
        }
    }
}

impl Drop for SessionTurn {
    fn drop(&mut self) {
        let Some(open) = self.open.take() else { return };
        let gateway = self.gateway.clone();
        // The client left, or there was no answer. The request itself decides what is sent next, and so it is kept.
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            let outcome = TurnOutcome::default();
            runtime.spawn(open.keep_or_log(gateway, outcome, "a request could not be kept"));
        }
    }
}

impl OpenTurn {
    async fn keep_or_log(
        self: Box<Self>,
        gateway: Arc<Gateway>,
        outcome: TurnOutcome,
        failure: &'static str,
    ) -> Result<(), String> {
        self.keep(gateway, outcome).await.map_err(|error| {
            tracing::error!(error = %causes(&error), "{failure}");
            error.to_string()
        })
    }

    async fn keep(
        self: Box<Self>,
        gateway: Arc<Gateway>,
        outcome: TurnOutcome,
    ) -> Result<(), StoreError> {
        let Self { branch, bounded } = *self;
        let now = gateway.clock.now();
        let usage = outcome.usage.map(|usage| usage.tokens);
        let message = outcome.message.map(|answer| Message { time: Some(now), usage, ..answer });
        let bill = usage.map(|usage| {
            let priced = gateway.prices_now(bounded.note.model.as_deref());
            let bill = Bill::of(&priced, &bounded, &usage, outcome.rounds);
            if bounded.note.observed || outcome.late { bill.as_it_came() } else { bill }
        });
        if let Some(usage) = &usage {
            gateway.metrics.billed(usage, bill.as_ref());
        }
        let AnswerUsage { dropped_thinking, cleared_tool_uses, .. } =
            outcome.usage.unwrap_or_default();
        gateway.metrics.add_amount(Counter::Tokens, "thinking_dropped", dropped_thinking);
        gateway.metrics.add_amount(Counter::Tokens, "tool_uses_cleared", cleared_tool_uses);
        let note = Note {
            usage,
            bill,
            dropped_thinking,
            cleared_tool_uses,
            carried: outcome.carried,
            cached: outcome.cached,
            late: outcome.late,
            ..bounded.note.clone()
        };
        let is_whole = message.is_some();
        let SessionBranch { key, held, number } = branch;
        let taken = {
            let mut guard = read(held.clone(), &key, &*gateway.history).await?;
            let conversation = guard.as_mut();
            conversation.and_then(|all| {
                let (number, batch) = all.answered(number, &bounded, message, &note, now)?;
                let session = all.branch(number)?;
                let repeated = batch.messages.iter().filter(|record| session.is_repetition(record));
                let repeated = repeated.map(|record| record.position).collect();
                Some((number, batch, repeated))
            })
        };
        let Some((number, batch, repeated)) = taken else { return Ok(()) };
        let branch = SessionBranch { key, held, number };
        let appended = append(&gateway, &branch.key.0, batch.clone(), &repeated, now).await;
        let result = match &appended {
            Ok(()) => "kept",
            Err(StoreError::Conflict { .. }) => "conflict",
            Err(_) => "failed",
        };
        gateway.metrics.add(Counter::Store, result);
        if let Err(error) = appended {
            // Another gateway went on with this session: the copy in memory is not what the store has.
            if matches!(error, StoreError::Conflict { .. }) {
                gateway.sessions.forget(&branch.key);
            }
            return Err(error);
        }
        note_kept(&gateway, &branch, &batch).await;
        if let (Some(sent), Some(usage), true) = (outcome.sent, usage, is_whole) {
            keep_warm(&gateway, branch, note.model, *sent, &usage).await;
        }
        Ok(())
    }
}

/// Appends a batch, with cards where they are wanted; their jobs are queued behind the answer.
async fn append(
    gateway: &Arc<Gateway>,
    tenant: &TenantId,
    mut batch: HistoryBatch,
    repeated: &BTreeSet<u32>,
    now: MillisSinceEpoch,
) -> Result<(), StoreError> {
    let new = match observer(gateway, tenant) {
        Some(observer) => {
            let is_known = |record: &MessageRecord| repeated.contains(&record.position);
            observer.add_cards(&mut batch, is_known, now).await?
        }
        None => Vec::new(),
    };
    gateway.history.append(tenant, batch).await?;
    if !new.is_empty() {
        let (gateway, tenant) = (gateway.clone(), tenant.clone());
        let behind = gateway.behind.subscribe();
        tokio::spawn(async move {
            let _behind = behind;
            let Some(observer) = observer(&gateway, &tenant) else { return };
            if let Err(error) = observer.queue(&new, now).await {
                tracing::error!(error = %causes(&error), "jobs of cards could not be queued");
            }
        });
    }
    Ok(())
}

fn observer<'a>(gateway: &'a Gateway, tenant: &'a TenantId) -> Option<MessageObserver<'a>> {
    let Observation { knowledge, cards } = gateway.observation.as_ref()?;
    let (history, knowledge) = (&*gateway.history, &**knowledge);
    Some(MessageObserver { history, knowledge, tenant, settings: cards })
}

async fn note_kept(gateway: &Gateway, branch: &SessionBranch, batch: &HistoryBatch) {
    let mut guard = branch.held.lock().await;
    if let Some(conversation) = guard.as_mut() {
        conversation.keep(branch.number, batch);
        gateway.sessions.resize(&branch.key, conversation.bytes());
    }
}

/// Begins to keep the provider's cache entry of a branch warm.
async fn keep_warm(
    gateway: &Arc<Gateway>,
    branch: SessionBranch,
    model: Option<Arc<str>>,
    sent: SentRequest,
    usage: &Usage,
) {
    let read = branch.read(|session| Some((session.id().clone(), session.around()?.life()))).await;
    if let Some((session, life)) = read.flatten() {
        warm::begin(gateway, WarmSession { branch, session, model, life }, sent, usage);
    }
}
