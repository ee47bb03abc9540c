//! The answer cache over a store: answers are found and stored by the rules of `[answers]`.

use std::sync::Arc;

use async_trait::async_trait;
use plimsoll_core::answer::{AnswerFacts, AnswerScope, AnswerSettings, keepable, servable};
use plimsoll_engine::answer::{AnswerCache, Found, find_answer, keep_answer};
use plimsoll_engine::{Clock, Embedder, KnowledgeStore, StoreError, TenantId};
use plimsoll_wire::CacheQuestion;

use crate::ports::{Answers, KeptAnswer};

/// Cached answers in a store.
#[derive(Debug)]
pub struct StoredAnswers {
    knowledge: Arc<dyn KnowledgeStore>,
    embedder: Option<Arc<dyn Embedder>>,
    settings: AnswerSettings,
    clock: Arc<dyn Clock>,
}

impl StoredAnswers {
    /// Makes a cache, enabled whatever `settings` say; without an `embedder` it serves equal questions only.
    pub fn new(
        knowledge: Arc<dyn KnowledgeStore>,
        embedder: Option<Arc<dyn Embedder>>,
        settings: AnswerSettings,
        clock: Arc<dyn Clock>,
    ) -> Self {
        Self { knowledge, embedder, settings: AnswerSettings { enabled: true, ..settings }, clock }
    }

    fn cache<'a>(&'a self, tenant: &'a TenantId) -> AnswerCache<'a> {
        AnswerCache {
            knowledge: &*self.knowledge,
            embedder: self.embedder.as_deref(),
            tenant,
            settings: &self.settings,
        }
    }

    fn signature(&self, tenant: &TenantId, question: &CacheQuestion) -> String {
        AnswerScope {
            tenant: tenant.as_str(),
            user: &question.user,
            model: &question.model,
            context_hash: &question.surroundings,
            policy_version: self.settings.policy_version,
            ..AnswerScope::default()
        }
        .signature()
    }
}

#[async_trait]
impl Answers for StoredAnswers {
    fn takes(&self, question: &CacheQuestion) -> bool {
        servable(&question.text, &question.facts, &self.settings).is_ok()
    }

    async fn find(&self, tenant: &TenantId, question: &CacheQuestion) -> Option<KeptAnswer> {
        let signature = self.signature(tenant, question);
        let asked = engine_question(question, &signature);
        match find_answer(&self.cache(tenant), &asked, self.clock.now()).await {
            Ok(Found::Exact(answer)) => Some((answer, true)),
            Ok(Found::Similar { answer, .. }) => Some((answer, false)),
            Ok(Found::Nothing { .. }) => None,
            Err(error) => {
                warn(&error);
                None
            }
        }
        .map(|(answer, is_exact)| KeptAnswer {
            key: answer.cache_key,
            text: answer.answer_text,
            is_exact,
        })
    }

    async fn keep(
        &self,
        tenant: &TenantId,
        question: &CacheQuestion,
        answer: &str,
        facts: &AnswerFacts,
    ) -> bool {
        if let Err(why) = keepable(&question.text, answer, facts) {
            tracing::debug!(%why, "an answer is not kept");
            return false;
        }
        let signature = self.signature(tenant, question);
        let asked = engine_question(question, &signature);
        let kept = keep_answer(&self.cache(tenant), &asked, answer, &[], self.clock.now()).await;
        kept.inspect_err(warn).is_ok()
    }
}

fn engine_question<'a>(
    question: &'a CacheQuestion,
    signature: &'a str,
) -> plimsoll_engine::answer::Question<'a> {
    plimsoll_engine::answer::Question { text: &question.text, signature }
}

fn warn(error: &StoreError) {
    tracing::warn!(%error, "the answer cache has no part in this request");
}
