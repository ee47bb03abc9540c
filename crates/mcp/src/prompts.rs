//! Prompts: the frames, each with its questions.

use std::fmt::Write as _;

use plimsoll_core::memory::frame::Frame;
use rmcp::model::{GetPromptResult, JsonObject, Prompt, PromptArgument, PromptMessage, Role};

/// Returns the prompt of a frame as a list shows it.
pub(crate) fn listed(frame: &Frame) -> Prompt {
    let situation = PromptArgument::new("situation")
        .with_description("The question or the situation")
        .with_required(false);
    Prompt::new(frame.name.clone(), Some(frame.description.clone()), Some(vec![situation]))
}

/// Returns the messages of a frame's prompt.
pub(crate) fn written(frame: &Frame, arguments: Option<&JsonObject>) -> GetPromptResult {
    let situation =
        arguments.and_then(|found| found.get("situation")?.as_str()).unwrap_or_default();
    let mut text = frame.description.clone();
    for question in &frame.questions {
        let _ = write!(text, "\n- {question}");
    }
    text.push_str("\nCall `recall` for the memory that this needs.");
    if !situation.is_empty() {
        let _ = write!(text, "\n\n{situation}");
    }
    GetPromptResult::new(vec![PromptMessage::new_text(Role::User, text)])
}
