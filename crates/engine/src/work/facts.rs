//! Facts that a model finds in a message: the job behind the request.

use plimsoll_core::memory::MemoryKind;
use plimsoll_core::memory::extract::Extraction;
use plimsoll_core::memory::extract::model_facts::{
    FACTS_SCHEMA, ModelFact, facts_request, read_facts, stated,
};
use plimsoll_core::memory::lifecycle::LifecycleSettings;
use plimsoll_core::safety::redact;
use plimsoll_core::{Message, Ref, Role};

use super::{Workers, payload_of};
use crate::chat::{ChatRequest, Response};
use crate::error::StoreError;
use crate::id::TenantId;
use crate::job::Job;
use crate::memory::Scope;
use crate::model_error::ModelError;
use crate::remember::{ExtractPayload, MemoryError, NewMemory, Remember, SourceConfidence};

/// The tag of what a model found.
const BY_MODEL: &str = "by:model";
/// Tokens of a model's answer (chosen: eight facts of a kind of a line each).
const ANSWER_TOKENS: u32 = 1500;

/// The settings of workers that remember.
#[derive(Debug, Clone, Copy)]
pub struct MemoryRules<'a> {
    pub lifecycles: &'a LifecycleSettings,
    pub confidence: &'a SourceConfidence,
    pub extraction: &'a Extraction,
}

impl Workers<'_> {
    /// Asks the model for the facts of a message and remembers those that it holds; returns a result and what it cost.
    pub(super) async fn extract_facts(
        &self,
        tenant: &TenantId,
        job: &Job,
    ) -> Result<(String, u64), StoreError> {
        let unusable = |why: &str| StoreError::Unsupported { what: why.to_owned() };
        let rules = self.memory.ok_or_else(|| unusable("jobs of memory without its settings"))?;
        let payload: ExtractPayload = payload_of(job)?;
        let Some(model) = self.model else {
            return Ok((r#"{"skipped":"there is no model"}"#.to_owned(), 0));
        };
        let found = self.history.messages(tenant, &payload.session, payload.position, 1).await?;
        let record = found.into_iter().next().ok_or_else(|| StoreError::NotFound {
            what: format!("message {} of session {}", payload.position, payload.session),
        })?;
        let role = record.message.role;
        let own = stated(&record.message);
        let (safe, _) = redact(&own, self.safety.summariser);
        let prompt = facts_request(role, &safe, rules.extraction);
        let mut request = ChatRequest::new(vec![Message::text(Role::User, prompt)]);
        request.max_tokens = ANSWER_TOKENS;
        request.response = Response::Json { schema: FACTS_SCHEMA.into() };
        let reply = match model.complete(&request).await {
            Ok(reply) => reply,
            Err(ModelError::Unavailable { message, retry_after }) => {
                return Err(StoreError::Unavailable { why: message, retry_after });
            }
            Err(error) => return Err(StoreError::Other(Box::new(error))),
        };
        let cost = reply.usage.input + reply.usage.output;
        let Some(read) = read_facts(&reply.text(), role, &safe, rules.extraction) else {
            return Ok((r#"{"unusable":true}"#.to_owned(), cost));
        };
        let scope = Scope { session: Some(record.session.clone()), ..payload.scope };
        let origin = match role {
            Role::User => "user",
            Role::Tool => "tool",
            _ => "assistant",
        };
        let kept = read.kept.len();
        let new = read.kept.into_iter().map(|fact| NewMemory {
            scope: scope.clone(),
            origin: origin.to_owned(),
            source_ref: Some(Ref::message(record.hash).to_string()),
            event_at: record.message.time,
            ..new_memory(fact)
        });
        let remember = Remember {
            knowledge: self.knowledge,
            embedder: self.embedder,
            tenant,
            lifecycles: rules.lifecycles,
            confidence: rules.confidence,
            handling: self.safety.ingestion,
        };
        match remember.add_all(new.collect(), self.clock.now()).await {
            Ok(_) => {}
            Err(MemoryError::Store(error)) => return Err(error),
            Err(error) => return Err(StoreError::Other(Box::new(error))),
        }
        Ok((format!("{{\"facts\":{kept},\"refused\":{}}}", read.refused), cost))
    }
}

/// Makes the record of a fact, without its source.
fn new_memory(fact: ModelFact) -> NewMemory {
    let tags = std::iter::once(BY_MODEL).chain(fact.tag).map(str::to_owned).collect();
    match fact.kind {
        // A censor is found by its pattern and says why; a procedure has a name.
        MemoryKind::Censor => NewMemory {
            tags,
            name: fact.text,
            ..NewMemory::new(MemoryKind::Censor, fact.points.join(" "))
        },
        MemoryKind::Procedure => NewMemory {
            tags,
            name: fact.text,
            points: fact.points,
            ..NewMemory::new(MemoryKind::Procedure, "")
        },
        kind => NewMemory { tags, points: fact.points, ..NewMemory::new(kind, fact.text) },
    }
}
