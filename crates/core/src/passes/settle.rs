//! Whole while fresh, then settled for good as soon as that pays.
//!
//! For each old message two smaller forms are weighed: without the lines that other messages show, and the skeleton.
//! What a form saves at every further call is set against what it hides: the chance that it is needed again, times the
//! price of fetching it back. A change breaks the prefix, so changes are made from a place onward, where their sum
//! outweighs the rewriting of what stands behind.

use std::sync::Arc;

use crate::cost::Prices;
use crate::excerpt::{self, Kind, Worth};
use crate::hash::Ref;
use crate::message::{Block, Message, Role};
use crate::names::Key;
use crate::plan::{Plan, Reason, Sent, Treatment, newest};
use crate::policy::{Bounds, PreserveErrors};
use crate::reading::{Reading, unique};
use crate::transcript::{Position, Transcript};
use crate::visible::Visible;

use super::call_of;

/// What settling remembers from turn to turn.
#[derive(Debug, Default)]
pub(crate) struct Settled {
    visible: Visible,
    messages: Vec<State>,
}

/// What is known of one message.
#[derive(Debug)]
struct State {
    reading: Reading,
    /// Names and runs of the form that is sent.
    names: Vec<Key>,
    runs: Vec<Key>,
    /// The turn in which it was said, or its words were last used.
    used: u32,
    level: Level,
    /// Tokens of the form that is sent, once it is not the whole.
    sent: Option<u32>,
    /// Forms as last weighed.
    lines: Option<Form>,
    skeleton: Option<Form>,
    weighed: u32,
}

/// Needs are counted for this many hidden runs, and grow with this power of them.
///
/// Measured: the chance that something of a message is needed grows slower than its length.
const HIDDEN_UNIT: f64 = 300.0;
const HIDDEN_POWER: f64 = 0.6;

/// How far a message has been reduced.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Level {
    Whole,
    /// Without the lines that others show.
    Lines,
    Skeleton,
}

#[derive(Debug)]
struct Form {
    sent: Arc<Sent>,
    saved: u32,
    /// Runs that no message would show any more.
    hidden: u32,
}

/// What one turn's decisions rest on.
#[derive(Debug, Clone, Copy)]
struct Terms<'a> {
    bounds: &'a Bounds,
    prices: &'a Prices,
    cold: bool,
    turn: u32,
    /// Calls that are expected to read what a tool answered, and what the model said.
    for_result: f64,
    for_said: f64,
    /// Tokens of the context.
    context: f64,
}

impl Terms<'_> {
    /// Returns the price of fetching back an original of `tokens`: the context read once more, the original written, and
    /// a call of 100 tokens.
    fn fetch(&self, tokens: u32) -> f64 {
        self.prices.cache_read * self.context
            + self.prices.cache_write * f64::from(tokens)
            + 100.0 * self.prices.output_ratio()
    }

    /// Returns what a token saved now is worth over the calls expected.
    fn saved_token(&self, calls: f64) -> f64 {
        let free = if self.cold { self.prices.cache_write - self.prices.cache_read } else { 0.0 };
        self.prices.cache_read * calls + free
    }
}

/// A change that would be worth making.
#[derive(Debug, Clone, Copy)]
struct Candidate {
    position: Position,
    level: Level,
    gain: f64,
    saved: f64,
}

/// Settles what pays; `cold` says that the cache is gone, so that every change is free.
pub(crate) fn settle(
    transcript: &Transcript,
    end: Position,
    bounds: &Bounds,
    prices: &Prices,
    cold: bool,
    settled: &mut Settled,
    plan: &mut Plan,
) {
    let seen = settled.messages.len();
    settled.read(transcript, seen, end);
    let fresh = newest(transcript, end);
    let (settings, turn) = (&bounds.settle, plan.turn());
    let terms = Terms {
        bounds,
        prices,
        cold,
        turn,
        for_result: f64::from(settings.calls_expected),
        for_said: f64::from(
            turn.clamp(settings.calls_expected * 3 / 5, settings.calls_expected * 6 / 5),
        ),
        context: plan.tokens() as f64,
    };
    for position in fresh.max(seen)..end {
        settled.cut_giant(transcript, position, &terms, plan);
    }
    let mut candidates = Vec::new();
    for position in 0..fresh {
        if plan.is_protected(position) {
            continue;
        }
        settled.weigh(transcript, position, &terms);
        candidates.extend(settled.best(transcript, position, &terms));
    }
    let Some(start) = place(plan, seen, &candidates, &terms) else { return };
    let reason = if cold { Reason::Cold } else { Reason::Settled };
    for candidate in candidates.iter().filter(|candidate| candidate.position >= start) {
        // Weighed again: an earlier change of this turn may have hidden what this one counted on.
        settled.reweigh(transcript, candidate.position, &terms);
        settled.change(transcript, candidate.position, candidate.level, reason, plan);
    }
}

/// Finds the place from which making all changes gains most, or none.
fn place(
    plan: &Plan,
    seen: Position,
    candidates: &[Candidate],
    terms: &Terms<'_>,
) -> Option<Position> {
    let break_price =
        (1.0 + terms.bounds.settle.caution) * (terms.prices.cache_write - terms.prices.cache_read);
    let (mut gain, mut removed, mut behind) = (0.0, 0.0, 0.0);
    let (mut best, mut start) = (0.0, None);
    let mut at = plan.decisions().len();
    for candidate in candidates.iter().rev() {
        while at > candidate.position {
            at -= 1;
            // What the cache has not seen yet is written in any case.
            if at < seen {
                behind += f64::from(crate::plan::sent_tokens(&plan.decisions()[at]));
            }
        }
        gain += candidate.gain;
        if candidate.position < seen {
            removed += candidate.saved;
        }
        let rewritten = if terms.cold { 0.0 } else { f64::max(0.0, behind - removed) };
        let net = gain - rewritten * break_price;
        if net > best {
            best = net;
            start = Some(candidate.position);
        }
    }
    start
}

impl Settled {
    fn read(&mut self, transcript: &Transcript, seen: Position, end: Position) {
        for position in seen..end {
            let entry = &transcript.entries()[position];
            let reading = Reading::of(&entry.message);
            let (names, runs) = (reading.names.clone(), reading.run_set());
            self.visible.show(&names, &runs);
            let messages = &mut self.messages;
            let said = entry.message.role == Role::Assistant;
            self.visible.hold(&runs, position, |holder| {
                if said && let Some(state) = messages.get_mut(holder) {
                    state.used = entry.turn;
                }
            });
            self.messages.push(State {
                reading,
                names,
                runs,
                used: entry.turn,
                level: Level::Whole,
                sent: None,
                lines: None,
                skeleton: None,
                weighed: 0,
            });
        }
    }

    /// Reduces a result at once that is too long to be sent whole even fresh.
    fn cut_giant(
        &mut self,
        transcript: &Transcript,
        position: Position,
        terms: &Terms<'_>,
        plan: &mut Plan,
    ) {
        let entry = &transcript.entries()[position];
        if entry.message.role != Role::Tool || entry.tokens <= terms.bounds.settle.giant {
            return;
        }
        self.reweigh(transcript, position, terms);
        let enough = self.messages[position]
            .lines
            .as_ref()
            .is_some_and(|form| entry.tokens - form.saved <= terms.bounds.settle.giant / 4);
        let level = if enough { Level::Lines } else { Level::Skeleton };
        self.change(transcript, position, level, Reason::Giant, plan);
    }

    /// Weighs a message when it is new, when its age has doubled, and when changes are free.
    fn weigh(&mut self, transcript: &Transcript, position: Position, terms: &Terms<'_>) {
        let entry = &transcript.entries()[position];
        let state = &self.messages[position];
        let worth = matches!(entry.message.role, Role::Tool | Role::Assistant)
            && state.level < Level::Skeleton
            && entry.tokens > terms.bounds.settle.least;
        let age = terms.turn - entry.turn;
        let due = terms.cold
            || state.weighed == 0
            || (age.is_power_of_two() && state.weighed < terms.turn);
        if worth && due {
            self.reweigh(transcript, position, terms);
        }
    }

    fn reweigh(&mut self, transcript: &Transcript, position: Position, terms: &Terms<'_>) {
        let entry = &transcript.entries()[position];
        let state = &self.messages[position];
        let now = state.tokens(entry.tokens);
        let errors = terms.bounds.intra_phase.preserve_errors != PreserveErrors::Off;
        let original = Ref::message(entry.hash);
        let call = entry
            .message
            .results()
            .next()
            .and_then(|result| call_of(transcript, position, &result.call_id));
        let said = entry.message.role == Role::Assistant;
        let worth = Worth {
            fetch: terms.fetch(entry.tokens),
            token: Worth::token_price(terms.prices.cache_write, terms.prices.cache_read, 30.0),
            rich: said || excerpt::reads_content(call),
            listing: !said
                && entry
                    .message
                    .results()
                    .any(|result| excerpt::kind_of(&result.text, call) == Kind::Listing),
        };
        let form = |dropped: &[bool]| -> Option<Form> {
            let message = excerpt::write(
                &entry.message,
                &state.reading,
                dropped,
                &self.visible,
                &worth,
                original,
            )?;
            let sent = Sent::rendered(Some(position), message, transcript.tokenizer());
            let saved = now.checked_sub(sent.tokens).filter(|saved| *saved > 0)?;
            let hidden = self.hidden(state, &sent.message);
            Some(Form { sent: Arc::new(sent), saved, hidden })
        };
        let elsewhere = excerpt::shown_elsewhere(&state.reading, &self.visible);
        let lines = if state.level == Level::Whole { form(&elsewhere) } else { None };
        let outside = excerpt::outside_skeleton(&entry.message, &state.reading, call, errors);
        let both: Vec<bool> = outside
            .iter()
            .zip(&elsewhere)
            .map(|(outside, elsewhere)| *outside || *elsewhere)
            .collect();
        let skeleton = form(&both);
        let state = &mut self.messages[position];
        state.lines = lines;
        state.skeleton = skeleton;
        state.weighed = terms.turn;
    }

    /// Counts the runs that only this message shows and that `form` does not.
    fn hidden(&self, state: &State, form: &Message) -> u32 {
        let kept = crate::names::runs(&form.shown());
        state.runs.iter().filter(|run| self.visible.run(**run) <= 1 && !kept.contains(*run)).count()
            as u32
    }

    /// Returns the change of a message that gains most, if any gains.
    fn best(
        &self,
        transcript: &Transcript,
        position: Position,
        terms: &Terms<'_>,
    ) -> Option<Candidate> {
        let entry = &transcript.entries()[position];
        let state = &self.messages[position];
        let settings = &terms.bounds.settle;
        let said = entry.message.role == Role::Assistant;
        let calls = if said { terms.for_said } else { terms.for_result };
        let candidate = |level, form: &Form, gain: f64| {
            (gain > 0.0).then_some(Candidate {
                position,
                level,
                gain,
                saved: f64::from(form.saved),
            })
        };
        let latest = entry.turn + 1 == terms.turn;
        // Providers refuse a change of the latest answer where reasoning stands before it.
        let sealed = said && latest && has_thinking(&entry.message);
        let lines = state.lines.as_ref().filter(|_| !sealed);
        let lines = lines.filter(|form| form.saved >= settings.least_saved);
        let lines = lines.and_then(|form| {
            candidate(Level::Lines, form, f64::from(form.saved) * terms.saved_token(calls))
        });
        let skeleton = state.skeleton.as_ref().filter(|_| !(said && latest));
        let skeleton = skeleton.filter(|form| form.saved >= settings.least_saved * 4);
        let skeleton = skeleton.and_then(|form| {
            let idle = f64::from((terms.turn - state.used).max(1));
            let need = if said { settings.need_of_said } else { settings.need_of_result };
            let rate = need * (f64::from(form.hidden) / HIDDEN_UNIT).powf(HIDDEN_POWER);
            let price = rate * (1.0 + calls / idle).ln() * terms.fetch(entry.tokens);
            let gain = f64::from(form.saved) * terms.saved_token(calls) - price;
            candidate(Level::Skeleton, form, gain)
        });
        match (lines, skeleton) {
            (Some(lines), Some(skeleton)) if skeleton.gain <= lines.gain => Some(lines),
            (lines, skeleton) => skeleton.or(lines),
        }
    }

    fn change(
        &mut self,
        transcript: &Transcript,
        position: Position,
        level: Level,
        reason: Reason,
        plan: &mut Plan,
    ) {
        let state = &mut self.messages[position];
        let form = match level {
            Level::Lines => state.lines.take(),
            _ => state.skeleton.take(),
        };
        let Some(form) = form else { return };
        let said = transcript.entries()[position].message.role == Role::Assistant;
        let treatment = if said { Treatment::Shorten } else { Treatment::Excerpt };
        if !plan.reduce(transcript, position, treatment, reason, form.sent.clone()) {
            return;
        }
        let shown = form.sent.message.shown();
        self.visible.hide(&state.names, &state.runs);
        state.names = unique(crate::names::names(&shown).into_iter().collect());
        state.runs = unique(crate::names::runs(&shown).into_iter().collect());
        self.visible.show(&state.names, &state.runs);
        state.level = level;
        state.sent = Some(form.sent.tokens);
        if level == Level::Skeleton {
            state.reading = Reading::default();
        }
        state.lines = None;
        state.skeleton = None;
    }
}

fn has_thinking(message: &Message) -> bool {
    message.blocks.iter().any(|block| matches!(block, Block::Thinking(_) | Block::Opaque(_)))
}

impl State {
    fn tokens(&self, whole: u32) -> u32 {
        self.sent.unwrap_or(whole)
    }
}
