//! System prompt, task, and the newest messages that fit: the trim that most frameworks offer.

use crate::message::Role;
use crate::plan::{Plan, Reason, members};
use crate::transcript::{Position, Transcript};

/// Leaves out the oldest messages, whole exchanges at a time, until the rest fits `budget`.
pub(crate) fn keep_newest(transcript: &Transcript, end: Position, budget: u64, plan: &mut Plan) {
    let entries = &transcript.entries()[..end];
    let first = |role| entries.iter().position(|entry| entry.message.role == role);
    for head in [first(Role::System), first(Role::User)].into_iter().flatten() {
        plan.protect(head, Reason::Protected);
    }
    for position in 0..end {
        if plan.tokens() <= budget {
            return;
        }
        // The last exchange is what the model waits for; without it the request would mean nothing.
        if members(transcript, position, end).contains(&(end - 1)) {
            return;
        }
        if !plan.is_protected(position) {
            plan.omit(transcript, position, Reason::NotNewest);
        }
    }
}
