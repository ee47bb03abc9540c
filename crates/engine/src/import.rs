//! Importing: messages from elsewhere, each kept once.

use std::collections::HashMap;
use std::sync::Arc;

use plimsoll_core::{ContentHash, Message, MillisSinceEpoch, Role, Tokenizer};

use crate::error::StoreError;
use crate::history::{HistoryBatch, HistoryStore, MessageRecord};
use crate::id::{SessionId, TenantId};
use crate::observe::MessageObserver;

/// Messages that are appended together (chosen: a few milliseconds of a commit each, and seldom a megabyte).
const GROUP: usize = 500;

/// The result of an import.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Imported {
    /// Messages that were new.
    pub added: usize,
    /// Messages that were there already.
    pub known: usize,
    /// Places in the import of messages whose id is there with another content; history only grows, so they are left out.
    pub differing: Vec<usize>,
}

/// Appends the messages of an import that are not there yet, in its order, each behind what its session has.
///
/// A message is known by its session and id; without an id, by content, speaker and time, as often as it was said. So the same
/// import again adds nothing, and one that has grown adds what is new.
pub async fn import(
    observer: &MessageObserver<'_>,
    messages: Vec<(SessionId, Message)>,
    tokenizer: Tokenizer,
    recorded_at: MillisSinceEpoch,
) -> Result<Imported, StoreError> {
    let mut imported = Imported::default();
    let mut sessions: HashMap<SessionId, SessionContents> = HashMap::new();
    let mut group = Vec::new();
    for (place, (session, message)) in messages.into_iter().enumerate() {
        if !sessions.contains_key(&session) {
            let known = SessionContents::load(observer.history, observer.tenant, &session).await?;
            sessions.insert(session.clone(), known);
        }
        let Some(known) = sessions.get_mut(&session) else { continue };
        let hash = ContentHash::of(&message);
        match known.find(&message, hash) {
            ImportMatch::Same => imported.known += 1,
            ImportMatch::Differing => imported.differing.push(place),
            ImportMatch::New => {
                let tokens = tokenizer.count_message(&message);
                group.push(known.next(session, message, hash, tokens, recorded_at));
                imported.added += 1;
            }
        }
        if group.len() == GROUP {
            append(observer, &sessions, &mut group, recorded_at).await?;
        }
    }
    append(observer, &sessions, &mut group, recorded_at).await?;
    Ok(imported)
}

async fn append(
    observer: &MessageObserver<'_>,
    sessions: &HashMap<SessionId, SessionContents>,
    group: &mut Vec<MessageRecord>,
    now: MillisSinceEpoch,
) -> Result<(), StoreError> {
    if group.is_empty() {
        return Ok(());
    }
    let messages = std::mem::take(group);
    let batch = HistoryBatch { messages, ..HistoryBatch::default() };
    let is_known = |record: &MessageRecord| {
        let first = sessions.get(&record.session).and_then(|known| known.first.get(&record.hash));
        first.is_some_and(|first| *first < record.position)
    };
    observer.observe(batch, is_known, now).await?;
    Ok(())
}

enum ImportMatch {
    Same,
    Differing,
    New,
}

type WithoutId = (ContentHash, Option<Arc<str>>, Option<MillisSinceEpoch>);

/// The content of a session.
#[derive(Debug, Default)]
struct SessionContents {
    messages: u32,
    turn: u32,
    /// Where each content stands first.
    first: HashMap<ContentHash, u32>,
    by_id: HashMap<Arc<str>, ContentHash>,
    /// How many of what was there before the import are not met again yet.
    without_id: HashMap<WithoutId, usize>,
}

impl SessionContents {
    async fn load(
        history: &dyn HistoryStore,
        tenant: &TenantId,
        session: &SessionId,
    ) -> Result<Self, StoreError> {
        let mut known = Self::default();
        loop {
            let page = history.messages(tenant, session, known.messages, PAGE).await?;
            let full = page.len() == PAGE;
            for record in page {
                known.first.entry(record.hash).or_insert(known.messages);
                known.messages += 1;
                known.turn = record.turn;
                let message = &record.message;
                if let Some(id) = &message.id {
                    known.by_id.insert(id.clone(), record.hash);
                } else {
                    *known.without_id.entry(without_id(message, record.hash)).or_default() += 1;
                }
            }
            if !full {
                return Ok(known);
            }
        }
    }

    fn find(&mut self, message: &Message, hash: ContentHash) -> ImportMatch {
        if let Some(id) = &message.id {
            return match self.by_id.get(id) {
                Some(kept) if *kept == hash => ImportMatch::Same,
                Some(_) => ImportMatch::Differing,
                None => {
                    self.by_id.insert(id.clone(), hash);
                    ImportMatch::New
                }
            };
        }
        match self.without_id.get_mut(&without_id(message, hash)) {
            Some(left) if *left > 0 => {
                *left -= 1;
                ImportMatch::Same
            }
            _ => ImportMatch::New,
        }
    }

    fn next(
        &mut self,
        session: SessionId,
        message: Message,
        hash: ContentHash,
        tokens: u32,
        recorded_at: MillisSinceEpoch,
    ) -> MessageRecord {
        let position = self.messages;
        self.first.entry(hash).or_insert(position);
        self.messages += 1;
        self.turn += u32::from(message.role == Role::Assistant);
        MessageRecord { session, position, hash, message, tokens, turn: self.turn, recorded_at }
    }
}

/// Messages that are read at once.
const PAGE: usize = 10_000;

fn without_id(message: &Message, hash: ContentHash) -> WithoutId {
    (hash, message.speaker.clone(), message.time)
}
