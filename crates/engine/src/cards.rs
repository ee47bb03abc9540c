//! Context cards: the card that a message gets without a model, the settings of cards, and their jobs.
//!
//! A job asks a model where that is worth it, and adds the vector. So a used quota, or a worker that died, leaves a plainer
//! card and never none.

mod job;

use std::time::Duration;

use plimsoll_core::MillisSinceEpoch;
use plimsoll_core::card::{Summary, card_keywords, summarise, truncated};
use plimsoll_core::safety::Safety;
use serde::{Deserialize, Serialize};

use crate::card::ContextCard;
use crate::history::MessageRecord;
use crate::id::TenantId;
use crate::job::Quota;

pub use job::queue_summaries;
pub(crate) use job::{
    CARD, CardPayload, EMBED, EmbedPayload, SUMMARY, SummaryPayload, queue_card, queue_embed,
    written,
};

/// The `generator_model` of cards that no model wrote: what needed none, and the beginnings of texts that did.
pub const FAST: &str = "fast";
pub const TRUNCATED: &str = "truncated";

/// Settings of cards and of the work behind them.
///
/// Figures of `auto-context.md` and `context-strategy.md` 7.2.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct CardSettings {
    /// The model that summarises; none where it is empty.
    pub summarizer_model: String,
    /// Jobs that are taken together, and embedded together.
    pub batch_size: usize,
    /// Batches that are worked on at a time.
    pub worker_threads: usize,
    /// The most tokens, input and output, that summaries may cost in a session.
    pub per_session: u64,
    /// The most tokens, input and output, that summaries may cost in a day, by UTC.
    pub per_day: u64,
    /// The most tokens of one summary; a content is summarised once, so this is all that it may cost in output.
    pub per_artifact: u64,
    /// Attempts after which a job is parked.
    pub max_attempts: u32,
    /// Seconds that a worker has for a batch before another may take it over.
    pub lease_seconds: u64,
    /// Seconds until a failed attempt is repeated, where the model does not say.
    pub retry_seconds: u64,
    /// Whether imports, runs and the gateway make cards and jobs as they store messages; `plimsoll work` makes those that are
    /// missing.
    pub observe: bool,
    /// Whether each observed message also gets a job that asks a model for its facts.
    pub facts: bool,
}

impl Default for CardSettings {
    /// Attempts as `summarize_jobs` has them; lease and pause are chosen: ten calls of a slow model, and a minute.
    fn default() -> Self {
        Self {
            summarizer_model: "google/gemini-2.5-flash-lite".to_owned(),
            batch_size: 10,
            worker_threads: 2,
            per_session: 5000,
            per_day: 50_000,
            per_artifact: 120,
            max_attempts: 3,
            lease_seconds: 300,
            retry_seconds: 60,
            observe: false,
            facts: false,
        }
    }
}

impl CardSettings {
    /// Returns the quotas of the day in which `now` is, by UTC.
    ///
    /// A quota holds back what begins after it is reached; what each worker is at may pass it by one call.
    pub fn quota(&self, now: MillisSinceEpoch) -> Quota {
        const DAY: i64 = 86_400_000;
        Quota {
            session: Some(self.per_session),
            day: Some(self.per_day),
            day_began: MillisSinceEpoch(now.0.div_euclid(DAY) * DAY),
            // A second job on the same content takes over what the first one made: it must not be held back.
            artefact: None,
        }
    }

    pub(crate) fn lease(&self) -> Duration {
        Duration::from_secs(self.lease_seconds)
    }
}

/// Makes the card of a message without any model and without a vector.
pub(crate) fn plain_card(
    tenant: &TenantId,
    record: &MessageRecord,
    now: MillisSinceEpoch,
) -> ContextCard {
    let (summary, generator) = match summarise(&record.message) {
        Summary::Fast(summary) => (summary, FAST),
        Summary::Model => (truncated(&record.message.shown()), TRUNCATED),
    };
    ContextCard {
        tenant: tenant.clone(),
        session: record.session.clone(),
        content_hash: record.hash.short(),
        keywords: card_keywords(&summary),
        summary,
        embedding: None,
        estimated_tokens: record.tokens,
        role: record.message.role,
        phase_name: record.message.phase.as_deref().map(str::to_owned),
        turn_number: Some(record.turn),
        is_anchor: false,
        is_callout: record.message.callout.is_some(),
        callout_name: record.message.callout.as_deref().map(str::to_owned),
        generated_at: now,
        generator_model: generator.to_owned(),
        message_timestamp: record.message.time.unwrap_or(record.recorded_at),
    }
}

/// Returns a time at which a new card replaces `old`, also where the clock stands still.
pub(crate) fn after(old: &ContextCard, now: MillisSinceEpoch) -> MillisSinceEpoch {
    now.max(MillisSinceEpoch(old.generated_at.0.saturating_add(1)))
}

/// Returns `text` as it may leave for a model.
pub fn safe_text(text: &str, safety: Safety) -> String {
    plimsoll_core::safety::redact(text, safety.summariser).0.into_owned()
}
