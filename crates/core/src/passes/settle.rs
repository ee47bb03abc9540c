//! Whole while fresh, then settled for good as soon as that pays.
//!
//! For each old message two smaller forms are weighed: without the lines that other messages show, and the skeleton.
//! What a form saves at every further call is set against what it hides: the chance that it is needed again, times the
//! price of fetching it back. A change breaks the prefix, so changes are made from a place onward, where their sum
//! outweighs the rewriting of what stands behind.

use std::sync::Arc;

use crate::cost::Prices;
use crate::excerpt;
use crate::hash::Ref;
use crate::message::{Message, Role};
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
    for position in fresh.max(seen)..end {
        settled.cut_giant(transcript, position, bounds, plan);
    }
    let turn = plan.turn();
    let settings = &bounds.settle;
    let expected = f64::from(turn.clamp(settings.calls_expected, settings.calls_expected * 2));
    let context = plan.tokens() as f64;
    let mut candidates = Vec::new();
    for position in 0..fresh {
        if plan.is_protected(position) {
            continue;
        }
        settled.weigh(transcript, position, bounds, turn, cold);
        if let Some(candidate) =
            settled.best(transcript, position, bounds, prices, cold, turn, expected, context)
        {
            candidates.push(candidate);
        }
    }
    let Some(start) = place(plan, seen, &candidates, prices, cold, settings.caution) else {
        return;
    };
    for candidate in candidates.iter().filter(|candidate| candidate.position >= start) {
        // Weighed again: an earlier change of this turn may have hidden what this one counted on.
        settled.reweigh(transcript, candidate.position, bounds, turn);
        settled.apply(transcript, candidate.position, candidate.level, cold, plan);
    }
}

/// Finds the place from which making all changes gains most, or none.
fn place(
    plan: &Plan,
    seen: Position,
    candidates: &[Candidate],
    prices: &Prices,
    cold: bool,
    caution: f64,
) -> Option<Position> {
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
        let rewritten = if cold { 0.0 } else { f64::max(0.0, behind - removed) };
        let net = gain - (1.0 + caution) * rewritten * (prices.cache_write - prices.cache_read);
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
        bounds: &Bounds,
        plan: &mut Plan,
    ) {
        let entry = &transcript.entries()[position];
        if entry.message.role != Role::Tool || entry.tokens <= bounds.settle.giant {
            return;
        }
        self.reweigh(transcript, position, bounds, plan.turn());
        let enough = self.messages[position]
            .lines
            .as_ref()
            .is_some_and(|form| entry.tokens - form.saved <= bounds.settle.giant / 4);
        let level = if enough { Level::Lines } else { Level::Skeleton };
        self.change(transcript, position, level, Reason::Giant, plan);
    }

    /// Weighs a message when it is new, when its age has doubled, and when changes are free.
    fn weigh(
        &mut self,
        transcript: &Transcript,
        position: Position,
        bounds: &Bounds,
        turn: u32,
        cold: bool,
    ) {
        let entry = &transcript.entries()[position];
        let state = &self.messages[position];
        let worth = matches!(entry.message.role, Role::Tool | Role::Assistant)
            && state.level < Level::Skeleton
            && entry.tokens > bounds.settle.least;
        let age = turn - entry.turn;
        let due = cold || state.weighed == 0 || (age.is_power_of_two() && state.weighed < turn);
        if worth && due {
            self.reweigh(transcript, position, bounds, turn);
        }
    }

    fn reweigh(&mut self, transcript: &Transcript, position: Position, bounds: &Bounds, turn: u32) {
        let entry = &transcript.entries()[position];
        let state = &self.messages[position];
        let now = state.tokens(entry.tokens);
        let errors = bounds.intra_phase.preserve_errors != PreserveErrors::Off;
        let original = Ref::message(entry.hash);
        let form = |dropped: &[bool]| -> Option<Form> {
            let message =
                excerpt::write(&entry.message, &state.reading, dropped, &self.visible, original)?;
            let sent = Sent::rendered(Some(position), message, transcript.tokenizer());
            let saved = now.checked_sub(sent.tokens).filter(|saved| *saved > 0)?;
            let hidden = self.hidden(state, &sent.message);
            Some(Form { sent: Arc::new(sent), saved, hidden })
        };
        let elsewhere = excerpt::shown_elsewhere(&state.reading, &self.visible);
        let lines = if state.level == Level::Whole { form(&elsewhere) } else { None };
        let call = entry
            .message
            .results()
            .next()
            .and_then(|result| call_of(transcript, position, &result.call_id));
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
        state.weighed = turn;
    }

    /// Counts the runs that only this message shows and that `form` does not.
    fn hidden(&self, state: &State, form: &Message) -> u32 {
        let kept = crate::names::runs(&form.shown());
        state.runs.iter().filter(|run| self.visible.run(**run) <= 1 && !kept.contains(*run)).count()
            as u32
    }

    #[expect(clippy::too_many_arguments, reason = "the terms of one formula")]
    fn best(
        &self,
        transcript: &Transcript,
        position: Position,
        bounds: &Bounds,
        prices: &Prices,
        cold: bool,
        turn: u32,
        expected: f64,
        context: f64,
    ) -> Option<Candidate> {
        let entry = &transcript.entries()[position];
        let state = &self.messages[position];
        let settings = &bounds.settle;
        let assistant = entry.message.role == Role::Assistant;
        let free = if cold { prices.cache_write - prices.cache_read } else { 0.0 };
        let mut best: Option<Candidate> = None;
        let mut offer = |level, saved: f64, gain: f64| {
            if gain > 0.0 && best.is_none_or(|best| gain > best.gain) {
                best = Some(Candidate { position, level, gain, saved });
            }
        };
        if let Some(form) = &state.lines
            && form.saved >= settings.least_saved
        {
            let saved = f64::from(form.saved);
            offer(Level::Lines, saved, saved * (prices.cache_read * expected + free));
        }
        if let Some(form) = &state.skeleton
            && state.level < Level::Skeleton
            && form.saved >= settings.least_saved * 4
        {
            let saved = f64::from(form.saved);
            let idle = f64::from((turn - state.used).max(1));
            let chance = if assistant { settings.need_of_said } else { settings.need_of_result }
                * (f64::from(form.hidden) / 300.0).powf(0.6);
            let fetch = prices.cache_read * context
                + prices.cache_write * f64::from(entry.tokens)
                + 100.0 * prices.output_ratio();
            let needs = chance * (1.0 + expected / idle).ln();
            let wait = assistant && chance / idle * fetch > saved * prices.cache_read;
            if !wait {
                let gain = saved * (prices.cache_read * expected + free) - needs * fetch;
                offer(Level::Skeleton, saved, gain);
            }
        }
        best
    }

    fn apply(
        &mut self,
        transcript: &Transcript,
        position: Position,
        level: Level,
        cold: bool,
        plan: &mut Plan,
    ) {
        let reason = if cold { Reason::Cold } else { Reason::Settled };
        self.change(transcript, position, level, reason, plan);
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

impl State {
    fn tokens(&self, whole: u32) -> u32 {
        self.sent.unwrap_or(whole)
    }
}
