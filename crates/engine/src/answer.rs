//! Answers that are kept: found again by their question, and dropped with what they rest on.
//!
//! The rules are `plimsoll_core::answer`; here the store is asked by them. A hit is exact before it is similar, and a similar
//! one is looked for within the same signature only.

mod ask;

use plimsoll_core::MillisSinceEpoch;
use plimsoll_core::answer::{AnswerSettings, Reading, Refusal, Verdict, cache_key, same_question};

use crate::embedder::Embedder;
use crate::error::StoreError;
use crate::id::TenantId;
use crate::knowledge::{Answer, AnswerQuota, KnowledgeStore};
use crate::search::Embedding;

pub use ask::{Answered, AskedOf, By, answer, question_of};

/// Where a tenant's answers are kept, and by which rules.
#[derive(Debug, Clone, Copy)]
pub struct AnswerCache<'a> {
    pub knowledge: &'a dyn KnowledgeStore,
    /// Without one, only exact questions are found.
    pub embedder: Option<&'a dyn Embedder>,
    pub tenant: &'a TenantId,
    pub settings: &'a AnswerSettings,
}

/// A question and the signature of what it is asked in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AnswerQuestion<'a> {
    pub text: &'a str,
    pub signature: &'a str,
}

/// The stored answer that fits a question.
#[derive(Debug, Clone, PartialEq)]
pub enum AnswerMatch {
    /// The very question was answered.
    Exact(Answer),
    /// One that reads the same was.
    Similar { answer: Answer, similarity: f64 },
    /// Nothing that may be served; the most similar question, and why its answer is not.
    Nothing { nearest: Option<Nearest> },
}

/// A question that was answered and whose answer is not served.
#[derive(Debug, Clone, PartialEq)]
pub struct Nearest {
    pub cache_key: String,
    pub similarity: f64,
    pub refusal: Refusal,
}

/// Looks for the answer of a question, and counts the hit.
///
/// An answer that is too old, or rests on an artefact that is gone or stale, is dropped and not served. Whether the request may be
/// answered from the cache at all is for the caller to ask (`plimsoll_core::answer::servable`). An embedder that fails finds
/// nothing similar.
pub async fn find_answer(
    cache: &AnswerCache<'_>,
    question: &AnswerQuestion<'_>,
    now: MillisSinceEpoch,
) -> Result<AnswerMatch, StoreError> {
    let key = cache_key(question.text, question.signature);
    if let Some(answer) = served(cache, &key, now).await? {
        return Ok(AnswerMatch::Exact(answer));
    }
    let nothing = AnswerMatch::Nothing { nearest: None };
    let Some(embedding) = embedded(cache, question.text).await else { return Ok(nothing) };
    let near = cache
        .knowledge
        .similar_answers(
            cache.tenant,
            question.signature,
            &embedding,
            now,
            cache.settings.candidates,
        )
        .await?;
    let mut nearest = None;
    for hit in near {
        let (kept, similarity) = (&hit.item, hit.score);
        match same_question(question.text, &kept.query_text, similarity, cache.settings) {
            Verdict::Serve => {
                if let Some(answer) = served(cache, &kept.cache_key, now).await? {
                    return Ok(AnswerMatch::Similar { answer, similarity });
                }
            }
            Verdict::Refuse(refusal) => {
                let cache_key = kept.cache_key.clone();
                nearest.get_or_insert(Nearest { cache_key, similarity, refusal });
            }
        }
    }
    Ok(AnswerMatch::Nothing { nearest })
}

/// Keeps the answer of a question under its key, which is returned, and lets the oldest go where there are too many.
pub async fn keep_answer(
    cache: &AnswerCache<'_>,
    question: &AnswerQuestion<'_>,
    answer: &str,
    used_refs: &[String],
    now: MillisSinceEpoch,
) -> Result<String, StoreError> {
    let settings = cache.settings;
    let cache_key = cache_key(question.text, question.signature);
    let kept = Answer {
        tenant: cache.tenant.clone(),
        cache_key: cache_key.clone(),
        query_text: question.text.to_owned(),
        query_embedding: embedded(cache, question.text).await,
        answer_text: answer.to_owned(),
        context_signature: question.signature.to_owned(),
        used_refs: used_refs.to_vec(),
        created_at: now,
        ttl_expires_at: Some(after(now, settings.max_age_seconds)),
        hit_count: 0,
        last_hit_at: None,
    };
    cache.knowledge.put_answer(&kept).await?;
    let most = AnswerQuota { entries: settings.most_entries, bytes: settings.most_bytes };
    cache.knowledge.trim_answers(cache.tenant, now, most).await?;
    Ok(cache_key)
}

/// Drops the answers that rest on a ref, because what it stands for changed; returns how many.
pub async fn ref_changed(
    knowledge: &dyn KnowledgeStore,
    tenant: &TenantId,
    reference: &str,
) -> Result<u64, StoreError> {
    knowledge.drop_answers(tenant, None, Some(reference)).await
}

/// Drops the answer of a key that begins with `prefix`, because it was wrong, and returns it.
///
/// Errors: [`StoreError::NotFound`] if there is none, [`StoreError::Conflict`] if there are several.
pub async fn evict_answer(
    knowledge: &dyn KnowledgeStore,
    tenant: &TenantId,
    prefix: &str,
) -> Result<Answer, StoreError> {
    let answer = answer_of_key(knowledge, tenant, prefix).await?;
    knowledge.drop_answers(tenant, Some(&answer.cache_key), None).await?;
    Ok(answer)
}

/// Returns the answer of a key that begins with `prefix`, without counting a hit; errors as [`evict_answer`].
pub async fn answer_of_key(
    knowledge: &dyn KnowledgeStore,
    tenant: &TenantId,
    prefix: &str,
) -> Result<Answer, StoreError> {
    let all = knowledge.answers(tenant, usize::MAX).await?.into_iter();
    let mut found = all.filter(|answer| !prefix.is_empty() && answer.cache_key.starts_with(prefix));
    let Some(answer) = found.next() else {
        return Err(StoreError::NotFound { what: format!("an answer under {prefix}") });
    };
    if found.next().is_some() {
        return Err(StoreError::Conflict { what: format!("several answers begin with {prefix}") });
    }
    Ok(answer)
}

/// Returns the answer of a key if it may still be served.
async fn served(
    cache: &AnswerCache<'_>,
    key: &str,
    now: MillisSinceEpoch,
) -> Result<Option<Answer>, StoreError> {
    let Some(answer) = cache.knowledge.answer(cache.tenant, key, now).await? else {
        return Ok(None);
    };
    // The setting may be stricter now than when it was kept.
    let is_young = after(answer.created_at, cache.settings.max_age_seconds) > now;
    if is_young && rests_on_fresh(cache, &answer, now).await? {
        return Ok(Some(answer));
    }
    cache.knowledge.drop_answers(cache.tenant, Some(key), None).await?;
    Ok(None)
}

/// Returns whether every artefact that an answer rests on is there and not stale; messages never change.
async fn rests_on_fresh(
    cache: &AnswerCache<'_>,
    answer: &Answer,
    now: MillisSinceEpoch,
) -> Result<bool, StoreError> {
    for used in answer.used_refs.iter().filter(|used| !used.starts_with("ref:message:")) {
        match cache.knowledge.artefact(cache.tenant, used, now).await {
            Ok(artefact) if artefact.is_stale(now) => return Ok(false),
            Ok(_) => {}
            Err(error) if error.is_temporary() => return Err(error),
            // Gone, ambiguous, spoilt, or no ref at all: nothing says that it is as it was.
            Err(_) => return Ok(false),
        }
    }
    Ok(true)
}

/// Returns the vector of a question as it is read; `None` where similar questions are not asked for or nothing is like it.
async fn embedded(cache: &AnswerCache<'_>, question: &str) -> Option<Embedding> {
    let embedder = cache.embedder.filter(|_| cache.settings.similar)?;
    let reading = Reading::of(question, &cache.settings.alike).text();
    let embedding = embedder.embed(&[&reading]).await.ok()?.pop()?;
    embedding.check().is_ok().then_some(embedding)
}

fn after(at: MillisSinceEpoch, seconds: u64) -> MillisSinceEpoch {
    let millis = i64::try_from(seconds.saturating_mul(1000)).unwrap_or(i64::MAX);
    MillisSinceEpoch(at.0.saturating_add(millis))
}
