//! The summary of a trimmed session, written by a model.

use plimsoll_core::safety::Safety;
use plimsoll_core::{Message, Role, Transcript, TrimmedSession};

use crate::cards::safe_text;
use crate::chat::{ChatModel, ChatRequest, StopReason};
use crate::model_error::ModelError;

/// Returns the session with the summary that `model` writes; unchanged where its settings want none.
///
/// The prompt holds the turns that were left out, without what `safety` withholds from a model that summarises.
pub async fn with_model_summary(
    trimmed: TrimmedSession,
    transcript: &Transcript,
    model: &dyn ChatModel,
    safety: Safety,
) -> Result<TrimmedSession, ModelError> {
    let Some(prompt) = trimmed.summary_prompt(transcript) else { return Ok(trimmed) };
    let prompt = Message::text(Role::User, safe_text(&prompt, safety));
    let mut request = ChatRequest::new(vec![prompt]);
    request.max_tokens = u32::try_from(trimmed.summary_room).unwrap_or(u32::MAX).max(1);
    let reply = model.complete(&request).await?;
    let text = reply.text();
    if reply.stop_reason == StopReason::Refused || text.trim().is_empty() {
        return Err(ModelError::Unusable("it wrote no summary".to_owned()));
    }
    Ok(trimmed.with_model_summary(&text, transcript.tokenizer()))
}
