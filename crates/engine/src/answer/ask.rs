//! Asking a model through the cache: nothing that fails in the cache keeps a question from its model.

use plimsoll_core::answer::{
    AnswerFacts, AnswerScope, CacheExclusion, RequestFacts, keepable, servable,
};
use plimsoll_core::{Block, ContentHash, Message, MillisSinceEpoch, Role};
use serde_json::json;

use super::{AnswerCache, AnswerMatch, AnswerQuestion, find_answer, keep_answer};
use crate::chat::{ChatModel, ChatReply, ChatRequest, ChatUsage, StopReason};
use crate::error::StoreError;
use crate::model_error::ModelError;

/// A request and who makes it.
#[derive(Debug, Clone, Copy)]
pub struct AskedOf<'a> {
    pub model: &'a dyn ChatModel,
    pub request: &'a ChatRequest,
    /// Whose answers may be shared.
    pub user: &'a str,
    /// Refs of artefacts that the request holds; the answer goes when one of them changes.
    pub used_refs: &'a [String],
}

/// A reply, and where it is from.
#[derive(Debug)]
pub struct Answered {
    /// One from the cache used nothing.
    pub reply: ChatReply,
    pub by: By,
    /// Errors of the cache on the way.
    pub trouble: Option<StoreError>,
}

/// The source of an answer.
#[derive(Debug, Clone, PartialEq)]
pub enum By {
    /// The cache, by the key under which the answer stands; a similarity where the question was another.
    Cache { key: String, similarity: Option<f64> },
    /// The model; why neither the question was looked for nor the answer kept, if so.
    Model { uncached: Option<CacheExclusion> },
}

/// Answers a request from the cache if it may be, else by the model, whose answer is kept if it may be.
///
/// Errors: those of the model alone.
pub async fn answer(
    cache: &AnswerCache<'_>,
    asked: &AskedOf<'_>,
    now: MillisSinceEpoch,
) -> Result<Answered, ModelError> {
    let (text, facts) = question_of(asked.request);
    let by_model = |uncached| By::Model { uncached };
    if let Err(why) = servable(&text, &facts, cache.settings) {
        let reply = asked.model.complete(asked.request).await?;
        return Ok(Answered { reply, by: by_model(Some(why)), trouble: None });
    }
    let signature = signature(cache, asked);
    let question = AnswerQuestion { text: &text, signature: &signature };
    let (found, trouble) = match find_answer(cache, &question, now).await {
        Ok(found) => (found, None),
        Err(error) => (AnswerMatch::Nothing { nearest: None }, Some(error)),
    };
    let (answer, similarity) = match found {
        AnswerMatch::Exact(answer) => (answer, None),
        AnswerMatch::Similar { answer, similarity } => (answer, Some(similarity)),
        AnswerMatch::Nothing { .. } => {
            let reply = asked.model.complete(asked.request).await?;
            let kept = reply.text();
            if let Err(why) = keepable(&text, &kept, &answer_facts(&reply)) {
                return Ok(Answered { reply, by: by_model(Some(why)), trouble });
            }
            let kept = keep_answer(cache, &question, &kept, asked.used_refs, now).await;
            return Ok(Answered { reply, by: by_model(None), trouble: trouble.or(kept.err()) });
        }
    };
    let by = By::Cache { key: answer.cache_key, similarity };
    let blocks = vec![Block::Text(answer.answer_text.into())];
    let reply = ChatReply::new(blocks, ChatUsage::default(), StopReason::End, asked.model.model());
    Ok(Answered { reply, by, trouble })
}

/// Returns the question of a request, the text of its last message, and what decides whether it may be cached.
pub fn question_of(request: &ChatRequest) -> (String, RequestFacts) {
    let mut facts = RequestFacts {
        tools: !request.tools.is_empty(),
        temperature: request.temperature,
        ..RequestFacts::default()
    };
    let is_plain = |block: &Block| matches!(block, Block::Text(_));
    let Some((last, before)) = request.messages.split_last() else {
        return (String::new(), facts);
    };
    facts.state = last.role != Role::User
        || before.iter().flat_map(|message| &message.blocks).any(|block| !is_plain(block));
    facts.attachments = !last.blocks.iter().all(is_plain);
    (last.shown(), facts)
}

fn answer_facts(reply: &ChatReply) -> AnswerFacts {
    let only_text = |block: &Block| matches!(block, Block::Text(_) | Block::Thinking(_));
    AnswerFacts {
        error: false,
        calls: !reply.message.blocks.iter().all(only_text)
            || reply.stop_reason == StopReason::Calls,
        refused: reply.stop_reason == StopReason::Refused,
        cut: matches!(reply.stop_reason, StopReason::Length | StopReason::Other(_)),
    }
}

fn signature(cache: &AnswerCache<'_>, asked: &AskedOf<'_>) -> String {
    let request = asked.request;
    let before = request.messages.split_last().map_or(&[][..], |(_, before)| before);
    let system = before.iter().take_while(|message| message.role == Role::System).count();
    let system_prompt: Vec<String> = before[..system].iter().map(Message::shown).collect();
    let context: Vec<String> =
        before[system..].iter().map(|message| ContentHash::of(message).full()).collect();
    // As JSON, in which no part can run into the next.
    let parameters =
        json!([request.max_tokens, request.temperature, request.response, request.stop]);
    AnswerScope {
        tenant: cache.tenant.as_str(),
        user: asked.user,
        model: asked.model.model(),
        system_prompt: &json!(system_prompt).to_string(),
        tools: "",
        parameters: &parameters.to_string(),
        context_hash: &context.concat(),
        policy_version: cache.settings.policy_version,
    }
    .signature()
}
