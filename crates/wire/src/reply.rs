//! Replies: a provider's answer on its way to the client, without the calls of our tools.
//!
//! Where only our tools are called, the client waits: the results go back to the provider, and its next answer goes on where
//! the first stopped, so that the client sees one. Where the client's tools are called too, it is handed its own calls, and
//! ours are put into its next request ([`super::Edits::restore`]).

mod body;
mod chat;
mod gemini;
mod messages;
mod responses;
mod rounds;

use plimsoll_core::{ToolCall, ToolResult};

use self::rounds::Round;
use super::Wire;
use super::answer::{Answer, Ending, Moment, Watch};
use super::document::{Value, scanned};
use super::events::{self, Event, Events};
use super::patch::Patch;
use super::rewrite::{Continuation, Withheld};

/// Bytes for the client.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Forward {
    /// What goes out at once.
    pub now: Vec<u8>,
    /// From the event on that ends the answer: what must be kept is kept before these go out.
    pub last: Vec<u8>,
}

/// Where a reply stands.
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
    state: State,
    numbers: Numbers,
    rounds: Vec<Round>,
}

/// What all wires count while a reply goes through.
#[derive(Debug, Default)]
struct State {
    /// Names of our tools.
    own: Vec<String>,
    /// Calls in this answer.
    own_calls: usize,
    other_calls: usize,
    /// The answer asks for the results of our tools, and what follows of it is not for the client.
    asks: bool,
    /// Answers before this one.
    round: usize,
    /// The id that the client knows the answer by.
    id: Option<String>,
    /// Tokens that the answers before this one have.
    output_before: u64,
    /// The client did not ask for the event that only counts tokens.
    hides_usage: bool,
}

impl State {
    fn is_own(&self, name: &str) -> bool {
        self.own.iter().any(|own| own == name)
    }

    /// Tells whether an answer that stops for this reason wants nothing but our results.
    fn only_own(&self, stops_for_calls: bool) -> bool {
        stops_for_calls && self.own_calls > 0 && self.other_calls == 0
    }

    fn passes_all(&self) -> bool {
        self.own.is_empty() && !self.hides_usage
    }

    fn begin_round(&mut self) {
        self.own_calls = 0;
        self.other_calls = 0;
        self.asks = false;
        self.round += 1;
    }
}

/// What becomes of an event.
#[derive(Debug)]
enum EventEdit {
    Pass,
    Drop,
    /// It goes out with this data.
    Changed(String),
}

impl EventEdit {
    fn of(patch: Patch<'_>) -> Self {
        match patch.apply().map(String::from_utf8) {
            Ok(Ok(data)) => Self::Changed(data),
            // What cannot be changed is better seen than lost.
            _ => Self::Pass,
        }
    }
}

/// The numbers that a client was given to the parts of an answer.
#[derive(Debug)]
enum Numbers {
    Messages(messages::Numbers),
    Chat(chat::Numbers),
    Responses(responses::Numbers),
    Gemini,
}

impl Reply {
    /// Begins a reply; `own` are the names of our tools that the request offered. Without any, every byte passes.
    pub fn new(wire: Wire, own: impl IntoIterator<Item = String>) -> Self {
        let numbers = match wire {
            Wire::AnthropicMessages => Numbers::Messages(messages::Numbers::default()),
            Wire::ChatCompletions => Numbers::Chat(chat::Numbers::default()),
            Wire::Responses => Numbers::Responses(responses::Numbers::default()),
            Wire::Gemini => Numbers::Gemini,
        };
        let state = State { own: own.into_iter().collect(), ..State::default() };
        let (events, watch, rounds) = (Events::default(), Watch::new(wire), Vec::new());
        Self { wire, events, watch, state, numbers, rounds }
    }

    /// Keeps from the client the event that only counts tokens, for [`super::Edits::count_usage`].
    #[must_use]
    pub fn hiding_usage(mut self) -> Self {
        self.state.hides_usage = true;
        self
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

    /// Takes the end of the provider's stream; an event that is not complete stays so.
    pub fn end(&mut self) -> Forward {
        let rest = self.events.rest();
        Forward { now: if self.state.asks { Vec::new() } else { rest }, last: Vec::new() }
    }

    fn event(&mut self, event: Event, forward: &mut Forward) {
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
        let treated = if moment == Moment::Failure || self.state.passes_all() {
            EventEdit::Pass
        } else {
            self.treat(root, &document)
        };
        // On Gemini the event that asks may say something too: what goes on behind it is no end.
        let moment = if self.state.asks { Moment::Middle } else { moment };
        match treated {
            EventEdit::Pass => forward.put(moment, event.raw),
            EventEdit::Drop => {}
            EventEdit::Changed(data) => forward.put(moment, events::written(&event.name, &data)),
        }
    }

    fn treat(&mut self, root: Value<'_>, document: &super::document::Document) -> EventEdit {
        let patch = Patch::new(document);
        let state = &mut self.state;
        match &mut self.numbers {
            Numbers::Messages(numbers) => numbers.treat(root, patch, state),
            Numbers::Chat(numbers) => numbers.treat(root, patch, state),
            Numbers::Responses(numbers) => numbers.treat(root, patch, state, &self.rounds),
            Numbers::Gemini => gemini::treat(root, patch, state),
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
            if self.state.is_own(&call.name) {
                self.state.own_calls += 1;
            } else {
                self.state.other_calls += 1;
            }
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

    /// Returns where the reply stands.
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
    pub fn answer(&self) -> &Answer {
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
        match &mut self.numbers {
            Numbers::Messages(numbers) => numbers.begin_round(),
            Numbers::Chat(numbers) => numbers.begin_round(),
            Numbers::Responses(numbers) => numbers.begin_round(),
            Numbers::Gemini => {}
        }
        self.rounds.iter().map(Round::continuation).collect()
    }

    /// Returns what later requests of the session must have put back, with the results of the calls beside the client's.
    ///
    /// `None` where nothing was withheld. A call of the last answer without a result was not complete, and is forgotten.
    pub fn withheld(&self, results: &[ToolResult]) -> Option<Withheld> {
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

/// Tells whether an answer may have stopped because it called: no answer that was cut short or refused has.
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
