//! The journal: every message of a run, durable before anything follows from it, and read again when the run is resumed.
//!
//! A run does the same things in the same order whenever its models and tools answer the same. So a resumed run begins at
//! its beginning and takes recorded answers where there are some: no model and no tool is called twice for an answer that
//! was kept.

use std::collections::{HashSet, VecDeque};
use std::sync::Arc;

use plimsoll_core::{ContentHash, Message, Role, Tokenizer};
use plimsoll_engine::cards::CardSettings;
use plimsoll_engine::observe::MessageObserver;
use plimsoll_engine::{
    Clock, HistoryBatch, HistoryStore, KnowledgeStore, MessageRecord, ReceiptRecord, SessionId,
    TenantId,
};

use super::Runner;
use super::error::RunError;

/// The beginning of the record of a failure, and of attempts of which some failed.
const FAILED: &str = "[Failed]: ";
const ENDED: &str = "[Soundings that ended]: ";

fn failure(message: &Message) -> Option<String> {
    let shown = message.shown();
    let why = shown.strip_prefix(FAILED).filter(|_| message.role == Role::System)?;
    Some(why.to_owned())
}

/// The messages of one session.
#[derive(Debug)]
pub(crate) struct Journal {
    store: Arc<dyn HistoryStore>,
    knowledge: Arc<dyn KnowledgeStore>,
    cards: CardSettings,
    clock: Arc<dyn Clock>,
    tenant: TenantId,
    session: SessionId,
    /// The contents of the messages so far.
    contents: HashSet<ContentHash>,
    /// The messages that are recorded and that the resumed run has not reached yet.
    recorded: VecDeque<MessageRecord>,
    /// Whether the record of an earlier run ended, and nothing was added to it yet.
    is_at_break: bool,
    /// The position of the next message.
    position: u32,
    turn: u32,
}

impl Journal {
    /// Opens the journal of a session, with its recorded messages.
    pub(crate) async fn open(runner: &Runner, session: SessionId) -> Result<Self, RunError> {
        let Runner { history, knowledge, clock, tenant, settings, .. } = runner;
        let recorded = history.messages(tenant, &session, 0, usize::MAX).await?;
        Ok(Self {
            store: history.clone(),
            knowledge: knowledge.clone(),
            cards: settings.cards.clone(),
            clock: clock.clone(),
            tenant: tenant.clone(),
            session,
            contents: recorded.iter().map(|record| record.hash).collect(),
            is_at_break: !recorded.is_empty(),
            recorded: recorded.into(),
            position: 0,
            turn: 0,
        })
    }

    pub(crate) fn session(&self) -> &SessionId {
        &self.session
    }

    pub(crate) fn tenant(&self) -> &TenantId {
        &self.tenant
    }

    /// Returns how many answers of models there were before the next one.
    pub(crate) fn turn(&self) -> u32 {
        self.turn
    }

    /// Returns whether the next message is recorded already.
    pub(crate) fn is_recorded(&self) -> bool {
        !self.recorded.is_empty()
    }

    /// Returns whether an earlier run stopped here, so that it may have begun the next step.
    pub(crate) fn is_at_break(&self) -> bool {
        self.is_at_break && self.recorded.is_empty()
    }

    /// Records a message of the run itself; a recorded one must be the same.
    pub(crate) async fn say(&mut self, message: Message) -> Result<Arc<Message>, RunError> {
        let Some(known) = self.recorded.pop_front() else {
            return self.append(message, Vec::new()).await;
        };
        if known.hash == ContentHash::of(&message) {
            return Ok(self.replayed(known));
        }
        Err(self.changed(&known, &message))
    }

    /// Returns the recorded answer; `None` where the record has ended.
    ///
    /// Errors: [`RunError::Recorded`] where the record has a failure instead.
    pub(crate) fn answer(&mut self, role: Role) -> Result<Option<Arc<Message>>, RunError> {
        let Some(known) = self.recorded.pop_front() else { return Ok(None) };
        if known.message.role == role {
            return Ok(Some(self.replayed(known)));
        }
        if let Some(why) = failure(&known.message) {
            self.recorded.push_front(known);
            return Err(RunError::Recorded { why });
        }
        let expected = Message::new(role, Vec::new());
        Err(self.changed(&known, &expected))
    }

    /// Records a failure after which the run goes on.
    pub(crate) async fn fail(&mut self, phase: &str, why: &str) -> Result<(), RunError> {
        let mut message = Message::text(Role::System, format!("{FAILED}{why}"));
        message.phase = Some(phase.into());
        self.say(message).await.map(drop)
    }

    /// Returns the recorded numbers of the attempts that succeeded, where others failed.
    pub(crate) fn ended(&self) -> Option<Vec<usize>> {
        let shown = self.recorded.front()?.message.shown();
        let numbers = shown.strip_prefix(ENDED)?.split_whitespace();
        Some(numbers.filter_map(|number| number.parse().ok()).collect())
    }

    /// Records the numbers of the attempts that succeeded.
    pub(crate) async fn end(&mut self, phase: &str, ended: &[usize]) -> Result<(), RunError> {
        let numbers: Vec<String> = ended.iter().map(ToString::to_string).collect();
        let mut message = Message::text(Role::System, format!("{ENDED}{}", numbers.join(" ")));
        message.phase = Some(phase.into());
        self.say(message).await.map(drop)
    }

    /// Records an answer with the receipts of its request, all or nothing.
    pub(crate) async fn append(
        &mut self,
        mut message: Message,
        receipts: Vec<ReceiptRecord>,
    ) -> Result<Arc<Message>, RunError> {
        self.is_at_break = false;
        let now = self.clock.now();
        message.time = message.time.or(Some(now));
        let record = MessageRecord {
            session: self.session.clone(),
            position: self.position,
            hash: ContentHash::of(&message),
            tokens: Tokenizer::O200k { factor: 1.0 }.count_message(&message),
            turn: self.turn,
            message,
            recorded_at: now,
        };
        let message = Arc::new(record.message.clone());
        let is_known = !self.contents.insert(record.hash);
        let batch = HistoryBatch { messages: vec![record], receipts, ..HistoryBatch::default() };
        let observer = MessageObserver {
            history: &*self.store,
            knowledge: &*self.knowledge,
            tenant: &self.tenant,
            settings: &self.cards,
        };
        observer.observe(batch, |_| is_known, now).await?;
        self.advance(&message);
        Ok(message)
    }

    fn replayed(&mut self, known: MessageRecord) -> Arc<Message> {
        let message = Arc::new(known.message);
        self.advance(&message);
        message
    }

    fn advance(&mut self, message: &Message) {
        self.position += 1;
        self.turn += u32::from(message.role == Role::Assistant);
    }

    fn changed(&self, known: &MessageRecord, now: &Message) -> RunError {
        let what = format!(
            "its message {} is one of {} that begins `{}`, now there would be one of {}",
            known.position,
            known.message.role.as_str(),
            plimsoll_core::text::line(&known.message.shown(), 40),
            now.role.as_str(),
        );
        RunError::Changed { session: self.session.to_string(), what }
    }
}
