//! Old results cleared in batches once the context passes a trigger, as providers' own context editing does it.

use std::sync::Arc;

use crate::choose::Reason;
use crate::hash::Ref;
use crate::message::Role;
use crate::plan::{Plan, Sent, Treatment};
use crate::render;
use crate::transcript::{Position, Transcript};

/// Clears all results but the newest `keep` when the context is larger than `trigger` tokens; a cleared result stays cleared.
pub(crate) fn clear_tool_uses(
    transcript: &Transcript,
    end: Position,
    trigger: u64,
    keep: usize,
    plan: &mut Plan,
) {
    if plan.tokens() <= trigger {
        return;
    }
    let results: Vec<Position> =
        (0..end).filter(|&at| transcript.entries()[at].message.role == Role::Tool).collect();
    for &position in &results[..results.len().saturating_sub(keep)] {
        if plan.decisions()[position].treatment != Treatment::Keep {
            continue;
        }
        let entry = &transcript.entries()[position];
        let text = render::cleared_text(Ref::message(entry.hash));
        if let Some(message) = render::replace_results(&entry.message, |_| text.clone()) {
            let form = Arc::new(Sent::rendered(Some(position), message, transcript.tokenizer()));
            plan.reduce(transcript, position, Treatment::Stub, Reason::Cleared, form);
        }
    }
}
