//! The context of one request: a plan is bounded by a policy, rendered, charged and recorded.

mod marks;
mod pinning;
mod preview;
mod receipt;

use std::mem::{Discriminant, discriminant};
use std::sync::Arc;

use crate::attempts::Attempts;
use crate::choose::{Reason, shrink};
use crate::cost::{Cache, Prices, RequestPieces};
use crate::message::{Block, MillisSinceEpoch, Role};
use crate::passes::{self, Findings, Given, Settled};
use crate::pins::Pins;
use crate::plan::{Context, Decision, Plan, Sent, Treatment, newest};
use crate::policy::{BoundThinking, Cadence, Policy};
use crate::said_once::SaidOnce;
use crate::section::Section;
use crate::terms::Terms;
use crate::transcript::{Entry, Position, Transcript};

pub use preview::Preview;
pub use receipt::{Components, Receipt};

use marks::{entry_ends, own_marks};
use pinning::Pinning;
use receipt::components;

/// The memory of a session from one request to the next.
///
/// It can be rebuilt by bounding the same transcript again: nothing in it comes from a clock or a die.
#[derive(Debug, Clone, Default)]
pub struct State {
    plan: Plan,
    cache: Cache,
    said: SaidOnce,
    settled: Settled,
    attempts: Attempts,
    masked: Vec<Option<Arc<Sent>>>,
    pins: Pins,
    /// The messages of the last request, by their keys.
    sent: Vec<u64>,
    /// The place of the last request's answer, which is known only when the next request comes.
    last: Option<Position>,
    /// When the last request was made.
    last_time: Option<MillisSinceEpoch>,
    /// The text that the next request is to have behind its last message.
    offered: Option<Arc<str>>,
    /// The records that were found for the next request.
    findings: Findings,
    /// The kind of the last request's policy.
    kind: Option<Discriminant<Policy>>,
}

impl State {
    /// Returns the plan of the last request.
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// Takes back what a policy of another kind decided: it would stand under a name that it does not come from.
    fn follow(&mut self, transcript: &Transcript, policy: &Policy) {
        let kind = discriminant(policy);
        if self.kind.replace(kind).is_some_and(|last| last != kind) {
            let before = self.plan.reset();
            (self.said, self.settled) = (SaidOnce::default(), Settled::default());
            self.masked.clear();
            self.plan.compare(transcript, &before);
        }
    }

    fn add_offered(&mut self, transcript: &Transcript, end: Position) {
        let offered = self.offered.take().zip(end.checked_sub(1));
        if let Some((text, last)) = offered
            && transcript.entries()[last].message.role == Role::User
            && self.plan.added_tokens(last) == 0
        {
            self.plan.add(last, Section::Memory, text, transcript.tokenizer());
        }
    }

    /// Gives the next request a text behind its last message, if that is the user's and the budget has room for both.
    ///
    /// The text then stands in all later requests too, byte for byte.
    pub fn offer(&mut self, text: Option<Arc<str>>) {
        self.offered = text;
    }

    /// Gives the next request records that were found for it; only [`Policy::WorkingSet`] shows them.
    pub(crate) fn find(&mut self, findings: Findings) {
        self.findings = findings;
    }

    /// Forgets the messages, for a conversation that begins again with others; the provider's cache is as it was.
    pub fn restart(&mut self) {
        let (cache, last_time) = (std::mem::take(&mut self.cache), self.last_time);
        *self = Self { cache, last_time, ..Self::default() };
    }

    /// Returns the price that a request of `context` would have next, without recording it; plain input = 1.
    pub fn quote(&self, terms: &Terms, context: &[Sent], now: Option<MillisSinceEpoch>) -> f64 {
        let charge = self.cache.clone().charge(&terms.prices, &terms.pieces(context, &[]), now);
        terms.prices.input_cost(&charge)
    }

    /// Takes note that the last request was read once more at `at`, so that the cache which it left lives on.
    pub fn read_again(&mut self, prices: &Prices, at: MillisSinceEpoch) {
        self.cache.read_again(prices, at);
        self.last_time = self.last_time.max(Some(at));
    }
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
    let prices = terms.effective_prices();
    // An entry lives from the start of the request that read or wrote it. That everything is gone, and changes are free, is
    // believed only when the last answer is as old too: recorded times are not exact.
    let answered = state.last.and_then(|last| transcript.entries().get(last)?.message.time);
    let cold = prices.is_cold(state.last_time.max(answered), now);
    state.last_time = now.or(state.last_time);
    state.last = Some(position);
    let own_tools = u64::from(terms.around.own_tools);
    let mut lookups = terms.around.put_back.clone();
    let own = own_tools + lookup_tokens(&lookups);
    state.plan.extend(transcript, position);
    state.follow(transcript, policy);
    let ceiling = policy.ceiling_of(terms, state.plan.turn());
    let room = ceiling.map_or(u64::MAX, |ceiling| ceiling.saturating_sub(own));
    let moment = Moment { now, prices: &prices, cold };
    let sorted = state.pins.sort(transcript, position, policy.pin());
    let pinning = Pinning::of(transcript, position, policy, terms, &moment, &sorted);
    let warnings = apply(&pinning, policy, terms, &moment, room, state);
    let tokens = state.plan.tokens() + own;
    let mut over_budget = ceiling.map_or(0, |ceiling| tokens.saturating_sub(ceiling));
    if over_budget > 0 {
        over_budget = take_back(&mut state.plan, over_budget);
    }
    if over_budget > 0 {
        // A lookup is put back whole or not at all; the oldest goes first.
        let room = lookup_tokens(&lookups).saturating_sub(over_budget);
        over_budget -= lookup_tokens(&lookups) - room;
        shrink(
            &mut lookups,
            room,
            |one| lookup_tokens(one),
            |one| {
                let has_less = !one.is_empty();
                one.drain(..1.min(one.len()));
                has_less
            },
        );
    }
    let lookups = (lookups.len(), lookup_tokens(&lookups));
    let context = state.plan.render();
    let opens_with_assistant =
        position > 0 && transcript.entries()[0].message.role == Role::Assistant;
    let fresh = newest(transcript, position);
    let mut pieces = RequestPieces::new(terms.pieces(context.iter().map(|sent| &**sent), &[]));
    let own = own_marks(terms, &context, fresh, (&state.cache, &pieces), now);
    for at in &own {
        pieces.mark(at + 1, terms.around.life());
    }
    let mut charge = state.cache.charge_request(&terms.prices, &pieces, now);
    // Tools and system prompt are told apart from the messages: who changed them is another question.
    let keys: Vec<u64> = pieces.message_keys().collect();
    let alike = state.sent.iter().zip(&keys).take_while(|(last, now)| last == now).count();
    charge.broken = !charge.cold && alike < state.sent.len();
    charge.alike = if charge.cold { 0 } else { alike };
    state.sent = keys;
    let receipt = Receipt {
        turn: state.plan.turn() - 1 - u32::from(opens_with_assistant),
        position,
        full_messages: position,
        full_tokens: transcript.tokens_before(position),
        messages: context.len(),
        tokens: state.plan.tokens() + own_tools + lookups.1,
        components: Components { tools: own_tools, lookups: lookups.1, ..components(&state.plan) },
        charge,
        cost: terms.prices.input_cost(&charge),
        over_budget,
        budget: ceiling.filter(|ceiling| *ceiling < u64::MAX),
        lookups_left_out: terms.around.put_back.len() - lookups.0,
        warnings,
        changes: state.plan.changes().to_vec(),
        pins: state.pins.receipt(transcript, &sorted),
        rewritten: is_rewritten(transcript, &state.plan),
        marks: own.iter().filter_map(|&at| context[at].position).collect(),
    };
    (context, receipt)
}

/// The time of a request, and the cache at that time.
struct Moment<'a> {
    now: Option<MillisSinceEpoch>,
    /// Prices for the life that the client asks for.
    prices: &'a Prices,
    cold: bool,
}

/// Changes the plan of `state` as `policy` asks, to at most `room` tokens if it can; returns warnings for the user.
fn apply(
    pinning: &Pinning<'_>,
    policy: &Policy,
    terms: &Terms,
    moment: &Moment<'_>,
    room: u64,
    state: &mut State,
) -> Vec<String> {
    let &Moment { now, prices, cold } = moment;
    let &Pinning { transcript, end: position, free, .. } = pinning;
    let everything = policy.sends_everything();
    state.plan.unprotect(if everything { Reason::Everything } else { Reason::Small });
    state.attempts.read(transcript, position);
    state.add_offered(transcript, position);
    state.show_pinned(pinning);
    match policy {
        _ if everything => {}
        Policy::Full => {}
        Policy::Bounded(bounds) => match bounds.intra_phase.cadence {
            Cadence::EveryTurn => {
                let before = state.plan.reset();
                passes::protect_ends(transcript, position, &mut state.plan);
                pinning.protect(&mut state.plan);
                passes::mask(
                    transcript,
                    position,
                    &bounds.intra_phase,
                    &state.attempts,
                    &mut state.masked,
                    &mut state.plan,
                );
                pinning.drop_named(true, &mut state.plan);
                fit(pinning, room, terms, &mut state.plan);
                state.plan.compare(transcript, &before);
            }
            Cadence::CacheAware => {
                let seen = state.said.seen();
                if bounds.said_once {
                    let before = terms.around.before as u64;
                    let from = bounds.said_once_from.saturating_sub(before);
                    say_once(transcript, position, from, &mut state.said, &mut state.plan);
                }
                passes::protect_head(transcript, position, &mut state.plan);
                pinning.protect(&mut state.plan);
                let given = Given { bounds, terms, prices, attempts: &state.attempts, cold };
                let (settled, said, plan) = (&mut state.settled, &mut state.said, &mut state.plan);
                cut_giants(transcript, position, &given, seen, said, plan);
                if bounds.settle.enabled {
                    settled.read(transcript, position, &given, said, plan);
                    let ends = |plan: &Plan| entry_ends(terms, plan, &state.cache, now);
                    settled.settle(transcript, free..position, &given, &ends, said, plan);
                }
                for at in pinning.drop_named(false, plan) {
                    said.changed(at, &plan.decisions()[at].form.message.shown());
                }
                passes::protect_ends(transcript, position, plan);
                pinning.protect(plan);
                fit(pinning, room, terms, plan);
                settled.follow(plan, said);
            }
        },
        Policy::ClearToolUses { trigger, keep } => {
            pinning.protect(&mut state.plan);
            passes::clear_tool_uses(transcript, position, *trigger, *keep, &mut state.plan);
            pinning.drop_named(false, &mut state.plan);
        }
        Policy::Newest { .. } => {
            let before = state.plan.reset();
            pinning.protect(&mut state.plan);
            pinning.drop_named(true, &mut state.plan);
            passes::keep_newest(transcript, position, room, &mut state.plan);
            pinning.give_way(room, &mut state.plan);
            state.plan.compare(transcript, &before);
        }
        Policy::Trim(budget) => {
            let warning =
                passes::summarise(transcript, position, budget, pinning.sorted, &mut state.plan);
            return warning.into_iter().collect();
        }
        Policy::WorkingSet(settings) => {
            let findings = std::mem::take(&mut state.findings);
            let before = state.plan.reset();
            let plan = &mut state.plan;
            pinning.protect(plan);
            pinning.drop_named(true, plan);
            let warnings =
                passes::fit_working_set(transcript, position, settings, room, findings, plan);
            pinning.give_way(room, plan);
            plan.compare(transcript, &before);
            return warnings;
        }
    }
    Vec::new()
}

/// Brings the plan to at most `room` tokens if it can: what is dropped goes first, what is pinned last.
fn fit(pinning: &Pinning<'_>, room: u64, terms: &Terms, plan: &mut Plan) {
    pinning.make_room(room, plan);
    passes::fit(pinning.transcript, pinning.end, room, terms.around.lookups, plan);
    pinning.give_way(room, plan);
}

fn lookup_tokens(lookups: &[u32]) -> u64 {
    lookups.iter().map(|tokens| u64::from(*tokens)).sum()
}

/// Takes back added texts, the newest first, until nothing is over the budget; returns by how much it still is.
fn take_back(plan: &mut Plan, over: u64) -> u64 {
    let before = plan.tokens();
    for section in [Section::Memory, Section::Pinned] {
        let added: Vec<Position> = plan.additions().map(|(position, ..)| position).collect();
        passes::give_up(plan, before.saturating_sub(over), added.into_iter().rev(), |plan, at| {
            plan.take_back(at, section);
        });
    }
    over.saturating_sub(before - plan.tokens())
}

/// Gives each new message its form without the lines that the context already shows.
fn say_once(
    transcript: &Transcript,
    end: Position,
    from: u64,
    said: &mut SaidOnce,
    plan: &mut Plan,
) {
    let arriving: u64 =
        plan.decisions()[said.seen()..end].iter().map(|one| u64::from(one.form.tokens)).sum();
    let stands = plan.tokens().saturating_sub(arriving);
    for position in said.seen()..end {
        let entry = &transcript.entries()[position];
        let Some(message) = said.read(entry) else { continue };
        if stands < from {
            said.changed(position, &entry.message.shown());
        } else {
            let form = Sent::rendered(Some(position), message, transcript.tokenizer());
            let treatment = Treatment::Excerpt;
            plan.reduce(transcript, position, treatment, Reason::SaidOnce, Arc::new(form));
        }
    }
}

/// Returns the first message that may still change: none before the last one that thinking stands behind, where that is bound.
///
/// A client that sends no thinking back, as after a compaction, loses nothing by a change.
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

/// Shortens new results above the limit.
fn cut_giants(
    transcript: &Transcript,
    end: Position,
    given: &Given<'_>,
    seen: Position,
    said: &mut SaidOnce,
    plan: &mut Plan,
) {
    for position in seen..end {
        if transcript.entries()[position].message.role != Role::Tool {
            continue;
        }
        let form = passes::first_form(transcript, position, given, said);
        if let Some(form) = form
            && plan.reduce(transcript, position, Treatment::Excerpt, Reason::Giant, form.clone())
        {
            said.changed(position, &form.message.shown());
        }
    }
}

/// Returns whether a message changed its form after it was first sent.
fn is_rewritten(transcript: &Transcript, plan: &Plan) -> bool {
    let decisions = plan.decisions().iter().zip(transcript.entries());
    // The answer of a turn is first sent with the next one.
    let late = |(decision, entry): (&Decision, &Entry)| decision.since > entry.turn + 1;
    decisions.filter(|(decision, _)| decision.treatment != Treatment::Keep).any(late)
}
