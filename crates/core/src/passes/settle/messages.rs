//! What settling knows of each message, the smaller forms it could have, and what each would gain.

use std::collections::HashMap;
use std::sync::Arc;

use crate::excerpt::{self, Outline, Worth};
use crate::file_access::{Access, file_access};
use crate::hash::Ref;
use crate::message::{Block, Message, Role, ToolCall};
use crate::names;
use crate::passes::{attempt_of, call_answered, stub_of};
use crate::plan::{Plan, Reason, Sent, Treatment};
use crate::policy::PreserveErrors;
use crate::reading::Reading;
use crate::transcript::{Entry, Position, Transcript};
use crate::visible::{Slot, Visible};

use super::{Candidate, Terms};

/// Needs are counted for this many hidden runs, and grow with this power of them.
///
/// Measured: the chance that something of a message is needed grows slower than its length.
const HIDDEN_UNIT: f64 = 300.0;
const HIDDEN_POWER: f64 = 0.6;
/// Calls over which the place of a listed name is paid.
const CALLS_OF_A_NAME: f64 = 30.0;

/// How far a message has been reduced.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Level {
    Whole,
    /// Without the lines that others show.
    Lines,
    Skeleton,
    /// One line.
    Stub,
}

/// What settling remembers from turn to turn.
#[derive(Debug, Default)]
pub(crate) struct Settled {
    visible: Visible,
    messages: Vec<State>,
    /// For each file, the results that read it.
    reads: HashMap<String, Vec<(Position, Access)>>,
}

/// What is known of one message.
#[derive(Debug)]
struct State {
    reading: Reading,
    /// Names and runs of the form that is sent.
    names: Vec<Slot>,
    /// In ascending order.
    runs: Vec<Slot>,
    /// The turn in which it was said, or its words were last used.
    used: u32,
    /// A later result that reads the same file, all of it.
    superseded: Option<Position>,
    level: Level,
    /// Tokens of the form that is sent.
    tokens: u32,
    /// How often the names that the form lists are needed again.
    listed: f64,
    /// Forms as last weighed, by level.
    lines: Option<Form>,
    skeleton: Option<Form>,
    /// Runs that no message would show any more if this had the form of its skeleton.
    hidden: u32,
    stub: Option<Form>,
    weighed: u32,
    outline: Option<Outline>,
    /// The stub, once it was needed, and which earlier attempt it tells of.
    whole_stub: Option<Arc<Sent>>,
    attempt: Option<u32>,
}

#[derive(Debug)]
struct Form {
    sent: Arc<Sent>,
    saved: u32,
    /// How often the names that it lists are needed again.
    listed: f64,
}

impl Settled {
    /// Returns how many messages were read.
    pub(super) fn seen(&self) -> usize {
        self.messages.len()
    }

    /// Reads the messages from the first that was not read yet up to `end`.
    pub(super) fn read(&mut self, transcript: &Transcript, end: Position) {
        for position in self.messages.len()..end {
            let entry = &transcript.entries()[position];
            let reading = Reading::of(&entry.message, &mut self.visible);
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
                superseded: None,
                level: Level::Whole,
                tokens: entry.tokens,
                listed: 0.0,
                lines: None,
                skeleton: None,
                hidden: 0,
                stub: None,
                weighed: 0,
                outline: None,
                whole_stub: None,
                attempt: None,
            });
            if let Some(call) = call_answered(transcript, position) {
                self.supersede(call, position);
            }
        }
    }

    /// Notes which earlier results a read of a file makes superfluous: the same call's, and those of parts where all of
    /// it was read.
    fn supersede(&mut self, call: &ToolCall, position: Position) {
        let Some((path, access)) = file_access(call) else { return };
        if access == Access::Changes {
            // What was read before is no longer what the file holds, so a later read does not show it again.
            self.reads.remove(&path);
            return;
        }
        let reads = self.reads.entry(path).or_default();
        if access == Access::ReadsAll {
            for (earlier, _) in reads.drain(..) {
                self.messages[earlier].superseded = Some(position);
            }
        }
        reads.push((position, access));
    }

    /// Reduces a result at once that is too long to be sent whole even fresh.
    pub(super) fn cut_giant(
        &mut self,
        transcript: &Transcript,
        position: Position,
        terms: &Terms<'_>,
        plan: &mut Plan,
    ) {
        let entry = &transcript.entries()[position];
        let giant = terms.bounds.settle.giant;
        if entry.message.role != Role::Tool || entry.tokens <= giant {
            return;
        }
        self.reweigh(transcript, position, terms);
        let lines = self.messages[position].lines.as_ref();
        let enough = lines.is_some_and(|form| form.sent.tokens <= giant / 4);
        let level = if enough { Level::Lines } else { Level::Skeleton };
        self.change(transcript, position, level, Reason::Giant, plan);
    }

    /// Weighs a message when it is new, when its age has doubled, and when changes are free.
    pub(super) fn weigh(&mut self, transcript: &Transcript, position: Position, terms: &Terms<'_>) {
        let entry = &transcript.entries()[position];
        let state = &self.messages[position];
        let worth = matches!(entry.message.role, Role::Tool | Role::Assistant)
            && state.level < Level::Stub
            && state.tokens > terms.bounds.settle.least;
        let age = terms.turn - entry.turn;
        let due = terms.cold
            || state.weighed == 0
            || (age.is_power_of_two() && state.weighed < terms.turn);
        if worth && due {
            self.reweigh(transcript, position, terms);
        } else if state.weighed > 0 {
            self.weigh_stub(transcript, position, terms);
        }
    }

    /// Makes the smaller forms of a message anew.
    pub(super) fn reweigh(
        &mut self,
        transcript: &Transcript,
        position: Position,
        terms: &Terms<'_>,
    ) {
        let entry = &transcript.entries()[position];
        let errors = terms.bounds.intra_phase.preserve_errors;
        let level = self.messages[position].level;
        let (mut lines, mut skeleton, mut hidden) = (None, None, 0);
        if level < Level::Skeleton {
            let call = call_answered(transcript, position);
            let state = &mut self.messages[position];
            let outline = state.outline.take().unwrap_or_else(|| {
                let errors = errors != PreserveErrors::Off;
                excerpt::outline(&entry.message, &state.reading, call, errors)
            });
            let worth = worth_of_names(entry, call, outline.listing, terms);
            let reading = &self.messages[position].reading;
            let elsewhere = excerpt::shown_elsewhere(reading, &self.visible);
            let outside = outline.outside.iter().zip(&elsewhere);
            let both: Vec<bool> = outside.map(|(outside, shown)| *outside || *shown).collect();
            let excerpt = |dropped: &[bool]| {
                let original = Ref::message(entry.hash);
                let (message, listed) = excerpt::write(
                    &entry.message,
                    reading,
                    dropped,
                    &self.visible,
                    &worth,
                    original,
                )?;
                let sent = Sent::rendered(Some(position), message, transcript.tokenizer());
                self.form(position, Arc::new(sent), listed)
            };
            lines = if level == Level::Whole { excerpt(&elsewhere) } else { None };
            skeleton = excerpt(&both);
            self.messages[position].outline = Some(outline);
            hidden = skeleton.as_ref().map_or(0, |form| self.hidden(position, &form.sent));
        }
        let state = &mut self.messages[position];
        state.lines = lines;
        state.skeleton = skeleton;
        state.hidden = hidden;
        state.weighed = terms.turn;
        self.weigh_stub(transcript, position, terms);
    }

    /// Makes the stub of a result, for one that may become a stub: finding its errors means reading all of it.
    fn weigh_stub(&mut self, transcript: &Transcript, position: Position, terms: &Terms<'_>) {
        let attempt = earlier_attempt(position, terms);
        let state = &mut self.messages[position];
        let asked =
            attempt.is_some() || state.superseded.is_some() || state.level == Level::Skeleton;
        let known = state.attempt == attempt;
        if !asked
            || (known && state.stub.is_some())
            || transcript.entries()[position].message.role != Role::Tool
        {
            return;
        }
        if !known || state.whole_stub.is_none() {
            let errors = terms.bounds.intra_phase.preserve_errors;
            state.attempt = attempt;
            state.whole_stub = match attempt {
                Some(number) => attempt_of(transcript, position, number),
                None => stub_of(transcript, position, errors),
            };
        }
        let whole = state.whole_stub.clone();
        let stub = whole.and_then(|sent| self.form(position, sent, 0.0));
        self.messages[position].stub = stub;
    }

    /// Measures a form against what is sent now; `None` where it saves nothing.
    fn form(&self, position: Position, sent: Arc<Sent>, listed: f64) -> Option<Form> {
        let saved = self.messages[position].tokens.checked_sub(sent.tokens)?;
        (saved > 0).then_some(Form { sent, saved, listed })
    }

    /// Counts the runs of a message that nothing in the context would show any more if it had the form `sent`.
    fn hidden(&self, position: Position, sent: &Sent) -> u32 {
        let runs = &self.messages[position].runs;
        let alone = |run: &&Slot| self.visible.shows_run(**run) <= 1;
        let mut kept: Vec<Slot> = Vec::new();
        names::each_run(&sent.message.shown(), |run, _, _| kept.extend(self.visible.find_run(run)));
        kept.sort_unstable();
        kept.dedup();
        let stay = kept.iter().filter(alone).filter(|run| runs.binary_search(run).is_ok()).count();
        (runs.iter().filter(alone).count() - stay) as u32
    }

    /// Returns the change of a message that gains most, if any gains.
    pub(super) fn best(
        &self,
        transcript: &Transcript,
        position: Position,
        terms: &Terms<'_>,
    ) -> Option<Candidate> {
        let entry = &transcript.entries()[position];
        let state = &self.messages[position];
        let settings = &terms.bounds.settle;
        let intra = &terms.bounds.intra_phase;
        let said = entry.message.role == Role::Assistant;
        let age = terms.turn - entry.turn;
        let calls = if said { terms.for_said } else { terms.for_result };
        let idle = f64::from((terms.turn - state.used).max(1));
        let mut best: Option<Candidate> = None;
        let mut offer = |level, form: &Form, needs: f64, reason: Reason| {
            let price = needs * terms.fetch(entry.tokens);
            let gain = f64::from(form.saved) * terms.saved_token(calls) - price;
            if gain > 0.0 && best.is_none_or(|best| gain > best.gain) {
                let saved = f64::from(form.saved);
                best = Some(Candidate { position, level, reason, gain, saved });
            }
        };
        let settled = if terms.cold { Reason::Cold } else { Reason::Settled };
        let saves =
            |form: &&Form, times: u32| form.saved >= settings.least_saved.saturating_mul(times);
        // Providers refuse a change of the latest answer where reasoning stands before it.
        let sealed = said && age == 1 && has_thinking(&entry.message);
        if let Some(form) = state.lines.as_ref().filter(|form| !sealed && saves(form, 1)) {
            offer(Level::Lines, form, 0.0, settled);
        }
        // Law of forgetting, measured: what has not been used for t turns is needed at the next with a chance of c / t.
        let still = |rate: f64| rate * (1.0 + calls / idle).ln();
        let open = if said { age > intra.window && !reasoning_only(entry) } else { true };
        if let Some(form) = state.skeleton.as_ref().filter(|form| open && saves(form, 4)) {
            let need = if said { settings.need_of_said } else { settings.need_of_result };
            let rate = need * (f64::from(state.hidden) / HIDDEN_UNIT).powf(HIDDEN_POWER);
            offer(Level::Skeleton, form, still(rate), settled);
        }
        if let Some(form) = state.stub.as_ref().filter(|form| saves(form, 4)) {
            if earlier_attempt(position, terms).is_some() {
                offer(Level::Stub, form, 0.0, Reason::EarlierAttempt);
            } else if let Some(by) = state.superseded {
                offer(Level::Stub, form, 0.0, Reason::Superseded { by });
            } else if state.level == Level::Skeleton && age > intra.mask_observations_after {
                // Counted for a message just used; scaled down by how much of that is still to come.
                let needs = still(state.listed) / (1.0 + calls).ln();
                let reason = if terms.cold { Reason::Cold } else { Reason::PaysBack };
                offer(Level::Stub, form, needs, reason);
            }
        }
        best
    }

    /// Gives a message the form of a level.
    pub(super) fn change(
        &mut self,
        transcript: &Transcript,
        position: Position,
        level: Level,
        reason: Reason,
        plan: &mut Plan,
    ) {
        let state = &mut self.messages[position];
        let form = match level {
            Level::Whole => None,
            Level::Lines => state.lines.take(),
            Level::Skeleton => state.skeleton.take(),
            Level::Stub => state.stub.take(),
        };
        let Some(form) = form else { return };
        let treatment = match (level, transcript.entries()[position].message.role) {
            (Level::Stub, _) if reason == Reason::EarlierAttempt => Treatment::Merge,
            (Level::Stub, _) => Treatment::Stub,
            (_, Role::Assistant) => Treatment::Shorten,
            _ => Treatment::Excerpt,
        };
        if !plan.reduce(transcript, position, treatment, reason, form.sent.clone()) {
            return;
        }
        self.became(position, level, Some(&form.sent), form.listed);
    }

    /// Follows what the ceiling did after settling.
    pub(crate) fn follow(&mut self, plan: &Plan) {
        for change in plan.changes().iter().filter(|change| change.reason == Reason::Ceiling) {
            let decision = &plan.decisions()[change.position];
            let sent = (decision.treatment != Treatment::Omit).then_some(&*decision.form);
            self.became(change.position, Level::Stub, sent, 0.0);
        }
    }

    /// Puts a form, or nothing, in the place of what a message showed.
    fn became(&mut self, position: Position, level: Level, sent: Option<&Sent>, listed: f64) {
        let Some(state) = self.messages.get_mut(position) else { return };
        let shown = sent.map_or_else(String::new, |sent| sent.message.shown());
        self.visible.hide(&state.names, &state.runs);
        (state.names, state.runs) = self.visible.read(&shown);
        state.runs.sort_unstable();
        self.visible.show(&state.names, &state.runs);
        state.level = level;
        state.tokens = sent.map_or(0, |sent| sent.tokens);
        state.listed = listed;
        if level >= Level::Skeleton {
            state.reading = Reading::default();
            state.outline = None;
        }
        (state.lines, state.skeleton, state.stub) = (None, None, None);
        state.weighed = 0;
    }
}

fn worth_of_names(
    entry: &Entry,
    call: Option<&ToolCall>,
    listing: bool,
    terms: &Terms<'_>,
) -> Worth {
    let prices = terms.prices;
    Worth {
        fetch: terms.fetch(entry.tokens),
        token: Worth::token_price(prices.cache_write, prices.cache_read, CALLS_OF_A_NAME),
        rich: entry.message.role == Role::Assistant || excerpt::reads_content(call),
        listing,
    }
}

fn earlier_attempt(position: Position, terms: &Terms<'_>) -> Option<u32> {
    let intra = &terms.bounds.intra_phase;
    if intra.compress_loops {
        terms.attempts.earlier(position, intra.loop_history_limit)
    } else {
        None
    }
}

fn has_thinking(message: &Message) -> bool {
    message.blocks.iter().any(|block| matches!(block, Block::Thinking(_) | Block::Opaque(_)))
}

fn reasoning_only(entry: &Entry) -> bool {
    entry.message.calls().next().is_none()
}
