//! The use of a plan: one request bounded by a policy, rendered, charged, recorded.

use std::sync::Arc;

use serde::Serialize;

use crate::attempts::Attempts;
use crate::cost::{Cache, CacheKind, Charge, LOOK_BACK};
use crate::message::{Block, MillisSinceEpoch, Role};
use crate::passes::{self, Given, Settled};
use crate::plan::{Change, Context, Plan, Reason, Sent, Treatment};
use crate::policy::{BoundThinking, Bounds, Cadence, Policy};
use crate::said_once::SaidOnce;
use crate::terms::Terms;
use crate::transcript::{Entry, Position, Transcript};

/// What a session remembers from one request to the next.
///
/// It can be rebuilt by bounding the same transcript again: nothing in it comes from a clock or a die.
#[derive(Debug, Default)]
pub struct State {
    plan: Plan,
    cache: Cache,
    said: SaidOnce,
    settled: Settled,
    attempts: Attempts,
    masked: Vec<Option<Arc<Sent>>>,
    /// The place of the last request's answer.
    last: Option<Position>,
}

impl State {
    /// Returns the plan of the last request.
    pub fn plan(&self) -> &Plan {
        &self.plan
    }
}

/// Tokens by what they are.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Components {
    pub system: u64,
    pub user: u64,
    /// What the model said, its calls left out.
    pub assistant: u64,
    /// Names and arguments of calls.
    pub tool_call: u64,
    pub tool_result: u64,
}

/// The record of one request: what was decided, and what it cost.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Receipt {
    /// Counted from 0, as contexts are.
    pub turn: u32,
    /// The place that the model's answer has in the transcript.
    pub position: Position,
    /// Messages and tokens of the full history.
    pub full_messages: usize,
    pub full_tokens: u64,
    /// Messages and tokens that were sent.
    pub messages: usize,
    pub tokens: u64,
    pub components: Components,
    #[serde(flatten)]
    pub charge: Charge,
    /// Cost of the input in plain input tokens.
    pub cost: f64,
    /// Tokens by which the smallest context that means anything passes the budget; 0 where it fits.
    pub over_budget: u64,
    pub changes: Vec<Change>,
    /// The messages at whose ends we set marks of the provider's cache, beside the client's.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub marks: Vec<Position>,
}

/// Bounds the request that the assistant message at `position` answered, or will answer.
///
/// Shape: messages before `position` in their order, each in the form of its treatment. `state` must have seen every
/// earlier request of the session, in order. Time is that of the newest message before `position`.
pub fn bound(
    transcript: &Transcript,
    position: Position,
    policy: &Policy,
    terms: &Terms,
    state: &mut State,
) -> (Context, Receipt) {
    let now = transcript.time_before(position);
    let prices = &terms.effective_prices();
    // Looked up now and not when it was sent: a live request is bounded before its answer, and the time of that, is known.
    let last_time = state.last.and_then(|last| time_of_answer(transcript, last));
    let cold = prices.is_cold(last_time, now);
    let mut over_budget = 0;
    state.plan.extend(transcript, position);
    let everything = match policy {
        Policy::Full => true,
        Policy::Bounded(bounds) => !bounds.intra_phase.enabled,
        _ => false,
    };
    state.plan.unprotect(if everything { Reason::Everything } else { Reason::Small });
    state.attempts.read(transcript, position);
    match policy {
        _ if everything => {}
        Policy::Full => {}
        Policy::Bounded(bounds) => match bounds.intra_phase.cadence {
            Cadence::EveryTurn => {
                let before = state.plan.reset();
                passes::protect_ends(transcript, position, &mut state.plan);
                passes::mask(
                    transcript,
                    position,
                    &bounds.intra_phase,
                    &state.attempts,
                    &mut state.masked,
                    &mut state.plan,
                );
                let budget = bounds.budget.tokens(terms, state.plan.turn());
                over_budget = passes::fit(transcript, position, budget, &mut state.plan);
                state.plan.compare(transcript, &before);
            }
            Cadence::CacheAware => {
                let seen = state.said.seen();
                if bounds.said_once {
                    say_once(transcript, position, &mut state.said, &mut state.plan);
                }
                passes::protect_head(transcript, position, &mut state.plan);
                let budget = bounds.budget.tokens(terms, state.plan.turn());
                let given = Given {
                    bounds,
                    terms,
                    prices,
                    attempts: &state.attempts,
                    cache: &state.cache,
                    now,
                    cold,
                };
                let (settled, said, plan) = (&mut state.settled, &mut state.said, &mut state.plan);
                cut_giants(transcript, position, bounds, seen, said, plan);
                if bounds.settle.enabled {
                    settled.read(transcript, position, &given, said, plan);
                    let free = first_free(transcript, position, terms, bounds.thinking);
                    settled.settle(transcript, free..position, &given, said, plan);
                }
                passes::protect_ends(transcript, position, plan);
                over_budget = passes::fit(transcript, position, budget, plan);
                settled.follow(plan, said);
            }
        },
        Policy::ClearToolUses { trigger, keep } => {
            passes::clear_tool_uses(transcript, position, *trigger, *keep, &mut state.plan);
        }
        Policy::Newest { budget } => {
            let before = state.plan.reset();
            passes::keep_newest(transcript, position, *budget, &mut state.plan);
            state.plan.compare(transcript, &before);
            over_budget = state.plan.tokens().saturating_sub(*budget);
        }
    }
    let context = state.plan.render();
    let opens_with_assistant =
        position > 0 && transcript.entries()[0].message.role == Role::Assistant;
    let at = time_of_answer(transcript, position);
    let own = own_mark(terms, &context, edge(&state.plan), &state.cache, now);
    let pieces = terms.pieces(context.iter().map(|sent| &**sent), own.as_slice());
    let charge = state.cache.charge(&terms.prices, &pieces, at);
    state.last = Some(position);
    let receipt = Receipt {
        turn: state.plan.turn() - 1 - u32::from(opens_with_assistant),
        position,
        full_messages: position,
        full_tokens: transcript.entries()[..position].iter().map(|one| u64::from(one.tokens)).sum(),
        messages: context.len(),
        tokens: state.plan.tokens(),
        components: components(&context),
        charge,
        cost: terms.prices.input_cost(&charge),
        over_budget,
        changes: state.plan.changes().to_vec(),
        marks: own.iter().filter_map(|&at| context[at].position).collect(),
    };
    (context, receipt)
}

/// Returns the last message that was sent before and changed in this turn.
fn edge(plan: &Plan) -> Option<Position> {
    let arrived = |reason| matches!(reason, Reason::SaidOnce | Reason::Giant);
    let changes = plan.changes().iter().filter(|change| !arrived(change.reason));
    changes.map(|change| change.position).max()
}

/// Finds the place of a mark of our own: the end of the longest cache entry that the client's marks do not find.
///
/// They miss it where something before the client's last mark has changed, and where a turn has more blocks than a provider
/// looks back. After a change the mark stands at its `edge`, as near as it still finds that entry: the next change comes
/// behind it, and without an entry there everything since the first change would be written again.
fn own_mark(
    terms: &Terms,
    context: &Context,
    edge: Option<Position>,
    cache: &Cache,
    at: Option<MillisSinceEpoch>,
) -> Option<usize> {
    if terms.prices.cache != CacheKind::Marks || terms.around.free_marks == 0 {
        return None;
    }
    // The first piece is what stands before the messages.
    let pieces = terms.pieces(context.iter().map(|sent| &**sent), &[]);
    let longest = cache.ends(&terms.prices, &pieces, at).pop();
    let edge = edge.and_then(|edge| {
        context.iter().rposition(|sent| sent.position.is_some_and(|at| at <= edge))
    });
    // Not every block that a model said takes a mark.
    let takes = |at: &usize| context[*at - 1].message.role != Role::Assistant;
    let place = match (longest, edge.map(|edge| edge + 1)) {
        (Some(longest), Some(edge)) if edge > longest => {
            let mut blocks = 0;
            let reach = pieces[longest + 1..=edge].iter().take_while(|piece| {
                blocks += piece.blocks.max(1);
                blocks < LOOK_BACK
            });
            let end = longest + reach.count();
            (longest + 1..=end).rev().find(takes).unwrap_or(longest)
        }
        (Some(longest), _) => {
            let found = cache.clone().charge(&terms.prices, &pieces, at).cached;
            let there: f64 = pieces[..=longest].iter().map(|piece| piece.tokens).sum();
            (there > found).then_some(longest)?
        }
        (None, edge) => (1..=edge?).rev().find(takes)?,
    };
    pieces[place].mark.is_none().then(|| place.checked_sub(1)).flatten()
}

/// Gives what arrived its form without the lines that stand in the context already.
fn say_once(transcript: &Transcript, end: Position, said: &mut SaidOnce, plan: &mut Plan) {
    for position in said.seen()..end {
        let entry = &transcript.entries()[position];
        if let Some(message) = said.read(entry) {
            let form = Sent::rendered(Some(position), message, transcript.tokenizer());
            let treatment = Treatment::Excerpt;
            plan.reduce(transcript, position, treatment, Reason::SaidOnce, Arc::new(form));
        }
    }
}

/// Returns the first message that may still change: none before the last one that thinking stands behind, where that is bound.
///
/// Whoever sends no thinking back, as after a compaction, has nothing that a change could break.
fn first_free(
    transcript: &Transcript,
    end: Position,
    terms: &Terms,
    thinking: BoundThinking,
) -> Position {
    if terms.append_only {
        return end;
    }
    match thinking {
        BoundThinking::Provider if terms.binds() => end,
        BoundThinking::Keep if terms.binds() => {
            let entries = &transcript.entries()[..end];
            let thinks = |entry: &Entry| {
                entry.message.blocks.iter().any(|block| matches!(block, Block::Thinking(_)))
            };
            entries.iter().rposition(thinks).unwrap_or(0)
        }
        _ => 0,
    }
}

/// Excerpts what arrived and is longer than any result should be.
fn cut_giants(
    transcript: &Transcript,
    end: Position,
    bounds: &Bounds,
    seen: Position,
    said: &mut SaidOnce,
    plan: &mut Plan,
) {
    for position in seen..end {
        let tokens = plan.decisions()[position].form.tokens;
        let is_result = transcript.entries()[position].message.role == Role::Tool;
        if !is_result || tokens <= bounds.settle.giant {
            continue;
        }
        let errors = bounds.intra_phase.preserve_errors;
        let form = passes::excerpt_of(transcript, position, &bounds.settle, errors, said, &[]);
        if let Some(form) = form
            && plan.reduce(transcript, position, Treatment::Excerpt, Reason::Giant, form.clone())
        {
            said.changed(position, &form.message.shown());
        }
    }
}

/// Returns when the request at `position` was answered, as far as that is known.
///
/// The provider's clock starts when it answers, so the answer's own time stands for the request where it has one.
fn time_of_answer(transcript: &Transcript, position: Position) -> Option<MillisSinceEpoch> {
    let answered = transcript.entries().get(position).and_then(|entry| entry.message.time);
    answered.or_else(|| transcript.time_before(position))
}

/// Adds up a context's tokens by what they are; a message's tokens are shared out by the length of its parts.
fn components(context: &Context) -> Components {
    let mut sum = Components::default();
    for sent in context {
        let tokens = u64::from(sent.tokens);
        match sent.message.role {
            Role::System => sum.system += tokens,
            Role::User => sum.user += tokens,
            Role::Tool => sum.tool_result += tokens,
            Role::Assistant => {
                let (mut said, mut called) = (0, 0);
                for block in &sent.message.blocks {
                    match block {
                        Block::Text(text) => said += text.len(),
                        Block::ToolCall(call) => called += call.name.len() + call.arguments.len(),
                        _ => {}
                    }
                }
                let calls = if said + called == 0 {
                    0
                } else {
                    tokens * called as u64 / (said + called) as u64
                };
                sum.tool_call += calls;
                sum.assistant += tokens - calls;
            }
        }
    }
    sum
}
