//! Answers that are kept, for the gateway: found and kept by the rules of `[answers]`.

use std::sync::Arc;

use async_trait::async_trait;
use plimsoll_core::answer::{AnswerFacts, AnswerScope, AnswerSettings, keepable, servable};
use plimsoll_engine::answer::{AnswerCache, Found, find_answer, keep_answer};
use plimsoll_engine::{Embedder, KnowledgeStore, StoreError, TenantId};
use plimsoll_gateway::{Answers, KeptAnswer};
use plimsoll_wire::Question;

use crate::clock;
use crate::config::Config;
use crate::error::CommandError;
use crate::models;
use crate::work::embedder;

/// Answers over a store.
#[derive(Debug)]
pub(super) struct StoredAnswers {
    knowledge: Arc<dyn KnowledgeStore>,
    /// Only where questions in other words are looked for.
    embedder: Option<Arc<dyn Embedder>>,
    settings: AnswerSettings,
}

impl StoredAnswers {
    pub(super) fn open(
        config: &Config,
        knowledge: Arc<dyn KnowledgeStore>,
    ) -> Result<Self, CommandError> {
        // That the gateway has them is asked for already.
        let settings = AnswerSettings { enabled: true, ..config.answers.clone() };
        let embedder =
            if settings.similar { embedder(&models::open(config.models.clone())?) } else { None };
        Ok(Self { knowledge, embedder, settings })
    }

    fn cache<'a>(&'a self, tenant: &'a TenantId) -> AnswerCache<'a> {
        AnswerCache {
            knowledge: &*self.knowledge,
            embedder: self.embedder.as_deref(),
            tenant,
            settings: &self.settings,
        }
    }

    fn signature(&self, tenant: &TenantId, question: &Question) -> String {
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
    fn takes(&self, question: &Question) -> bool {
        servable(&question.text, &question.facts, &self.settings).is_ok()
    }

    async fn find(&self, tenant: &TenantId, question: &Question) -> Option<KeptAnswer> {
        let signature = self.signature(tenant, question);
        let asked = engine_question(question, &signature);
        match find_answer(&self.cache(tenant), &asked, clock::now()).await {
            Ok(Found::Exact(answer)) => Some((answer, true)),
            Ok(Found::Similar { answer, .. }) => Some((answer, false)),
            Ok(Found::Nothing { .. }) => None,
            Err(error) => {
                told(&error);
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
        question: &Question,
        answer: &str,
        facts: &AnswerFacts,
    ) -> bool {
        if let Err(why) = keepable(&question.text, answer, facts) {
            tracing::debug!(%why, "an answer is not kept");
            return false;
        }
        let signature = self.signature(tenant, question);
        let asked = engine_question(question, &signature);
        let kept = keep_answer(&self.cache(tenant), &asked, answer, &[], clock::now()).await;
        kept.inspect_err(told).is_ok()
    }
}

fn engine_question<'a>(
    question: &'a Question,
    signature: &'a str,
) -> plimsoll_engine::answer::Question<'a> {
    plimsoll_engine::answer::Question { text: &question.text, signature }
}

fn told(error: &StoreError) {
    tracing::warn!(%error, "the answer cache has no part in this request");
}
