//! A turn: what one request means for its session, from its coming in until its answer is kept.

use std::sync::Arc;

use plimsoll_core::Message;
use plimsoll_core::policy::Policy;
use plimsoll_engine::live::{Bounded, Miss, Note};
use plimsoll_engine::{Bill, HistoryBatch, StoreError};
use plimsoll_wire::AnswerUsage;

use crate::config::Durability;
use crate::gateway::Gateway;
use crate::lookup::Place;
use crate::sessions::{Held, Key, read};
use crate::warm::{self, Account, Sent, usage_of};

/// A request that its session knows of; it ends by [`Turn::end`], or without an answer when it is dropped.
#[derive(Debug)]
pub(crate) struct Turn {
    gateway: Arc<Gateway>,
    open: Option<Box<Open>>,
}

#[derive(Debug)]
struct Open {
    key: Key,
    held: Held,
    branch: usize,
    bounded: Bounded,
}

/// What an answer came to.
#[derive(Debug, Default)]
pub(crate) struct TurnOutcome {
    /// `None` where it is not whole.
    pub(crate) message: Option<Message>,
    /// As the provider counted, all that it was asked together.
    pub(crate) usage: Option<AnswerUsage>,
    /// What later requests of the session carry on.
    pub(crate) carried: Vec<Arc<str>>,
    /// The key of the answer, where it is none of the upstream's.
    pub(crate) cached: Option<Arc<str>>,
    /// How often the provider was asked further for lookups of ours.
    pub(crate) rounds: usize,
    /// Whether the request went out as it came, for it was not ready in time.
    pub(crate) late: bool,
    /// The request, where its cache entry may be kept warm.
    pub(crate) sent: Option<Box<Sent>>,
}

impl Turn {
    pub(crate) fn new(
        gateway: Arc<Gateway>,
        key: Key,
        held: Held,
        branch: usize,
        bounded: Bounded,
    ) -> Self {
        let open = Open { key, held, branch, bounded };
        Self { gateway, open: Some(Box::new(open)) }
    }

    /// Returns where our own tools look things up for it.
    pub(crate) fn place(&self) -> Option<Place> {
        let open = self.open.as_ref()?;
        Some(Place {
            key: open.key.clone(),
            held: open.held.clone(),
            branch: open.branch,
            end: open.bounded.position,
        })
    }

    /// Takes note of lookups that have no place in the request; returns all that the provider's cache misses.
    pub(crate) fn note_unplaced(&mut self, unplaced: Vec<usize>) -> Vec<Miss> {
        let Some(open) = &mut self.open else { return Vec::new() };
        open.bounded.note_unplaced(unplaced);
        open.bounded.note.misses.clone()
    }

    /// Takes in the answer, and returns when it is kept as durably as the settings ask.
    ///
    /// Errors: the store did not take it, in its words.
    pub(crate) async fn end(&mut self, said: TurnOutcome) -> Result<(), String> {
        let Some(open) = self.open.take() else { return Ok(()) };
        let gateway = &self.gateway;
        let job = open.keep(gateway.clone(), said);
        match gateway.config.durability {
            Durability::BeforeEnd => job.await.map_err(|error| {
                tracing::error!(error = %causes(&error), "what was said could not be kept");
                error.to_string()
            }),
            Durability::Relaxed => {
                tokio::spawn(async move {
                    if let Err(error) = job.await {
                        tracing::error!(error = %causes(&error), "what was said could not be kept");
                    }
                });
                Ok(())
            }
        }
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        let Some(open) = self.open.take() else { return };
        let gateway = self.gateway.clone();
        // The client left, or nothing was answered: that it was asked decides what is sent next, and so is kept.
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(async move {
                if let Err(error) = open.keep(gateway, TurnOutcome::default()).await {
                    tracing::error!(error = %causes(&error), "a request could not be kept");
                }
            });
        }
    }
}

impl Open {
    async fn keep(
        self: Box<Self>,
        gateway: Arc<Gateway>,
        said: TurnOutcome,
    ) -> Result<(), StoreError> {
        let Self { key, held, branch, bounded } = *self;
        let now = gateway.clock.now();
        let usage = said.usage.map(usage_of);
        let message = said.message.map(|said| Message { time: Some(now), usage, ..said });
        let bill = usage.map(|usage| {
            let at = bounded.note.model.as_deref();
            let priced = gateway.pricing.of(at, Some(now));
            let bill = Bill::of(&priced, &bounded, &usage, said.rounds);
            if bounded.note.observed || said.late { bill.as_it_came() } else { bill }
        });
        if let Some(usage) = &usage {
            gateway.metrics.billed(usage, bill.as_ref());
        }
        let dropped = said.usage.map_or(0, |usage| usage.dropped_thinking);
        gateway.metrics.tokens("thinking_dropped", dropped);
        let cleared = said.usage.map_or(0, |usage| usage.cleared_tool_uses);
        gateway.metrics.tokens("tool_uses_cleared", cleared);
        let note = Note {
            usage,
            bill,
            dropped_thinking: dropped,
            cleared_tool_uses: cleared,
            carried: said.carried,
            cached: said.cached,
            late: said.late,
            ..bounded.note.clone()
        };
        let is_whole = message.is_some();
        let taken = {
            let mut guard = read(held.clone(), &key, &*gateway.history).await?;
            let conversation = guard.as_mut();
            conversation.and_then(|all| all.answered(branch, &bounded, message, &note, now))
        };
        let Some((branch, batch)) = taken else { return Ok(()) };
        let appended = gateway.history.append(&key.0, batch.clone()).await;
        gateway.metrics.store(match &appended {
            Ok(_) => "kept",
            Err(StoreError::Conflict { .. }) => "conflict",
            Err(_) => "failed",
        });
        match appended {
            Ok(_) => {
                kept(&gateway, &key, &held, branch, &batch).await;
                if let (Some(sent), Some(usage), true) = (said.sent, usage, is_whole)
                    && let Some(account) = account(&key, held, branch, note.model).await
                {
                    warm::begin(&gateway, account, *sent, &usage);
                }
                Ok(())
            }
            Err(error) => {
                // Somebody else went on with this session: what is in memory is not what the store has.
                if matches!(error, StoreError::Conflict { .. }) {
                    gateway.sessions.forget(&key);
                }
                Err(error)
            }
        }
    }
}

async fn kept(gateway: &Gateway, key: &Key, held: &Held, branch: usize, batch: &HistoryBatch) {
    let mut guard = held.lock().await;
    if let Some(conversation) = guard.as_mut() {
        conversation.keep(branch, batch);
        gateway.sessions.resize(key, conversation.bytes());
    }
}

/// Returns where reads of the cache are accounted for while a branch pauses.
async fn account(key: &Key, held: Held, branch: usize, model: Option<Arc<str>>) -> Option<Account> {
    let (session, life) = {
        let guard = held.lock().await;
        let session = guard.as_ref()?.branch(branch)?;
        (session.id().clone(), session.around()?.life())
    };
    Some(Account { key: key.clone(), held, branch, session, model, life })
}

/// Writes an error with its causes.
pub(crate) fn causes(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(deeper) = cause {
        text.push_str(": ");
        text.push_str(&deeper.to_string());
        cause = deeper.source();
    }
    text
}

/// Finds policies by the names that settings and headers use.
pub trait Policies: Send + Sync + std::fmt::Debug {
    /// Returns the policy of a name, with another budget where one is given; `None` for an unknown name.
    fn policy(&self, name: &str, budget: Option<u64>) -> Option<Policy>;
}
