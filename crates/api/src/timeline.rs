//! The turns of a session: as they were sent, or as a policy would have sent them.

use plimsoll_core::context::{Receipt, State};
use plimsoll_core::cost::Pricing;
use plimsoll_core::plan::{Context, sent_tokens};
use plimsoll_core::policy::Policy;
use plimsoll_core::replay::{Replay, bound_stretches, replay_stretches};
use plimsoll_core::terms::Terms;
use plimsoll_core::{Message, Position, Transcript};
use serde::Serialize;
use serde_json::{Value, json};

use crate::sources::SourceSums;
use crate::view::SessionView;

/// What a list of turns is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Basis {
    /// The requests of the gateway, bounded again from their receipts.
    Recorded,
    /// A replay of the messages under a policy.
    Replayed,
}

impl Basis {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Recorded => "recorded",
            Self::Replayed => "replayed",
        }
    }
}

/// A turn with its context.
#[derive(Debug)]
pub(crate) struct SeenTurn<'a> {
    pub(crate) number: u32,
    pub(crate) strategy: &'a str,
    pub(crate) model: Option<&'a str>,
    pub(crate) position: Position,
    pub(crate) transcript: &'a Transcript,
    pub(crate) context: &'a Context,
    pub(crate) receipt: &'a Receipt,
    pub(crate) state: &'a State,
    pub(crate) was_sent: bool,
}

/// Shows every turn of a session to `each`: its recorded requests, or where there are none or a policy is named, a replay.
pub(crate) fn walk(
    view: &SessionView,
    named: Option<(&str, &Policy)>,
    usual: (&str, &Policy),
    pricing: &Pricing,
    mut each: impl FnMut(SeenTurn<'_>),
) -> Basis {
    if let (None, Some(live)) = (named, &view.live) {
        live.clone().requests_again(pricing, |request| {
            each(SeenTurn {
                number: request.number,
                strategy: request.strategy,
                model: request.model,
                position: request.position,
                transcript: request.transcript,
                context: request.context,
                receipt: request.receipt,
                state: request.state,
                was_sent: !request.went_out_as_it_came,
            });
        });
        return Basis::Recorded;
    }
    let (strategy, policy) = named.unwrap_or(usual);
    replay_of(view, policy, pricing, ReplayDepth::Contexts, |transcript, turn| {
        let answer = &transcript.entries()[turn.receipt.position].message;
        each(SeenTurn {
            number: turn.receipt.turn,
            strategy,
            model: answer.model.as_deref(),
            position: turn.receipt.position,
            transcript,
            context: turn.context,
            receipt: turn.receipt,
            state: turn.state,
            was_sent: false,
        });
    });
    Basis::Replayed
}

/// Replays a session under a policy, each request by the prices of its own model and time.
pub(crate) fn replay_of(
    view: &SessionView,
    policy: &Policy,
    pricing: &Pricing,
    depth: ReplayDepth,
    mut each: impl FnMut(&Transcript, &plimsoll_core::replay::Turn<'_>),
) -> Replay {
    let counted = view.counted();
    let model = view.model();
    let terms = |message: &Message| {
        let prices = pricing.of(message.model.as_deref().or(model), message.time).prices;
        Terms { around: counted.overhead.surroundings(), ..Terms::new(prices) }
    };
    let transcript = &counted.transcript;
    let (stretches, shared) = (counted.stretches(), counted.overhead.shared);
    let each = |turn: plimsoll_core::replay::Turn<'_>| each(transcript, &turn);
    match depth {
        ReplayDepth::Contexts => bound_stretches(stretches, policy, shared, terms, each),
        ReplayDepth::Needs => replay_stretches(stretches, policy, shared, terms, each),
    }
}

/// The questions that a replay answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ReplayDepth {
    Contexts,
    /// Also which needed content was hidden.
    Needs,
}

/// Returns what the answer of a turn was billed, by the usage that its provider reported.
pub(crate) fn billed(turn: &SeenTurn<'_>, pricing: &Pricing) -> Option<f64> {
    let answer = &turn.transcript.entries().get(turn.position)?.message;
    let usage = answer.usage.filter(|usage| usage.prompt_tokens > 0)?;
    let priced = pricing.of(turn.model, answer.time);
    Some(priced.prices.billed(&usage))
}

/// The size of a prompt before and after its agent compacted the context.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub(crate) struct SeenCompaction {
    before: u64,
    after: u64,
}

/// Finds compactions by the prompts that the provider reported: one is much smaller than the one before.
#[derive(Debug, Default)]
pub(crate) struct Compactions {
    last: u64,
}

impl Compactions {
    /// A smaller prompt is no context worth a compaction (chosen).
    const LEAST: u64 = 10_000;

    /// Returns the compaction before a turn, if there was one.
    pub(crate) fn at(&mut self, turn: &SeenTurn<'_>) -> Option<SeenCompaction> {
        let answer = &turn.transcript.entries().get(turn.position)?.message;
        self.next(answer.usage?.prompt_tokens)
    }

    fn next(&mut self, prompt: u64) -> Option<SeenCompaction> {
        if prompt == 0 {
            return None;
        }
        let before = std::mem::replace(&mut self.last, prompt);
        // Half of the prompt is gone (chosen: clearing a few results takes less).
        (before >= Self::LEAST && prompt * 2 <= before)
            .then_some(SeenCompaction { before, after: prompt })
    }
}

/// Writes a turn as a list shows it.
pub(crate) fn written(
    turn: &SeenTurn<'_>,
    sums: &mut SourceSums<'_>,
    view: &SessionView,
    pricing: &Pricing,
) -> Value {
    let receipt = turn.receipt;
    let decisions = turn.state.plan().decisions().iter().take(turn.position);
    let (mut sent, reduced) = sums.at(decisions.map(|one| (sent_tokens(one), one.whole.tokens)));
    let components = &receipt.components;
    for (source, tokens) in [
        ("memory", components.memory + components.pinned + components.facts + components.artefacts),
        ("own tools", components.tools),
        ("lookups", components.lookups),
    ] {
        if tokens > 0 {
            *sent.entry(source.into()).or_default() += tokens;
        }
    }
    // System prompt and tools that no message shows, by the size of what providers reported.
    let unshown = (receipt.charge.prompt() - receipt.tokens as f64).max(0.0).round() as u64;
    if unshown > 0 {
        sent.insert("prompt and tools".into(), unshown);
    }
    let entries = turn.transcript.entries();
    let answer = entries.get(turn.position).map(|entry| &entry.message);
    let stored =
        view.receipts.iter().find(|one| one.turn == turn.number && one.strategy == turn.strategy);
    let priced = pricing.of(turn.model, answer.and_then(|answer| answer.time));
    json!({
        "turn": turn.number,
        "position": turn.position,
        "strategy": turn.strategy,
        "was_sent": turn.was_sent,
        "model": turn.model,
        "time": answer.and_then(|answer| answer.time),
        "messages": receipt.messages,
        "full_messages": receipt.full_messages,
        "tokens": receipt.tokens,
        "full_tokens": receipt.full_tokens,
        "reduced_tokens": reduced,
        "sources": sent,
        "cached": receipt.charge.cached.round(),
        "written": receipt.charge.written.round(),
        "plain": receipt.charge.plain.round(),
        "cold": receipt.charge.cold,
        "broken": receipt.charge.broken,
        "cost": priced.prices.dollars(receipt.cost),
        "is_estimate": priced.is_estimate(),
        "changes": receipt.changes.len(),
        "bill": stored.and_then(|one| one.bill),
        "reported": answer.and_then(|answer| answer.usage),
        "reported_cost": billed(turn, pricing),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prompt_of_half_the_size_was_compacted() {
        let mut seen = Compactions::default();
        let found: Vec<_> =
            [30_000, 0, 29_000, 12_000, 13_000, 900, 300].map(|prompt| seen.next(prompt)).into();
        let compaction = |before, after| Some(SeenCompaction { before, after });
        assert_eq!(
            found,
            [None, None, None, compaction(29_000, 12_000), None, compaction(13_000, 900), None]
        );
    }
}
