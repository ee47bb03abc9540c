//! Replies: a provider's answer on its way to the client, without the calls of our tools.
//!
//! If only our tools are called, the client waits: the results go back to the provider, and its next answer goes on where
//! the first stopped, so that the client sees one. Where the client's tools are called too, it is handed its own calls, and
//! ours are put into its next request ([`super::Edits::restore`]).

mod body;
mod chat;
mod gemini;
mod messages;
mod responses;
mod rounds;

use std::collections::HashMap;

use plimsoll_core::{ToolCall, ToolResult};

use self::rounds::Round;
use super::Wire;
use super::answer::{Ending, Moment, ProviderAnswer, Watch};
use super::document::{Value, quoted, scanned};
use super::events::{self, Events, StreamEvent};
use super::patch::Patch;
use super::rewrite::{Continuation, WithheldCalls};

/// Bytes for the client.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Forward {
    /// Bytes that go out at once.
    pub now: Vec<u8>,
    /// Bytes from the event that ends the answer on; the caller keeps the answer before it sends them.
    pub last: Vec<u8>,
}

/// The progress of a reply.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Progress {
    /// The provider has not ended it; if its stream has, the answer was cut.
    Open,
    /// It called nothing but our tools, and wants their results: see [`Reply::answered`].
    Asks,
    /// It is complete, and may hold calls of ours beside the client's: see [`Reply::withheld`].
    Ended,
    /// The provider reported an error.
    Failed,
}

/// A provider's answer on its way to the client.
#[derive(Debug)]
pub struct Reply {
    wire: Wire,
    events: Events,
    watch: Watch,
    state: ReplyState,
    rounds: Vec<Round>,
}

/// The state of a reply that goes through.
#[derive(Debug, Default)]
struct ReplyState {
    /// Names of our tools.
    own: Vec<String>,
    /// Calls in this answer.
    own_calls: usize,
    other_calls: usize,
    /// The answer asks for the results of our tools; the rest of it is not for the client.
    asks: bool,
    /// The number of answers before this one.
    round: usize,
    /// The id by which the client knows the answer.
    id: Option<String>,
    /// The output tokens of the answers before this one.
    output_before: u64,
    /// The number that the client gets for the next part: a block, item or call.
    next: u64,
    /// For each part of this answer, the number that the client knows; none for our calls.
    given: HashMap<u64, Option<u64>>,
    /// The number of the next event, where events have numbers.
    sequence: Option<u64>,
    /// Whether this answer ends the reply even if it calls our tools.
    is_last: bool,
}

impl ReplyState {
    fn is_own(&self, name: &str) -> bool {
        self.own.iter().any(|own| own == name)
    }

    /// Returns whether an answer that stops for this reason wants nothing but our results.
    fn only_own(&self, stops_for_calls: bool) -> bool {
        stops_for_calls && !self.is_last && self.own_calls > 0 && self.other_calls == 0
    }

    /// Returns whether the client must be told that the answer ends, since it sees none of the calls for which it stopped.
    fn ends_without_calls(&self) -> bool {
        self.is_last && self.own_calls > 0 && self.other_calls == 0
    }

    /// Counts a call, and returns whether its tool is ours.
    fn count_call(&mut self, name: &str) -> bool {
        let is_own = self.is_own(name);
        *(if is_own { &mut self.own_calls } else { &mut self.other_calls }) += 1;
        is_own
    }

    /// Begins a part of the answer, with the name of the tool that it calls.
    fn begin_part(&mut self, index: u64, called: Option<&str>) {
        let is_own = called.is_some_and(|name| self.count_call(name));
        let given = (!is_own).then_some(self.next);
        self.next += u64::from(!is_own);
        self.given.insert(index, given);
    }

    /// Gives an answer the id of the first.
    fn keep_id(&mut self, id: Option<Value<'_>>, patch: &mut Patch<'_>) {
        let Some((id, text)) = id.and_then(|id| Some((id, id.text()?))) else { return };
        let known = self.id.get_or_insert_with(|| text.as_ref().to_owned());
        if *known != text {
            patch.replace(id, quoted(known));
        }
    }

    fn begin_round(&mut self) {
        self.own_calls = 0;
        self.other_calls = 0;
        self.asks = false;
        self.round += 1;
        self.given.clear();
    }
}

/// Sets a number where it differs.
fn renumber(holder: Value<'_>, key: &'static str, given: u64, patch: &mut Patch<'_>) {
    if holder.get(key).and_then(Value::number) != Some(given) {
        patch.set(holder, key, given.to_string());
    }
}

/// The change of an event.
#[derive(Debug)]
enum EventEdit {
    Pass,
    Drop,
    /// It goes out with this data.
    Changed(String),
}

impl EventEdit {
    fn of(patch: Patch<'_>) -> Self {
        if patch.is_empty() {
            return Self::Pass;
        }
        match patch.apply().map(String::from_utf8) {
            Ok(Ok(data)) => Self::Changed(data),
            // An event that cannot be changed is better seen than lost.
            _ => Self::Pass,
        }
    }
}

impl Reply {
    /// Begins a reply; `own` are the names of our tools that the request offered. Without any, every byte passes.
    pub fn new(wire: Wire, own: impl IntoIterator<Item = String>) -> Self {
        let state = ReplyState { own: own.into_iter().collect(), ..ReplyState::default() };
        let (events, watch, rounds) = (Events::default(), Watch::new(wire), Vec::new());
        Self { wire, events, watch, state, rounds }
    }

    /// Takes a chunk of the provider's stream.
    pub fn push(&mut self, chunk: &[u8]) -> Forward {
        self.events.push(chunk);
        let mut forward = Forward::default();
        while let Some(event) = self.events.next_event() {
            self.event(event, &mut forward);
        }
        forward
    }

    /// Returns the bytes of the event whose end has not come.
    pub fn pending(&self) -> usize {
        self.events.pending()
    }

    /// Takes the end of the provider's stream; an event that is not complete stays so.
    pub fn end(&mut self) -> Forward {
        let rest = self.events.rest();
        Forward { now: if self.state.asks { Vec::new() } else { rest }, last: Vec::new() }
    }

    fn event(&mut self, event: StreamEvent, forward: &mut Forward) {
        let Some(data) = &event.data else {
            forward.put(Moment::Middle, event.raw);
            return;
        };
        if data.trim() == "[DONE]" {
            let moment = self.watch.see(&event);
            if !self.state.asks {
                forward.put(moment, event.raw);
            }
            return;
        }
        let Some(document) = scanned(data) else {
            forward.put(Moment::Middle, event.raw);
            return;
        };
        let root = document.root();
        let moment = self.watch.take(root);
        if self.state.asks {
            return;
        }
        let (patch, state) = (Patch::new(&document), &mut self.state);
        let edit = match self.wire {
            _ if moment == Moment::Failure || state.own.is_empty() => EventEdit::Pass,
            Wire::AnthropicMessages => messages::edit(root, patch, state),
            Wire::ChatCompletions => chat::edit(root, patch, state),
            Wire::Responses => responses::edit(root, patch, state, &self.rounds),
            Wire::Gemini => gemini::edit(root, patch, state),
        };
        // On Gemini the event that asks may say something too: what goes on behind it is no end.
        let moment = if self.state.asks { Moment::Middle } else { moment };
        match edit {
            EventEdit::Pass => forward.put(moment, event.raw),
            EventEdit::Drop => {}
            EventEdit::Changed(data) => forward.put(moment, events::written(&event.name, &data)),
        }
    }

    /// Takes a whole body instead of a stream; returns what the client gets, or nothing while [`Progress::Asks`].
    ///
    /// A body in which nothing is ours is returned as it is.
    pub fn body(&mut self, body: &[u8]) -> Option<Vec<u8>> {
        let document = str::from_utf8(body).ok().and_then(scanned);
        let Some(document) = document else { return Some(body.to_vec()) };
        self.watch.body(document.root());
        let answer = self.watch.answer();
        if !matches!(answer.ending, Ending::Complete) || self.state.own.is_empty() {
            return Some(body.to_vec());
        }
        for call in answer.calls() {
            self.state.count_call(&call.name);
        }
        let stops_for_calls = stops_for_calls(self.wire, answer.stop.as_deref());
        self.state.asks = self.state.only_own(stops_for_calls);
        if self.state.asks {
            return None;
        }
        if self.state.round == 0 && self.state.own_calls == 0 && self.wire != Wire::Responses {
            return Some(body.to_vec());
        }
        let mut patch = Patch::new(&document);
        body::merge(self.wire, document.root(), &mut patch, &self.state, &self.rounds);
        Some(patch.apply().unwrap_or_else(|_| body.to_vec()))
    }

    /// Returns the progress of the reply.
    pub fn progress(&self) -> Progress {
        if self.state.asks {
            return Progress::Asks;
        }
        match self.watch.ending() {
            Ending::Complete => Progress::Ended,
            Ending::Failed(_) => Progress::Failed,
            Ending::Cut => Progress::Open,
        }
    }

    /// Returns the provider's latest answer as it is, calls of ours included: what it counted is what it bills.
    pub fn answer(&self) -> &ProviderAnswer {
        self.watch.answer()
    }

    /// Returns the calls of our tools in the latest answer.
    pub fn own_calls(&self) -> Vec<ToolCall> {
        let answer = self.watch.answer();
        answer.calls().filter(|call| self.state.is_own(&call.name)).cloned().collect()
    }

    /// Takes the results of the calls that a reply asks for; the provider's next answer goes on with it.
    ///
    /// Returns all that is to be sent behind the client's request, earlier results included. A call without a result is told
    /// that there is none.
    pub fn answered(&mut self, results: &[ToolResult]) -> Vec<Continuation> {
        let answer = self.watch.answer();
        let round = Round::of(self.wire, answer, &self.state.own).with_results(results);
        self.state.output_before += answer.usage.map_or(0, |usage| usage.tokens.output_tokens);
        self.rounds.push(round);
        self.watch = Watch::new(self.wire);
        self.events = Events::default();
        self.state.begin_round();
        self.rounds.iter().map(Round::continuation).collect()
    }

    /// Makes the next answer the last: its calls of our tools are withheld, and nobody waits for their results.
    pub fn ends_with_next(&mut self) {
        self.state.is_last = true;
    }

    /// Returns the calls that later requests of the session must restore, with the results of those beside the client's.
    ///
    /// `None` where nothing was withheld. A call of the last answer without a result was not complete, and is forgotten.
    pub fn withheld(&self, results: &[ToolResult]) -> Option<WithheldCalls> {
        if self.rounds.is_empty() && self.own_calls().is_empty() {
            return None;
        }
        let last = Round::of(self.wire, self.watch.answer(), &self.state.own);
        rounds::withheld(self.wire, &self.rounds, &last.with_given(results))
    }
}

impl Forward {
    fn put(&mut self, moment: Moment, bytes: Vec<u8>) {
        let behind = moment == Moment::End || !self.last.is_empty();
        let place = if behind { &mut self.last } else { &mut self.now };
        if place.is_empty() { *place = bytes } else { place.extend(bytes) }
    }
}

/// Sets the reason for which an answer stopped to that of one without calls, where its calls are all withheld.
fn end_without_calls(
    holder: Value<'_>,
    key: &'static str,
    plain: &str,
    patch: &mut Patch<'_>,
    state: &ReplyState,
) {
    let stop = holder.get(key).filter(|stop| stop.is_text() && !stop.says(plain));
    if let Some(stop) = stop.filter(|_| state.ends_without_calls()) {
        patch.replace(stop, quoted(plain));
    }
}

/// Returns whether an answer may have stopped for its calls; an answer that was cut short or refused did not.
fn stops_for_calls(wire: Wire, stop: Option<&str>) -> bool {
    let stop = stop.unwrap_or_default();
    match wire {
        Wire::AnthropicMessages => stop == "tool_use",
        // Some servers say `stop` for calls too.
        Wire::ChatCompletions => matches!(stop, "tool_calls" | "stop" | "function_call"),
        Wire::Responses => stop == "completed",
        Wire::Gemini => stop == "STOP",
    }
}
