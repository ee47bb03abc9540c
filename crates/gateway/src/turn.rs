//! A turn: the part of one request in its session, from its arrival until its answer is kept.

use std::collections::BTreeSet;
use std::sync::Arc;

use plimsoll_core::safety::handle_message;
use plimsoll_core::{Message, MillisSinceEpoch, Usage};
use plimsoll_engine::assemble::AssemblyReceipt;
use plimsoll_engine::live::{Bounded, Miss, Note};
use plimsoll_engine::{Appended, Bill, HistoryBatch, StoreError};
use plimsoll_wire::AnswerUsage;

use crate::append::append;
use crate::asked::{Asked, may_be_stored};
use crate::backlog::WaitingTurn;
use crate::catch_up::catch_up;
use crate::causes::causes;
use crate::config::{Durability, StoreFailure};
use crate::gateway::Gateway;
use crate::lookup::LookupPlace;
use crate::metrics::Counter;
use crate::sessions::{SessionBranch, read};
use crate::warm::{self, SentRequest, WarmSession};

/// The attempts to append a turn while another gateway goes on with the session (chosen: two in a row are rare).
const ATTEMPTS: usize = 4;

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
    asked: Asked,
    /// The assembly that the request's text from memory comes from.
    assembly: Option<AssemblyReceipt>,
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
    /// The further requests to the provider for lookups of ours.
    pub(crate) rounds: usize,
    /// Whether the request went out as it came because it was not ready in time.
    pub(crate) late: bool,
    /// The request, where its cache entry may be kept warm.
    pub(crate) sent: Option<Box<SentRequest>>,
}

impl SessionTurn {
    pub(crate) fn new(
        gateway: Arc<Gateway>,
        branch: SessionBranch,
        bounded: Bounded,
        asked: Asked,
        assembly: Option<AssemblyReceipt>,
    ) -> Self {
        Self { gateway, open: Some(Box::new(OpenTurn { branch, bounded, asked, assembly })) }
    }

    /// Returns where our own tools look things up for the turn.
    pub(crate) fn place(&self) -> Option<LookupPlace> {
        let OpenTurn { branch, bounded, .. } = &**self.open.as_ref()?;
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
        let Self { mut branch, mut bounded, asked, assembly } = *self;
        let now = gateway.clock.now();
        let usage = outcome.usage.map(|usage| usage.tokens);
        let message = outcome.message.map(|answer| Message { time: Some(now), usage, ..answer });
        let ingestion = gateway.ingestion;
        let message = message.map(|answer| handle_message(&answer, ingestion).0.unwrap_or(answer));
        // A lookup that holds what may not be stored is forgotten: the next requests go without it.
        let carried = outcome.carried.into_iter();
        let carried = carried.filter(|text| may_be_stored(text, ingestion)).collect();
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
        let mut note = Note {
            usage,
            bill,
            dropped_thinking,
            cleared_tool_uses,
            carried,
            cached: outcome.cached,
            late: outcome.late,
            ..bounded.note.clone()
        };
        let is_whole = message.is_some();
        let mut attempts = 0;
        let (branch, batch) = loop {
            attempts += 1;
            let taken = answered(&gateway, branch, &bounded, message.clone(), &note, now).await?;
            let Some(taken) = taken else { return Ok(()) };
            let TakenTurn { branch: on, batch, repeated } = taken;
            let tenant = on.key.0.clone();
            let turn = WaitingTurn { tenant, batch, repeated };
            if gateway.backlog.is_behind() {
                let batch = wait(&gateway, turn, &on);
                break (on, batch.map(|batch| (batch, None)));
            }
            let WaitingTurn { tenant, batch, repeated } = &turn;
            match append(&gateway, tenant, batch.clone(), repeated, now).await {
                Ok(appended) => {
                    gateway.metrics.add(Counter::Store, "kept");
                    break (on, Some((turn.batch, Some(appended))));
                }
                // Another gateway went on with this session: what the store has now decides where this turn belongs.
                Err(error @ StoreError::Conflict { .. }) => {
                    gateway.metrics.add(Counter::Store, "conflict");
                    gateway.sessions.forget(&on.key);
                    if attempts == ATTEMPTS {
                        return Err(error);
                    }
                    let Some(again) = align(&gateway, &on, &asked).await? else {
                        return Err(error);
                    };
                    (branch, bounded) = again;
                    // The model was sent something else than the session decides now.
                    note = Note {
                        usage,
                        bill,
                        dropped_thinking,
                        cleared_tool_uses,
                        carried: note.carried,
                        cached: note.cached,
                        late: true,
                        ..bounded.note.clone()
                    };
                }
                Err(error) => {
                    gateway.metrics.add(Counter::Store, "failed");
                    if gateway.config.on_store_failure == StoreFailure::Refuse {
                        return Err(error);
                    }
                    tracing::error!(error = %causes(&error), "the store does not take a turn, which waits");
                    let batch = wait(&gateway, turn, &on);
                    break (on, batch.map(|batch| (batch, None)));
                }
            }
        };
        if let Some((batch, appended)) = &batch {
            note_kept(&gateway, &branch, batch, *appended).await;
        }
        if let (Some(memory), Some(assembly)) = (&gateway.memory, assembly) {
            memory.note(&branch.key.0, &branch.key.1, &assembly).await;
        }
        if let (Some(sent), Some(usage), true) = (outcome.sent, usage, is_whole) {
            keep_warm(&gateway, branch, note.model, *sent, &usage).await;
        }
        Ok(())
    }
}

/// A turn as its session took it in.
struct TakenTurn {
    branch: SessionBranch,
    batch: HistoryBatch,
    /// The positions of messages that repeat earlier ones.
    repeated: BTreeSet<u32>,
}

/// Takes an answer into its session; `None` where the session has no place for it.
async fn answered(
    gateway: &Gateway,
    branch: SessionBranch,
    bounded: &Bounded,
    message: Option<Message>,
    note: &Note,
    now: MillisSinceEpoch,
) -> Result<Option<TakenTurn>, StoreError> {
    let SessionBranch { key, held, number } = branch;
    let mut guard = read(held.clone(), &key, &*gateway.history).await?;
    let taken = guard.as_mut().and_then(|all| {
        let (number, batch) = all.answered(number, bounded, message, note, now)?;
        let session = all.branch(number)?;
        let repeated = batch.messages.iter().filter(|record| session.is_repetition(record));
        let repeated = repeated.map(|record| record.position).collect();
        Some((number, batch, repeated))
    });
    drop(guard);
    Ok(taken.map(|(number, batch, repeated)| {
        let branch = SessionBranch { key, held, number };
        TakenTurn { branch, batch, repeated }
    }))
}

/// Asks a session from the store the same again.
async fn align(
    gateway: &Gateway,
    branch: &SessionBranch,
    asked: &Asked,
) -> Result<Option<(SessionBranch, Bounded)>, StoreError> {
    let key = branch.key.clone();
    let held = gateway.sessions.get(&key, || None);
    let mut guard = read(held.clone(), &key, &*gateway.history).await?;
    let asked = guard.as_mut().and_then(|all| all.ask(&asked.request(), &gateway.pricing));
    drop(guard);
    Ok(asked.map(|(number, bounded)| (SessionBranch { key, held, number }, bounded)))
}

/// Lets a turn wait for the store; returns its batch, which counts as kept, and `None` where there is no room for it.
fn wait(gateway: &Arc<Gateway>, turn: WaitingTurn, branch: &SessionBranch) -> Option<HistoryBatch> {
    let batch = turn.batch.clone();
    if gateway.backlog.push(turn) {
        catch_up(gateway);
        return Some(batch);
    }
    // The client's next request has the messages, and the session takes them in then.
    gateway.sessions.forget(&branch.key);
    tracing::error!("a turn is not recorded: too many wait for the store");
    None
}

async fn note_kept(
    gateway: &Gateway,
    branch: &SessionBranch,
    batch: &HistoryBatch,
    appended: Option<Appended>,
) {
    let mut guard = branch.held.lock().await;
    if let Some(conversation) = guard.as_mut() {
        conversation.keep(branch.number, batch, appended);
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
