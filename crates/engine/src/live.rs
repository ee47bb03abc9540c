//! A live session: a transcript that grows with each request, bounded as it goes, and rebuilt from the store to the same bytes.
//!
//! What a model was sent follows from the transcript, the times in it, and the places at which it was asked, each with its policy. All
//! of that is kept: messages as messages, the rest in the receipt of each request.

mod alike;
mod conversation;
mod rebuild;

use std::collections::HashMap;
use std::sync::Arc;

use plimsoll_core::context::{Receipt, State, bound};
use plimsoll_core::cost::{Cache, Charge, ModelPrice, Pricing};
use plimsoll_core::plan::Treatment;
use plimsoll_core::plan::{Plan, Sent};
use plimsoll_core::policy::Policy;
use plimsoll_core::terms::{Surroundings, Terms};
use plimsoll_core::{
    ContentHash, Message, MillisSinceEpoch, Position, Role, Tokenizer, Transcript, Usage,
};
use serde::{Deserialize, Serialize};

use crate::history::{Bill, Bills, HistoryBatch, ReceiptRecord, SelectionType};
use crate::id::SessionId;
use crate::record::records_from;

pub use alike::{alike, carried};
pub use conversation::{Conversation, Found, session_name};

/// Why the provider's cache cannot have had a request's prefix.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Miss {
    /// It is the first request of its session.
    First,
    /// The pause since the last one outlived the cache.
    Pause,
    Model,
    Tools,
    System,
    /// A message was changed, by the plan or by the client.
    Content,
    /// A lookup that the provider was sent has no place in what the client sends.
    Expansion,
}

impl Miss {
    /// Returns the cause's name as every interface prints it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::First => "first",
            Self::Pause => "pause",
            Self::Model => "model",
            Self::Tools => "tools",
            Self::System => "system",
            Self::Content => "content",
            Self::Expansion => "expansion",
        }
    }
}

/// What a receipt says of its request beside what the core decided; with it the session can be rebuilt.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Note {
    /// Counted from 0 within the session, requests that were not answered included.
    pub number: u32,
    pub model: Option<Arc<str>>,
    /// The policy, where it is another than at the request before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub policy: Option<Policy>,
    /// Digests of what stands before the messages in a prefix.
    pub tools: u64,
    pub system: u64,
    /// What the request had around its messages, where it is another than at the request before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub around: Option<Surroundings>,
    /// Whether the request went out as it came.
    pub observed: bool,
    /// Whether it went out as it came since it was not bounded in time.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub late: bool,
    pub misses: Vec<Miss>,
    /// What the full history would have cost, in plain input tokens, as `cost` counts.
    pub full_cost: f64,
    /// The provider's own figures, where it gave any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
    /// What the request was billed, and what it would have been without us, where the provider gave figures.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bill: Option<Bill>,
    /// Blocks of thinking that the provider dropped since what stood before them had changed.
    #[serde(default)]
    pub dropped_thinking: u64,
    /// Tool uses whose results the provider itself left out of what the model saw.
    #[serde(default)]
    pub cleared_tool_uses: u64,
    /// Whatever else the session needs to go on.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub carried: Vec<Arc<str>>,
    /// The key of the kept answer that was given, where no model was asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cached: Option<Arc<str>>,
    /// What is known beside the conversation and stands behind the last message from this request on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub added: Option<Arc<str>>,
    /// What of all that is carried had no place in the request, by its number.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unplaced: Vec<usize>,
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

/// A receipt as it is kept.
#[derive(Debug, Serialize)]
struct Written<'a> {
    #[serde(flatten)]
    receipt: &'a Receipt,
    request: &'a Note,
}

/// A receipt of a request that was made before a branch began.
#[derive(Debug, Serialize)]
struct Inherited<'a> {
    position: Position,
    request: &'a Note,
}

/// A request as it came in.
#[derive(Debug, Clone)]
pub struct Asked<'a> {
    /// The whole conversation.
    pub messages: &'a [Arc<Message>],
    pub model: Option<&'a str>,
    pub policy: &'a Policy,
    /// The policy's name.
    pub strategy: &'a str,
    /// A digest of the tools that are offered.
    pub tools: u64,
    pub around: &'a Surroundings,
    /// What is known beside the conversation, for behind what the user says last.
    pub added: Option<Arc<str>>,
    /// Whether the request will go out as it came.
    pub observed: bool,
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
    record: ReceiptRecord,
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

/// A session that goes on.
#[derive(Debug)]
pub struct LiveSession {
    id: SessionId,
    transcript: Transcript,
    /// `None` until a session from the store is needed.
    state: Option<State>,
    /// The provider's cache, had nothing been bounded.
    full: Cache,
    /// How the client repeats a message that is kept in another form.
    said: HashMap<Position, Arc<Message>>,
    /// The requests so far.
    marks: Vec<Mark>,
    last: Option<Last>,
    /// Messages and receipts that the store has.
    kept: usize,
    unkept: Vec<ReceiptRecord>,
    carried: Vec<Arc<str>>,
    /// Of its own requests; those before a branch began are of the session that it left.
    bills: Bills,
    /// When the cache was read once more by us, in order.
    reads: Vec<Read>,
    bytes: usize,
}

/// A read that kept the provider's cache warm, as its receipt has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Read {
    /// The number of the request that was read once more.
    pub after: u32,
    pub at: MillisSinceEpoch,
}

/// The last decision, for a request that comes again.
#[derive(Debug, Clone)]
struct Last {
    position: Position,
    receipt: Receipt,
    record: ReceiptRecord,
}

/// A request that was bounded.
#[derive(Debug, Clone)]
struct Mark {
    position: Position,
    policy: Policy,
    around: Surroundings,
    strategy: String,
    note: Note,
}

impl LiveSession {
    /// Begins a session; its messages are counted as those of `model`.
    pub fn new(id: SessionId, model: Option<&str>) -> Self {
        let tokenizer = Tokenizer::for_model(model.unwrap_or(""));
        Self {
            id,
            transcript: Transcript::new(tokenizer),
            state: Some(State::default()),
            full: Cache::default(),
            said: HashMap::new(),
            marks: Vec::new(),
            last: None,
            kept: 0,
            unkept: Vec::new(),
            carried: Vec::new(),
            bills: Bills::default(),
            reads: Vec::new(),
            // An empty one (measured).
            bytes: 3_000,
        }
    }

    /// Returns the session's id.
    pub fn id(&self) -> &SessionId {
        &self.id
    }

    /// Returns all that was said.
    pub fn transcript(&self) -> &Transcript {
        &self.transcript
    }

    /// Returns the text of the message whose hash begins with `prefix`, if that is one content.
    pub fn original(&self, prefix: &str) -> Option<String> {
        let position = self.transcript.find(prefix)?;
        Some(self.transcript.entries().get(position)?.message.shown())
    }

    /// Returns what requests left to be carried on, oldest first.
    pub fn carried(&self) -> &[Arc<str>] {
        &self.carried
    }

    /// Returns what its requests were billed so far.
    pub fn bills(&self) -> Bills {
        self.bills
    }

    /// Returns what the last request had around its messages.
    pub fn around(&self) -> Option<&Surroundings> {
        self.marks.last().map(|mark| &mark.around)
    }

    /// Returns when the last message was said, as far as that is known.
    pub fn last_time(&self) -> Option<MillisSinceEpoch> {
        self.transcript.time_before(self.transcript.entries().len())
    }

    /// Tells whether a request went out as it came: what the model thought then is bound to that, and not to our forms.
    pub fn went_out_as_it_came(&self) -> bool {
        self.marks.iter().any(|mark| mark.note.observed || mark.note.late)
    }

    /// Returns when the provider's cache was last used, as far as that is known.
    pub fn last_use(&self) -> Option<MillisSinceEpoch> {
        self.last_time().max(self.reads.last().map(|read| read.at))
    }

    /// Takes note that the last request was read once more by us at `at`, and billed.
    fn read_again(&mut self, pricing: &Pricing, at: MillisSinceEpoch, bill: &Bill) -> Option<Read> {
        let (after, model) = {
            let last = &self.marks.last()?.note;
            (last.number, last.model.clone())
        };
        let read = Read { after, at };
        self.bills.add(bill);
        self.reads.push(read);
        if let Some(state) = &mut self.state {
            state.read_again(&pricing.of(model.as_deref(), Some(at)).prices, at);
        }
        Some(read)
    }

    /// Returns about how much memory it takes.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Returns the forms that messages have in the plan now, without asking anew; for what predicts a request.
    pub fn forms(&self, messages: &[Arc<Message>]) -> Vec<(usize, Option<Arc<Message>>)> {
        self.state.as_ref().map_or_else(Vec::new, |state| edits(state, messages))
    }

    /// Returns the texts that were added behind the first `end` messages, with the places of those, ascending.
    pub fn added(&self, end: Position) -> Vec<(usize, Arc<str>)> {
        let plan = self.state.as_ref().map(State::plan);
        let added = plan.into_iter().flat_map(Plan::additions);
        added.take_while(|(at, ..)| *at < end).map(|(at, _, text)| (at, text.clone())).collect()
    }

    /// Returns how many of `messages`, from the first on, this session has.
    ///
    /// A message is the same in whatever form the client repeats it ([`alike`]). The leading system messages are compared by
    /// their number only: some clients write the date or a counter there, and no policy changes them.
    pub fn agrees(&mut self, messages: &[Arc<Message>]) -> usize {
        let mut leading = true;
        for (position, (entry, message)) in
            self.transcript.entries().iter().zip(messages).enumerate()
        {
            let kept = &entry.message;
            leading &= kept.role == Role::System;
            let same = kept.role == message.role
                && (kept.blocks == message.blocks
                    || leading
                    || self.said.get(&position).is_some_and(|said| said.blocks == message.blocks));
            if same {
                continue;
            }
            if !alike(kept, message) {
                return position;
            }
            self.bytes += 400 + size(message);
            self.said.insert(position, message.clone());
        }
        self.transcript.entries().len().min(messages.len())
    }

    /// Tells whether a request of so many messages, of which `agreed` are known, goes on from here.
    ///
    /// It does if it has all that was said, or all but the last answer: then it is asked again.
    fn goes_on(&self, agreed: usize, messages: usize) -> bool {
        let own = self.transcript.entries().len();
        let again =
            || agreed == messages && self.marks.last().map(|mark| mark.position) == Some(agreed);
        agreed == own || own == agreed + 1 && again()
    }

    /// Returns how many messages the last request had.
    fn last_request(&self) -> Position {
        self.marks.last().map_or(0, |mark| mark.position)
    }

    /// Begins a session with the first `agreed` messages of this one, and what was decided up to there.
    fn branch(&self, id: SessionId, agreed: usize) -> Self {
        let mut branch = Self::new(id, None);
        branch.transcript = Transcript::new(self.transcript.tokenizer());
        for entry in &self.transcript.entries()[..agreed] {
            branch.push_known(entry.message.clone(), entry.hash, entry.tokens);
        }
        let marks = self.marks.iter().filter(|mark| mark.position <= agreed);
        branch.marks = marks.cloned().collect();
        branch.carried =
            branch.marks.iter().flat_map(|mark| mark.note.carried.iter().cloned()).collect();
        branch.unkept =
            branch.marks.iter().map(|mark| mark.receipt(&branch.id, &branch.transcript)).collect();
        branch.state = None;
        branch
    }

    fn push(&mut self, message: Message) {
        let tokens = self.transcript.tokenizer().count_message(&message);
        let hash = ContentHash::of(&message);
        self.push_known(Arc::new(message), hash, tokens);
    }

    fn push_known(&mut self, message: Arc<Message>, hash: ContentHash, tokens: u32) {
        self.bytes += message_bytes(&message);
        self.transcript.push_known(message, hash, tokens);
    }

    /// Decides what the model is sent for a request that goes on from here.
    ///
    /// New messages get the time of the request: it is kept with them, so that whether the cache was cold is decided the same
    /// after a restart. Asking the same again changes nothing.
    pub fn ask(&mut self, asked: &Asked<'_>, pricing: &Pricing) -> Bounded {
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
            state.offer(asked.added.clone());
            let (context, receipt) =
                bound(&self.transcript, position, asked.policy, &terms, &mut state);
            note.misses = misses(before.as_ref().map(|mark| &mark.note), &note, &receipt);
            let plan = state.plan();
            let (id, strategy) = (&self.id, asked.strategy);
            let record =
                ReceiptRecord::of_context(id, strategy, &receipt, &context, plan, asked.now);
            self.state = Some(state);
            Last { position, receipt, record }
        };
        let added = self.added(position);
        let newest = added.last().filter(|(at, _)| at + 1 == position);
        note.added = newest.map(|(_, text)| text.clone());
        self.marks.push(Mark {
            position,
            policy: asked.policy.clone(),
            around: asked.around.clone(),
            strategy: asked.strategy.to_owned(),
            note: note.clone(),
        });
        let Last { receipt, record, .. } = last.clone();
        self.last = Some(last);
        let edits = self.forms(asked.messages);
        Bounded { position, edits, added, receipt, note, record }
    }

    /// Returns the terms of a request of so many messages.
    fn terms(
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
    fn charge_in_full(&mut self, terms: &Terms, position: Position) -> Charge {
        let entries = self.transcript.entries()[..position].iter().enumerate();
        let whole: Vec<Sent> = entries.map(|(at, entry)| Sent::whole(at, entry)).collect();
        self.full.charge(&terms.prices, &terms.pieces(&whole, &[]), self.time_at(position))
    }

    fn time_at(&self, position: Position) -> Option<MillisSinceEpoch> {
        let answered = self.transcript.entries().get(position).and_then(|entry| entry.message.time);
        answered
            .or_else(|| self.transcript.time_before(position.min(self.transcript.entries().len())))
    }

    /// Takes in what became of a request; tells whether an answer has its place here.
    ///
    /// It has none where the session went on without it, as when the same was asked twice at once.
    fn answered(&mut self, bounded: &Bounded, answer: Option<Message>, note: &Note) -> bool {
        let known = self.transcript.entries().get(bounded.position);
        let fits = match (&answer, known) {
            (None, _) => true,
            (Some(answer), Some(entry)) => alike(&entry.message, answer),
            (Some(_), None) => self.transcript.entries().len() == bounded.position,
        };
        if let Some(answer) = answer.filter(|_| fits && known.is_none()) {
            self.push(answer);
        }
        if fits {
            self.carried.extend(note.carried.iter().cloned());
            if let Some(mark) = self.marks.iter_mut().find(|mark| mark.note.number == note.number) {
                mark.note = note.clone();
            }
            self.keep_receipt(bounded, note);
        }
        fits
    }

    fn keep_receipt(&mut self, bounded: &Bounded, note: &Note) {
        let mut record = bounded.record.clone();
        record.session = self.id.clone();
        record.bill = note.bill;
        let mut record = record.with_turn(note.number);
        if let Some(bill) = &note.bill {
            self.bills.add(bill);
        }
        let written = Written { receipt: &bounded.receipt, request: note };
        record.receipt = serde_json::to_string(&written).unwrap_or_default();
        // The one that a branch began with says less.
        self.unkept.retain(|known| known.turn != record.turn);
        self.unkept.push(record);
    }

    /// Returns what the store does not have yet.
    pub fn unkept(&self, now: MillisSinceEpoch) -> HistoryBatch {
        HistoryBatch {
            messages: records_from(&self.id, &self.transcript, self.kept, now),
            receipts: self.unkept.clone(),
            cards: Vec::new(),
        }
    }

    /// Takes note that the store has a batch.
    pub fn keep(&mut self, batch: &HistoryBatch) {
        let end = batch.messages.last().map_or(0, |record| record.position as usize + 1);
        self.kept = self.kept.max(end);
        self.unkept.retain(|record| batch.receipts.iter().all(|kept| kept.turn != record.turn));
    }
}

/// Returns about how much memory a message takes in a session, with its form in a plan and the index of its words.
///
/// Measured on sessions of 1 to 300 KB of source files: 2 KB a message and nine times its text, for each word stands in the
/// index with the run of words that it begins.
fn message_bytes(message: &Message) -> usize {
    2_000 + 9 * size(message)
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

impl Mark {
    /// Makes a receipt with which a branch can be rebuilt, of a request that was made before it began.
    fn receipt(&self, id: &SessionId, transcript: &Transcript) -> ReceiptRecord {
        let inherited = Inherited { position: self.position, request: &self.note };
        let at = transcript.time_before(self.position).unwrap_or_default();
        let (number, kind) = (self.note.number, SelectionType::IntraPhase);
        // Its bill stands with the session that the branch began from.
        let mut record = ReceiptRecord::new(id, number, kind, &self.strategy, &inherited, at);
        record.full_history_size = self.position as u32;
        record
    }
}

/// Digests the leading system messages.
fn system(messages: &[Arc<Message>]) -> u64 {
    let leading = messages.iter().take_while(|message| message.role == Role::System);
    leading.fold(0, |sum: u64, message| sum.rotate_left(1) ^ ContentHash::of(message).key())
}

/// Returns why the provider's cache cannot have had the prefix of a request, after the one before it.
fn misses(before: Option<&Note>, note: &Note, receipt: &Receipt) -> Vec<Miss> {
    let Some(before) = before else { return vec![Miss::First] };
    [
        (receipt.charge.cold, Miss::Pause),
        (before.model != note.model, Miss::Model),
        (before.tools != note.tools, Miss::Tools),
        (before.system != note.system, Miss::System),
        (receipt.charge.broken, Miss::Content),
    ]
    .into_iter()
    .filter_map(|(is, miss)| is.then_some(miss))
    .collect()
}

fn size(message: &Message) -> usize {
    use plimsoll_core::Block;
    message
        .blocks
        .iter()
        .map(|block| match block {
            Block::Text(text) => text.len(),
            Block::Image(image) => image.data.len(),
            Block::ToolCall(call) => call.arguments.len() + 64,
            Block::ToolResult(result) => {
                result.text.len()
                    + result.images.iter().map(|image| image.data.len()).sum::<usize>()
            }
            Block::Thinking(thinking) => thinking.text.len() + thinking.signature.len(),
            Block::Opaque(opaque) => opaque.raw.len(),
        })
        .sum()
}
