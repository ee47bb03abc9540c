//! A live session: a transcript that grows with each request, bounded as it goes, and rebuilt from the store to the same bytes.
//!
//! The content that a model was sent follows from the transcript, the times in it, and the places at which it was asked, each with its policy. All
//! of that is kept: messages as messages, the rest in the receipt of each request.

mod again;
mod alike;
mod conversation;
mod note;
mod pins;
mod rebuild;
mod request;
mod size;

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use plimsoll_core::context::State;
use plimsoll_core::cost::{Cache, Pricing};
use plimsoll_core::terms::Surroundings;
use plimsoll_core::{
    ContentHash, Message, MillisSinceEpoch, Position, Role, Tokenizer, Transcript,
};
use serde::{Deserialize, Serialize};

use crate::history::{Appended, Bill, Bills, Branch, HistoryBatch, MessageRecord, ReceiptRecord};
use crate::id::SessionId;
use crate::record::records_from;
use note::{Mark, RequestReceipt};
use request::LastDecision;
use size::{message_bytes, size};

pub use again::RequestAgain;
pub use alike::{alike, carried};
pub use conversation::{BranchMatch, Conversation, session_name};
pub use note::{Miss, Note};
pub use pins::RequestPins;
pub use request::{AddedMemory, Bounded, SessionRequest};

/// A session that goes on.
#[derive(Debug, Clone)]
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
    last: Option<LastDecision>,
    /// Messages that the store has.
    kept: usize,
    /// The branch that it begins as, until the store has it.
    branch: Option<Branch>,
    unkept: Vec<ReceiptRecord>,
    carried: Vec<Arc<str>>,
    /// Of its own requests; those before a branch began are of the session that it left.
    bills: Bills,
    /// When the cache was read once more by us, in order.
    reads: Vec<CacheRead>,
    bytes: usize,
}

/// A read that kept the provider's cache warm, as its receipt has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct CacheRead {
    /// The number of the request that was read once more.
    pub after: u32,
    pub at: MillisSinceEpoch,
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
            branch: None,
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

    /// Returns whether a request went out as it came: what the model thought then is bound to that, and not to our forms.
    pub fn went_out_as_it_came(&self) -> bool {
        self.marks.iter().any(|mark| mark.note.observed || mark.note.late)
    }

    /// Returns when the provider's cache was last used, as far as that is known.
    pub fn last_use(&self) -> Option<MillisSinceEpoch> {
        self.last_time().max(self.reads.last().map(|read| read.at))
    }

    /// Takes note that the last request was read once more by us at `at`, and billed.
    fn read_again(
        &mut self,
        pricing: &Pricing,
        at: MillisSinceEpoch,
        bill: &Bill,
    ) -> Option<CacheRead> {
        let (after, model) = {
            let last = &self.marks.last()?.note;
            (last.number, last.model.clone())
        };
        let read = CacheRead { after, at };
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

    /// Returns whether a request of so many messages, of which `agreed` are known, goes on from here.
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
        branch.branch = self.shared(&branch, agreed);
        let turns = branch.branch.as_ref().map_or(0, |shared| shared.turns);
        branch.kept = branch.branch.as_ref().map_or(0, |shared| shared.messages as usize);
        let own = branch.marks.iter().filter(|mark| !mark.is_kept || mark.note.number >= turns);
        branch.unkept = own.map(|mark| mark.receipt(&branch.id, &branch.transcript)).collect();
        branch.state = None;
        branch
    }

    /// Returns what a branch has in common with a session in the store; `None` where the store has nothing of it yet.
    fn shared(&self, branch: &Self, agreed: usize) -> Option<Branch> {
        let (from, messages, turns) = match &self.branch {
            Some(own) => (&own.from, own.messages as usize, own.turns),
            None => (&self.id, self.kept, u32::MAX),
        };
        let beyond = self.marks.iter().find(|mark| mark.position > agreed);
        let end = beyond.or(self.marks.last()).map_or(0, |mark| mark.note.number);
        let turns = turns.min(end + u32::from(beyond.is_none()));
        let shared = branch.marks.iter().filter(|mark| mark.is_kept && mark.note.number < turns);
        let strategies: BTreeSet<&str> = shared.map(|mark| mark.strategy.as_str()).collect();
        (messages > 0).then(|| Branch {
            session: branch.id.clone(),
            from: from.clone(),
            messages: messages.min(agreed) as u32,
            turns,
            strategies: strategies.into_iter().map(str::to_owned).collect(),
        })
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
        let written = RequestReceipt { receipt: &bounded.receipt, request: note };
        record.receipt = serde_json::to_string(&written).unwrap_or_default();
        // The one that a branch began with says less.
        self.unkept.retain(|known| known.turn != record.turn);
        self.unkept.push(record);
    }

    /// Returns what the store does not have yet.
    pub fn unkept(&self, now: MillisSinceEpoch) -> HistoryBatch {
        HistoryBatch {
            branch: self.branch.clone().map(Box::new),
            messages: records_from(&self.id, &self.transcript, self.kept, now),
            receipts: self.unkept.clone(),
            cards: Vec::new(),
        }
    }

    /// Returns whether an earlier message of the session has the same content.
    pub fn is_repetition(&self, record: &MessageRecord) -> bool {
        let earlier = self.transcript.entries().iter().take(record.position as usize);
        earlier.into_iter().any(|entry| entry.hash == record.hash)
    }

    /// Takes note that the store has a batch; `appended` is `None` while the batch waits for the store.
    ///
    /// If the store had a part of it already, another gateway was first and may have other receipts for the same turns.
    pub fn keep(&mut self, batch: &HistoryBatch, appended: Option<Appended>) {
        let end = batch.messages.last().map_or(0, |record| record.position as usize + 1);
        self.kept = self.kept.max(end);
        if batch.branch.is_some() {
            self.branch = None;
        }
        let is_new = appended.is_some_and(|appended| appended.known == 0);
        for record in batch.receipts.iter().filter(|_| is_new) {
            let mark = self.marks.iter_mut().rev().find(|mark| mark.note.number == record.turn);
            if let Some(mark) = mark {
                mark.is_kept = true;
            }
        }
        self.unkept.retain(|record| batch.receipts.iter().all(|kept| kept.turn != record.turn));
    }
}
