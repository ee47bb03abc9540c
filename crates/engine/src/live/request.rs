//! A request of a session: bounded, and charged as it is and as it would have been without us.

use std::sync::Arc;

use plimsoll_core::context::{Receipt, State, bound};
use plimsoll_core::cost::{Charge, ModelPrice, Pricing};
use plimsoll_core::plan::{Plan, Sent, Treatment};
use plimsoll_core::policy::Policy;
use plimsoll_core::section::Section;
use plimsoll_core::terms::{Surroundings, Terms};
use plimsoll_core::{Message, MillisSinceEpoch, Position, Usage};

use super::note::{Mark, misses, system};
use super::pins::RequestPins;
use super::{LiveSession, Miss, Note, carried};
use crate::history::{Bill, ReceiptRecord};

/// A text from memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AddedMemory {
    pub text: Arc<str>,
    /// The ids of the records in it.
    pub records: Vec<Arc<str>>,
}

/// A request as it came in.
#[derive(Debug, Clone)]
pub struct SessionRequest<'a> {
    /// The whole conversation.
    pub messages: &'a [Arc<Message>],
    pub model: Option<&'a str>,
    pub policy: &'a Policy,
    /// The policy's name.
    pub strategy: &'a str,
    /// A digest of the tools that are offered.
    pub tools: u64,
    pub around: &'a Surroundings,
    /// A text from memory, to stand behind the user's last message.
    pub added: Option<AddedMemory>,
    /// Whether the request will go out as it came.
    pub observed: bool,
    pub pins: RequestPins,
    pub now: MillisSinceEpoch,
}

/// A bounded request.
#[derive(Debug, Clone)]
pub struct Bounded {
    /// The place that the answer will have.
    pub position: Position,
    /// Messages in another form, by their place; without a form they are left out.
    pub edits: Vec<(usize, Option<Arc<Message>>)>,
    /// Texts behind messages of the user, by the place of those, ascending.
    pub added: Vec<(usize, Arc<str>)>,
    pub receipt: Receipt,
    pub note: Note,
    pub(super) record: ReceiptRecord,
}

/// The last decision, for a request that comes again.
#[derive(Debug, Clone)]
pub(super) struct LastDecision {
    pub(super) position: Position,
    pub(super) receipt: Receipt,
    pub(super) record: ReceiptRecord,
}

impl Bounded {
    /// Takes note of what has no place in the request, of all that the session carries.
    ///
    /// The provider's cache has it where it was: in the request before this one, or in the answer to that.
    pub fn note_unplaced(&mut self, unplaced: Vec<usize>) {
        if unplaced != self.note.unplaced {
            self.note.misses.push(Miss::Expansion);
            self.note.unplaced = unplaced;
        }
    }
}

impl Bill {
    /// Returns it for a request that went out as it came: without us it would have been the same.
    #[must_use]
    pub fn as_it_came(self) -> Self {
        Self { without: self.billed, ..self }
    }

    /// Computes it from what was reported of an answer that took `rounds` further requests for our own lookups.
    pub fn of(priced: &ModelPrice<'_>, bounded: &Bounded, usage: &Usage, rounds: usize) -> Self {
        let prices = &priced.prices;
        let billed = prices.dollars(prices.input_cost(&Charge::of(usage)));
        let counted = bounded.receipt.charge.prompt();
        let reported = usage.prompt_tokens as f64 / (rounds + 1) as f64;
        // A count that is off by more says nothing of this request.
        let scale = if counted > 0.0 { (reported / counted).clamp(0.25, 4.0) } else { 1.0 };
        Self {
            billed,
            without: prices.dollars(bounded.note.full_cost) * scale,
            estimate: priced.is_estimate(),
        }
    }
}

impl LiveSession {
    /// Decides what the model is sent for a request that goes on from here.
    ///
    /// New messages get the time of the request: it is kept with them, so that whether the cache was cold is decided the same
    /// after a restart. Asking the same again changes nothing.
    pub fn ask(&mut self, asked: &SessionRequest<'_>, pricing: &Pricing) -> Bounded {
        self.wake(pricing);
        for message in asked.messages.iter().skip(self.transcript.entries().len()) {
            self.push(Message { time: Some(asked.now), ..(**message).clone() });
        }
        let position = asked.messages.len();
        let terms = self.terms(pricing, asked.model, position, asked.around);
        let before = self.marks.last().cloned();
        let policy = before.as_ref().map(|mark| &mark.policy);
        let around = before.as_ref().map(|mark| &mark.around);
        let mut note = Note {
            number: before.as_ref().map_or(0, |mark| mark.note.number + 1),
            model: asked.model.map(Into::into),
            policy: (policy != Some(asked.policy)).then(|| asked.policy.clone()),
            around: (around != Some(asked.around)).then(|| asked.around.clone()),
            tools: asked.tools,
            system: system(asked.messages),
            observed: asked.observed,
            late: false,
            misses: Vec::new(),
            full_cost: 0.0,
            usage: None,
            bill: None,
            dropped_thinking: 0,
            cleared_tool_uses: 0,
            carried: Vec::new(),
            cached: None,
            added: None,
            records: Vec::new(),
            wishes: Vec::new(),
            again: Vec::new(),
            unplaced: before.as_ref().map_or_else(Vec::new, |mark| mark.note.unplaced.clone()),
        };
        let last =
            self.last.take().filter(|last| last.position == position && note.policy.is_none());
        let last = if let Some(last) = last {
            note.full_cost = before.as_ref().map_or(0.0, |mark| mark.note.full_cost);
            last
        } else {
            let charge = self.charge_in_full(&terms, position);
            note.full_cost = terms.prices.input_cost(&charge);
            let mut state = self.state.take().unwrap_or_default();
            state.offer(asked.added.as_ref().map(|added| added.text.clone()));
            note.wishes = self.new_wishes(&asked.pins.wishes);
            note.again = self.left_out(&asked.pins.before, asked.messages);
            state.wish(note.wishes.iter().cloned());
            state.show_again(note.again.iter().cloned());
            let (context, receipt) =
                bound(&self.transcript, position, asked.policy, &terms, &mut state);
            note.misses = misses(before.as_ref().map(|mark| &mark.note), &note, &receipt);
            let plan = state.plan();
            let (id, strategy) = (&self.id, asked.strategy);
            let mut record =
                ReceiptRecord::of_context(id, strategy, &receipt, &context, plan, asked.now);
            if asked.observed {
                // It goes out as it came.
                record.tokens_saved = 0;
            }
            self.state = Some(state);
            LastDecision { position, receipt, record }
        };
        note.added = self.remembered(position);
        // The text has its place only where the budget has room for it.
        if let (Some(text), Some(added)) = (&note.added, &asked.added)
            && *text == added.text
        {
            note.records.clone_from(&added.records);
        }
        // A vector's first place would be four, and most sessions of a gateway are short.
        if self.marks.len() == self.marks.capacity() {
            self.marks.reserve_exact(self.marks.len() / 2 + 1);
        }
        self.marks.push(Mark {
            position,
            policy: asked.policy.clone(),
            around: asked.around.clone(),
            strategy: asked.strategy.to_owned(),
            note: note.clone(),
            is_kept: false,
        });
        let LastDecision { receipt, record, .. } = last.clone();
        self.last = Some(last);
        let edits = self.forms(asked.messages);
        let added = self.added(position);
        Bounded { position, edits, added, receipt, note, record }
    }

    /// Returns the forms that messages have in the plan now, without asking anew; for what predicts a request.
    pub fn forms(&self, messages: &[Arc<Message>]) -> Vec<(usize, Option<Arc<Message>>)> {
        self.state.as_ref().map_or_else(Vec::new, |state| edits(state, messages))
    }

    /// Returns the texts that were added behind the first `end` messages, with the places of those, ascending.
    pub fn added(&self, end: Position) -> Vec<(usize, Arc<str>)> {
        let plan = self.state.as_ref().map(State::plan);
        let added = plan.into_iter().flat_map(Plan::additions);
        let mut texts: Vec<(usize, Arc<str>)> = Vec::new();
        for (at, _, text) in added.take_while(|(at, ..)| *at < end) {
            match texts.last_mut() {
                Some((last, said)) if *last == at => *said = format!("{said}\n\n{text}").into(),
                _ => texts.push((at, text.clone())),
            }
        }
        texts
    }

    /// Returns the text from memory behind the last of `end` messages.
    fn remembered(&self, end: Position) -> Option<Arc<str>> {
        let plan = self.state.as_ref().map(State::plan);
        let mut added = plan.into_iter().flat_map(Plan::additions);
        let is_newest = |at: Position, section| at + 1 == end && section == Section::Memory;
        added.find(|(at, section, _)| is_newest(*at, *section)).map(|(.., text)| text.clone())
    }

    /// Returns the terms of a request of so many messages.
    pub(super) fn terms(
        &self,
        pricing: &Pricing,
        model: Option<&str>,
        position: Position,
        around: &Surroundings,
    ) -> Terms {
        // The time of the newest message stands for that of the request: it is kept, so a restart finds the same prices.
        let at = self.transcript.time_before(position.min(self.transcript.entries().len()));
        let prices = pricing.of(model, at).prices;
        Terms { around: around.clone(), ..Terms::new(prices) }
    }

    /// Charges the full history, as the provider would have without us.
    pub(super) fn charge_in_full(&mut self, terms: &Terms, position: Position) -> Charge {
        let entries = self.transcript.entries()[..position].iter().enumerate();
        let whole: Vec<Sent> = entries.map(|(at, entry)| Sent::whole(at, entry)).collect();
        self.full.charge(&terms.prices, &terms.pieces(&whole, &[]), self.time_at(position))
    }

    fn time_at(&self, position: Position) -> Option<MillisSinceEpoch> {
        let answered = self.transcript.entries().get(position).and_then(|entry| entry.message.time);
        answered
            .or_else(|| self.transcript.time_before(position.min(self.transcript.entries().len())))
    }
}

fn edits(state: &State, messages: &[Arc<Message>]) -> Vec<(usize, Option<Arc<Message>>)> {
    let decisions = state.plan().decisions().iter().zip(messages).enumerate();
    decisions
        .filter_map(|(position, (decision, message))| match decision.treatment {
            Treatment::Keep => None,
            Treatment::Omit => Some((position, None)),
            _ => {
                let whole = &decision.whole.message;
                let form = &decision.form.message;
                let fitting = if whole.blocks == message.blocks {
                    Some(form.clone())
                } else {
                    carried(message, whole, form).map(Arc::new)
                };
                fitting.map(|form| (position, Some(form)))
            }
        })
        .collect()
}
