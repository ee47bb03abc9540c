//! An answer on its way to the client: watched, our own calls answered, and its end held until what was said is kept.

use std::sync::Arc;

use bytes::Bytes;
use http::{HeaderMap, Method};
use plimsoll_core::lookup::NO_MORE;
use plimsoll_core::{Message, ToolCall, ToolResult};
use plimsoll_wire::{
    AnswerUsage, Continuation, Edits, Ending, Progress, Reply, Request, Wire, Withheld,
};
use tokio::task::JoinHandle;

use crate::answer_cache::Awaited;
use crate::gateway::Gateway;
use crate::handle::{ask, incoming};
use crate::lookup::{self, Place};
use crate::own_calls;
use crate::prepare::{Open, Prepared};
use crate::relay::Incoming;
use crate::traces::Trace;
use crate::turn::{Turn, TurnOutcome};
use crate::upstream::Upstream;
use crate::warm::Sent;

/// The turn that an answer ends, where it has one.
#[derive(Debug)]
pub(crate) enum PendingTurn {
    Now(Turn),
    /// It was not ready when the request had to go.
    Later(JoinHandle<Result<Prepared, Open>>),
    None,
}

impl PendingTurn {
    /// Ends the turn, as soon as there is one.
    pub(crate) async fn end(&mut self, said: TurnOutcome) -> Result<(), String> {
        match std::mem::replace(self, Self::None) {
            Self::Now(mut turn) => turn.end(said).await,
            Self::Later(task) => match task.await {
                Ok(Ok(mut prepared)) => prepared.turn.end(TurnOutcome { late: true, ..said }).await,
                _ => Ok(()),
            },
            Self::None => Ok(()),
        }
    }
}

/// What is needed to ask the upstream again within one request of the client.
#[derive(Debug)]
pub(crate) struct FollowUp {
    pub(crate) upstream: Arc<Upstream>,
    pub(crate) method: Method,
    pub(crate) path: String,
    pub(crate) headers: HeaderMap,
    pub(crate) request: Arc<Request>,
    pub(crate) edits: Edits,
    pub(crate) place: Place,
}

/// An answer, put together from one or several of the provider's.
#[derive(Debug)]
pub(crate) struct RelayedAnswer {
    pub(crate) gateway: Arc<Gateway>,
    pub(crate) wire: Wire,
    pub(crate) reply: Reply,
    ender: PendingTurn,
    again: Option<FollowUp>,
    /// Of the answers before the last.
    usage: AnswerUsage,
    rounds: usize,
    /// What the answer cache is told when it is kept.
    awaited: Option<Awaited>,
    trace: Trace,
    /// What was sent, where its cache entry may be kept warm.
    sent: Option<Box<Sent>>,
}

impl RelayedAnswer {
    pub(crate) fn new(
        gateway: Arc<Gateway>,
        wire: Wire,
        ender: PendingTurn,
        again: Option<FollowUp>,
    ) -> Self {
        // Without a way to ask again, nothing of ours was offered.
        let own = again.iter().flat_map(|again| &again.edits.add_tools);
        let reply = Reply::new(wire, own.map(|tool| tool.name.clone()));
        let (usage, trace) = (AnswerUsage::default(), Trace::default());
        Self {
            gateway,
            wire,
            reply,
            ender,
            again,
            usage,
            rounds: 0,
            awaited: None,
            trace,
            sent: None,
        }
    }

    /// Lets the answer cache have the answer.
    pub(crate) fn awaited(mut self, awaited: Option<Awaited>) -> Self {
        self.awaited = awaited;
        self
    }

    /// Ends a span with the answer.
    pub(crate) fn traced(mut self, trace: Trace) -> Self {
        self.trace = trace;
        self
    }

    /// Lets the cache entry of the request be kept warm when it is answered.
    pub(crate) fn sent(mut self, sent: Option<Box<Sent>>) -> Self {
        self.sent = sent;
        self
    }

    async fn results(&self, calls: &[ToolCall]) -> Vec<ToolResult> {
        let mut results = Vec::new();
        let Some(again) = &self.again else { return results };
        for call in calls {
            results.push(lookup::answer(&self.gateway, &again.place, &again.request, call).await);
        }
        results
    }

    /// Answers the calls that are ours and asks the upstream again.
    ///
    /// Errors: in words for the client, where the upstream does not go on.
    pub(crate) async fn go_on(&mut self) -> Result<Incoming, String> {
        let calls = self.reply.own_calls();
        let most = self.gateway.config.limits.expansions;
        let results = match self.rounds {
            rounds if rounds < most => self.results(&calls).await,
            // Told once that this is all; a model that goes on all the same is left.
            rounds if rounds == most => calls.iter().map(no_more).collect(),
            _ => return Err(format!("the model asked {most} times for what was left out")),
        };
        self.rounds += 1;
        self.add_usage();
        let continuations = self.reply.answered(&results);
        self.ask_further(continuations).await
    }

    async fn ask_further(&self, continuations: Vec<Continuation>) -> Result<Incoming, String> {
        let Some(again) = &self.again else { return Err("nobody to ask".to_owned()) };
        let edits = Edits { continuations, ..again.edits.clone() };
        let body = again.request.rewrite(&edits).map_err(|error| error.to_string())?;
        let response = ask(
            &self.gateway,
            &again.upstream,
            again.method.clone(),
            &again.path,
            again.headers.clone(),
            Bytes::from(body),
        )
        .await
        .map_err(|refusal| refusal.to_string())?;
        if !response.status().is_success() {
            return Err(format!(
                "the upstream answered {} when it was asked further",
                response.status().as_u16()
            ));
        }
        Ok(incoming(&self.gateway, response))
    }

    fn add_usage(&mut self) {
        if let Some(usage) = self.reply.answer().usage {
            self.usage.input += usage.input;
            self.usage.cached += usage.cached;
            self.usage.written += usage.written;
            self.usage.written_long += usage.written_long;
            self.usage.dropped_thinking += usage.dropped_thinking;
            self.usage.cleared_tool_uses += usage.cleared_tool_uses;
            self.usage.output += usage.output;
        }
    }

    /// Keeps what was said; returns when it is kept.
    ///
    /// Errors: the store did not take it, in its words.
    pub(crate) async fn keep(&mut self) -> Result<(), String> {
        self.add_usage();
        let usage = self.counted();
        let answer = self.reply.answer();
        self.trace.said(answer, usage);
        let message = answer.message.clone();
        if answer.ending != Ending::Complete {
            return self
                .ender
                .end(TurnOutcome { usage, rounds: self.rounds, ..TurnOutcome::default() })
                .await;
        }
        // Calls of ours beside the client's: answered now, and put into the next request.
        let results = self.results(&self.reply.own_calls()).await;
        let at = self.again.as_ref().map_or(0, |again| again.place.end);
        let held_back = self.reply.withheld(&results).map(|held_back| Withheld { at, ..held_back });
        let shown = held_back.as_ref().map(|held_back| held_back.shown.clone());
        let shown = shown.filter(|shown| !shown.blocks.is_empty());
        let message: Option<Arc<Message>> = shown.or(message);
        let said = TurnOutcome {
            message: message.map(|message| (*message).clone()),
            usage,
            carried: held_back.iter().map(own_calls::write).collect(),
            cached: None,
            rounds: self.rounds,
            late: false,
            // Where it was asked further, the newest entry is of another request.
            sent: self.sent.take().filter(|_| self.rounds == 0),
        };
        self.ender.end(said).await?;
        if let Some(awaited) = self.awaited.take() {
            awaited.keep(&self.gateway, self.wire, self.reply.answer()).await;
        }
        Ok(())
    }

    fn counted(&self) -> Option<AnswerUsage> {
        (self.usage != AnswerUsage::default()).then_some(self.usage)
    }

    /// Takes a whole body: returns what the client gets, asking again as often as the model wants.
    ///
    /// Errors: in words for the client.
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

fn no_more(call: &ToolCall) -> ToolResult {
    ToolResult {
        call_id: call.id.clone(),
        text: NO_MORE.into(),
        images: Vec::new(),
        is_error: true,
    }
}
