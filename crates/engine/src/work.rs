//! The workers: they take jobs in batches, and each has its effect once.

mod artefact;
mod audit;
mod facts;
mod make;

use std::collections::{BTreeSet, HashMap};

use futures_util::future::join_all;
use plimsoll_core::MillisSinceEpoch;
use plimsoll_core::safety::Safety;
use serde::Serialize;

use crate::card::ContextCard;
use crate::cards::{
    CARD, CardPayload, CardSettings, EMBED, EmbedPayload, SUMMARY, after, queue_embed, safe_text,
};
use crate::chat::ChatModel;
use crate::clock::Clock;
use crate::embedder::Embedder;
use crate::error::StoreError;
use crate::history::{HistoryBatch, HistoryStore};
use crate::id::{SessionId, TenantId};
use crate::job::{Job, JobOutcome};
use crate::knowledge::KnowledgeStore;
use crate::remember::EXTRACT;
use crate::search::Embedding;
use crate::valid::digest;
use make::{CardCopies, Made, make};

pub use audit::{Audit, SummaryAuthor};
pub use facts::MemoryRules;

/// The means of workers. Without a model summaries are the beginnings of texts, without an embedder cards have no vectors.
#[derive(Debug, Clone, Copy)]
pub struct Workers<'a> {
    pub history: &'a dyn HistoryStore,
    pub knowledge: &'a dyn KnowledgeStore,
    pub model: Option<&'a dyn ChatModel>,
    pub embedder: Option<&'a dyn Embedder>,
    pub clock: &'a dyn Clock,
    pub settings: &'a CardSettings,
    pub safety: &'a Safety,
    /// Without these, jobs that find facts are left to others.
    pub memory: Option<MemoryRules<'a>>,
    /// The name of the leaseholder, which no other process has.
    pub owner: &'a str,
}

/// The result of a round of work.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Worked {
    /// Attempts that were begun.
    pub taken: u64,
    /// Jobs that are done, and of these, cards whose summary a model wrote now, and cards that had to do without.
    pub done: u64,
    pub summarised: u64,
    pub truncated: u64,
    /// Vectors that were made.
    pub embedded: u64,
    /// Attempts that failed; they are repeated, or parked after the last.
    pub failed: u64,
    /// Tokens that models took.
    pub tokens: u64,
}

impl Worked {
    /// Adds another account.
    pub fn add(&mut self, more: Self) {
        self.taken += more.taken;
        self.done += more.done;
        self.summarised += more.summarised;
        self.truncated += more.truncated;
        self.embedded += more.embedded;
        self.failed += more.failed;
        self.tokens += more.tokens;
    }
}

/// Queues jobs for sessions with cards that have no vector of `embedder`'s model; returns how many are new.
///
/// Vectors of different models are never compared, so a changed model makes all cards be embedded again.
pub async fn queue_embedding(
    history: &dyn HistoryStore,
    knowledge: &dyn KnowledgeStore,
    tenant: &TenantId,
    embedder: &dyn Embedder,
    settings: &CardSettings,
    now: MillisSinceEpoch,
) -> Result<u64, StoreError> {
    let mut queued = 0;
    for session in history.sessions(tenant, usize::MAX >> 1).await? {
        let cards = history.cards(tenant, &session.session).await?;
        let without: Vec<&str> = cards
            .iter()
            .filter(|card| lacks(card, embedder))
            .map(|card| card.content_hash.as_str())
            .collect();
        if without.is_empty() {
            continue;
        }
        let what = digest(format!("{}\n{}", embedder.model(), without.join(" ")).as_bytes());
        let (session, what) = (&session.session, &what[..16]);
        queued += u64::from(queue_embed(knowledge, tenant, session, what, settings, now).await?);
    }
    Ok(queued)
}

/// Returns whether a card has words and no vector of the present model.
fn lacks(card: &ContextCard, embedder: &dyn Embedder) -> bool {
    card.embedding.as_ref().is_none_or(|embedding| embedding.model != embedder.model())
        && !card.summary.trim().is_empty()
}

/// A leased job whose card is made and is not yet finished.
struct Pending {
    job: Job,
    made: Made,
    /// A summary that was paid for is stored and its job finished before anything else can fail.
    is_finished: bool,
}

impl Workers<'_> {
    /// Works until no job is due, `worker_threads` batches at a time; `progress` is told after each round.
    pub async fn work(
        &self,
        tenant: &TenantId,
        mut progress: impl FnMut(&Worked),
    ) -> Result<Worked, StoreError> {
        let mut worked = Worked::default();
        loop {
            let batches = (0..self.settings.worker_threads.max(1)).map(|_| self.batch(tenant));
            let mut round = Worked::default();
            for batch in join_all(batches).await {
                round.add(batch?);
            }
            worked.add(round);
            progress(&worked);
            if round.taken == 0 {
                return Ok(worked);
            }
        }
    }

    /// Takes up to `batch_size` jobs and works on them.
    pub async fn batch(&self, tenant: &TenantId) -> Result<Worked, StoreError> {
        let mut worked = Worked::default();
        let mut pending = Vec::new();
        let mut known = CardCopies::default();
        for _ in 0..self.settings.batch_size.max(1) {
            let now = self.clock.now();
            let quota = self.settings.quota(now);
            let lease = self.settings.lease();
            let leased = self.knowledge.lease_job(tenant, self.owner, now, lease, &quota).await?;
            let Some(job) = leased else { break };
            worked.taken += 1;
            let outcome = match job.job.kind.as_str() {
                CARD => match self.begin(tenant, job.clone(), &mut known, &mut worked).await {
                    Ok(began) => {
                        pending.extend(began);
                        continue;
                    }
                    Err(error) => Err(error),
                },
                EMBED => {
                    self.embed_session(tenant, &job, &mut worked).await.map(|result| (result, 0))
                }
                EXTRACT => self.extract_facts(tenant, &job).await,
                SUMMARY => self.summarise_artefact(tenant, &job).await,
                kind => Err(StoreError::Unsupported { what: format!("jobs of the kind {kind}") }),
            };
            let outcome = match outcome {
                Ok((result, token_cost)) => {
                    worked.tokens += token_cost;
                    JobOutcome::Done { result, token_cost }
                }
                Err(error) => self.failed(&error),
            };
            self.finish(tenant, &job, outcome, &mut worked).await?;
        }
        self.complete(tenant, pending, &mut worked).await?;
        Ok(worked)
    }

    /// Makes the card of a job; one that was paid for is kept at once.
    async fn begin(
        &self,
        tenant: &TenantId,
        job: Job,
        known: &mut CardCopies,
        worked: &mut Worked,
    ) -> Result<Option<Pending>, StoreError> {
        let payload: CardPayload = payload_of(&job)?;
        let found = self.history.messages(tenant, &payload.session, payload.position, 1).await?;
        let record = found.into_iter().next().ok_or_else(|| StoreError::NotFound {
            what: format!("message {} of session {}", payload.position, payload.session),
        })?;
        let made = make(self, tenant, &record, known, self.clock.now()).await?;
        worked.tokens += made.cost;
        known.put(made.others.iter().chain([&made.card]).filter(|_| made.is_new));
        match &made.audit.summary {
            SummaryAuthor::Model { .. } => worked.summarised += 1,
            SummaryAuthor::Truncated { .. } => worked.truncated += 1,
            SummaryAuthor::Fast | SummaryAuthor::Known { .. } => {}
        }
        if let Some((error, after)) = &made.retry
            && job.attempt_count < job.job.max_attempts
        {
            if made.is_new {
                self.append(tenant, vec![made.card.clone()]).await?;
            }
            let outcome = self.failed_until(error, *after);
            self.finish(tenant, &job, outcome, worked).await?;
            return Ok(None);
        }
        let mut pending = Pending { job, made, is_finished: false };
        if pending.made.cost > 0 {
            if pending.made.is_new {
                let mut cards = pending.made.others.clone();
                cards.push(pending.made.card.clone());
                self.append(tenant, cards).await?;
                pending.made.is_new = false;
            }
            let outcome = done(&pending.made)?;
            self.finish(tenant, &pending.job, outcome, worked).await?;
            pending.is_finished = true;
        }
        Ok(Some(pending))
    }

    /// Embeds what a batch made, stores it in one append, and finishes its jobs.
    async fn complete(
        &self,
        tenant: &TenantId,
        mut pending: Vec<Pending>,
        worked: &mut Worked,
    ) -> Result<(), StoreError> {
        let cards: Vec<ContextCard> = pending.iter().map(|it| it.made.card.clone()).collect();
        let (vectors, why) = self.vectors(&cards).await;
        worked.embedded += vectors.len() as u64;
        for (at, it) in pending.iter_mut().enumerate() {
            if let Some(vector) = vectors.get(&at) {
                let card = &mut it.made.card;
                card.generated_at = if it.made.is_new && !it.is_finished {
                    card.generated_at
                } else {
                    after(card, self.clock.now())
                };
                it.made.audit.embedding_model = Some(vector.model.clone());
                card.embedding = Some(vector.clone());
                it.made.is_new = true;
            } else if self.embedder.is_some() && it.made.card.embedding.is_none() {
                let none = "there are no known words".to_owned();
                it.made.audit.no_embedding = Some(why.clone().unwrap_or(none));
            }
        }
        let new = pending.iter().filter(|it| it.made.is_new);
        let appended = self.append(tenant, new.map(|it| it.made.card.clone()).collect()).await;
        for it in pending.iter().filter(|it| !it.is_finished) {
            let outcome = match &appended {
                Ok(()) => done(&it.made)?,
                Err(error) => self.failed(error),
            };
            self.finish(tenant, &it.job, outcome, worked).await?;
        }
        appended
    }

    /// Gives the cards of a session vectors of the present model.
    async fn embed_session(
        &self,
        tenant: &TenantId,
        job: &Job,
        worked: &mut Worked,
    ) -> Result<String, StoreError> {
        let EmbedPayload { session } = payload_of(job)?;
        let mut cards = self.lacking(tenant, &session).await?;
        let (vectors, why) = self.vectors(&cards).await;
        if let Some(why) = why {
            return Err(StoreError::Unavailable { why, retry_after: None });
        }
        let now = self.clock.now();
        for (at, vector) in &vectors {
            cards[*at].generated_at = after(&cards[*at], now);
            cards[*at].embedding = Some(vector.clone());
        }
        let embedded = cards
            .into_iter()
            .enumerate()
            .filter(|(at, _)| vectors.contains_key(at))
            .map(|(_, card)| card)
            .collect();
        self.append(tenant, embedded).await?;
        worked.embedded += vectors.len() as u64;
        Ok(format!("{{\"embedded\":{}}}", vectors.len()))
    }

    async fn lacking(
        &self,
        tenant: &TenantId,
        session: &SessionId,
    ) -> Result<Vec<ContextCard>, StoreError> {
        let Some(embedder) = self.embedder else { return Ok(Vec::new()) };
        let mut cards = self.history.cards(tenant, session).await?;
        cards.retain(|card| lacks(card, embedder));
        Ok(cards)
    }

    /// Returns vectors for those of `cards` that lack one, by their place; or why there are none.
    async fn vectors(&self, cards: &[ContextCard]) -> (HashMap<usize, Embedding>, Option<String>) {
        let Some(embedder) = self.embedder else { return (HashMap::new(), None) };
        let places: Vec<usize> =
            (0..cards.len()).filter(|&at| lacks(&cards[at], embedder)).collect();
        if places.is_empty() {
            return (HashMap::new(), None);
        }
        let texts: Vec<String> =
            places.iter().map(|&at| safe_text(&cards[at].summary, *self.safety)).collect();
        let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
        match embedder.embed(&texts).await {
            Ok(vectors) => {
                // A vector of zeros is like nothing; no store keeps it.
                let some = |(_, vector): &(usize, Embedding)| vector.check().is_ok();
                (places.into_iter().zip(vectors).filter(some).collect(), None)
            }
            Err(error) => (HashMap::new(), Some(error.to_string())),
        }
    }

    async fn append(&self, tenant: &TenantId, cards: Vec<ContextCard>) -> Result<(), StoreError> {
        if cards.is_empty() {
            return Ok(());
        }
        // Two jobs of one batch may have made a card of the same content for the same session.
        let mut seen = BTreeSet::new();
        let mut cards: Vec<ContextCard> = cards.into_iter().rev().collect();
        cards.retain(|card| seen.insert((card.session.clone(), card.content_hash.clone())));
        self.history.append(tenant, HistoryBatch { cards, ..HistoryBatch::default() }).await?;
        Ok(())
    }

    fn failed(&self, error: &StoreError) -> JobOutcome {
        let after = match error {
            StoreError::Unavailable { retry_after, .. } => *retry_after,
            _ => None,
        };
        self.failed_until(&error.to_string(), after)
    }

    fn failed_until(&self, error: &str, after: Option<std::time::Duration>) -> JobOutcome {
        let after = after.map_or(self.settings.retry_seconds, |after| after.as_secs().max(1));
        let millis = i64::try_from(after.saturating_mul(1000)).unwrap_or(i64::MAX);
        let retry_at = MillisSinceEpoch(self.clock.now().0.saturating_add(millis));
        JobOutcome::Failed { error: error.to_owned(), retry_at }
    }

    /// Ends an attempt; a job that another worker took over meanwhile is left to that one.
    async fn finish(
        &self,
        tenant: &TenantId,
        job: &Job,
        outcome: JobOutcome,
        worked: &mut Worked,
    ) -> Result<(), StoreError> {
        let is_done = matches!(outcome, JobOutcome::Done { .. });
        let now = self.clock.now();
        match self.knowledge.finish_job(tenant, job.id, self.owner, now, outcome).await {
            Ok(()) if is_done => worked.done += 1,
            Ok(()) => worked.failed += 1,
            Err(StoreError::Conflict { .. }) => {}
            Err(error) => return Err(error),
        }
        Ok(())
    }
}

fn done(made: &Made) -> Result<JobOutcome, StoreError> {
    let audit: &Audit = &made.audit;
    let result =
        serde_json::to_string(audit).map_err(|error| StoreError::Other(Box::new(error)))?;
    Ok(JobOutcome::Done { result, token_cost: made.cost })
}

fn payload_of<'a, T: serde::Deserialize<'a>>(job: &'a Job) -> Result<T, StoreError> {
    serde_json::from_str(&job.job.payload).map_err(|_| StoreError::Invalid {
        field: "payload",
        why: format!("it is none of a job of the kind {}", job.job.kind),
    })
}
