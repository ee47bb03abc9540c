//! History in memory.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use async_trait::async_trait;
use plimsoll_core::ContentHash;
use plimsoll_engine::{
    Appended, Bills, ContextCard, Efficiency, Forgotten, Gathering, HistoryBatch, HistoryStore,
    Hit, LogQuery, LogRow, MessageRecord, Rebuilt, ReceiptRecord, SearchQuery, SessionId,
    SessionSummary, StoreError, TenantId, hash_prefix, words,
};

use super::ranking::{SearchDocument, rank};
use super::{Arrival, MemoryStore, Records, StoreResult, not_found};

fn checked(record: &MessageRecord) -> StoreResult<MessageRecord> {
    if ContentHash::of(&record.message) == record.hash {
        return Ok(record.clone());
    }
    Err(StoreError::Corrupt { what: format!("message {}", record.hash) })
}

impl Records {
    /// Refuses a batch that cannot be appended whole.
    fn check(&self, batch: &HistoryBatch) -> StoreResult<()> {
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
        let mut count = |is_new: bool| {
            appended.added += usize::from(is_new);
            appended.known += usize::from(!is_new);
        };
        for record in batch.messages {
            let session = record.session.as_str().to_owned();
            let kept = self.messages.entry(session.clone()).or_default();
            let is_new = record.position as usize == kept.len();
            if is_new {
                self.arrivals.push(Arrival::Message(session, record.position));
                kept.push(record);
            }
            count(is_new);
        }
        for record in batch.receipts {
            let key = (record.session.as_str().to_owned(), record.turn, record.strategy.clone());
            let is_new = !self.receipts.contains_key(&key);
            if is_new {
                self.arrivals.push(Arrival::Receipt(key.0.clone(), key.1, key.2.clone()));
                self.receipts.insert(key, record);
            }
            count(is_new);
        }
        for mut card in batch.cards {
            card.tenant = tenant.clone();
            let key = (card.session.as_str().to_owned(), card.content_hash.clone());
            let is_new =
                self.cards.get(&key).is_none_or(|kept| kept.generated_at < card.generated_at);
            if is_new {
                self.cards.insert(key, card);
            }
            count(is_new);
        }
        appended
    }

    fn sessions(&self) -> BTreeMap<&SessionId, SessionSummary> {
        let messages = self.messages.values().flatten();
        let messages = messages.map(|it| (&it.session, Some(it.tokens), it.recorded_at));
        let receipts = self.receipts.values().map(|it| (&it.session, None, it.recorded_at));
        let mut sessions = BTreeMap::new();
        for (session, tokens, at) in messages.chain(receipts) {
            let summary = sessions.entry(session).or_insert_with(|| SessionSummary {
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
        sessions
    }

    fn log(&self) -> StoreResult<Vec<LogRow>> {
        let row = |arrival: &Arrival| match arrival {
            Arrival::Message(session, position) => {
                let message = &self.messages[session][*position as usize];
                Ok(LogRow::of_message(&checked(message)?))
            }
            Arrival::Receipt(session, turn, strategy) => {
                let key = (session.clone(), *turn, strategy.clone());
                Ok(LogRow::of_receipt(&self.receipts[&key]))
            }
        };
        self.arrivals.iter().map(row).collect()
    }
}

fn efficiency(
    (cascade_id, session): (Option<String>, Option<SessionId>),
    receipts: &[&ReceiptRecord],
) -> Efficiency {
    let mean = |of: fn(&ReceiptRecord) -> f64| {
        receipts.iter().map(|receipt| of(receipt)).sum::<f64>() / receipts.len() as f64
    };
    let mut bills = Bills::default();
    receipts.iter().filter_map(|receipt| receipt.bill.as_ref()).for_each(|bill| bills.add(bill));
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
}

#[async_trait]
impl HistoryStore for MemoryStore {
    async fn append(&self, tenant: &TenantId, batch: HistoryBatch) -> StoreResult<Appended> {
        batch.check()?;
        let batch = batch.with_past(self, tenant).await?;
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
    ) -> StoreResult<Vec<MessageRecord>> {
        self.with(tenant, |records| {
            let all = records.messages.get(session.as_str()).into_iter().flatten();
            all.skip(from as usize).take(limit).map(checked).collect()
        })
    }

    async fn message_by_hash(&self, tenant: &TenantId, prefix: &str) -> StoreResult<MessageRecord> {
        let prefix = hash_prefix(prefix)?;
        self.with(tenant, |records| {
            let begins = |record: &&MessageRecord| record.hash.full().starts_with(&prefix);
            let mut found: Vec<_> = records.messages.values().flatten().filter(begins).collect();
            found.sort_by_key(|record| record.recorded_at);
            match found.as_slice() {
                [] => not_found(format!("message {prefix}")),
                [first, rest @ ..] if rest.iter().any(|other| other.hash != first.hash) => {
                    Err(StoreError::Conflict { what: format!("several messages begin {prefix}") })
                }
                [first, ..] => checked(first),
            }
        })
    }

    async fn sessions(&self, tenant: &TenantId, limit: usize) -> StoreResult<Vec<SessionSummary>> {
        self.with(tenant, |records| {
            let mut sessions: Vec<_> = records.sessions().into_values().collect();
            sessions.sort_by_key(|summary| Reverse(summary.last_at));
            sessions.truncate(limit);
            Ok(sessions)
        })
    }

    async fn receipts(
        &self,
        tenant: &TenantId,
        session: &SessionId,
    ) -> StoreResult<Vec<ReceiptRecord>> {
        let is_asked = |record: &&ReceiptRecord| record.session == *session;
        Ok(self
            .with(tenant, |records| records.receipts.values().filter(is_asked).cloned().collect()))
    }

    async fn cards(&self, tenant: &TenantId, session: &SessionId) -> StoreResult<Vec<ContextCard>> {
        let is_asked = |card: &&ContextCard| card.session == *session;
        self.with(tenant, |records| {
            let mut cards: Vec<_> = records.cards.values().filter(is_asked).cloned().collect();
            cards.sort_by_key(|card| Reverse(card.message_timestamp));
            Ok(cards)
        })
    }

    async fn search(
        &self,
        tenant: &TenantId,
        session: Option<&SessionId>,
        query: &SearchQuery,
    ) -> StoreResult<Vec<Hit<MessageRecord>>> {
        query.check()?;
        self.with(tenant, |records| {
            let messages = records.messages.values().flatten();
            let documents: Vec<_> = messages
                .filter(|record| session.is_none_or(|session| record.session == *session))
                .filter(|record| checked(record).is_ok())
                .map(|record| {
                    let key = (record.session.as_str().to_owned(), record.hash.short());
                    let card = records.cards.get(&key);
                    let text = record.message.shown();
                    let of_card = card
                        .into_iter()
                        .flat_map(|card| card.keywords.iter().chain([&card.summary]));
                    let words = of_card.chain([&text]).flat_map(|text| words(text)).collect();
                    let embedding = card.and_then(|card| card.embedding.as_ref());
                    SearchDocument { record, words, embedding }
                })
                .collect();
            Ok(rank(&documents, query))
        })
    }

    async fn log(&self, tenant: &TenantId, query: &LogQuery) -> StoreResult<Vec<LogRow>> {
        self.with(tenant, |records| {
            let mut rows = records.log()?;
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

    async fn efficiency(&self, tenant: &TenantId, by: Gathering) -> StoreResult<Vec<Efficiency>> {
        self.with(tenant, |records| {
            let mut groups: BTreeMap<_, Vec<&ReceiptRecord>> = BTreeMap::new();
            for receipt in records.receipts.values() {
                let group = match by {
                    Gathering::Cascade => (receipt.cascade_id.clone(), None),
                    Gathering::Session => (None, Some(receipt.session.clone())),
                };
                groups.entry(group).or_default().push(receipt);
            }
            Ok(groups.into_iter().map(|(group, receipts)| efficiency(group, &receipts)).collect())
        })
    }

    async fn forget_session(
        &self,
        tenant: &TenantId,
        session: &SessionId,
    ) -> StoreResult<Forgotten> {
        self.with(tenant, |records| Ok(records.forget_history(session)))
    }

    async fn verify(&self, tenant: &TenantId) -> StoreResult<Rebuilt> {
        self.with(tenant, |records| {
            let messages = records.messages.values().flatten();
            let spoilt = messages.clone().filter(|record| checked(record).is_err());
            let mismatches = spoilt.count() as u64;
            Ok(Rebuilt { messages: messages.count() as u64, mismatches })
        })
    }
}
