//! An answer on its way to the client: its calls of our own tools are answered here, and its end waits until it is kept.

use std::sync::Arc;

use bytes::Bytes;
use plimsoll_core::lookup::{NO_MORE, NO_ROOM, fit_answer};
use plimsoll_core::tokens::{MESSAGE_OVERHEAD, Tokenizer};
use plimsoll_core::{Message, ToolCall, ToolResult};
use plimsoll_wire::{
    AnswerUsage, Continuation, Edits, Ending, Progress, ProviderRequest, Reply, Wire, WithheldCalls,
};
use tokio::task::JoinHandle;

use crate::answer_cache::Awaited;
use crate::gateway::Gateway;
use crate::lookup::{self, LookupPlace};
use crate::own_calls;
use crate::prepare::{FailOpen, PreparedRequest};
use crate::relay::Incoming;
use crate::traces::Trace;
use crate::turn::{SessionTurn, TurnOutcome};
use crate::upstream::UpstreamRequest;
use crate::warm::SentRequest;

/// Requests in which a model that goes on looking up is told that there is no more, before its answer ends as it is (chosen:
/// models stop at the first or second).
const REFUSALS: usize = 16;

/// The turn that an answer ends, where it has one.
#[derive(Debug)]
pub(crate) enum PendingTurn {
    Now(SessionTurn),
    /// It was not ready when the request had to go.
    Later(JoinHandle<Result<PreparedRequest, FailOpen>>),
    None,
}

impl PendingTurn {
    /// Ends the turn, as soon as there is one.
    pub(crate) async fn end(&mut self, outcome: TurnOutcome) -> Result<(), String> {
        match std::mem::replace(self, Self::None) {
            Self::Now(mut turn) => turn.end(outcome).await,
            Self::Later(task) => match task.await {
                Ok(Ok(mut prepared)) => {
                    prepared.turn.end(TurnOutcome { late: true, ..outcome }).await
                }
                _ => Ok(()),
            },
            Self::None => Ok(()),
        }
    }
}

/// The means to ask the upstream again within one request of the client.
#[derive(Debug)]
pub(crate) struct FollowUp {
    /// The first request, with any body.
    pub(crate) upstream: UpstreamRequest,
    pub(crate) request: Arc<ProviderRequest>,
    pub(crate) edits: Edits,
    pub(crate) place: LookupPlace,
}

/// An answer, put together from one or several of the provider's.
#[derive(Debug)]
pub(crate) struct RelayedAnswer {
    pub(crate) gateway: Arc<Gateway>,
    pub(crate) wire: Wire,
    pub(crate) reply: Reply,
    turn: PendingTurn,
    follow_up: Option<FollowUp>,
    /// The usage of the answers before the last.
    usage: AnswerUsage,
    rounds: usize,
    /// The question under which the answer cache keeps the answer.
    pub(crate) awaited: Option<Awaited>,
    /// The span that ends with the answer.
    pub(crate) trace: Trace,
    /// The request, where its cache entry may be kept warm.
    pub(crate) sent: Option<Box<SentRequest>>,
}

impl RelayedAnswer {
    pub(crate) fn new(
        gateway: Arc<Gateway>,
        wire: Wire,
        turn: PendingTurn,
        follow_up: Option<FollowUp>,
    ) -> Self {
        // Without a way to ask again, nothing of ours was offered.
        let own = follow_up.iter().flat_map(|follow_up| &follow_up.edits.add_tools);
        let reply = Reply::new(wire, own.map(|tool| tool.name.clone()));
        let (usage, trace) = (AnswerUsage::default(), Trace::default());
        let (awaited, sent) = (None, None);
        Self { gateway, wire, reply, turn, follow_up, usage, rounds: 0, awaited, trace, sent }
    }

    async fn results(&mut self, calls: &[ToolCall]) -> Vec<ToolResult> {
        let mut results = Vec::new();
        let Some(FollowUp { place, request, .. }) = &mut self.follow_up else { return results };
        let tokenizer = Tokenizer::for_model(request.model().unwrap_or_default());
        for call in calls {
            let mut result = lookup::answer(&self.gateway, place, request, call).await;
            let count = |text: &str| u64::from(tokenizer.count(text) + MESSAGE_OVERHEAD);
            place.room = place.room.saturating_sub(count(&call.name) + count(&call.arguments));
            match fit_answer(&result.text, tokenizer, place.room) {
                Some(text) => result.text = text.into(),
                None => result = refused(call, NO_ROOM),
            }
            place.room = place.room.saturating_sub(count(&result.text));
            results.push(result);
        }
        results
    }

    /// Answers the calls of our tools, or tells the model that no more lookups are possible.
    async fn told(&mut self, calls: &[ToolCall]) -> Vec<ToolResult> {
        if self.rounds < self.gateway.config.limits.expansions {
            return self.results(calls).await;
        }
        calls.iter().map(|call| refused(call, NO_MORE)).collect()
    }

    /// Answers the calls of our tools and asks the upstream again.
    ///
    /// Errors: a text for the client, where the upstream does not go on.
    pub(crate) async fn go_on(&mut self) -> Result<Incoming, String> {
        let calls = self.reply.own_calls();
        let results = self.told(&calls).await;
        if self.rounds + 1 >= self.gateway.config.limits.expansions + REFUSALS {
            self.reply.ends_with_next();
        }
        self.rounds += 1;
        self.add_usage();
        let continuations = self.reply.answered(&results);
        self.ask_further(continuations).await
    }

    async fn ask_further(&self, continuations: Vec<Continuation>) -> Result<Incoming, String> {
        let Some(FollowUp { upstream, request, edits, .. }) = &self.follow_up else {
            return Err("nobody to ask".to_owned());
        };
        let mut edits = Edits { continuations, ..edits.clone() };
        // A model that goes on after it was told that there is no more is no longer offered the tools.
        if self.rounds > self.gateway.config.limits.expansions + 1 {
            edits.add_tools.clear();
        }
        let body = Bytes::from(request.rewrite(&edits).map_err(|error| error.to_string())?);
        let upstream = UpstreamRequest { body, ..upstream.clone() };
        let response = self.gateway.ask(&upstream).await.map_err(|refusal| refusal.to_string())?;
        if !response.status().is_success() {
            return Err(format!(
                "the upstream answered {} when it was asked further",
                response.status().as_u16()
            ));
        }
        Ok(self.gateway.incoming(response))
    }

    fn add_usage(&mut self) {
        if let Some(usage) = self.reply.answer().usage {
            self.usage += usage;
        }
    }

    /// Keeps the answer; returns when it is kept.
    ///
    /// Errors: the text of the store's error.
    pub(crate) async fn keep(&mut self) -> Result<(), String> {
        self.add_usage();
        let usage = self.counted();
        let answer = self.reply.answer();
        self.trace.ended(answer, usage);
        let message = answer.message.clone();
        if answer.ending != Ending::Complete {
            return self
                .turn
                .end(TurnOutcome { usage, rounds: self.rounds, ..TurnOutcome::default() })
                .await;
        }
        // Calls of our tools beside the client's are answered now, and put into the next request.
        let results = self.told(&self.reply.own_calls()).await;
        let at = self.follow_up.as_ref().map_or(0, |follow_up| follow_up.place.end);
        let held_back =
            self.reply.withheld(&results).map(|held_back| WithheldCalls { at, ..held_back });
        let shown = held_back.as_ref().map(|held_back| held_back.shown.clone());
        let shown = shown.filter(|shown| !shown.blocks.is_empty());
        let message: Option<Arc<Message>> = shown.or(message);
        let outcome = TurnOutcome {
            message: message.map(|message| (*message).clone()),
            usage,
            carried: held_back.iter().map(own_calls::write).collect(),
            cached: None,
            rounds: self.rounds,
            late: false,
            // After further rounds, the newest cache entry belongs to another request.
            sent: self.sent.take().filter(|_| self.rounds == 0),
        };
        self.turn.end(outcome).await?;
        if let Some(awaited) = self.awaited.take() {
            awaited.keep(&self.gateway, self.wire, self.reply.answer()).await;
        }
        Ok(())
    }

    fn counted(&self) -> Option<AnswerUsage> {
        (self.usage != AnswerUsage::default()).then_some(self.usage)
    }

    /// Takes a whole body, asks again as often as the model wants, and returns the body for the client.
    ///
    /// Errors: a text for the client.
    pub(crate) async fn whole(&mut self, mut body: Bytes) -> Result<Bytes, String> {
        loop {
            let shown = self.reply.body(&body);
            let asks = self.reply.progress() == Progress::Asks;
            match shown {
                Some(shown) if !asks => {
                    // The same bytes need no second copy.
                    return Ok(if *shown == *body { body } else { Bytes::from(shown) });
                }
                _ => {
                    let mut incoming = self.go_on().await?;
                    let most = self.gateway.config.limits.answer_bytes;
                    body = incoming.whole(most).await.map_err(|cut| cut.to_string())?;
                }
            }
        }
    }
}

fn refused(call: &ToolCall, why: &str) -> ToolResult {
    ToolResult { call_id: call.id.clone(), text: why.into(), images: Vec::new(), is_error: true }
}
