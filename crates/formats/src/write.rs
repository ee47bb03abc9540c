//! Writing back: a changed context in the format that it was read from.
//!
//! Untouched records are copied byte for byte. In a changed record only the text, arguments or result is replaced. Dropped
//! records are left out, and their children get the nearest remaining ancestor as parent.

mod claude_code;
mod documents;
mod edit;
mod lines;
mod pi;
mod plan;

use std::collections::HashSet;
use std::sync::Arc;

use plimsoll_core::Message;

use crate::error::WriteError;
use crate::format::SessionFormat;
use crate::session::Session;

/// One message of the context to write.
#[derive(Debug, Clone)]
pub struct ContextMessage {
    /// Its index in [`Session::messages`]; `None` for a new one, such as a summary.
    pub position: Option<usize>,
    pub message: Arc<Message>,
}

/// Writes `context` in the session's own format.
///
/// `original` holds the bytes that the session was read from. `context` lists recorded messages in their order, with new
/// messages of text alone between them. Records that are not messages stay. An unchanged context gives the same bytes.
/// If the context changed and the session was read with [`crate::Compaction::PassOver`], compaction markers are left out,
/// because the agent would otherwise not see the messages before them.
pub fn write(
    session: &Session,
    original: &[u8],
    context: &[ContextMessage],
) -> Result<Vec<u8>, WriteError> {
    if !session.format.is_writable() {
        return Err(WriteError::Unsupported { format: session.format });
    }
    if session.options.part > 0 {
        return Err(WriteError::Part { part: session.options.part });
    }
    check(session, context)?;
    if is_unchanged(session, context) {
        return Ok(original.to_vec());
    }
    let plan = plan::WritePlan::new(session, context)?;
    match session.format {
        SessionFormat::Pi => pi::write(&plan, original),
        SessionFormat::ClaudeCode => claude_code::write(&plan, original),
        SessionFormat::OpenAiChat => {
            documents::write(&plan, original, context, documents::Dialect::OpenAi)
        }
        SessionFormat::AnthropicMessages | SessionFormat::Cline => {
            documents::write(&plan, original, context, documents::Dialect::Anthropic)
        }
        _ => Err(WriteError::Unsupported { format: session.format }),
    }
}

fn is_unchanged(session: &Session, context: &[ContextMessage]) -> bool {
    context.len() == session.messages.len()
        && context.iter().enumerate().all(|(index, written)| {
            written.position == Some(index) && written.message == session.messages[index]
        })
}

/// Refuses contexts that no program accepts: unknown positions, another order, results without their call.
fn check(session: &Session, context: &[ContextMessage]) -> Result<(), WriteError> {
    let mut next = 0;
    let mut calls: HashSet<&str> = HashSet::new();
    for written in context {
        if let Some(position) = written.position {
            if position < next || position >= session.messages.len() {
                return Err(WriteError::Position { position });
            }
            next = position + 1;
        }
        calls.extend(written.message.calls().map(|call| &*call.id));
        if let Some(result) =
            written.message.results().find(|result| !calls.contains(&*result.call_id))
        {
            return Err(WriteError::ResultWithoutCall { call_id: result.call_id.to_string() });
        }
    }
    Ok(())
}
