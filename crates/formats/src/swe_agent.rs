//! SWE-agent: the `history` of a trajectory file, with function calling or with commands in the assistant's text.
//!
//! `trajectory` repeats the whole prompt at every step and is not read.

use crate::draft::SessionDraft;
use crate::error::ReadError;
use crate::{mini_swe_agent, openai};

/// Reads a SWE-agent trajectory.
pub(crate) fn read(text: &str) -> Result<SessionDraft, ReadError> {
    let (mut draft, trajectory, history) = SessionDraft::of_document(text, "history")?;
    draft.header.id = trajectory.owned("environment");
    draft.each_element(&history, |draft, number, message| {
        openai::each_message(draft, number, message, |draft, recorded| {
            mini_swe_agent::push(draft, number, recorded);
        });
    });
    Ok(draft)
}
