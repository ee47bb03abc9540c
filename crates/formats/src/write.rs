//! Writing back: a changed context in the format that it was read from.
//!
//! Untouched records are copied byte for byte; of a changed one only the text, arguments or result is replaced; dropped
//! ones are left out and what hung on them is hung on what is left.

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
use crate::format::Format;
use crate::session::Session;

/// One message of the context to write.
#[derive(Debug, Clone)]
pub struct Written {
    /// Its index in [`Session::messages`]; `None` for a new one, such as a summary.
    pub position: Option<usize>,
    pub message: Arc<Message>,
}

/// Writes `context` in the session's own format.
///
/// `original` is what the session was read from; `context` names recorded messages in their order, with new ones of
/// text alone between them. Records that are not messages are kept. Nothing changed gives the same bytes.
/// Where something is changed and the session was read past its compactions, their markers are left out, because the
/// agent would otherwise not see what stands before them.
pub fn write(
    session: &Session,
    original: &[u8],
    context: &[Written],
) -> Result<Vec<u8>, WriteError> {
    if !session.format.is_writable() {
        return Err(WriteError::Unsupported { format: session.format });
    }
    check(session, context)?;
    if is_unchanged(session, context) {
        return Ok(original.to_vec());
    }
    let plan = plan::Plan::new(session, context)?;
    match session.format {
        Format::Pi => pi::write(&plan, original),
        Format::ClaudeCode => claude_code::write(&plan, original),
        Format::OpenAiChat => {
            documents::write(&plan, original, context, documents::Dialect::OpenAi)
        }
        Format::AnthropicMessages => {
            documents::write(&plan, original, context, documents::Dialect::Anthropic)
        }
        _ => Err(WriteError::Unsupported { format: session.format }),
    }
}

fn is_unchanged(session: &Session, context: &[Written]) -> bool {
    context.len() == session.messages.len()
        && context.iter().enumerate().all(|(index, written)| {
            written.position == Some(index) && written.message == session.messages[index]
        })
}

/// Refuses contexts that no program accepts: unknown positions, another order, results without their call.
fn check(session: &Session, context: &[Written]) -> Result<(), WriteError> {
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
