//! Making one card: by a model where it is worth it, held to what it read.

use std::collections::HashMap;

use plimsoll_core::card::{
    Summary, accept, card_keywords, estimate_tokens, summarise, summary_request,
};
use plimsoll_core::safety::{Flags, redact};
use plimsoll_core::{Message, MillisSinceEpoch, Role};

use super::Workers;
use super::audit::{Audit, SummaryAuthor};
use crate::card::ContextCard;
use crate::cards::{FAST, TRUNCATED, after, plain_card};
use crate::chat::{ChatModel, ChatRequest, StopReason};
use crate::error::StoreError;
use crate::history::MessageRecord;
use crate::id::{SessionId, TenantId};
use crate::model_error::ModelError;

/// A card that was made, and what it took.
#[derive(Debug)]
pub(super) struct Made {
    pub(super) card: ContextCard,
    pub(super) audit: Audit,
    pub(super) cost: u64,
    /// Cards of other sessions that the same summary serves.
    pub(super) others: Vec<ContextCard>,
    /// Whether the card is not as it stands in the store.
    pub(super) is_new: bool,
    /// Why the attempt is worth repeating, and after how long if the model said so.
    pub(super) retry: Option<(String, Option<std::time::Duration>)>,
}

/// Makes the card of a message.
pub(super) async fn make(
    workers: &Workers<'_>,
    tenant: &TenantId,
    record: &MessageRecord,
    known: &mut CardCopies,
    now: MillisSinceEpoch,
) -> Result<Made, StoreError> {
    let hash = record.hash.short();
    let stored = known.card(workers, tenant, &record.session, &hash).await?;
    let plain = plain_card(tenant, record, now);
    let shown = record.message.shown();
    let (safe, flags) = redact(&shown, workers.safety.summariser);
    let done = |card: ContextCard, summary, is_new| Made {
        audit: audit(&card, summary, &shown, flags.clone()),
        card,
        cost: 0,
        others: Vec::new(),
        is_new,
        retry: None,
    };
    // A message with a card keeps its card, its marks and its vector.
    if let Some(card) = &stored
        && card.generator_model != TRUNCATED
    {
        let by = match card.generator_model.as_str() {
            FAST => SummaryAuthor::Fast,
            model => SummaryAuthor::Known { model: model.to_owned() },
        };
        return Ok(done(card.clone(), by, false));
    }
    let is_new = stored.is_none();
    let base = stored.unwrap_or(plain);
    if summarise(&record.message) != Summary::Model {
        return Ok(done(base, SummaryAuthor::Fast, is_new));
    }
    let truncated = |why: String| done(base.clone(), SummaryAuthor::Truncated { why }, is_new);
    let Some(model) = workers.model else {
        return Ok(truncated("there is no model".to_owned()));
    };
    let first = elsewhere(workers, tenant, record, known).await?;
    let other = first.as_ref().filter(|card| !matches!(&*card.generator_model, FAST | TRUNCATED));
    if let Some(other) = other {
        let by = SummaryAuthor::Known { model: other.generator_model.clone() };
        let card = summarised(&base, &other.summary, &other.generator_model, now);
        return Ok(done(card, by, true));
    }
    let (answer, cost) = ask(workers, model, record.message.role, &safe).await;
    let made = match answer.map_err(SummaryRefusal::Model).and_then(|summary| {
        accept(&summary, &shown).map_err(|invented| SummaryRefusal::Summary(invented.to_string()))
    }) {
        Ok(summary) => {
            let name = model.model();
            let card = summarised(&base, &summary, name, now);
            let mut made = done(card, SummaryAuthor::Model { model: name.to_owned() }, true);
            made.others.extend(first.map(|other| summarised(&other, &summary, name, now)));
            made
        }
        Err(SummaryRefusal::Summary(why)) => truncated(format!("the summary was not kept: {why}")),
        Err(SummaryRefusal::Model(error)) => {
            let mut made = truncated(error.to_string());
            if let ModelError::Unavailable { retry_after, .. } = error {
                made.retry = Some((error.to_string(), retry_after));
            }
            made
        }
    };
    Ok(Made { cost, ..made })
}

enum SummaryRefusal {
    Model(ModelError),
    Summary(String),
}

/// Asks for a summary of a text that is safe to send; returns it with what it cost, answer or not.
pub(super) async fn ask(
    workers: &Workers<'_>,
    model: &dyn ChatModel,
    role: Role,
    safe: &str,
) -> (Result<String, ModelError>, u64) {
    let prompt = summary_request(role, safe);
    let asked = u64::from(estimate_tokens(&prompt));
    let mut request = ChatRequest::new(vec![Message::text(Role::User, prompt)]);
    request.max_tokens = u32::try_from(workers.settings.per_artifact).unwrap_or(u32::MAX).max(1);
    match model.complete(&request).await {
        Ok(reply) => {
            let text = reply.text();
            let told = reply.usage.input + reply.usage.output;
            let cost = if told == 0 { asked + u64::from(estimate_tokens(&text)) } else { told };
            let whole = match reply.stop_reason {
                // A cut text ends before the word that was cut.
                StopReason::Length => Ok(text
                    .trim_end()
                    .rsplit_once(char::is_whitespace)
                    .unwrap_or(("", ""))
                    .0
                    .to_owned()),
                StopReason::Refused => Err(ModelError::Unusable("it was refused".to_owned())),
                _ => Ok(text),
            };
            (whole, cost)
        }
        // An answer that came and was not one was paid for, as one that broke off may have been.
        Err(error @ (ModelError::Unusable(_) | ModelError::Interrupted(_))) => (Err(error), asked),
        Err(error) => (Err(error), 0),
    }
}

/// Returns the card of the same content in the session where it was said first, if that is another one.
async fn elsewhere(
    workers: &Workers<'_>,
    tenant: &TenantId,
    record: &MessageRecord,
    known: &mut CardCopies,
) -> Result<Option<ContextCard>, StoreError> {
    let first = match workers.history.message_by_hash(tenant, &record.hash.full()).await {
        Ok(first) => first,
        Err(StoreError::NotFound { .. } | StoreError::Conflict { .. }) => return Ok(None),
        Err(error) => return Err(error),
    };
    if first.session == record.session {
        return Ok(None);
    }
    known.card(workers, tenant, &first.session, &record.hash.short()).await
}

/// Cards that a batch has read or made, so that it reads those of a session once.
#[derive(Debug, Default)]
pub(super) struct CardCopies(HashMap<SessionId, HashMap<String, ContextCard>>);

impl CardCopies {
    async fn card(
        &mut self,
        workers: &Workers<'_>,
        tenant: &TenantId,
        session: &SessionId,
        hash: &str,
    ) -> Result<Option<ContextCard>, StoreError> {
        if !self.0.contains_key(session) {
            let cards = workers.history.cards(tenant, session).await?;
            let by_hash = cards.into_iter().map(|card| (card.content_hash.clone(), card));
            self.0.insert(session.clone(), by_hash.collect());
        }
        Ok(self.0.get(session).and_then(|cards| cards.get(hash)).cloned())
    }

    pub(super) fn put<'a>(&mut self, cards: impl Iterator<Item = &'a ContextCard>) {
        for card in cards {
            if let Some(known) = self.0.get_mut(&card.session) {
                known.insert(card.content_hash.clone(), card.clone());
            }
        }
    }
}

fn summarised(
    base: &ContextCard,
    summary: &str,
    model: &str,
    now: MillisSinceEpoch,
) -> ContextCard {
    ContextCard {
        summary: summary.to_owned(),
        keywords: card_keywords(summary),
        embedding: None,
        generator_model: model.to_owned(),
        generated_at: after(base, now),
        ..base.clone()
    }
}

fn audit(card: &ContextCard, summary: SummaryAuthor, shown: &str, flags: Flags) -> Audit {
    Audit {
        content_hash: card.content_hash.clone(),
        summary,
        characters: shown.chars().count(),
        summary_characters: card.summary.chars().count(),
        flags,
        embedding_model: card.embedding.as_ref().map(|embedding| embedding.model.clone()),
        no_embedding: None,
    }
}
