//! History in memory.

use std::collections::BTreeMap;

use async_trait::async_trait;
use plimsoll_core::ContentHash;
use plimsoll_engine::{
    Appended, Bills, ContextCard, Efficiency, Forgotten, Gathering, HistoryBatch, HistoryStore,
    Hit, LogQuery, LogRow, MessageRecord, Rebuilt, ReceiptRecord, SearchQuery, SessionId,
    SessionSummary, StoreError, TenantId, hash_prefix, words,
};

use super::{Arrival, MemoryStore, Records, rank};

fn checked(record: &MessageRecord) -> Result<MessageRecord, StoreError> {
    if ContentHash::of(&record.message) == record.hash {
        return Ok(record.clone());
    }
    Err(StoreError::Corrupt { what: format!("message {}", record.hash) })
}

impl Records {
    /// Refuses a batch that cannot be appended whole.
    fn check(&self, batch: &HistoryBatch) -> Result<(), StoreError> {
        batch.check()?;
        let mut ends: BTreeMap<&str, Vec<ContentHash>> = BTreeMap::new();
        for record in &batch.messages {
            let session = record.session.as_str();
            let hashes = ends.entry(session).or_insert_with(|| {
                let kept = self.messages.get(session);
                kept.into_iter().flatten().map(|message| message.hash).collect()
            });
            match hashes.get(record.position as usize) {
                Some(hash) if *hash == record.hash => {}
                Some(hash) => {
                    let what = format!("position {} of {session} is {hash}", record.position);
                    return Err(StoreError::Conflict { what });
                }
                None if record.position as usize == hashes.len() => hashes.push(record.hash),
                None => {
                    let why = format!("{} leaves a gap after {}", record.position, hashes.len());
                    return Err(StoreError::Invalid { field: "position", why });
                }
            }
        }
        Ok(())
    }

    fn append(&mut self, tenant: &TenantId, batch: HistoryBatch) -> Appended {
        let mut appended = Appended::default();
        let mut count = |new: bool| {
            appended.added += usize::from(new);
            appended.known += usize::from(!new);
        };
        for record in batch.messages {
            let session = record.session.as_str().to_owned();
            let kept = self.messages.entry(session.clone()).or_default();
            let new = record.position as usize == kept.len();
            if new {
                self.arrivals.push(Arrival::Message(session, record.position));
                kept.push(record);
            }
            count(new);
        }
        for record in batch.receipts {
            let key = (record.session.as_str().to_owned(), record.turn, record.strategy.clone());
            let new = !self.receipts.contains_key(&key);
            if new {
                self.arrivals.push(Arrival::Receipt(key.0.clone(), key.1, key.2.clone()));
                self.receipts.insert(key, record);
            }
            count(new);
        }
        for mut card in batch.cards {
            card.tenant = tenant.clone();
            let key = (card.session.as_str().to_owned(), card.content_hash.clone());
            let new = self.cards.get(&key).is_none_or(|kept| kept.generated_at < card.generated_at);
            if new {
                self.cards.insert(key, card);
            }
            count(new);
        }
        appended
    }
}

impl Records {
    /// Removes the messages, receipts and cards of a session.
    pub(super) fn forget_history(&mut self, session: &SessionId) -> Forgotten {
        let messages = self.messages.remove(session.as_str()).map_or(0, |messages| messages.len());
        self.receipts.retain(|_, receipt| receipt.session != *session);
        self.arrivals.retain(|arrival| match arrival {
            Arrival::Message(of, _) | Arrival::Receipt(of, _, _) => of != session.as_str(),
        });
        let before = self.cards.len();
        self.cards.retain(|_, card| card.session != *session);
        let cards = before - self.cards.len();
        Forgotten { messages: messages as u64, cards: cards as u64, ..Forgotten::default() }
    }
}

#[async_trait]
impl HistoryStore for MemoryStore {
    async fn append(&self, tenant: &TenantId, batch: HistoryBatch) -> Result<Appended, StoreError> {
        self.with(tenant, |records| {
            records.check(&batch)?;
            Ok(records.append(tenant, batch))
        })
    }

    async fn messages(
        &self,
        tenant: &TenantId,
        session: &SessionId,
        from: u32,
        limit: usize,
    ) -> Result<Vec<MessageRecord>, StoreError> {
        self.with(tenant, |records| {
            let kept = records.messages.get(session.as_str());
            kept.into_iter().flatten().skip(from as usize).take(limit).map(checked).collect()
        })
    }

    async fn message_by_hash(
        &self,
        tenant: &TenantId,
        prefix: &str,
    ) -> Result<MessageRecord, StoreError> {
        let prefix = hash_prefix(prefix)?;
        self.with(tenant, |records| {
            let mut found: Vec<&MessageRecord> = records
                .messages
                .values()
                .flatten()
                .filter(|record| record.hash.full().starts_with(&prefix))
                .collect();
            found.sort_by_key(|record| record.recorded_at);
            match found.as_slice() {
                [] => Err(StoreError::NotFound { what: format!("message {prefix}") }),
                [first, rest @ ..] if rest.iter().any(|other| other.hash != first.hash) => {
                    Err(StoreError::Conflict { what: format!("several messages begin {prefix}") })
                }
                [first, ..] => checked(first),
            }
        })
    }

    async fn sessions(
        &self,
        tenant: &TenantId,
        limit: usize,
    ) -> Result<Vec<SessionSummary>, StoreError> {
        self.with(tenant, |records| {
            let mut found: BTreeMap<&SessionId, SessionSummary> = BTreeMap::new();
            let messages = records
                .messages
                .values()
                .flatten()
                .map(|message| (&message.session, Some(message.tokens), message.recorded_at));
            let receipts =
                records.receipts.values().map(|record| (&record.session, None, record.recorded_at));
            for (session, tokens, at) in messages.chain(receipts) {
                let summary = found.entry(session).or_insert_with(|| SessionSummary {
                    session: session.clone(),
                    messages: 0,
                    tokens: 0,
                    first_at: at,
                    last_at: at,
                });
                summary.messages += u32::from(tokens.is_some());
                summary.tokens += u64::from(tokens.unwrap_or(0));
                summary.first_at = summary.first_at.min(at);
                summary.last_at = summary.last_at.max(at);
            }
            let mut sessions: Vec<SessionSummary> = found.into_values().collect();
            sessions.sort_by_key(|summary| std::cmp::Reverse(summary.last_at));
            sessions.truncate(limit);
            Ok(sessions)
        })
    }

    async fn receipts(
        &self,
        tenant: &TenantId,
        session: &SessionId,
    ) -> Result<Vec<ReceiptRecord>, StoreError> {
        self.with(tenant, |records| {
            let of_session = records.receipts.values().filter(|record| record.session == *session);
            Ok(of_session.cloned().collect())
        })
    }

    async fn cards(
        &self,
        tenant: &TenantId,
        session: &SessionId,
    ) -> Result<Vec<ContextCard>, StoreError> {
        self.with(tenant, |records| {
            let mut cards: Vec<ContextCard> =
                records.cards.values().filter(|card| card.session == *session).cloned().collect();
            cards.sort_by_key(|card| std::cmp::Reverse(card.message_timestamp));
            Ok(cards)
        })
    }

    async fn search(
        &self,
        tenant: &TenantId,
        session: Option<&SessionId>,
        query: &SearchQuery,
    ) -> Result<Vec<Hit<MessageRecord>>, StoreError> {
        query.check()?;
        self.with(tenant, |records| {
            let messages: Vec<&MessageRecord> = records
                .messages
                .values()
                .flatten()
                .filter(|record| session.is_none_or(|session| record.session == *session))
                .filter(|record| checked(record).is_ok())
                .collect();
            let documents: Vec<_> = messages
                .iter()
                .map(|record| {
                    let card = records
                        .cards
                        .get(&(record.session.as_str().to_owned(), record.hash.short()));
                    let mut has: Vec<String> = words(&record.message.shown()).collect();
                    if let Some(card) = card {
                        has.extend(words(&card.summary));
                        has.extend(card.keywords.iter().flat_map(|keyword| words(keyword)));
                    }
                    (has, card.and_then(|card| card.embedding.as_ref()))
                })
                .collect();
            let hits = rank(&documents, query);
            Ok(hits
                .into_iter()
                .map(|hit| Hit { item: messages[hit.item].clone(), score: hit.score })
                .collect())
        })
    }

    async fn log(&self, tenant: &TenantId, query: &LogQuery) -> Result<Vec<LogRow>, StoreError> {
        self.with(tenant, |records| {
            let mut rows: Vec<LogRow> = Vec::new();
            for arrival in &records.arrivals {
                rows.push(match arrival {
                    Arrival::Message(session, position) => LogRow::of_message(&checked(
                        &records.messages[session][*position as usize],
                    )?),
                    Arrival::Receipt(session, turn, strategy) => LogRow::of_receipt(
                        &records.receipts[&(session.clone(), *turn, strategy.clone())],
                    ),
                });
            }
            rows.retain(|row| {
                query.session.as_ref().is_none_or(|session| row.session == *session)
                    && query.node_type.as_ref().is_none_or(|wanted| row.node_type == *wanted)
                    && query.since.is_none_or(|since| row.at >= since)
            });
            rows.sort_by_key(|row| row.at);
            rows.drain(..rows.len().saturating_sub(query.limit));
            Ok(rows)
        })
    }

    async fn efficiency(
        &self,
        tenant: &TenantId,
        by: Gathering,
    ) -> Result<Vec<Efficiency>, StoreError> {
        self.with(tenant, |records| {
            let mut found: BTreeMap<(Option<String>, Option<SessionId>), Vec<&ReceiptRecord>> =
                BTreeMap::new();
            for receipt in records.receipts.values() {
                let gathered = match by {
                    Gathering::Cascade => (receipt.cascade_id.clone(), None),
                    Gathering::Session => (None, Some(receipt.session.clone())),
                };
                found.entry(gathered).or_default().push(receipt);
            }
            Ok(found
                .into_iter()
                .map(|((cascade_id, session), receipts)| {
                    let count = receipts.len() as f64;
                    let mean = |of: fn(&ReceiptRecord) -> f64| {
                        receipts.iter().map(|receipt| of(receipt)).sum::<f64>() / count
                    };
                    let mut bills = Bills::default();
                    for bill in receipts.iter().filter_map(|receipt| receipt.bill.as_ref()) {
                        bills.add(bill);
                    }
                    Efficiency {
                        cascade_id,
                        session,
                        selections: receipts.len() as u64,
                        avg_full_size: mean(|receipt| f64::from(receipt.full_history_size)),
                        avg_context_size: mean(|receipt| f64::from(receipt.context_size)),
                        avg_tokens_saved: mean(|receipt| receipt.tokens_saved as f64),
                        tokens_saved: receipts.iter().map(|receipt| receipt.tokens_saved).sum(),
                        bills,
                    }
                })
                .collect())
        })
    }

    async fn forget_session(
        &self,
        tenant: &TenantId,
        session: &SessionId,
    ) -> Result<Forgotten, StoreError> {
        self.with(tenant, |records| Ok(records.forget_history(session)))
    }

    async fn verify(&self, tenant: &TenantId) -> Result<Rebuilt, StoreError> {
        self.with(tenant, |records| {
            let mut rebuilt = Rebuilt::default();
            for record in records.messages.values().flatten() {
                rebuilt.messages += 1;
                rebuilt.mismatches += u64::from(checked(record).is_err());
            }
            Ok(rebuilt)
        })
    }
}
