//! Recalling: the stored messages that a question asks for, within a budget.
//!
//! The ranking is `plimsoll_core::recall`; here its indexes are filled from the history, a tenant's from that tenant alone, and
//! brought up to date with what was appended since.

use std::collections::HashMap;
use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;

use futures_util::lock::OwnedMutexGuard;
use plimsoll_core::Tokenizer;
use plimsoll_core::recall::{
    IndexedMessage, Match, Packed, RecallIndex, RecallSettings, RecalledMessage, WordVectors,
    header, pack,
};

use plimsoll_core::text::{left_out, parts};

use crate::copies::Copies;
use crate::error::StoreError;
use crate::history::{HistoryStore, MessageRecord};
use crate::id::{SessionId, TenantId};

/// Messages that are read at once (chosen: a tenth of a second's work at most, and many times what a call costs).
const PAGE: usize = 2000;

/// The indexes of recall: one for each tenant and session, or tenant and all sessions, that was asked.
///
/// An index is a copy in memory that can be built again at any time, and grows with what it holds.
#[derive(Debug)]
pub struct Recall {
    settings: RecallSettings,
    words: Option<Arc<dyn WordVectors>>,
    scopes: Copies<(TenantId, Option<SessionId>), RecallScope>,
}

/// The messages of one session, or of all of a tenant, and their index.
#[derive(Debug)]
pub struct RecallScope {
    index: RecallIndex,
    records: Vec<MessageRecord>,
    /// Characters of a part.
    part: usize,
    /// How many messages of each session are in it.
    lengths: HashMap<SessionId, u32>,
}

/// The messages that were recalled for one question.
#[derive(Debug, Clone, PartialEq)]
pub struct Recollection<'a> {
    /// Best first.
    pub hits: Vec<RecallHit<'a>>,
    /// Tokens of all hits as [`RecallHit::text`] writes them; never above the budget.
    pub tokens: u64,
    /// Messages that have to do with the question, whether they fit or not.
    pub ranked: usize,
    /// Better messages than the last hit that were passed over because they did not fit.
    pub passed_over: usize,
}

/// A message that was recalled.
#[derive(Debug, Clone, PartialEq)]
pub struct RecallHit<'a> {
    pub record: &'a MessageRecord,
    /// Its score and what that is made of.
    pub recalled: RecalledMessage,
    /// The message behind a header of id, time and speaker, as it is given to a model.
    pub text: String,
    pub tokens: u32,
}

impl Recall {
    /// Makes recall without any index; without word vectors nothing is found by meaning.
    pub fn new(settings: RecallSettings, words: Option<Arc<dyn WordVectors>>) -> Self {
        Self { settings, words, scopes: Copies::new(usize::MAX) }
    }

    /// Returns the messages of a session, or of all, as the history has them now.
    ///
    /// Only what was appended since the last time is read. Others who ask for the same scope wait until the guard is dropped.
    pub async fn scope(
        &self,
        history: &dyn HistoryStore,
        tenant: &TenantId,
        session: Option<&SessionId>,
    ) -> Result<OwnedMutexGuard<RecallScope>, StoreError> {
        let key = (tenant.clone(), session.cloned());
        let held = self.scopes.get(&key, || RecallScope {
            index: RecallIndex::new(self.settings.clone(), self.words.clone()),
            records: Vec::new(),
            part: self.settings.part,
            lengths: HashMap::new(),
        });
        let mut scope = held.lock_owned().await;
        let grown = match session {
            Some(session) => vec![session.clone()],
            None => scope.grown(history, tenant).await?,
        };
        if let [session] = &grown[..] {
            scope.follow(history, tenant, session).await?;
        } else {
            let mut new = Vec::new();
            for session in grown {
                new.extend(scope.unread(history, tenant, &session).await?);
            }
            // As they were recorded, so that an index that grows is the same as one built at once.
            new.sort_by(|(at, a), (other, b)| {
                (at, &a.session, a.position).cmp(&(other, &b.session, b.position))
            });
            scope.add(new.into_iter().map(|(_, record)| record).collect());
        }
        scope.index.embed();
        Ok(scope)
    }
}

impl RecallScope {
    /// Returns the sessions that have messages which are not in it.
    async fn grown(
        &self,
        history: &dyn HistoryStore,
        tenant: &TenantId,
    ) -> Result<Vec<SessionId>, StoreError> {
        let sessions = history.sessions(tenant, usize::MAX).await?.into_iter();
        let grown = sessions.filter(|found| self.length(&found.session) < found.messages);
        Ok(grown.map(|found| found.session).collect())
    }

    /// Adds what is new in a session, each page while the store reads the next.
    async fn follow(
        &mut self,
        history: &dyn HistoryStore,
        tenant: &TenantId,
        session: &SessionId,
    ) -> Result<(), StoreError> {
        let mut from = self.length(session);
        let mut page = history.messages(tenant, session, from, PAGE).await?;
        while page.len() == PAGE {
            from += PAGE as u32;
            let mut reading = pin!(history.messages(tenant, session, from, PAGE));
            // Asked once, so that it begins; a store reads on threads of its own.
            let begun = poll_fn(|context| Poll::Ready(reading.as_mut().poll(context))).await;
            self.add(page);
            page = match begun {
                Poll::Ready(page) => page?,
                Poll::Pending => reading.await?,
            };
        }
        self.add(page);
        Ok(())
    }

    /// Returns the messages of a session that are not in it, each with the latest time up to it at which one was recorded.
    async fn unread(
        &self,
        history: &dyn HistoryStore,
        tenant: &TenantId,
        session: &SessionId,
    ) -> Result<Vec<(i64, MessageRecord)>, StoreError> {
        let mut from = self.length(session);
        let mut unread = Vec::new();
        let mut latest = i64::MIN;
        loop {
            let page = history.messages(tenant, session, from, PAGE).await?;
            let full = page.len() == PAGE;
            from += page.len() as u32;
            for record in page {
                latest = latest.max(record.recorded_at.0);
                unread.push((latest, record));
            }
            if !full {
                return Ok(unread);
            }
        }
    }

    fn length(&self, session: &SessionId) -> u32 {
        self.lengths.get(session).copied().unwrap_or(0)
    }

    fn add(&mut self, records: Vec<MessageRecord>) {
        let texts: Vec<String> = records.iter().map(|record| record.message.shown()).collect();
        self.index.add(records.iter().zip(&texts).map(|(record, text)| IndexedMessage {
            session: record.session.as_str(),
            role: record.message.role,
            speaker: record.message.speaker.as_deref(),
            time: record.message.time,
            text,
        }));
        for record in records {
            *self.lengths.entry(record.session.clone()).or_default() += 1;
            self.records.push(record);
        }
    }

    /// Returns how many messages it has.
    pub fn messages(&self) -> usize {
        self.records.len()
    }

    /// Returns how many sessions it has messages of.
    pub fn sessions(&self) -> usize {
        self.lengths.len()
    }

    /// Ranks the messages that a question asks for, best first.
    pub fn rank(&self, question: &str) -> Vec<(&MessageRecord, RecalledMessage)> {
        let found = self.index.search(question).into_iter();
        found.map(|recalled| (&self.records[recalled.message], recalled)).collect()
    }

    /// Returns the best messages for a question that fit into `budget` tokens, each with its header.
    ///
    /// Of a long message only the best part stands there, with what is around it and a count of the rest.
    pub fn recall(&self, question: &str, budget: u64, tokenizer: Tokenizer) -> Recollection<'_> {
        let ranked = self.rank(question);
        let mut written: Vec<(String, u32)> = Vec::new();
        // Written one by one: most of what is ranked is behind the end of the budget.
        let sizes = ranked.iter().map(|(record, recalled)| {
            let text = self.written(record, recalled.part);
            let tokens = tokenizer.count(&text);
            written.push((text, tokens));
            tokens
        });
        let Packed { places, tokens, passed_over } = pack(sizes, budget);
        let hits = places
            .into_iter()
            .map(|place| {
                let (record, recalled) = ranked[place].clone();
                let (text, tokens) = std::mem::take(&mut written[place]);
                RecallHit { record, recalled, text, tokens }
            })
            .collect();
        Recollection { hits, tokens, ranked: ranked.len(), passed_over }
    }

    /// Returns which words of a message were asked for.
    pub fn matches(&self, question: &str, recalled: &RecalledMessage) -> Vec<Match> {
        self.index.matches(question, recalled.message)
    }

    /// Writes a message, or the part of a long one, behind its header, with a line break at its end.
    fn written(&self, record: &MessageRecord, part: usize) -> String {
        let message = &record.message;
        let own = record.name();
        let id = if self.sessions() > 1 { format!("{}/{own}", record.session) } else { own };
        let speaker = message.speaker.as_deref().unwrap_or(message.role.as_str());
        let mut text = header(&id, message.time, speaker);
        let shown = message.shown();
        let all = parts(&shown, self.part);
        if all.len() <= WHOLE {
            text.push_str(&shown);
        } else {
            let part = part.min(all.len() - 1);
            let reference = format!("ref:message:{}", record.hash);
            let characters = |parts: &[&str]| parts.iter().map(|one| one.chars().count()).sum();
            let note = |hidden: usize| left_out(hidden, "character", Some(&reference));
            let (before, behind) = (characters(&all[..part]), characters(&all[part + 1..]));
            if before > 0 {
                text.push_str(&note(before));
                text.push('\n');
            }
            text.push_str(all[part].trim_end());
            if behind > 0 {
                text.push('\n');
                text.push_str(&note(behind));
            }
        }
        text.push('\n');
        text
    }
}

/// Parts of a message that is shown whole (chosen: one cut of a message of two parts saves little).
const WHOLE: usize = 2;

impl MessageRecord {
    /// Returns the id that its source gave it, else its position.
    pub fn name(&self) -> String {
        self.message.id.as_deref().map_or_else(|| self.position.to_string(), str::to_owned)
    }
}
